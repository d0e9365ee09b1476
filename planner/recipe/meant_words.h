// What a word of a recipe is meant for that is no key, or no choice of its key.
#pragma once

#include <string>
#include <vector>

#include "planner/recipe/recipe_keys.h"

namespace planwright {

// The key that is near by letters, or the only one that begins the word, as `eps` does `epsilon`; empty if there is
// none. `known`: the keys that could stand there.
std::string NearKey(const std::string& word, const std::vector<std::string>& known);

// The one key whose path ends in a word, outside of lists of maps; empty if there is none, or another one. `of_kinds`:
// also of keys that only some kinds of a map have.
std::string OnlyKeyCalled(const std::string& word, bool of_kinds);

// The choice of a key that a word is for (field_words.h), or near to, or the beginning of; empty if there is none.
std::string ChoiceFor(const KeySpec& spec, const std::string& word, const std::vector<std::string>& choices);

// Whether the choice that is meant says the same as the word, and not only what comes near to it: `bf16` for
// `bfloat16`, but not for `fp16`.
bool IsSameChoice(const KeySpec& spec, const std::string& word, const std::string& meant);

// The help with it: "did you mean `none`?", and why; empty if `meant` is.
std::string ChoiceHelp(const KeySpec& spec, const std::string& word, const std::string& meant);

}  // namespace planwright
