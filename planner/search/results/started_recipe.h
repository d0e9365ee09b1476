// A first recipe of a model, for `plan init`: everything but a good layout (docs/tune.md#a-first-recipe).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/recipe/diagnostics/diagnostic.h"

namespace planwright {

// A file of recipes/models, which the program contains.
struct BuiltInModel {
  std::string name, text;  // "nemotron_moe_vlm_20l"
};
const std::vector<BuiltInModel>& BuiltInModels();

inline constexpr int64_t kGpusOfANode = 8;  // as most nodes have

struct StartedRecipe {
  std::vector<std::string> keys;        // as overrides, in the order of a recipe
  std::string models;                   // the text of the models that the program contains
  std::vector<std::string> model_keys;  // the same as overrides
  std::string extends;                  // or the file that has them
  bool initialized = false;             // that file says what a run begins with
};

// `model`: the name of one that the program contains, or a file that `plan import` wrote. Modules begin on all `gpus`
// together, on nodes of eight. Problems of the file go to `diagnostics`, with InvalidArgument; that status alone: it is
// no file of models. NotFound: there is no such model.
absl::StatusOr<StartedRecipe> StartRecipe(const std::string& model, int64_t gpus, Diagnostics& diagnostics);

// The text of the file `path`: the keys, then `changes`, as overrides. Models that the program contains stay as they
// are written there, with their comments, unless a change is of them. `comment`: lines above it, without #.
// InvalidArgument: a change that a recipe cannot hold.
absl::StatusOr<std::string> TextOfStarted(const StartedRecipe& recipe, const std::vector<std::string>& changes,
                                          const std::string& comment, const std::string& path);

}  // namespace planwright
