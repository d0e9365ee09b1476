#include "planner/diagnostics/text.h"
#include "planner/recipe/recipe_checks.h"

namespace planwright {
namespace {

void CheckImageToken(const DataRecipe& data, const RecipeFields& fields, Diagnostics& problems) {
  const bool bytes = data.kind.value == "webdataset" && data.tokenizer.value == "bytes";
  if (!bytes && !fields.Has("image_token")) {
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

void CheckData(const DataRecipe& data, const RecipeFields& fields, Diagnostics& problems) {
  if (!data.where.known() || !fields.given()) return;
  CheckImageToken(data, fields, problems);
  if (data.kind.value == "webdataset") CheckPatches(data, problems);
}

}  // namespace planwright
