#include "planner/exchange/read_layers.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/text/bug.h"
#include "planner/base/text/limits.h"
#include "planner/exchange/said_text.h"

namespace planwright {
namespace {

using Json = ConfigKeys::Json;

// The letters of all words that are layer types. The others are problems; what the rest of the config says of layers
// that are known can still be checked.
std::string LettersOfWords(const DialectLayers& layers, const std::string& path, const Json& words, ConfigKeys& keys) {
  std::string letters;
  if (!words.is_array()) {
    keys.findings().Problem(path, ValueText(words), "is no list of layer types");
    return "";
  }
  std::vector<std::string> known;  // one word of each letter
  std::string seen;
  for (const auto& [word, letter] : layers.words) {
    if (seen.find(letter) == std::string::npos) known.push_back(word);
    seen += letter;
  }
  for (size_t i = 0; i < words.size(); ++i) {
    const auto word = std::find_if(layers.words.begin(), layers.words.end(), [&](const auto& each) {
      return words[i].is_string() && words[i].get<std::string>() == each.first;
    });
    if (word != layers.words.end()) {
      letters += word->second;
    } else {
      keys.findings().Problem(absl::StrCat(path, "[", i, "]"), ValueText(words[i]),
                              absl::StrCat("is no layer type that can be expressed: ", Listed(known, " or ")));
    }
  }
  return letters;
}

std::string LettersOfText(const ModelStatement& statement, const std::string& path, const Json& value,
                          ConfigKeys& keys) {
  const std::optional<Said> text = keys.Word(value, path);
  if (!text) return "";
  std::string letters = text->word();
  std::vector<std::string> known;
  for (const StatedLayer& layer : statement.layer_kinds) known.emplace_back(1, layer.letter);
  const auto is_unknown = [&](char letter) { return statement.FindLayer(letter) == nullptr; };
  if (std::any_of(letters.begin(), letters.end(), is_unknown)) {
    keys.findings().Problem(path, ValueText(value), absl::StrCat("has a letter that is none of ", Listed(known)));
    std::erase_if(letters, is_unknown);
  }
  return letters;
}

using NumberOf = std::function<double(std::string_view name, int64_t block)>;

char LetterAt(const DialectPlace& place, int64_t block, const NumberOf& number_of) {
  for (const DialectPlace::Choice& choice : place.choices) {
    const auto of_name = [&](const std::string& name) {
      return name == kBlockNumber ? static_cast<double>(block) : number_of(name, block);
    };
    if (!choice.when || choice.when->Evaluate(of_name) > 0) return choice.letter;
  }
  Bug("the last letter of a line `place` has no condition");
}

// What one line says; none: its key is not there, or is of another kind.
std::optional<SaidLayers> OneLine(const DialectLayers& layers, const ModelStatement& statement, const Json& value,
                                  const std::string& path, ConfigKeys& keys, const NumberOf& number_of) {
  SaidLayers said;
  said.path = path;
  const bool blocks = layers.form == DialectLayers::Form::kBlocks;
  if (blocks || layers.form == DialectLayers::Form::kNumber) {
    const std::optional<Said> count = keys.Integer(value, path, false);
    if (!count) return std::nullopt;
    const auto number = std::get<int64_t>(count->value);
    said.count = number * (blocks ? static_cast<int64_t>(layers.places.size()) : 1);
    if (said.count > int64_t{kMostLayers}) return said;
    if (!blocks) said.letters.assign(static_cast<size_t>(number), layers.letter);
    for (int64_t block = 0; blocks && block < number; ++block) {
      for (const DialectPlace& place : layers.places) said.letters += LetterAt(place, block, number_of);
    }
    return said;
  }
  const bool words = layers.form == DialectLayers::Form::kWords;
  said.letters = words ? LettersOfWords(layers, path, value, keys) : LettersOfText(statement, path, value, keys);
  said.count = static_cast<int64_t>(said.letters.size());
  if (!words && !value.is_string()) return std::nullopt;
  return said;
}

}  // namespace

SaidLayers ReadLayers(const Dialect& dialect, const ModelStatement& statement, ConfigKeys& keys,
                      const NumberOf& number_of) {
  const size_t problems = keys.findings().problems.size();
  std::vector<SaidLayers> found;
  std::string missing;
  for (const DialectLine& line : dialect.lines) {
    const auto* one = std::get_if<DialectLayers>(&line);
    if (one == nullptr) continue;
    const Json* value = keys.Find(one->paths, &missing);
    const Json otherwise = one->otherwise;
    if (value == nullptr && one->otherwise > 0) value = &otherwise, missing = "default of " + dialect.name();
    if (value == nullptr) continue;
    if (auto said = OneLine(*one, statement, *value, missing, keys, number_of)) found.push_back(*std::move(said));
  }
  const bool right = keys.findings().problems.size() == problems;
  if (found.empty()) {
    if (right) keys.findings().Problem(missing, "", "is missing");
    return {};
  }
  SaidLayers last = found.back();
  last.right = right;
  for (const SaidLayers& one : found) {
    if (one.letters == last.letters && one.count == last.count) continue;
    keys.findings().Problem(one.path, ValueText(Json(one.letters)),
                            absl::StrCat("is not what ", last.path, " says: ", last.letters));
    last.right = false;
  }
  return last;
}

}  // namespace planwright
