// The recipe of a layout that a search found: one that extends the given recipe by the keys that change.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

struct TunedRecipeText {
  std::string given;                   // the path of the recipe that was searched
  std::vector<std::string> overrides;  // with which it was given
  std::vector<std::string> changes;    // TunedLayout::changes
  std::vector<std::string> fallbacks;  // launch.fallbacks: files beside the one that is written
  std::string comment;                 // lines above the recipe, without #
};

// The text of the file `path`. Paths of overrides are relative to the current folder, those of a file to its own: they
// are rewritten. InvalidArgument: an override that a recipe cannot hold.
absl::StatusOr<std::string> RecipeOfLayout(const TunedRecipeText& recipe, const std::string& path);

// An override for the file `path`: if its value is a path, it is one from there. Overrides name files from the current
// folder.
std::string ForFile(const std::string& override, const std::string& path);
// The file `named` as the file `path` names it.
std::string PathInFile(const std::string& named, const std::string& path);

// "best_128.yaml" of "best.yaml": the file of a fallback.
std::string FallbackPath(const std::string& path, int64_t gpus);

// Lines as comments.
std::string AsComment(const std::string& text);

}  // namespace planwright
