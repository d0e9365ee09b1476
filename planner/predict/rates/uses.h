// What is asked of Rates: one use of an operation, or of a communication. And the answer: seconds, and how they are
// known (docs/step_time.md#rates).
#pragma once

#include "planner/plan/instruction.h"

namespace planwright {

// How a figure is known.
enum class Known {
  kMeasured,   // at this size
  kBetween,    // between two sizes that were measured
  kEstimated,  // from data sheets and shares, or beyond all sizes that were measured
};

struct Seconds {
  double seconds = 0;
  Known known = Known::kEstimated;
};

// One use of an operation that computes or changes state, at mean sizes.
struct ComputeUse {
  OpKind kind{};
  double flops = 0;
  // Of operands on the device: inputs, outputs, parameters and what else it reads or writes. What is read and written
  // counts twice (sums of gradients).
  double bytes = 0;
  DType dtype = DType::kBf16;  // of its products
  bool flash = false;          // attention that cuDNN's kernel does not take: LibTorch's flash kernel does
};

// One communication as one member sees it.
struct CommunicationUse {
  OpKind kind{};
  // Of the whole value. A gather: what it makes. A reduce-scatter: what it reads. All_reduce, broadcast: the value.
  // All_to_all and reshard: what the member has before. Exchange: the largest of what it and those at the other ends
  // send or receive, as all of them are at it until the busiest one is through.
  double bytes = 0;
  int members = 1;
  int per_node = 1;  // members on the fullest node
  int nodes = 1;
  bool sends_only = false;  // an exchange in which the member receives nothing
};

}  // namespace planwright
