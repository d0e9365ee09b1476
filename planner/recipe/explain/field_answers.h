// What a word of another training program is called here, in a sentence: for `plan explain --micro-batch-size`.
#pragma once

#include <string>
#include <vector>

#include "planner/recipe/field_words.h"

namespace planwright {

// The paths in the table of keys; empty: no key says it.
std::vector<std::string> KeysOfWord(const FieldWord& word);

// "batch.micro_samples, with the same value": the keys, and what becomes of the value.
std::string AnswerOf(const FieldWord& word);

}  // namespace planwright
