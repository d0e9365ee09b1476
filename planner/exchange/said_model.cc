#include "planner/exchange/said_model.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "planner/exchange/config_keys.h"

namespace planwright {

double Said::number() const {
  if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
  return std::nan("");
}

std::string Said::text() const {
  if (const auto* integer = std::get_if<int64_t>(&value)) return absl::StrCat(*integer);
  if (const auto* real = std::get_if<double>(&value)) return ShortestText(*real);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  return word();
}

const Said* SaidPart::Find(std::string_view key) const {
  const auto found =
      std::find_if(numbers.begin(), numbers.end(), [&](const auto& number) { return number.first == key; });
  return found == numbers.end() ? nullptr : &found->second;
}

void SaidPart::Set(const std::string& key, Said said) {
  for (auto& [name, before] : numbers) {
    if (name == key) {
      before = std::move(said);
      return;
    }
  }
  numbers.emplace_back(key, std::move(said));
}

void SaidPart::SetLayers(std::string from) {
  const std::string& unit = statement->repeated;
  const auto has_key = [&](const char* name) {
    return std::any_of(statement->keys.begin(), statement->keys.end(),
                       [&](const StatedKey& key) { return key.form == StatedKey::Form::kLayers && key.name == name; });
  };
  bool repeats = has_key("layers");
  // Of a statement without patterns the letters follow from the number, and of too many layers there are none.
  for (size_t i = 0; repeats && has_key("pattern") && i < letters.size(); ++i)
    repeats = letters[i] == unit[i % unit.size()];
  const auto size = static_cast<int64_t>(unit.size());
  if (repeats && layers % size == 0) return Set("layers", Said{layers / size, std::move(from)});
  Set("pattern", Said{letters, std::move(from)});
}

bool SaidPart::InsertBehind(const std::set<int64_t>& blocks, char letter, const std::string& from) {
  if (blocks.empty()) return true;
  std::vector<LayerSummary> summaries;
  for (const char each : letters) summaries.push_back({.kind = each});
  const std::vector<LayerPlace> places = PlacesOf(*statement, summaries);
  if (places.empty() || *blocks.rbegin() > places.back().block) return false;
  std::string made;
  for (size_t i = 0; i < places.size(); ++i) {
    made += letters[i];
    const bool last = i + 1 == places.size() || places[i + 1].block != places[i].block;
    if (last && blocks.contains(places[i].block)) made += letter;
  }
  letters = std::move(made);
  layers = static_cast<int64_t>(letters.size());
  for (auto& [key, said] : numbers) {
    if (key != "layers" && key != "pattern") continue;
    key = "pattern";
    said = Said{letters, from};
  }
  return true;
}

int64_t SaidPart::LayersBesideTaps() const {
  const char letter = statement->TapLetter();
  return layers - (letter == 0 ? 0 : std::count(letters.begin(), letters.end(), letter));
}

const Said* SaidPart::FindName(std::string_view name) const {
  const auto local = locals.find(name);
  return local != locals.end() ? &local->second : Find(name);
}

double SaidPart::NumberOf(std::string_view name) const {
  if (name == "layers") return static_cast<double>(layers);
  if (name.starts_with("given(")) {
    const Said* said = FindName(name.substr(6, name.size() - 7));
    return said != nullptr && said->given ? 1 : 0;
  }
  const Said* said = FindName(name);
  if (said == nullptr) return std::nan("");
  if (!said->is_word()) return said->number();
  const StatedKey* key = FindDialectKey(*statement, name);
  for (size_t i = 0; key != nullptr && i < key->words.size(); ++i) {
    if (key->words[i].first == said->word()) return static_cast<double>(key->words[i].second);
  }
  return std::nan("");
}

bool SaidPart::Says(const DialectSayable& only) const {
  const Said* said = Find(only.key);
  if (said == nullptr) return false;
  return said->text() == only.value ||
         (only.same && only.same->Evaluate([this](std::string_view name) { return NumberOf(name); }) == said->number());
}

Attributes SaidPart::Constants() const {
  Attributes constants;
  for (const auto& [name, said] : numbers) {
    const StatedKey* key = FindDialectKey(*statement, name);
    const StatedConstant* constant = key != nullptr ? ConstantOfKey(*statement, *key) : nullptr;
    if (constant == nullptr) continue;
    const double number = NumberOf(name);
    if (constant->real) {
      constants[constant->name] = number;
    } else {
      constants[constant->name] = static_cast<int64_t>(number);
    }
  }
  return constants;
}

}  // namespace planwright
