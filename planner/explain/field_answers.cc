#include "planner/explain/field_answers.h"

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/diagnostics/text.h"

namespace planwright {
namespace {

// Of words whose value follows from others: from which ones.
struct Formula {
  std::string_view word, text;
};
constexpr Formula kFormulas[] = {
    {"gradient_accumulation_steps",
     "the microbatches of a step are global_samples / (micro_samples x dp of the language module)"},
    {"data_parallel_shard_degree", "dp is ranks / (tp x cp x pp), and the optimizer's states are always sharded"},
    {"data_parallel_replicate_degree", "dp is ranks / (tp x cp x pp), and weights are the same on all its lanes"},
};
// Of words that no key says: what holds.
constexpr Formula kAlways[] = {
    {"sequence_parallel",
     "with tp above 1, a language model always cuts activations between layers along the sequence"},
    {"use_distributed_optimizer", "the optimizer's states are always sharded (ZeRO stage 1)"},
    {"transformer_impl", "there is one implementation of each operation"},
    {"make_vocab_size_divisible_by", "the vocabulary is written as it is, and tp must divide it"},
};

template <size_t kCount>
std::string_view TextOf(const FieldWord& word, const Formula (&formulas)[kCount]) {
  for (const Formula& formula : formulas) {
    if (formula.word == word.word) return formula.text;
  }
  return "";
}

}  // namespace

std::vector<std::string> KeysOfWord(const FieldWord& word) {
  if (word.keys.empty()) return {};
  return absl::StrSplit(std::string(word.keys), '|');
}

std::string AnswerOf(const FieldWord& word) {
  const std::string keys = absl::StrJoin(KeysOfWord(word), " or ");
  const std::string last = keys.substr(keys.rfind('.') + 1);
  switch (word.unit) {
    case FieldUnit::Same: return Cat(keys, ", with the same value");
    case FieldUnit::Steps:
      return Cat(keys, ", in samples: the number of steps times batch.global_samples. 1000 steps of 256 samples are ",
                 last, ": 256000");
    case FieldUnit::Constant:
      return Cat(keys, ", which may grow: for one that stays write {start: 0.1, end: 0.1}, and style: constant");
    case FieldUnit::First: return Cat(keys, ", of which it is the first number: [0.9, 0.95]");
    case FieldUnit::Second: return Cat(keys, ", of which it is the second number: [0.9, 0.95]");
    case FieldUnit::Bf16: return Cat(keys, ": `true` is `bf16`");
    case FieldUnit::Full: return Cat(keys, ": `true` is `full`");
    case FieldUnit::Pattern:
      return Cat(keys, ". An encoder has a number; the layers of a language model are written one by one, as letters");
    case FieldUnit::Words: return Cat(keys, ", whose values are of another kind");
    case FieldUnit::Follows: {
      const std::string_view formula = TextOf(word, kFormulas);
      return Cat("no key: it follows from ", keys, " and others", formula.empty() ? "" : ": ", formula);
    }
    case FieldUnit::Always: {
      const std::string_view text = TextOf(word, kAlways);
      return text.empty() ? "no key: it is always so, or follows" : Cat("no key: ", text);
    }
  }
  return "";
}

}  // namespace planwright
