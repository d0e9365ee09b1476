// Joins the parts that ranks wrote for `--probe DIR` (planner/wire/records/probe_format.h) into whole tensors with
// published names.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "planner/plan/plan.h"

namespace planwright {

// Reads DIR/parts and writes DIR/KIND.safetensors for each kind of probe_format.h that a run of steps writes. If
// several ranks hold an element, the lowest rank's is written. Error: a tensor that the parts do not cover, by name.
absl::Status AssembleProbe(const Plan& plan, const std::string& directory);

// Writes one of these files. `kind`: "parameters", "parameters_last", "gradients_first" or "gradients_last".
absl::Status AssembleWeights(const Plan& plan, const std::string& directory, const std::string& kind);

// `kind`: "values_first" or "values_last". Writes the block outputs of that step as "outputs/NAME", in sample order. Or
// "values_evaluated", of a run of no steps: round by round, with what fills up the last round of a set.
// Language values have the shape [samples, positions, ...], the router's [samples * positions, ...]. Encoder values are
// packed image by image: [1, rows, ...] with class tokens, [rows, ...] without.
absl::Status AssembleValues(const Plan& plan, const std::string& directory, const std::string& kind);

}  // namespace planwright
