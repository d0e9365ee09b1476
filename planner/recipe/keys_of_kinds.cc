#include "planner/recipe/keys_of_kinds.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "planner/base/text/bug.h"
#include "planner/base/text/text.h"
#include "planner/recipe/key_tables.h"
#include "planner/recipe/model_facts.h"

namespace planwright {
namespace {

using enum Need;
using Form = StatedKey::Form;

constexpr const char* kTag = &kStructTag<ModelRecipe>;

ModelRecipe& ModelIn(void* owner) { return *static_cast<ModelRecipe*>(owner); }

template <typename Number>
Located<Attribute> BrokenAt(const Location& where) {
  Located<Attribute> number(Number{}, where);
  number.where.broken = true;
  return number;
}

template <typename T, typename Number>
void ReadNumberOf(const YamlNode& value, std::string_view name, void* owner) {
  T read{};
  ReadValue(value, read);
  ModelIn(owner).numbers.insert_or_assign(std::string(name), Located<Attribute>(Number{read}, LocationInRecipe(value)));
}

template <typename Number>
void LoseNumber(const Location& where, std::string_view name, void* owner) {
  ModelIn(owner).numbers.insert_or_assign(std::string(name), BrokenAt<Number>(where));
}

template <typename T, typename Number = T>
constexpr KeyTarget kNumberOf = {kTypeOfField<T>, kTag, ReadNumberOf<T, Number>, nullptr, LoseNumber<Number>};

constexpr KeyTarget kChoiceTarget = {
    KeyType::kString, kTag,
    [](const YamlNode& value, std::string_view name, void* owner) {
      const StatedKey& key = ChoiceOf(ModelIn(owner), name);
      ModelIn(owner).numbers.insert_or_assign(
          key.sets, Located<Attribute>(NumberOfWord(key, value.text), LocationInRecipe(value)));
    },
    nullptr,
    [](const Location& where, std::string_view name, void* owner) {
      ModelIn(owner).numbers.insert_or_assign(ChoiceOf(ModelIn(owner), name).sets, BrokenAt<int64_t>(where));
    }};

constexpr KeyTarget kRepeatedTarget = {KeyType::kInteger, kTag,
                                       [](const YamlNode& value, std::string_view, void* owner) {
                                         int64_t times = 0;
                                         ReadValue(value, times);
                                         ModelRecipe& model = ModelIn(owner);
                                         model.pattern = {"", LocationInRecipe(value)};
                                         for (; times > 0; --times)
                                           model.pattern.value += StatementOfModel(model).repeated;
                                       },
                                       nullptr, LoseMember<&ModelRecipe::pattern>};

KeyTarget TargetOf(const StatedKey& key) {
  if (key.form == Form::kSection) return kMap;
  if (key.form == Form::kChoice) return kChoiceTarget;
  if (key.form == Form::kLayers) return key.name == "pattern" ? To<&ModelRecipe::pattern> : kRepeatedTarget;
  switch (key.type) {
    case StatedKey::Type::kInteger: return kNumberOf<int64_t>;
    case StatedKey::Type::kReal: return kNumberOf<double>;
    case StatedKey::Type::kFlag: return kNumberOf<bool, int64_t>;
  }
  Bug("a key of no type");
}

std::string DefaultText(const StatedKey& key) {
  if (key.type != StatedKey::Type::kFlag || key.default_text.empty()) return key.default_text;
  return key.default_text == "1" ? "true" : "false";
}

// The other key that may say what layers there are.
std::string OtherOf(const StatedKey& key, const ModelStatement& statement) {
  if (key.form != Form::kLayers) return "";
  const auto is_other = [&](const StatedKey& other) { return other.form == Form::kLayers && other.name != key.name; };
  const auto other = std::find_if(statement.keys.begin(), statement.keys.end(), is_other);
  return other == statement.keys.end() ? std::string() : other->name;
}

// Of a pattern: with the meaning of its letters. Of a number: with the words of a choice that it goes with.
std::string HelpText(const StatedKey& key, const ModelStatement& statement) {
  std::string help = key.help;
  if (!key.with.empty()) Append(help, "; has an effect with ", key.with, " ", absl::StrJoin(key.with_words, " or "));
  if (key.form != Form::kLayers || key.name != "pattern") return help;
  for (const StatedLayer& layer : statement.layer_kinds)
    Append(help, "; ", std::string(1, layer.letter), " ", layer.title);
  return help;
}

}  // namespace

KindRows::KindRows(std::span<const ModelStatement> statements) {
  std::vector<std::string> kinds;
  for (const ModelStatement& statement : statements) kinds.push_back(statement.kind);
  rows_.push_back({"models.<name>.kind", "", To<&ModelRecipe::kind>, kRequired, "", kAny,
                   Kept(absl::StrJoin(kinds, "|")), "family of the model"});
  std::map<std::string_view, int> kinds_with;  // by section
  for (const ModelStatement& statement : statements) {
    for (const StatedKey& key : statement.keys) kinds_with[key.name] += key.form == Form::kSection ? 1 : 0;
  }
  for (const ModelStatement& statement : statements) {
    for (const StatedKey& key : statement.keys)
      Add(key, statement, kinds_with[std::string_view(key.name).substr(0, key.name.find('.'))] > 1);
  }
}

void KindRows::Add(const StatedKey& key, const ModelStatement& statement, bool shared) {
  std::vector<std::string> words;
  for (const auto& [word, number] : key.words) words.push_back(word);
  // Keys inside a section have no kind of their own: they exist if the section does.
  const bool inside = key.name.find('.') != std::string::npos;
  rows_.push_back({Kept(Cat("models.<name>.", key.name)), inside ? std::string_view() : Kept(statement.kind),
                   TargetOf(key), key.required ? kRequired : kOptional, Kept(DefaultText(key)), key.range,
                   Kept(absl::StrJoin(words, "|")), Kept(HelpText(key, statement)),
                   shared ? Kept(statement.kind) : std::string_view(), Kept(OtherOf(key, statement))});
}

std::span<const KeySpec> KeysOfKinds() {
  static const auto* rows = new KindRows(BuiltInStatements());
  return rows->rows();
}

std::string_view WordsOfRecompute() {
  static const auto* text = [] {
    std::vector<std::string> words = {"none", "full", std::string(kElementwise)};
    for (const ModelStatement* statement : LanguageKindsFirst()) {
      for (const StatedLayer& layer : statement->layer_kinds) {
        if (std::find(words.begin(), words.end(), layer.word) == words.end()) words.push_back(layer.word);
      }
    }
    return new std::string(absl::StrJoin(words, "|"));
  }();
  return *text;
}

}  // namespace planwright
