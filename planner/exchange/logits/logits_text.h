// What a comparison of logits says, for people and for scripts (docs/training/evaluation.md#against-another-program).
#pragma once

#include <string>

#include "nlohmann/json.hpp"
#include "planner/exchange/logits/compare_logits.h"
#include "planner/exchange/logits/reference_logits.h"
#include "planner/plan/plan.h"

namespace planwright {

// Both sides, a table, the worst position, and the verdict with what it hints at. `plan`: that computed ours. `width`:
// of a line.
std::string LogitsText(const ReferenceLogits& theirs, const Plan& plan, const LogitsComparison& comparison,
                       size_t width);

// The same numbers; one that is not finite is null.
nlohmann::ordered_json LogitsJson(const ReferenceLogits& theirs, const Plan& plan, const LogitsComparison& comparison);

}  // namespace planwright
