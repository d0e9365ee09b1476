// The numbers of a model, as a config.json or a run says them: what `plan import` writes as a recipe, and what
// `plan export` writes and compares. Each number knows where it came from.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "planner/state/dialect/dialect.h"
#include "planner/state/dialect/dialect_keys.h"

namespace planwright {

struct Said {
  std::variant<int64_t, double, bool, std::string> value;
  std::string from;    // "text_config.hidden_size"; of a number that is not written there: "default of nemotron_h"
  bool loose = false;  // what the model computes does not depend on it
  bool given = true;   // config.json has it

  bool is_word() const { return std::holds_alternative<std::string>(value); }
  const std::string& word() const { return std::get<std::string>(value); }
  double number() const;     // of a flag 0 or 1; of a word NaN
  std::string text() const;  // as messages have it: "1e-05", "true"
};

// One model: a language model, or an encoder.
struct SaidPart {
  const ModelStatement* statement = nullptr;
  const Dialect* dialect = nullptr;  // of config.json; null: a run says it
  std::string letters;               // a letter for each layer; of too many layers none
  int64_t layers = 0;
  // By the key of the recipe, in the order of its text: "pattern" or "layers", "moe.top_k". Those of layers that the
  // model does not have are not there.
  std::vector<std::pair<std::string, Said>> numbers;
  std::map<std::string, Said, std::less<>> locals;              // of the dialect
  std::map<std::string, std::set<int64_t>, std::less<>> lists;  // of the dialect
  std::vector<std::string> copied;  // what people should know of a copy of the config.json, a line each

  bool Has(char letter) const { return letter == 0 || letters.find(letter) != std::string::npos; }
  const Said* Find(std::string_view key) const;  // null: it does not say it
  void Set(const std::string& key, Said said);   // in its place, or behind all others
  // The key of its layers: `layers` if they are a repetition that the statement has, else `pattern`.
  void SetLayers(std::string from);
  // One more layer behind each of these blocks. False, and nothing is changed: there are not so many blocks.
  bool InsertBehind(const std::set<int64_t>& blocks, char letter, const std::string& from);
  // How many layers there are but for those that take or give carries, which others insert.
  int64_t LayersBesideTaps() const;
  // What a name is in formulas; NaN: nothing.
  double NumberOf(std::string_view name) const;
  // The local number or the key of this name; null: there is none.
  const Said* FindName(std::string_view name) const;
  // Whether its number is the value of the line, or one that says the same.
  bool Says(const DialectSayable& only) const;
  // The constants of a module, as far as they are said.
  Attributes Constants() const;
};

struct SaidModel {
  const DialectSet* dialects = nullptr;
  std::string type;                  // the model_type of config.json; empty: it has none, or a run says the model
  const Dialect* dialect = nullptr;  // of the whole; null: a run says it, or it is not known
  std::optional<SaidPart> language, encoder;
  bool untied = false;              // the head of a tied model became a tensor of its own
  std::optional<Said> image_token;  // the id whose places in a text take image rows

  bool composite() const { return dialect != nullptr && dialect->composite(); }
};

}  // namespace planwright
