#include "planner/plan/statement/key_rules.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "planner/base/text/near_name.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"

namespace planwright {
namespace {

using std::string;
using Form = StatedKey::Form;

string WithNear(string message, const string& wrong, const std::vector<string>& known) {
  const string near = NearNameHelp(wrong, known);
  return near.empty() ? message : Cat(message, "; ", near);
}

// Letters are of one kind of layers, and so are words.
void CheckLayers(const ModelStatement& statement, ProblemList& problems) {
  std::set<char> letters;
  std::set<string> words = {"none", "full", "elementwise"};  // other words of `recompute`
  for (const auto* layers : {&statement.layer_kinds, &statement.unbuilt}) {
    for (const StatedLayer& layer : *layers) {
      const string letter(1, layer.letter);
      if (layer.letter == '/') problems.Add(PlaceOf(layer.line, letter), "`/` divides patterns, and is no layer");
      if (!letters.insert(layer.letter).second)
        problems.Add(PlaceOf(layer.line, letter), Cat("two kinds of layers have the letter ", letter));
      if (!layer.word.empty() && !words.insert(layer.word).second)
        problems.Add(PlaceOf(layer.line, layer.word, " "),
                     Cat(Quoted(layer.word), " is another word of `recompute` already"));
    }
  }
  for (const StatedLayer& layer : statement.layer_kinds) {
    const string letter(1, layer.letter);
    if (!statement.layers.contains(layer.letter))
      problems.Add(PlaceOf(layer.line, letter), Cat("the statement has no piece ", letter));
  }
  for (const auto& [letter, piece] : statement.layers) {
    if (piece.line && !statement.FindLayer(letter))
      problems.Add(PlaceOf(piece.line, string(1, letter)), Cat("no kind of layers has the letter ", string(1, letter)));
  }
}

class KeyRules {
 public:
  KeyRules(const ModelStatement& statement, const StatedNames& names, ProblemList& problems)
      : statement_(statement), names_(names), problems_(problems) {}

  void Check() {
    for (const StatedKey& key : statement_.keys) CheckKey(key);
    if (!says_layers_) problems_.Add(BeginOf(statement_), "the statement has no line `layers`");
    for (const StatedConstant& constant : statement_.constants) CheckConstant(constant);
    for (const StatedLayer& layer : statement_.unbuilt) {
      for (const char letter : layer.not_with) NeedLayer(letter, layer.line, layer.not_with);
    }
  }

 private:
  void CheckKey(const StatedKey& key) {
    if (key.name == "kind" || !taken_.insert(key.name).second)
      problems_.Add(PlaceOf(key.line, key.name, " "), Cat("the key ", key.name, " is there twice"));
    if (key.form == Form::kLayers) {
      says_layers_ = true;
      const string& letters = key.name == "layers" ? statement_.repeated : statement_.example;
      for (const char letter : letters) NeedLayer(letter, key.line, letters);
    } else if (key.form == Form::kSection) {
      sections_[key.name] = key.of;
      if (key.of != 0) NeedLayer(key.of, key.line, string(1, key.of));
    } else {
      CheckSection(key);
      CheckWith(key);
      if (key.form == Form::kConstant) keys_.insert(key.name);
      if (key.form == Form::kChoice) CheckChoice(key);
      if (key.form == Form::kChoice) choices_[key.name] = &key;
    }
  }

  // `word`: the place of the letter.
  void NeedLayer(char letter, const StatedLine& line, const string& word) {
    if (!statement_.FindLayer(letter))
      problems_.Add(PlaceOf(line, word, " "), Cat("no kind of layers has the letter ", string(1, letter)));
  }

  // A recipe gives the constants of a kind of layers together, in a section that is of the same kind.
  void CheckSection(const StatedKey& key) {
    const size_t dot = key.name.rfind('.');
    const string section = dot == string::npos ? "" : key.name.substr(0, dot);
    const auto found = sections_.find(section);
    if (!section.empty() && found == sections_.end()) {
      std::vector<string> known;
      for (const auto& [name, of] : sections_) known.push_back(name);
      return problems_.Add(PlaceOf(key.line, key.name),
                           WithNear(Cat("no line before it is the section ", section), section, known));
    }
    const StatedConstant* constant = names_.FindConstant(key.form == Form::kChoice ? key.sets : key.name);
    const char of = section.empty() ? 0 : found->second;
    if (key.form != Form::kNumber && constant && constant->of != of)
      problems_.Add(PlaceOf(constant->line, constant->name),
                    Cat("the constant ", constant->name, " and its section are not of the same kind of layers"),
                    {PlaceOf(key.line)});
  }

  void CheckChoice(const StatedKey& key) {
    const StatedConstant* constant = names_.FindConstant(key.sets);
    if (!constant)
      return problems_.Add(PlaceOf(key.line, key.sets, "sets"),
                           WithNear(Cat("there is no constant ", key.sets), key.sets, names_.Constants()));
    if (constant->real || constant->given)
      problems_.Add(PlaceOf(key.line, key.sets, "sets"),
                    Cat(key.sets, constant->real ? " is a real number" : " is given", ", which no choice sets"));
    for (const auto& [word, number] : key.words) {
      if ((constant->flag && number > 1) || (!constant->or_zero && number == 0))
        problems_.Add(PlaceOf(key.line, word, " "),
                      Cat("the number of ", word, " is outside of the constant ", key.sets), {PlaceOf(constant->line)});
    }
    if (!set_.insert(key.sets).second)
      problems_.Add(PlaceOf(key.line, key.sets, "sets"), Cat("two choices set the constant ", key.sets));
  }

  // The choice comes first, so that readers know it.
  void CheckWith(const StatedKey& key) {
    if (key.with.empty()) return;
    const auto choice = choices_.find(key.with);
    if (choice == choices_.end())
      return problems_.Add(PlaceOf(key.line, key.with, "with"), Cat("no line before it is the choice ", key.with));
    for (const string& word : key.with_words) {
      std::vector<string> known;
      for (const auto& [name, number] : choice->second->words) known.push_back(name);
      if (std::find(known.begin(), known.end(), word) == known.end())
        problems_.Add(PlaceOf(key.line, word, "with"),
                      WithNear(Cat("the choice ", key.with, " has no word ", word), word, known));
    }
  }

  // Exactly one thing settles it.
  void CheckConstant(const StatedConstant& constant) {
    const Location where = PlaceOf(constant.line, constant.name);
    if (constant.of != 0) NeedLayer(constant.of, constant.line, string(1, constant.of));
    const bool key = keys_.contains(constant.name), set = set_.contains(constant.name);
    if (key && set) problems_.Add(where, Cat("the constant ", constant.name, " is a key, and a choice sets it"));
    if (!key && !set && !constant.given)
      problems_.Add(where, Cat("nothing settles the constant ", constant.name,
                               ": expected `: HELP`, which makes it a key, `given`, or a choice that sets it"));
  }

  const ModelStatement& statement_;
  const StatedNames& names_;
  ProblemList& problems_;
  bool says_layers_ = false;
  std::set<string> taken_, keys_, set_;
  std::map<string, char> sections_;
  std::map<string, const StatedKey*> choices_;  // so far
};

}  // namespace

Location BeginOf(const ModelStatement& statement) {
  Location begin;
  begin.file = statement.file;
  begin.line = begin.column = 1;
  return begin;
}

void CheckKeys(const ModelStatement& statement, const StatedNames& names, ProblemList& problems) {
  if (statement.kind.empty()) problems.Add(BeginOf(statement), "the statement has no line `kind`");
  CheckLayers(statement, problems);
  KeyRules(statement, names, problems).Check();
}

}  // namespace planwright
