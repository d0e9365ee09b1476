// The bridge: rows of samples between encoder and language ranks, all transfers of an instruction at once.
#pragma once

#include <vector>

#include "executor/action.h"
#include "executor/rank.h"

namespace planwright::executor {

// An exchange as one rank sees it: its lane, which samples go to whom, and the copies of what it sends itself.
class Exchange {
 public:
  Exchange(const Instruction& instruction, const Rank& rank);

  // By part: what is sent (nothing for a part that receives), and the rows of each of the lane's samples, in host
  // memory. Gives the instruction's outputs: what each receiving part gets, in sample order, one row block per sample
  // as long as `sample_rows` says. Transfers without rows send no message.
  Tensors Run(const Tensors& sent, const Tensors& sample_rows) const;

 private:
  struct Transfer {
    int64_t first = 0, end = 0;            // samples, counted from the lane's first
    Communicator* communicator = nullptr;  // null: to or from the rank itself
    int peer = 0;                          // in the communicator
    size_t from_part = 0, from = 0;        // of a received one from itself: the part and transfer that sends it
  };
  struct Part {
    const ExchangePart* part = nullptr;
    int64_t samples = 0;  // of the lane
    std::vector<Transfer> transfers;
    std::vector<int64_t> row_shape;  // of a received value, without the rows
    at::ScalarType dtype{};
    size_t output = 0;
  };
  Part BindPart(const ExchangePart& part, const Instruction& instruction, const Rank& rank);
  void BindCopies();

  std::vector<Part> parts_;
  size_t outputs_ = 0;
  at::Device device_;
};

Action BindExchange(const LinkedInstruction& instruction, const Rank& rank);

}  // namespace planwright::executor
