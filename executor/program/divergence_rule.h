// The rule of `divergence` in a recipe: a run ends when the loss of a step is more than `factor` times the smallest
// loss of the `window` steps before it (docs/training/evaluation.md#divergence). Every rank sees the same losses.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace planwright::executor {

class DivergenceRule {
 public:
  // A factor of 0: no rule.
  DivergenceRule(int64_t window, double factor) : window_(window), factor_(factor) {}

  // The window as a checkpoint has it, oldest loss first. Only the newest losses that fit into the window count.
  void Resume(std::span<const double> losses);
  // Takes the loss of the next step. Returns the smallest loss of the window that it is too far above; nullopt: the run
  // goes on. A step without a loss, or whose loss is not finite, is not looked at: such steps are skipped, and have a
  // rule of their own.
  std::optional<double> Take(const std::optional<double>& loss);

  std::vector<double> window() const { return {losses_.begin(), losses_.end()}; }  // for a checkpoint

 private:
  void Keep(double loss);

  const int64_t window_;
  const double factor_;
  std::deque<double> losses_;
};

}  // namespace planwright::executor
