// The recipe of a layout that a search found: one that extends the given recipe by the keys that change.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

struct TunedRecipeText {
  std::string given;                   // the path of the recipe that was searched
  std::vector<std::string> overrides;  // with which it was given
  std::vector<std::string> changes;    // TunedLayout::changes
  std::vector<std::string> fallbacks;  // launch.fallbacks: files beside the one that is written
  std::string comment;                 // lines above the recipe, without #
};

// The text of the file `path`. InvalidArgument: an override that is none.
absl::StatusOr<std::string> RecipeOfLayout(const TunedRecipeText& recipe, const std::string& path);

// The text of the file `path` that says what `tree` says, in the form of `plan fmt`. Relative paths in the tree and
// `extends`, a file (empty: none), are seen from the current folder; those of a file from its own: they are rewritten.
// `comment`: lines above it, without #.
std::string TextOfFile(YamlNode tree, const std::string& extends, const std::string& comment, const std::string& path);

// The file `named` as the file `path` names it, as YAML.
std::string PathInFile(const std::string& named, const std::string& path);

// "best_128.yaml" of "best.yaml": the file of a fallback.
std::string FallbackPath(const std::string& path, int64_t gpus);

}  // namespace planwright
