#include "planner/recipe/meant_words.h"

#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "planner/base/text/near_name.h"
#include "planner/base/text/text.h"
#include "planner/recipe/field_words.h"

namespace planwright {
namespace {

std::string Capital(std::string_view text) { return Cat(std::string(1, absl::ascii_toupper(text[0])), text.substr(1)); }

}  // namespace

std::string NearKey(const std::string& word, const std::vector<std::string>& known) {
  if (std::optional<std::string> near = NearName(word, known)) return *std::move(near);
  std::vector<std::string> parts;
  for (const std::string& key : known) {
    if (key.size() >= 3 && word.starts_with(key)) parts.push_back(key);
  }
  return parts.size() == 1 ? parts[0] : "";
}

std::string OnlyKeyCalled(const std::string& word, bool of_kinds) {
  std::string only;
  for (const KeySpec* spec : KeysCalled(word)) {
    if (spec->path == only || (!of_kinds && !spec->kind.empty())) continue;
    if (spec->path.find("[]") != std::string_view::npos) continue;
    if (!only.empty()) return "";
    only = spec->path;
  }
  return only;
}

std::string ChoiceFor(const KeySpec& spec, const std::string& word, const std::vector<std::string>& choices) {
  if (const ChoiceWord* meant = FindChoiceWord(spec.path, word)) return std::string(meant->choice);
  if (std::optional<std::string> near = NearName(word, choices)) return *std::move(near);
  for (const std::string& choice : choices) {
    if (word.size() > 2 && choice.starts_with(absl::AsciiStrToLower(word))) return choice;
  }
  return choices.size() == 1 ? choices[0] : "";
}

bool IsSameChoice(const KeySpec& spec, const std::string& word, const std::string& meant) {
  if (word == meant) return true;
  if (const ChoiceWord* known = FindChoiceWord(spec.path, word)) return known->why.empty();
  return NearName(word, {meant}).has_value() || meant.starts_with(absl::AsciiStrToLower(word));
}

std::string ChoiceHelp(const KeySpec& spec, const std::string& word, const std::string& meant) {
  const ChoiceWord* known = FindChoiceWord(spec.path, word);
  const std::string why = known != nullptr && !known->why.empty() ? Cat(" ", Capital(known->why), ".") : "";
  return meant.empty() ? "" : Cat("did you mean `", meant, "`?", why);
}

}  // namespace planwright
