// Words of the field that are no keys here: arguments of other training programs (field_words.def), and words for one
// of the choices of a key.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace planwright {

// What becomes of the value of a word when it is written under the key.
enum class FieldUnit {
  Same,
  Steps,     // of the optimizer: times global_samples
  Constant,  // a decay of weights that stays the same: {start: value, end: value}
  First,     // the first of a pair of numbers
  Second,
  Bf16,     // true is bf16
  Full,     // true is full
  Pattern,  // a count is a number of layers only where these are all alike
  Words,    // the key has another value: only its name is known
  Follows,  // the value follows from others, and is left out
  Always,   // no key: it is always so
};

struct FieldWord {
  std::string_view word, of;  // "train_iters", "Megatron-LM"
  FieldUnit unit;
  std::string_view keys;  // paths in the table of keys, joined by |
};

std::span<const FieldWord> FieldWords();

// The word, however it is written: `--train-iters`, `train-iters`, `trainIters` are `train_iters`. Null if it is none.
const FieldWord* FindFieldWord(std::string_view written);

// The choice that a word means, as `vit` means radio_vit; empty if it means none. `path`: of the key, in the table.
std::string_view ChoiceMeant(std::string_view path, std::string_view word);

}  // namespace planwright
