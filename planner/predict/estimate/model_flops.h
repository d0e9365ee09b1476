// Floating-point operations of a plan's modules, for a token, a sample and a step. Forward and backward are counted
// separately. Formulas: docs/flops.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

struct Flops {
  double forward = 0, backward = 0;
  double recompute = 0;  // forwards that the backward runs again; not a part of model FLOPs
  double model() const { return forward + backward; }
};

// All layers of one kind, or what comes before the first layer or after the last.
struct PartFlops {
  std::string name;  // "embed", LayerWord, "head", "projector"
  int layers = 0;    // number of layers of this kind; 0: not a layer
  Flops token;       // of one token, in all of these layers
};

// A token of an encoder is a patch. A frozen part computes no gradients of weights, and no gradients at all if nothing
// before it is trained.
struct ModuleFlops {
  std::vector<PartFlops> parts;  // in the order of the forward
  Flops token, sample, step;
  double tokens_per_sample = 0;
  // False: the images of a sample are not known before they are read. An encoder's sample is then counted as full of
  // images as it can be.
  bool known = true;
};
ModuleFlops FlopsOf(const Plan& plan, const Module& module);

// Model FLOPs of steps whose samples have been read, with the images that they had (docs/flops.md#utilization).
class StepFlops {
 public:
  explicit StepFlops(const Plan& plan);

  // The FLOPs of one step, over all ranks. `elements`: of the rows that crossed each bridge forward, in the order of
  // Plan::bridges.
  double Of(std::span<const int64_t> elements) const;

 private:
  double text_ = 0;                      // of the modules without images
  std::vector<double> per_row_element_;  // by bridge: of its encoder, for one element of a row
};

}  // namespace planwright
