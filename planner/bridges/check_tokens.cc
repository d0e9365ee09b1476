#include "planner/bridges/check_tokens.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"

namespace planwright {
namespace {

bool HasTokenizer(const DataRecipe& data) { return *data.kind == "webdataset" && *data.tokenizer == "bytes"; }

const HybridLmModel* LanguageOf(const Recipe& recipe) {
  for (const ModuleRecipe& module : recipe.modules) {
    if (const auto* model = std::get_if<HybridLmModel>(&module.model.model)) return model;
  }
  return nullptr;
}

bool CheckToken(const Located<int64_t>& token, const Recipe& recipe, Diagnostics& diagnostics) {
  const HybridLmModel* language = LanguageOf(recipe);
  if (language != nullptr && *token >= language->vocabulary) {
    diagnostics
        .Error(DiagnosticKind::kTokenOutsideVocabulary, token.where,
               absl::StrCat("the bridge's token ", *token, " is outside the vocabulary of ", *language->vocabulary),
               "choose an id below the vocabulary")
        .notes.push_back({language->vocabulary.where, "the vocabulary is given here"});
    return false;
  }
  if (HasTokenizer(recipe.data) && *token != kBytesImageToken) {
    diagnostics
        .Error(DiagnosticKind::kBridgeTokenNotInData, token.where,
               absl::StrCat("the tokenizer bytes writes images as token ", kBytesImageToken, ", never as ", *token),
               "leave `token` out, and keep one encoder")
        .notes.push_back({recipe.data.where, "the data is described here"});
    return false;
  }
  return true;
}

// The token that the data writes for images must be one that a bridge fills. A tokenizer's is fixed, and what is
// written is compared with it as the recipe is read.
bool CheckImageTokenIsFilled(const Recipe& recipe, Diagnostics& diagnostics) {
  const auto& written = recipe.data.image_token;
  const auto fills = [&](const BridgeRecipe& bridge) { return TokenOf(bridge, recipe.data) == **written; };
  if (recipe.bridges.empty() || !written || HasTokenizer(recipe.data)) return true;
  if (std::any_of(recipe.bridges.begin(), recipe.bridges.end(), fills)) return true;
  const BridgeRecipe& first = recipe.bridges.front();
  diagnostics
      .Error(DiagnosticKind::kBridgeTokenNotInData, written->where,
             absl::StrCat("images stand at token ", **written, ", whose places no bridge fills"),
             absl::StrCat("use image_token: ", **first.token, ", or leave the bridge's token out"))
      .notes.push_back({first.token->where,
                        absl::StrCat("the bridge from ", *first.from, " fills the places of token ", **first.token)});
  return false;
}

}  // namespace

std::optional<int64_t> ImageTokenOf(const DataRecipe& data) {
  if (HasTokenizer(data)) return kBytesImageToken;
  return data.image_token ? std::optional<int64_t>(**data.image_token) : std::nullopt;
}

int64_t TokenOf(const BridgeRecipe& bridge, const DataRecipe& data) {
  return bridge.token ? **bridge.token : ImageTokenOf(data).value_or(-1);
}

bool CheckBridgeTokens(const Recipe& recipe, Diagnostics& diagnostics) {
  bool fine = true;
  std::map<int64_t, const BridgeRecipe*> seen;
  for (const BridgeRecipe& bridge : recipe.bridges) {
    if (!bridge.token && recipe.bridges.size() > 1) {
      diagnostics.Error(DiagnosticKind::kBridgeTokenMissing, bridge.where,
                        absl::StrCat("the bridge from ", *bridge.from,
                                     " has no token of its own: with several encoders the text must say whose rows "
                                     "stand where"),
                        "add `token`: an id of the vocabulary, another for each bridge");
      fine = false;
      continue;
    }
    if (bridge.token) fine &= CheckToken(*bridge.token, recipe, diagnostics);
    const int64_t token = TokenOf(bridge, recipe.data);
    const auto [earlier, fresh] = seen.emplace(token, &bridge);
    if (fresh) continue;
    const BridgeRecipe& first = *earlier->second;
    diagnostics
        .Error(DiagnosticKind::kRepeatedBridgeToken, bridge.token->where,
               absl::StrCat("the bridges from ", *first.from, " and ", *bridge.from, " both fill the places of token ",
                            token),
               "give each bridge its own token")
        .notes.push_back({first.token->where, "the first is given here"});
    fine = false;
  }
  return fine && CheckImageTokenIsFilled(recipe, diagnostics);
}

}  // namespace planwright
