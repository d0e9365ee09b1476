// What the planner knows of a kind of a language model's layers before it makes blocks of it: one class for each LAYER
// of plan/layer_kinds.def, in a file of its own. A kind that lacks a part does not compile, one that lacks its class
// does not link.
#pragma once

#include <string>

#include "planner/model/parameter_builder.h"
#include "planner/model/size_checks.h"
#include "planner/recipe/recipe.h"

namespace planwright {

inline constexpr Init kOnes = {Init::Kind::kOnes, 0, 0};

// How weights start.
struct InitScales {
  Init input;     // input-side weights, embedding, head
  Init residual;  // projections onto the residual stream: std / sqrt(layers)
};

// Forward of one layer for one token of a sequence (docs/flops.md); causal attention counts half of the score matrix.
struct LayerFlops {
  int64_t forward = 0;
  int64_t mixing = 0;  // of these, what mixes tokens and has no weights: attention scores and the scan
};

class LanguageLayer {
 public:
  virtual ~LanguageLayer() = default;

  // Sizes that do not fit together on any layout, or are too large.
  virtual void CheckShape(const HybridLmModel& model, SizeChecks& check) const = 0;
  // Elements of its matrices, roughly: what is left out is smaller by far. Called with sizes of any recipe.
  virtual double RoughSize(const HybridLmModel& model) const = 0;
  // What the module's parallel sizes must divide.
  virtual void CheckLayout(const HybridLmModel& model, const ModuleRecipe& module, SizeChecks& check) const = 0;
  // `prefix`: of published names, with the layer's number.
  virtual void AddParameters(const HybridLmModel& model, const InitScales& scales, const std::string& prefix,
                             ParameterBuilder& add) const = 0;
  virtual LayerFlops Flops(const HybridLmModel& model, int64_t sequence) const = 0;
};

#define LAYER(id, letter, word, title) const LanguageLayer& id##Layer();
#include "planner/plan/layer_kinds.def"

// Of a letter that the pattern check let pass.
const LanguageLayer& LanguageLayerOf(char letter);

}  // namespace planwright
