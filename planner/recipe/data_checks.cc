#include <algorithm>

#include "planner/diagnostics/text.h"
#include "planner/recipe/recipe_checks.h"

namespace planwright {
namespace {

// Made-up text has places for images where there is an encoder.
bool HasImages(const Recipe& recipe) {
  const auto is_encoder = [](const ModuleRecipe& module) { return module.model.kind.value == "radio_vit"; };
  return recipe.data.kind.value != "mock" || std::any_of(recipe.modules.begin(), recipe.modules.end(), is_encoder);
}

void CheckImageToken(const Recipe& recipe, const RecipeFields& fields, Diagnostics& problems) {
  const DataRecipe& data = recipe.data;
  const bool bytes = data.kind.value == "webdataset" && data.tokenizer.value == "bytes";
  if (!bytes && HasImages(recipe) && !fields.Has("image_token")) {
    problems.Error(DiagnosticKind::kMissingKey, data.where, "`data.image_token` is missing",
                   "add `image_token`: the token id whose places take image rows");
  }
  if (bytes && data.image_token && data.image_token->value != kBytesImageToken) {
    problems.Error(DiagnosticKind::kConflictingKeys, data.image_token->where,
                   Cat("the tokenizer bytes has the image token ", kBytesImageToken, ", not ", data.image_token->value),
                   "leave `image_token` out");
  }
}

void CheckPatches(const DataRecipe& data, Diagnostics& problems) {
  if (data.min_patches.value <= data.max_patches.value) return;
  const Location& where = data.min_patches.where.known() ? data.min_patches.where : data.max_patches.where;
  problems.Error(DiagnosticKind::kConflictingKeys, where,
                 Cat("`min_patches` ", data.min_patches.value, " is above `max_patches` ", data.max_patches.value),
                 "make min_patches the smaller one");
}

}  // namespace

void CheckData(const Recipe& recipe, const RecipeFields& fields, Diagnostics& problems) {
  const DataRecipe& data = recipe.data;
  if (!data.where.known() || !fields.given()) return;
  CheckImageToken(recipe, fields, problems);
  if (data.kind.value == "webdataset") CheckPatches(data, problems);
}

}  // namespace planwright
