// The parts of a plan that have a source of weights each (docs/weights.md#parts): a language module, and of an encoder
// its backbone and its projection. Adapters are a part of their module, and are drawn if no source is for them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/state/dialect/dialect_forms.h"

namespace planwright {

inline constexpr char kDrawn[] = "drawn";

struct WeightPart {
  std::string name;  // "language", "radio_encoder.backbone"
  const Module* module = nullptr;
  bool projection = false;      // "radio_encoder.projection"
  bool adapter = false;         // "language.adapter"
  std::vector<int> parameters;  // indices in Module::parameters
  // Beginnings of Parameter::file_name that names in files lack where the model is published alone: "language_model.".
  std::vector<std::string> lacked;
  std::vector<DialectForms> dialects;  // other forms, by dialect
};

// In the order of modules. Keeps pointers into the plan.
std::vector<WeightPart> PartsOf(const Plan& plan, const KindForms& forms = BuiltInForms());

// Whether a source `name` ("radio_encoder") is one of a part ("radio_encoder.projection").
bool Covers(std::string_view name, const WeightPart& part);

// Whether checkpoints of the plan have the part: of a module with adapters these, and a projection that learns.
bool CheckpointsHave(const WeightPart& part);

// Where the weights of a part come from.
struct PartSource {
  WeightPart part;
  std::string from;  // as written; "drawn"
  std::string path;  // absolute, or relative to where the program runs; empty: drawn
};

// The source of each part, as Plan::initialize says; all drawn without it. InvalidArgument, with all problems, if a
// part has no source or two, or if a source is for no part. (The planner has refused such recipes; a plan may be
// older.)
absl::StatusOr<std::vector<PartSource>> SourcesOfParts(const Plan& plan, const KindForms& forms = BuiltInForms());

// What a run with adapters still needs of `initialize` when it goes on with a checkpoint of its own: the sources of
// what the checkpoint does not have. Its other parts count as drawn, so their sources may be gone. None: nothing is
// needed.
std::optional<InitializePlan> NeededToGoOn(const Plan& plan);

}  // namespace planwright
