// The time of a step and the memory of its fullest rank, put together from the costs of parts (piece_costs.h): a few
// microseconds in the place of a plan. Both are lower bounds of what the whole plan gives, and near it: the time leaves
// out siblings, classes with fewer samples, and what a role's own list does beside its calls; the memory leaves out the
// values of that list.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "planner/search/piece_costs.h"
#include "planner/search/split_bounds.h"

namespace planwright {

struct StageCost {
  Pass forward;
  std::optional<Pass> backward;
  int64_t kept = 0;    // bytes that a microbatch holds from its forward to its backward
  int64_t out = 0;     // bytes that the forward hands on
  int64_t states = 0;  // bytes that are there the whole time, with those of libraries, but not the context
  // Bytes by which the fullest moment may be less than that of the parts one after the other: values between two parts
  // are counted with both where parts follow each other that do not in the plan which they were read from.
  int64_t shared = 0;
  double send = 0;  // to the next stage
  // Seconds of the end of the step: reducing gradients; scaling and norms; stepping weights; and gathering them.
  double reduce = 0, scale = 0, step = 0, gather = 0;
};

struct ModuleStages {
  bool known = false;  // false: no bound is known
  std::vector<StageCost> stages;
  bool learns() const { return known && stages.back().backward.has_value(); }  // of an encoder: a gradient comes back
  // Seconds of one microbatch on the slowest stage, and of scaling and stepping, for which all ranks wait.
  double microbatch = 0, rest = 0;
  int64_t memory = 0;  // with one microbatch in flight
};

struct QuickStep {
  double seconds = 0;
  int64_t memory = 0;
};

class QuickSteps {
 public:
  // Keeps references.
  QuickSteps(const TunedRecipe& tuned, const Rates& rates);

  // `samples`: of a microbatch on the module's largest lane. The choice must be allowed (space.h).
  ModuleStages StagesOf(size_t module, const ModuleChoice& choice, int64_t samples);

  // `modules`: as Recipe::modules.
  QuickStep Time(const std::vector<const ModuleStages*>& modules, bool together, int64_t microbatches,
                 const StepChoice& step) const;

  // Bounds of every candidate with these stages of the language model: as if all other modules took no memory, and no
  // time, or no more than `others` (by module, AtLeast). It overlaps all that can.
  QuickStep TimeAlone(const ModuleStages& language, bool together, int64_t microbatches,
                      const std::vector<ModuleStages>& others = {}) const;
  // Stages that send every microbatch on no later than any of these would. They compute forwards only.
  static ModuleStages AtLeast(const std::vector<const ModuleStages*>& options);

  // Of one candidate, which the rules allow.
  QuickStep TimeCandidate(const Candidate& candidate, int64_t microbatches);

  // Cheaper bounds of a step: the sums of parts on each stage, and what fills and drains the pipeline before and after
  // it. Stages that lie differently in their nodes than the first count as nothing. 0: unknown.
  double LeastStep(size_t module, const ModuleChoice& choice, int64_t samples, int64_t microbatches);
  // The same for the language model with many samples from the costs of one and of two, which serve all. Without a
  // profile each instruction takes the greatest of sums of a constant and a share for each sample, and so does a step:
  // it grows with each sample by no less than it did from one to two.
  double LeastOfMany(const ModuleChoice& choice, int64_t samples, int64_t microbatches);
  // Seconds of a step if the language model has so many ranks, whatever else is chosen: its products by themselves take
  // as long. 0: unknown.
  double LeastOnRanks(int64_t ranks);

  // Of the language model, whichever layers its stages have: seconds of a step, at least. Cheap bounds come first, and
  // the first that is above `most` is returned. 0: unknown.
  double LeastOfSplits(const ModuleChoice& choice, int64_t samples, int64_t microbatches, double most);
  // What each of its parts costs the stage that has it. Nothing: unknown.
  std::optional<LayerCosts> CostsOfLayers(const ModuleChoice& choice, int64_t samples, int64_t microbatches);

  size_t language() const { return language_; }               // index of the language model
  bool Feeds(size_t module) const { return feeds_[module]; }  // the language model
  int64_t limit() const { return limit_; }                    // bytes of the device without the margin; 0: unknown
  int64_t plans() const { return pieces_.plans(); }

 private:
  void AddStates(const Grid& grid, int rank, const std::map<GradientClass, int64_t>& trained, StageCost& stage) const;
  Grid GridOf(const ModuleChoice& choice) const;
  double ExchangeSeconds(int64_t bytes, bool leaves_node) const;

  std::vector<int64_t> PlacesOf(const ModuleChoice& choice) const;
  // The seconds of CostsOfLayers, but for the end of a step. Nothing: unknown.
  std::optional<LayerCosts> SecondsOfLayers(const ModuleChoice& choice, int64_t samples, int64_t microbatches);
  // What the end of a step adds to these, and memory.
  void AddEnd(const ModuleChoice& choice, const ModuleCosts& costs, LayerCosts& made) const;

  // By layer: its stage; empty: the rules refuse it.
  const std::vector<int>& SplitOf(size_t module, const ModuleChoice& choice);

  const TunedRecipe& tuned_;
  const Rates& rates_;
  PieceCosts pieces_;
  std::vector<std::string> letters_;  // of the layers, by module
  std::map<std::tuple<size_t, int64_t, std::vector<int64_t>>, std::vector<int>> splits_;
  const int64_t limit_;
  const int node_;           // ranks of a node
  const bool measured_;      // by a profile: times of other sizes than those of blocks are not bounded
  size_t language_ = 0;      // index of the language model
  std::vector<char> feeds_;  // by module: whether a bridge leads from it to the language model
};

}  // namespace planwright
