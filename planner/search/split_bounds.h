// All ways to give consecutive layers to the stages of a pipeline, with lower bounds of a step and of memory that are
// sums over layers. So the least bound of all ways is found by dynamic programming, and those below a bound are listed
// without looking at the others (docs/decisions/0025-tune.md).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace planwright {

// What a part of a module adds to the stage that has it, at least.
struct PartCost {
  double forward = 0, backward = 0;  // seconds of one microbatch
  double work = 0;                   // of these, seconds of the backward that compute
  double reduce = 0;                 // seconds in which its gradients are reduced, at the end of a step
  int64_t states = 0;                // bytes of weights, gradients and optimizer states
  int64_t kept = 0;                  // bytes of values that a microbatch holds from its forward to its backward
};

struct LayerCosts {
  PartCost embed, head;
  std::vector<PartCost> layers;
  double rest = 0;             // seconds of a step beside all that
  double beside = 1;           // Rates::MostBeside
  double fill = 0, drain = 0;  // seconds of one microbatch before the first stage has it, and after its backward there
  double hop = 0;              // seconds of a message between stages
  bool fills = true;           // no stage begins more microbatches ahead than there are stages behind it
  int64_t each = 0;            // bytes of every stage, whatever it has
  int64_t handed = 0;          // bytes by which a stage may keep less than the sum of its parts
  int64_t limit = 0;           // bytes of the device; 0: unknown
  int64_t stages = 1;          // of the pipeline
  int64_t microbatches = 1;    // of a step
};

// The first stage has the embedding, the last one the head: these two may be without layers, others not. A step is
// bounded by each stage: the stages before it fill it; it computes all microbatches, or waits until the stages behind
// it have sent the first one back, and computes what it had not begun before; then the stages before it compute the
// backward of the last one, and one of them reduces its gradients.
class SplitBounds {
 public:
  // Ways with bounds above `most` seconds are as if they were not there.
  SplitBounds(LayerCosts costs, double most);

  // Seconds of a step with the best way, at least; infinite: none fits.
  double least() const;
  // Seconds that no bound is above.
  double most() const;

  // Calls `visit` with the layers of each stage, and its bound, for the ways with a bound from `from` on and below
  // `to`, in a fixed order. False: there are more than `many`, and the others were left out.
  bool Visit(double from, double to, size_t many,
             const std::function<void(const std::vector<int64_t>& layers, double seconds)>& visit) const;

 private:
  struct Visitor;

  PartCost StageOf(size_t stage, size_t first, size_t end) const;
  bool Fits(size_t stage, const PartCost& cost) const;
  // Seconds from when the last backward of a stage begins until its gradients are reduced, and it is done.
  double EndOf(size_t stage, const PartCost& cost) const;
  // Seconds of a step by a stage that has the layers from `first` up to `end`. `drain`: seconds that the stages before
  // it take after its last backward.
  double StepOf(size_t stage, size_t first, size_t end, const PartCost& cost, double drain) const;
  size_t LeastLayers(size_t stage) const { return stage == 0 || stage + 1 == stages_ ? 0 : 1; }
  bool VisitFrom(size_t stage, size_t first, double drain, double seconds, Visitor& visitor) const;

  LayerCosts costs_;
  double most_ = 0;
  size_t stages_ = 1, layers_ = 0;
  std::vector<PartCost> before_;             // sums of the layers before each
  std::vector<std::vector<double>> drains_;  // by stage and its first layer: of the stages before, at least
  std::vector<std::vector<double>> least_;   // by stage and its first layer: of this stage and the later ones
};

}  // namespace planwright
