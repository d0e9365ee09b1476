// The action of an `exchange` instruction over bridges: rows of samples between encoder and language ranks, all
// transfers of the instruction at once. Which rank sends which samples: docs/layouts/bridges.md#samples.
#pragma once

#include <vector>

#include "executor/program/actions.h"
#include "executor/program/rank.h"

namespace planwright::executor {

// An exchange as one rank sees it: the samples of its lane, to or from whom each run of samples goes, and the copies
// between parts of the rank itself.
class Exchange {
 public:
  Exchange(const Instruction& instruction, const Rank& rank);

  // `sent` and `sample_rows` have one entry for each part of the instruction. sent[p]: the rows of all samples of the
  // lane, sample after sample; undefined for a part that receives. sample_rows[p]: i64 [samples of the lane], host, the
  // rows of each sample. Returns the instruction's outputs: for each receiving part the rows of its lane's samples in
  // the order of samples. A transfer of 0 rows sends no message: both ends know the counts.
  Tensors Run(const Tensors& sent, const Tensors& sample_rows) const;

 private:
  struct BoundTransfer {
    int64_t first = 0, end = 0;            // samples, counted from the lane's first
    Communicator* communicator = nullptr;  // null: the other end is this rank itself
    int peer = 0;                          // index of the other end in the communicator
    // Of a received transfer from this rank itself: the part and the transfer of parts_ that sends it.
    size_t from_part = 0, from_transfer = 0;
  };
  struct BoundPart {
    const ExchangePart* part = nullptr;
    int64_t samples = 0;  // of the lane
    std::vector<BoundTransfer> transfers;
    std::vector<int64_t> row_shape;  // of a received value: its dims after the rows
    at::ScalarType dtype{};
    size_t output = 0;  // index of a received value among the instruction's outputs
  };
  BoundPart BindPart(const ExchangePart& part, const Instruction& instruction, const Rank& rank);
  void BindCopies();

  std::vector<BoundPart> parts_;
  size_t outputs_ = 0;
  at::Device device_;
};

Action BindExchange(const LinkedInstruction& instruction, const Rank& rank);

}  // namespace planwright::executor
