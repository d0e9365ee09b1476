// The exact value of a formula over whole numbers, by fractions: 64 / 49 * 49 is 64, and not a little less, as doubles
// have it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "planner/plan/expression.h"

namespace planwright {

struct ExactNumber {
  std::optional<int64_t> number;  // rounded down, once; none: there is a problem, or a name has no value
  std::string problem;            // "`/ (a - b)` divides by 0"; empty: there is none
};

// `value_of`: nothing where a name has no value.
ExactNumber ExactlyDown(const Expression& formula,
                        const std::function<std::optional<int64_t>(std::string_view)>& value_of);

}  // namespace planwright
