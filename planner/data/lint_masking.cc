#include "planner/data/lint_masking.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace planwright {
namespace {

constexpr double kWorthSaying = 1.25;  // times its coefficient

// Mean tokens with loss of a sample, where the recipe alone tells: mock data draws 0 to max_images images, each with its text; a sample without
// images has one text.
std::optional<double> MeanLossTokens(const DataRecipe& data) {
  if (*data.kind != "mock") return std::nullopt;
  double texts = 0;
  for (int64_t images = 0; images <= *data.max_images; ++images) texts += static_cast<double>(std::max<int64_t>(images, 1));
  return texts / static_cast<double>(*data.max_images + 1) * static_cast<double>(*data.text_tokens);
}

}  // namespace

void LintMasking(const Recipe& recipe, Diagnostics& diagnostics) {
  const HybridLmModel* language = nullptr;
  bool images = false;
  for (const ModuleRecipe& module : recipe.modules) {
    if (const auto* model = std::get_if<HybridLmModel>(&module.model.model)) language = model;
    images |= std::holds_alternative<RadioVitModel>(module.model.model);
  }
  if (language == nullptr || !images || !language->has_moe || *language->moe.aux_loss == 0) return;
  const double sequence = static_cast<double>(*recipe.batch.sequence_length);
  const std::optional<double> tokens = MeanLossTokens(recipe.data);
  if (tokens && sequence / *tokens < kWorthSaying) return;
  std::string message = absl::StrCat("image tokens and padding carry no loss, so the auxiliary loss weighs more than its coefficient ",
                                     *language->moe.aux_loss);
  if (tokens) {
    message = absl::StrCat("of the ", *recipe.batch.sequence_length, " tokens of a sample about ", std::llround(*tokens),
                           " carry loss, so the auxiliary loss weighs about ", absl::StrFormat("%.1f", sequence / *tokens), " times its coefficient ",
                           *language->moe.aux_loss);
  }
  const Location& coefficient = language->moe.aux_loss.where;
  diagnostics
      .Warning(DiagnosticKind::kMaskedTokensRaiseAuxLoss, coefficient.known() ? coefficient : recipe.data.where, std::move(message),
               "a token's loss weighs 1 / (loss tokens), a sample's auxiliary loss sequence_length / (loss tokens): choose aux_loss with that factor")
      .notes.push_back({recipe.data.where, "the data is described here"});
}

}  // namespace planwright
