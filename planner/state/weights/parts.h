// The parts of a plan that have a source of weights each (docs/weights.md#parts): a language module, and of an encoder
// its backbone and its projection.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"

namespace planwright {

inline constexpr char kDrawn[] = "drawn";

struct WeightPart {
  std::string name;  // "language", "radio_encoder.backbone"
  const Module* module = nullptr;
  std::vector<int> parameters;  // indices in Module::parameters
  // Other beginnings of the names in a file than Parameter::file_name has: those of a model that is published alone. In
  // the place of `whole` a file may have `alone`.
  struct Form {
    std::string whole, alone;  // "language_model.", ""
  };
  std::vector<Form> forms;
};

// In the order of modules. Keeps pointers into the plan.
std::vector<WeightPart> PartsOf(const Plan& plan);

// Whether a source `name` ("radio_encoder") is one of a part ("radio_encoder.projection").
bool Covers(std::string_view name, const WeightPart& part);

// Where the weights of a part come from.
struct PartSource {
  WeightPart part;
  std::string from;  // as written; "drawn"
  std::string path;  // absolute, or relative to where the program runs; empty: drawn
};

// The source of each part, as Plan::initialize says; all drawn without it. InvalidArgument, with all problems, if a
// part has no source or two, or if a source is for no part. (The planner has refused such recipes; a plan may be
// older.)
absl::StatusOr<std::vector<PartSource>> SourcesOfParts(const Plan& plan);

}  // namespace planwright
