// Words of the field that are no keys here: arguments of other training programs (field_words.def), and words for one
// of the choices of a key (choice_words.def).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace planwright {

// What becomes of the value of a word when it is written under the key (units.def).
enum class FieldUnit {
#define UNIT(name, ...) name,
#include "planner/recipe/units.def"
#undef UNIT
};

struct FieldWord {
  std::string_view word, of;  // "train_iters", "Megatron-LM"
  FieldUnit unit;
  std::string_view keys;  // as the row has them: KeysOfWord in units.h
  std::string_view why;   // why there is no key, or what its value is; empty: nothing more is to be said
};

std::span<const FieldWord> FieldWords();

// The word, however it is written: `--train-iters`, `train-iters`, `trainIters` are `train_iters`. Maps that it is in
// may stand before it: `training.seq_len` is `seq_len`. Null if it is none.
const FieldWord* FindFieldWord(std::string_view written);

// Whether a word, however it is written, is as the pattern says: in lower case, with _ for - and for spaces. * stands
// for any characters: "*h100*" is like "NVIDIA-H100 80GB".
bool IsLike(std::string_view written, std::string_view pattern);

struct ChoiceWord {
  std::string_view path, word, choice;  // the key, as the table has it; a pattern such as "vit"; "radio_vit"
  std::string_view why;                 // of one that is not the same: what is there instead
};

// The choice that a word means, as `vit` means radio_vit; null if it means none. `path`: of the key, in the table.
const ChoiceWord* FindChoiceWord(std::string_view path, std::string_view word);

}  // namespace planwright
