// The action of an `exchange` instruction: rows of samples between encoder and language ranks, activations and their
// gradients between pipeline stages, all transfers of the instruction at once. Which rank sends which samples:
// docs/layouts/bridges.md#samples; what passes between stages: docs/layouts/pipeline.md#what-passes-between-stages.
#pragma once

#include <vector>

#include "executor/program/actions.h"
#include "executor/program/rank.h"

namespace planwright::executor {

// An exchange as one rank sees it: the samples of its lane, to or from whom each run of samples goes, the ranks of the
// neighboring stages, and the copies between parts of the rank itself.
class Exchange {
 public:
  Exchange(const Instruction& instruction, const Rank& rank);

  // `sent` and `sizes` have one entry for each part of the instruction. sent[p]: over a bridge the rows of all samples
  // of the lane, sample after sample, between stages the whole value; undefined for a part that receives. sizes[p]: the
  // value of ExchangePart::sizes, in host memory. Returns the instruction's outputs, those of a bridge in the order of
  // samples. A transfer of 0 rows sends no message: both ends know the sizes.
  Tensors Run(const Tensors& sent, const Tensors& sizes) const;

 private:
  struct BoundTransfer {
    int64_t first = 0, end = 0;            // samples, counted from the lane's first; between stages all rows: 0 to 1
    Communicator* communicator = nullptr;  // null: the other end is this rank itself
    int peer = 0;                          // index of the other end in the communicator
    // Where this rank receives from itself: the part and the transfer of parts_ that sends.
    size_t from_part = 0, from_transfer = 0;
  };
  struct BoundPart {
    const ExchangePart* part = nullptr;
    int64_t samples = 0;  // of the lane; over a bridge only
    // The planned rows of a value that is received between stages; -1 where the sizes of images say them.
    int64_t planned_rows = -1;
    bool image_rows = false;  // received between stages, with a row for each image token
    CallContext coordinates;  // between stages: those of this rank in the module
    std::vector<BoundTransfer> transfers;
    std::vector<int64_t> row_shape;  // of a received value: its dims after the rows
    at::ScalarType dtype{};
    size_t output = 0;  // index of a received value among the instruction's outputs
  };
  BoundPart BindOverBridge(const ExchangePart& part, const Instruction& instruction, const Rank& rank);
  BoundPart BindBetweenStages(const ExchangePart& part, const Instruction& instruction, const Rank& rank);
  static void BindReceived(const ExchangePart& part, const Instruction& instruction, BoundPart& bound);
  // The first row of each sample, and behind them the number of all rows. Between stages all rows are one piece.
  std::vector<int64_t> FirstRowsOf(const BoundPart& part, const at::Tensor& sent, const at::Tensor& sizes) const;
  void BindCopies();

  std::vector<BoundPart> parts_;
  size_t outputs_ = 0;
  at::Device device_;
};

Action BindExchange(const LinkedInstruction& instruction, const Rank& rank);

}  // namespace planwright::executor
