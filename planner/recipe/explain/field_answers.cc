#include "planner/recipe/explain/field_answers.h"

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/text.h"

namespace planwright {

std::vector<std::string> KeysOfWord(const FieldWord& word) {
  if (word.keys.empty()) return {};
  return absl::StrSplit(std::string(word.keys), '|');
}

std::string AnswerOf(const FieldWord& word) {
  const std::string keys = absl::StrJoin(KeysOfWord(word), " or ");
  const std::string last = keys.substr(keys.rfind('.') + 1);
  const std::string_view why = word.why;
  switch (word.unit) {
    case FieldUnit::Same: return why.empty() ? Cat(keys, ", with the same value") : Cat(keys, ": ", why);
    case FieldUnit::Steps:
      return Cat(keys, ", in samples: the number of steps times batch.global_samples. 1000 steps of 256 samples are ",
                 last, ": 256000");
    case FieldUnit::Tokens:
      return Cat(keys, ", in samples: the tokens by batch.sequence_length. 2097152 tokens in samples of 8192 are ",
                 last, ": 256");
    case FieldUnit::Constant:
      return Cat(keys, ", which may grow: for one that stays write {start: 0.1, end: 0.1}, and style: constant");
    case FieldUnit::First: return Cat(keys, ", of which it is the first number: [0.9, 0.95]");
    case FieldUnit::Second: return Cat(keys, ", of which it is the second number: [0.9, 0.95]");
    case FieldUnit::Bf16: return Cat(keys, ": `true` is `bf16`");
    case FieldUnit::Full: return Cat(keys, ": `true` is `full`");
    case FieldUnit::Selective: return Cat(keys, ": `selective` is `elementwise`, `full` and `none` stay");
    case FieldUnit::Pattern:
      return Cat(keys, ". An encoder has a number; the layers of a language model are written one by one, as letters");
    case FieldUnit::Words: return Cat(keys, ": ", why);
    case FieldUnit::Follows: return Cat("no key: it follows from ", keys, " and others: ", why);
    case FieldUnit::None: return Cat("no key: ", why);
  }
  return "";
}

}  // namespace planwright
