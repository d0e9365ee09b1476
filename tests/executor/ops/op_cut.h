// One instruction, cut along an index over an axis: its handler runs on every part of the operands, and the parts must
// make up what it makes of the whole.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/axis.h"
#include "tests/executor/ops/op_cases.h"

namespace planwright::executor::op_cases {

// The same sums in another order: roundings of fp64, relative to the largest number.
inline constexpr double kAllowed = 1e-12;

// One instruction on whole operands, and what it makes.
struct Instance {
  const OpCase* c = nullptr;
  const Entry* entry = nullptr;
  bool over_cp = false;  // it is in the form with cp
  OpSignature signature;
  Tensors inputs, parameters, gradients, outputs, added;

  std::string name() const { return absl::StrCat(entry->name, " (", c->name, ")"); }
};

// What is wrong where the operands are cut along `index` into `parts` over `axis`, or "". None: the index has too few
// units for so many parts.
std::optional<std::string> CutProblem(const Table& table, const Instance& whole, char index, Axis axis, int parts);

}  // namespace planwright::executor::op_cases
