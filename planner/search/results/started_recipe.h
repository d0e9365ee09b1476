// A first recipe of a model, for `plan init`: everything but a good layout (docs/tune.md#a-first-recipe).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

// A file of recipes/models, which the program contains.
struct BuiltInModel {
  std::string name, text;  // "nemotron_moe_vlm_20l"
};
const std::vector<BuiltInModel>& BuiltInModels();

inline constexpr int64_t kGpusOfANode = 8;  // as most nodes have

struct StartedRecipe {
  YamlNode own;              // what its file says itself: keys, and models that the program contains
  std::string extends;       // or the file that has its models
  bool initialized = false;  // that file says what a run begins with
};

// `model`: the name of one that the program contains, or a file that `plan import` wrote. Modules begin on all `gpus`
// together, on nodes of eight. Problems of the file go to `diagnostics`, with InvalidArgument; that status alone: it is
// no file of models. NotFound: there is no such model.
absl::StatusOr<StartedRecipe> StartRecipe(const std::string& model, int64_t gpus, Diagnostics& diagnostics);

// A recipe that contains its `models` (the section, with one language model), and says what it begins with. The modules
// are those of StartRecipe; all else is `keys`, as overrides. `name`: of the model.
StartedRecipe StartWithModels(const std::string& name, YamlEntry models, const std::vector<std::string>& keys,
                              int64_t gpus);

// What first recipes call the module of an encoder that stands alone before the language model. `model`: the keys of
// one in `models`, as below.
std::string EncoderModule(const YamlNode& model);

// The whole number of a key of a model, or the default that its kind has; `otherwise` where there is neither.
int64_t SizeOfModel(const YamlNode& model, const std::string& key, int64_t otherwise);

// The text of the file `path`, with `changes`, as overrides; models keep their comments. Relative paths of keys and
// changes are seen from the current folder. `comment`: lines above it, without #. InvalidArgument: a change that is no
// override.
absl::StatusOr<std::string> TextOfStarted(const StartedRecipe& recipe, const std::vector<std::string>& changes,
                                          const std::string& comment, const std::string& path);

}  // namespace planwright
