#include "planner/exchange/check_recipe.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "planner/compile/bridges/route_bridges.h"
#include "planner/compile/topology/place_modules.h"
#include "planner/exchange/config_file.h"
#include "planner/exchange/recipe_text.h"
#include "planner/recipe/recipe_reader.h"

namespace planwright {
namespace {

using Number = RecipeText::Number;

// An encoder alone lacks what a recipe adds: a projector, which fits any encoder with pixel_shuffle 1, and some
// language model.
ModelSizes Completed(ModelSizes sizes) {
  if (sizes.encoder && !sizes.projector) sizes.projector = ProjectorSizes{{1, ""}, {1, ""}, {1e-5, ""}};
  if (!sizes.language) {
    LanguageSizes some;
    some.pattern.value = "-";
    some.hidden.value = some.mlp_ffn.value = some.vocabulary.value = 64;
    some.init_std.value = some.norm_eps.value = 1e-5;
    sizes.language = some;
  }
  return sizes;
}

// The rest of a recipe, on one rank. What it says decides nothing of the model but the image token's place.
void AddTheRest(const ModelSizes& sizes, RecipeText& recipe) {
  std::string& text = recipe.text;
  const auto token = sizes.image_token.value_or(Sourced<int64_t>{1, ""});
  absl::StrAppend(&text, "name: imported\ncluster: {nodes: 1, gpus_per_node: 1, gpu: none}\n",
                  "batch: {global_samples: 1, sequence_length: 32}\n",
                  "budget: {train_samples: 1, learning_rate: {peak: 1.0e-3}}\nprecision: {params: fp32}\nmodules:\n");
  const auto add = [&](const std::string& name, const std::string& model) {
    absl::StrAppend(&text, "  ", name, ": {model: ", model, ", placement: {first_rank: 0, ranks: 1}}\n");
  };
  if (sizes.encoder) add("encoder", kEncoderName);
  add("language", kLanguageName);
  if (!sizes.encoder) {
    text += "data: {kind: mock, max_images: 0, classes: 2, text_tokens: 4}\n";
    return;
  }
  absl::StrAppend(&text, "data: {kind: mock, image_token: ", token.value,
                  ", image_grids: [[1, 1]], max_images: 1, classes: 2, text_tokens: 4}\nbridges:\n");
  recipe.lines[1 + static_cast<int>(std::count(text.begin(), text.end(), '\n'))] = {absl::StrCat(token.value),
                                                                                    token.from};
  absl::StrAppend(&text, "  - {from: encoder, to: language, token: ", token.value, "}\n");
}

const Number* NumberAt(const RecipeText& recipe, const Location& where) {
  const auto found = recipe.lines.find(where.line);
  return found == recipe.lines.end() || found->second.from.empty() ? nullptr : &found->second;
}

}  // namespace

void CheckAsRecipe(const ModelSizes& sizes, Findings& findings) {
  const ModelSizes whole = Completed(sizes);
  RecipeText recipe = WriteRecipeText(whole, kConfigFile, "");
  AddTheRest(whole, recipe);
  Diagnostics problems;
  if (const std::optional<Recipe> read = ReadRecipeText(recipe.text, kConfigFile, problems)) {
    const auto undamaged = [&](const char* section) { return !read->damaged.contains(section); };
    if (undamaged("models") && undamaged("modules")) {
      PlaceModules(*read, problems);
      CheckBridges(*read, problems);
    }
  }
  for (const Diagnostic& problem : problems.sorted()) {
    if (problem.severity != Severity::kError) continue;
    std::string message = absl::StrCat("is of no recipe: ", problem.message);
    for (const Note& note : problem.notes) {
      if (const Number* other = NumberAt(recipe, note.where))
        absl::StrAppend(&message, " (", other->from, " = ", other->value, ")");
    }
    const Number* number = NumberAt(recipe, problem.where);
    findings.Problem(number != nullptr ? number->from : kConfigFile, number != nullptr ? number->value : "",
                     std::move(message));
  }
}

}  // namespace planwright
