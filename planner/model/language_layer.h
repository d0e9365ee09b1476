// The layer kinds of a language model: their size checks, parameters and FLOPs. Each LAYER of plan/layer_kinds.def has
// one class, in a file of its own (layer_KIND.cc). If a class lacks a part it does not compile; if a kind lacks its
// class the program does not link. The blocks of the layers are made in planner/schedule.
#pragma once

#include <string>

#include "planner/model/parameter_builder.h"
#include "planner/model/size_checks.h"
#include "planner/recipe/recipe.h"

namespace planwright {

inline constexpr Init kOnes = {Init::Kind::kOnes, 0, 0};

// Initial values of matrices (docs/model/language_model.md#initial-values).
struct InitScales {
  Init input;     // all others: standard deviation init_std
  Init residual;  // matrices whose output is added to the residual stream: init_std / sqrt(layers)
};

// The forward of one layer, for one token (docs/flops.md). Causal attention counts half of the score matrix.
struct LayerFlops {
  int64_t forward = 0;
  int64_t mixing = 0;  // the part of `forward` without weights: attention scores or the scan
};

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
  // Adds the parameters of one layer. `prefix`: of their published names, "backbone.layers.3.".
  virtual void AddParameters(const HybridLmModel& model, const InitScales& scales, const std::string& prefix,
                             ParameterBuilder& add) const = 0;
  // `sequence`: tokens of a sample.
  virtual LayerFlops Flops(const HybridLmModel& model, int64_t sequence) const = 0;
};

#define LAYER(id, letter, word, title) const LanguageLayer& id##Layer();
#include "planner/plan/layer_kinds.def"

// The layer kind of a letter, which must have passed the pattern check.
const LanguageLayer& LanguageLayerOf(char letter);

}  // namespace planwright
