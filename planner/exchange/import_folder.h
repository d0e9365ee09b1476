// `plan import`: a Hugging Face folder as the `models` section of a recipe (docs/hugging_face.md#what-goes-in). Reads
// config.json and the headers of the weights, and of their numbers only the six of input_conditioner.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "planner/exchange/findings.h"
#include "planner/exchange/said_model.h"
#include "planner/state/weights/weight_files.h"

namespace planwright {

// A Hugging Face folder of which config.json and headers have been read.
struct ReadFolder {
  SaidModel said;
  Findings findings;
  std::unique_ptr<WeightFiles> weights;
};
// Compares config.json with the headers. `untie`: a model whose head is its embedding gets a head of its own, which
// begins with the same numbers; a problem if it has one. What does not fit is in `findings`. InvalidArgument or
// Unavailable, with the path, if the folder has no config.json or no weights, or if they cannot be read. `ignored`:
// paths of keys. `dialects` outlive the folder.
absl::StatusOr<ReadFolder> ReadHuggingFaceFolder(const std::string& folder, const std::set<std::string>& ignored,
                                                 const DialectSet& dialects = BuiltInDialects(), bool untie = false);

struct ImportedModel {
  std::string text;  // of the recipe's part; empty with any problem
  Findings findings;
};
// `named`: the folder as the file of the text names it, as YAML; empty: the text does not say where the weights are.
absl::StatusOr<ImportedModel> ImportFolder(const std::string& folder, const std::set<std::string>& ignored,
                                           const std::string& named = "",
                                           const DialectSet& dialects = BuiltInDialects(), bool untie = false);

}  // namespace planwright
