// How fast each kind of instruction runs on a GPU, as shares of the data sheet (docs/step_time.md#shares). The table is
// provisional: it was measured on one H200, in bf16, and stands for every device and precision.
#pragma once

#include <array>
#include <cstddef>

#include "planner/plan/instruction.h"

namespace planwright {

inline constexpr size_t kOpKinds = 0
#define OP(id, name, op_class, text) +1
#include "planner/plan/ops.def"
#undef OP
    ;

struct KindRate {
  // Of the dense peak, that its products reach in a step that goes on for seconds, where power limits them.
  double products = 0.66;
  // How often it reads or writes its operands, in all: a kind of several kernels does so more than once. It takes what
  // is longer, products or passes.
  double passes = 1;
  double beside = 0;  // passes that products do not hide, in addition: sums of gradients, activations between products
};

// By OpKind. Kinds without products read and write each operand once, unless the table says more.
std::array<KindRate, kOpKinds> ShippedKindRates();

}  // namespace planwright
