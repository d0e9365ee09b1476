// Floating-point operations of a plan's modules: of a token, a sample and a step, forward and backward apart. Formulas:
// docs/flops.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

struct Flops {
  double forward = 0, backward = 0;
  double recompute = 0;  // forwards run again in the backward pass; no part of model FLOPs
  double model() const { return forward + backward; }
};

// One kind of layer, or what stands before or behind the layers.
struct PartFlops {
  std::string name;  // "embed", LayerWord, "head", "projector"
  int layers = 0;    // of this kind; 0: no layer
  Flops token;       // all of these layers, of one token
};

// A token of an encoder is a patch. What is frozen takes no weight gradients, and no gradients at all when nothing
// before it is trained.
struct ModuleFlops {
  std::vector<PartFlops> parts;  // in the order of the forward
  Flops token, sample, step;
  double tokens_per_sample = 0;
  // false: the data is not described; an encoder's sample is then as full of images as can be
  bool known = true;
};
ModuleFlops FlopsOf(const Plan& plan, const Module& module);

}  // namespace planwright
