// The layer kinds of a language model: their size checks. Each LAYER of plan/layer_kinds.def has
// one class, in a file of its own (layer_KIND.cc). If a class lacks a part it does not compile; if a kind lacks its
// class the program does not link. The blocks of the layers are made in planner/schedule.
#pragma once

#include <string>

#include "planner/model/size_checks.h"
#include "planner/recipe/recipe.h"

namespace planwright {

class LanguageLayer {
 public:
  virtual ~LanguageLayer() = default;

  // Checks that the sizes fit together on any layout and are not too large.
  virtual void CheckShape(const HybridLmModel& model, SizeChecks& check) const = 0;
  // About how many elements its parameters have, without vectors. Also called if CheckShape fails, so that sizes may be
  // absurd: computed in doubles, which do not overflow.
  virtual double RoughSize(const HybridLmModel& model) const = 0;
  // Checks that cut sizes are multiples of the module's parallel sizes.
  virtual void CheckLayout(const HybridLmModel& model, const ModuleRecipe& module, SizeChecks& check) const = 0;
};

#define LAYER(id, letter, word, title) const LanguageLayer& id##Layer();
#include "planner/plan/layer_kinds.def"

// The layer kind of a letter, which must have passed the pattern check.
const LanguageLayer& LanguageLayerOf(char letter);

}  // namespace planwright
