// The table of keys applied to structs of the recipe without a recipe's text.
#pragma once

#include "planner/recipe/key_target.h"

namespace planwright {

// Every field that has a key with a default, inside sections too.
void FillDefaults(StructRef target);

// A struct as it is where nothing is written.
template <typename Struct>
Struct Defaults() {
  Struct filled;
  FillDefaults(RefTo(filled));
  return filled;
}

// The numbers of a model by the words of their keys, with their section: "mamba.heads". Of all sections, whether the
// recipe has them or not.
void AddNumbers(StructRef model, Attributes& numbers);

template <typename Model>
Attributes NumbersOf(Model model) {
  Attributes numbers;
  AddNumbers(RefTo(model), numbers);
  return numbers;
}

}  // namespace planwright
