#include "planner/compile/batches/lint_samples.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/recipe/model_facts.h"

namespace planwright {
namespace {

// The lint starts at this factor. Below it the weight is close to what aux_loss says.
constexpr double kNotableFactor = 1.25;

// The mean number of loss tokens of a sample. Nothing if it depends on more than the recipe: only for mock data it does
// not. A mock sample has min_images to max_images images, all equally likely, each with its text; without images it has
// one text (docs/training/data.md#mock).
std::optional<double> MeanLossTokens(const DataRecipe& data) {
  if (!RowOf(*data.kind).drawn) return std::nullopt;
  double texts = 0;
  for (int64_t images = *data.min_images; images <= *data.max_images; ++images)
    texts += static_cast<double>(std::max<int64_t>(images, 1));
  return texts / static_cast<double>(data.max_images - data.min_images + 1) * static_cast<double>(*data.text_tokens);
}

// PW0605. What is frozen has no auxiliary loss.
void LintMasking(const Recipe& recipe, const ModuleRecipe* language, Diagnostics& diagnostics) {
  if (language == nullptr || !GivesExperts(language->model) || *language->train_backbone == "frozen") return;
  const Located<double> aux_loss = RealOf(language->model.numbers, "moe.aux_loss");
  if (*aux_loss == 0) return;
  const double sequence = static_cast<double>(*recipe.batch.sequence_length);
  const std::optional<double> tokens = MeanLossTokens(recipe.data);
  if (tokens && sequence / *tokens < kNotableFactor) return;
  std::string message = absl::StrCat(
      "image tokens and padding have no loss, so the auxiliary loss weighs more than its coefficient ", *aux_loss);
  if (tokens) {
    message = absl::StrCat("about ", std::llround(*tokens), " of the ", *recipe.batch.sequence_length,
                           " tokens of a sample have a loss, so the auxiliary loss weighs about ",
                           absl::StrFormat("%.1f", sequence / *tokens), " times its coefficient ", *aux_loss);
  }
  const Location& coefficient = aux_loss.where;
  diagnostics
      .Warning(DiagnosticKind::kMaskedTokensRaiseAuxLoss, coefficient.known() ? coefficient : recipe.data.where,
               std::move(message),
               "with N loss tokens in a step, each of them weighs 1 / N, and the auxiliary loss of each sample "
               "sequence_length / N: choose aux_loss with this factor in mind")
      .notes.push_back({recipe.data.where, "the data is described here"});
}

// Whether no sample can have an image. Shards are not opened here.
bool HasNoImages(const DataRecipe& data) {
  if (RowOf(*data.kind).drawn) return *data.max_images == 0;
  return RowOf(*data.kind).mixed && std::none_of(data.sources.begin(), data.sources.end(),
                                                 [](const auto& source) { return RowOf(*source.kind).images; });
}

// PW0606
void LintImages(const Recipe& recipe, const ModuleRecipe& encoder, Diagnostics& diagnostics) {
  if (!HasNoImages(recipe.data)) return;
  const bool drawn = RowOf(*recipe.data.kind).drawn;
  diagnostics
      .Warning(DiagnosticKind::kEncoderWithoutImages, drawn ? recipe.data.max_images.where : recipe.data.where,
               absl::StrCat(drawn ? "max_images is 0" : "no source has images", ": encoder ", *encoder.name,
                            " never sees an image and learns nothing"),
               drawn ? "use max_images: 1 or more, or remove the encoder"
                     : "add a source of kind webdataset, or remove the encoder")
      .notes.push_back({encoder.name.where, absl::StrCat("encoder ", *encoder.name, " is here")});
}

// PW0614
void LintBalance(const DataRecipe& data, bool encoder, Diagnostics& diagnostics) {
  if (*data.balance != "images" || (encoder && !HasNoImages(data))) return;
  diagnostics.Warning(DiagnosticKind::kBalanceWithoutImages, data.balance.where,
                      absl::StrCat("`balance: images` changes nothing: ",
                                   encoder ? "no sample has images" : "the recipe has no encoder"),
                      "remove balance");
}

}  // namespace

void LintSamples(const Recipe& recipe, Diagnostics& diagnostics) {
  const auto encoder = std::find_if(recipe.modules.begin(), recipe.modules.end(),
                                    [](const ModuleRecipe& module) { return !CarriesLoss(module.model); });
  LintBalance(recipe.data, encoder != recipe.modules.end(), diagnostics);
  if (encoder == recipe.modules.end()) return;  // text-only samples have no image tokens
  LintMasking(recipe, LanguageOf(recipe), diagnostics);
  LintImages(recipe, *encoder, diagnostics);
}

}  // namespace planwright
