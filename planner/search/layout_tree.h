// The candidates of a space as a tree: a layout of the language model stands for all candidates that have it, then come
// those of the other modules, and then how gradients are reduced. Each node has bounds of what is below it, so that a
// search looks only below the best (docs/decisions/0025-tune.md).
#pragma once

#include <list>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "planner/search/budget_rule.h"
#include "planner/search/open_nodes.h"
#include "planner/search/quick_step.h"
#include "planner/search/space.h"
#include "planner/search/tune.h"

namespace planwright {

// A layout of one module, with its costs for a number of samples.
struct LayoutOption {
  LayoutIndex at;
  int64_t pp = 1;
  ModuleStages stages;
  double least = 0;  // seconds of a step
};

// The layouts of all modules but the language model that may fit, on one placing and with one size of microbatch.
struct OtherModules {
  std::vector<std::vector<LayoutOption>> options;  // by module; none of the language model
  double candidates = 1;                           // how many they are together
  double least = 0;                                // seconds of a step with the fastest of them
  // Where modules have ranks of their own: by module, what sends each microbatch on as early as the fastest; and
  // seconds that one microbatch takes before the language model has it, and after its backward there, at least.
  std::vector<ModuleStages> stages;
  double fill = 0, drain = 0;
};

class LayoutTree : public NodeSource {
 public:
  // Keeps references.
  LayoutTree(const TunedRecipe& tuned, Space& space, TuneCounts& counts);

  Candidate CandidateOf(const OpenNode& node) override;
  Simplicity SimplicityOf(const OpenNode& node) override;
  std::vector<OpenNode> PartsOf(const OpenNode& node, double most_seconds) override;
  double LeftOut() const override { return left_out_; }

  // Of a placing, by module.
  const std::vector<std::vector<ModuleChoice>>& LayoutsOf(size_t placing);
  // How many candidates a number of samples has there, with those that the rules refuse: an average.
  double ListedOf(size_t placing) const { return placed_[placing].listed; }
  // Layouts of all modules but the language model, with those that do not fit.
  double OthersOf(size_t placing) const { return placed_[placing].others; }

  // 0: the rules refuse it.
  int64_t MicrobatchesOf(size_t micro, const ModuleChoice& language);
  const OtherModules& OthersThatFit(size_t placing, int64_t microbatches);

  // What became of the ways of a language layout: nodes of those that may fit and are not too slow.
  struct Ways {
    std::vector<OpenNode> nodes;
    size_t fit = 0;  // ways that may fit
  };
  // `too_large`: by way in which tokens travel, a bit; set: all that do so are too large, also with more samples.
  Ways WaysOf(size_t placing, size_t micro, size_t layout, int64_t microbatches, double most_seconds,
              uint64_t& too_large);

  // Nodes of the ways of a grid of the language model, each for all layers that its stages may have.
  std::vector<OpenNode> SplitsOf(size_t placing, size_t micro, size_t layout, double most_seconds);
  // The first layout of each grid of the language model whose layers may be moved between stages.
  std::vector<size_t> GridsWithStages(size_t placing);

  // The least that a step takes on any of these placings by the products of the language model alone, as nothing is
  // faster than these; 0: unknown; infinite: there are none.
  double LeastOf(std::span<const size_t> placings);

  QuickSteps& quick() { return quick_; }
  BudgetRule& budget() { return budget_; }
  size_t language() const { return language_; }
  bool TooLarge(int64_t memory) const { return quick_.limit() > 0 && memory > quick_.limit(); }

 private:
  struct Placed {
    std::vector<std::vector<ModuleChoice>> layouts;  // by module
    double listed = 0, others = 1;
  };
  using OthersKey = std::pair<size_t, int64_t>;  // placing, microbatches

  LayoutOption OptionOf(size_t module, const ModuleChoice& way, LayoutIndex at, int64_t samples, int64_t microbatches);
  void AddOptions(size_t placing, size_t module, size_t layout, int64_t microbatches,
                  std::vector<LayoutOption>& options);
  ModuleChoice ChoiceOf(size_t placing, size_t module, LayoutIndex at);
  std::vector<OpenNode> MovedOf(const OpenNode& node, double most_seconds);
  std::vector<OpenNode> ModulesOf(const OpenNode& node, double most_seconds);
  std::vector<OpenNode> StepsOf(const OpenNode& node, double most_seconds);

  const TunedRecipe& tuned_;
  Space& space_;
  TuneCounts& counts_;
  const Rates rates_;
  QuickSteps quick_;
  BudgetRule budget_;
  size_t language_ = 0;
  std::vector<Placed> placed_;
  std::list<std::pair<OthersKey, OtherModules>> others_;  // used last in front
  std::vector<LayoutIndex> chosen_;                       // of nodes: layouts of all modules
  double left_out_ = kInfinite;
};

}  // namespace planwright
