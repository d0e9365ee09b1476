#include "planner/compile/bridges/check_tokens.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/recipe/model_facts.h"

namespace planwright {
namespace {

bool CheckVocabulary(const Located<int64_t>& token, const Located<int64_t>& vocabulary, Diagnostics& diagnostics) {
  if (!AllKnown(token, vocabulary) || *token < *vocabulary) return true;
  diagnostics
      .Error(DiagnosticKind::kTokenOutsideVocabulary, token.where,
             absl::StrCat("the bridge's token ", *token, " is outside the vocabulary of ", *vocabulary),
             "choose an id below the vocabulary")
      .notes.push_back({vocabulary.where, "the vocabulary is given here"});
  return false;
}

// A token written at a bridge.
bool CheckToken(const Located<int64_t>& token, const Recipe& recipe, Diagnostics& diagnostics) {
  const ModuleRecipe* language = LanguageOf(recipe);
  if (language && !CheckVocabulary(token, SizeOf(language->model.numbers, "vocabulary"), diagnostics)) return false;
  if (!AllKnown(token, recipe.data.kind, recipe.data.tokenizer)) return true;
  if (TextIsBytes(recipe.data) && *token != kBytesImageToken) {
    diagnostics
        .Error(DiagnosticKind::kBridgeTokenNotInData, token.where,
               absl::StrCat("the tokenizer bytes writes images as token ", kBytesImageToken, ", never as ", *token),
               "leave `token` out, and keep one encoder")
        .notes.push_back({recipe.data.where, "the data is described here"});
    return false;
  }
  return true;
}

// The token that the data writes for images must be the token of a bridge. A tokenizer's image token is fixed: the
// reader of the recipe has compared data.image_token with it.
bool CheckImageTokenIsFilled(const Recipe& recipe, Diagnostics& diagnostics) {
  const auto& written = recipe.data.image_token;
  if (!AllKnown(written, recipe.data.kind, recipe.data.tokenizer)) return true;
  for (const BridgeRecipe& bridge : recipe.bridges) {
    if (!AllKnown(bridge.token)) return true;
  }
  const auto replaces_it = [&](const BridgeRecipe& bridge) { return TokenOf(bridge, recipe.data) == **written; };
  if (recipe.bridges.empty() || !written || TextIsBytes(recipe.data)) return true;
  if (std::any_of(recipe.bridges.begin(), recipe.bridges.end(), replaces_it)) return true;
  const BridgeRecipe& first = recipe.bridges.front();
  diagnostics
      .Error(DiagnosticKind::kBridgeTokenNotInData, written->where,
             absl::StrCat("the data writes images as token ", **written, ", but no bridge has that token"),
             absl::StrCat("use image_token: ", **first.token, ", or leave the bridge's token out"))
      .notes.push_back(
          {first.token->where, absl::StrCat("the bridge from ", *first.from, " has token ", **first.token)});
  return false;
}

}  // namespace

int64_t TokenOf(const BridgeRecipe& bridge, const DataRecipe& data) {
  if (bridge.token) return **bridge.token;
  if (TextIsBytes(data)) return kBytesImageToken;
  return data.image_token ? **data.image_token : -1;
}

bool CheckBridgeTokens(const Recipe& recipe, Diagnostics& diagnostics) {
  bool fine = true;
  std::map<int64_t, const BridgeRecipe*> seen;
  for (const BridgeRecipe& bridge : recipe.bridges) {
    if (!bridge.token && recipe.bridges.size() > 1) {
      diagnostics.Error(
          DiagnosticKind::kBridgeTokenMissing, bridge.where,
          absl::StrCat("the bridge from ", *bridge.from,
                       " has no token: with several encoders each bridge needs one of its own, so that the "
                       "text says whose rows go where"),
          "add `token`: an id of the vocabulary that no other bridge has");
      fine = false;
      continue;  // it would repeat the token of another bridge, which says less
    }
    if (bridge.token) fine &= CheckToken(*bridge.token, recipe, diagnostics);
    if (!AllKnown(bridge.token)) continue;
    const int64_t token = TokenOf(bridge, recipe.data);
    const auto [earlier, fresh] = seen.emplace(token, &bridge);
    if (fresh) continue;
    const BridgeRecipe& first = *earlier->second;
    diagnostics
        .Error(DiagnosticKind::kRepeatedBridgeToken, bridge.token->where,
               absl::StrCat("the bridges from ", *first.from, " and ", *bridge.from, " both have token ", token),
               "give each bridge its own token")
        .notes.push_back({first.token->where, "the first is given here"});
    fine = false;
  }
  return fine && CheckImageTokenIsFilled(recipe, diagnostics);
}

}  // namespace planwright
