// The one-line text of a value's type, in plan files and in `plan show`:
//   fp32[24,1,64] tp:shard0 | tp:partial        dtype, dims, layout of the value | layout of its gradient
//   int64[4] host                               no gradient, in host memory
// Axes that are not named are replicated. A dim that is a word is a run-time size (Plan::symbols).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "planner/plan/instruction.h"

namespace planwright {

std::string TypeText(const ValueType& type);
std::optional<ValueType> TypeFromText(std::string_view text);  // nullopt: not such a text

// "name: type"
std::string OutputText(const Output& output);
std::optional<Output> OutputFromText(std::string_view text);

}  // namespace planwright
