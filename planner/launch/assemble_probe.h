// Joins what the ranks left for `--probe DIR` (planner/run_files/probe_format.h) to whole tensors by published names.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "planner/plan/plan.h"

namespace planwright {

// Reads DIR/parts and writes DIR/{parameters,gradients_first,gradients_last,values_first,values_last}.safetensors. A
// tensor of which some element is in no part is an error that names it; of an element that several ranks hold the
// lowest rank's is taken.
absl::Status AssembleProbe(const Plan& plan, const std::string& directory);

// One of them: "parameters", "gradients_first", "gradients_last".
absl::Status AssembleWeights(const Plan& plan, const std::string& directory, const std::string& kind);

// `kind`: "values_first" or "values_last". "outputs/NAME" of that step, in sample order: language values [samples,
// positions, ...] (token rows of the router [samples * positions, ...]), encoder values packed image by image ([1,
// rows, ...] with class tokens, [rows, ...] without).
absl::Status AssembleValues(const Plan& plan, const std::string& directory, const std::string& kind);

}  // namespace planwright
