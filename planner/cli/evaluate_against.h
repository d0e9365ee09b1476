// `plan evaluate --against`: logits of a few tokens beside those of another program, before anything trains
// (docs/training/evaluation.md#against-another-program).
#pragma once

#include <optional>
#include <string>

#include "planner/cli/run_flags.h"

namespace planwright {

struct EvaluateFlags : RunFlags {
  std::string against;              // file of logits; empty: evaluation sets are evaluated
  std::optional<double> tolerance;  // none: by the precision of both sides
};

// The words are [CHECKPOINT] RECIPE [OVERRIDE ...]. Returns an exit status: kExitInvalid if the logits are not those of
// the same model.
int EvaluateAgainst(const EvaluateFlags& flags);

}  // namespace planwright
