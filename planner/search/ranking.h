// Candidates that may be among the best: those that were not looked at one by one, in the order of their bounds, and
// those that were simulated whole (docs/decisions/0025-tune.md).
#pragma once

#include <functional>
#include <limits>
#include <set>
#include <vector>

#include "planner/search/found_layouts.h"
#include "planner/search/open_nodes.h"
#include "planner/search/search.h"
#include "planner/search/tune.h"

namespace planwright {

inline constexpr size_t kMostOpen = 300'000;

class Ranking {
 public:
  // `rule`, `stopped`: as SearchSpace has them. Keeps references.
  Ranking(const TuneRequest& request, const TunedRecipe& tuned, const ChoiceRule& rule,
          const std::function<bool(int64_t timed)>& stopped, NodeSource& source, TuneCounts& counts)
      : request_(request), tuned_(tuned), rule_(rule), stopped_(stopped), source_(source), counts_(counts),
        simulated_(tuned) {}

  // True once the search is to end with what it has.
  bool Stop();
  // Seconds of the fastest that is known; infinite: none is.
  double Fastest() const { return std::min(known_seconds_, simulated_.Fastest()); }
  // A bound above this is cut. Slower ones than the fastest may be simpler, or smaller.
  double MostSeconds() const;

  // A candidate that will come up in the space once more.
  void Know(FoundLayout layout);
  // One with a bound up to MostSeconds. The best of much better ones is simulated at once.
  void Add(const OpenNode& node);
  // Drops what cannot be among the best any more, if there is much; tells how far the search is.
  void Tidy();

  // All have been added, or the search was stopped: simulates what may be among the best. `unseen`: a bound of what was
  // not added; infinite: all was.
  void Decide(double unseen);

  // After that, nodes of layouts with other layers in their stages: those that may be faster than the fastest.
  void AddMoved(const OpenNode& node);
  // Simulates these. `all`: they were all added.
  void DecideMoved(bool all);

  // Whether the table has fewer rows than were asked for. Then nodes of layouts with other layers in their stages may
  // be added that are slower than the fastest.
  bool LacksRows();
  void AddRow(const OpenNode& node) { rows_.Add(node); }

  Found Finish();

 private:
  // Below this a candidate may be one of those that are wanted.
  double Needed() const { return simulated_.Fastest(std::max<size_t>(1, request_.best) - 1); }
  // The search may go on, and its results may change.
  bool MayGoOn() { return !Stop() && counts_.simulated < most_simulated_; }
  bool MayGoOnMoved() { return moved_.least() < Fastest() && counts_.timed < most_timed_ && MayGoOn(); }
  void Report() const;
  // Returns what the whole plan of a node of one candidate says.
  WholeStep Simulate(const OpenNode& one);
  // Opens the parts of a node with bounds up to `most`, or simulates it if it is of one.
  void LookAt(const OpenNode& node, double most, OpenNodes& open);
  // Simulates the candidate with the least bound of a node, and opens the rest.
  void SimulateLeast(OpenNode node);
  void SimulateLeastOnes();
  // Of nodes of AddMoved, the least bounds first: simulates one candidate of each way to give layers to stages.
  void TryMoved();
  void TakeWhatIsKnown();
  // What may come before others: less of it comes first.
  struct Merit {
    Simplicity simplicity;
    double less = 0;
    auto operator<=>(const Merit&) const = default;
  };
  // Simulates what may take at most `within` longer than the fastest and may have less merit than all that was
  // simulated; a difference of `less` up to `worth` does not count.
  void SimulateBetter(double within, double worth, const std::function<Merit(Simplicity, double, int64_t)>& merit);
  void SimulateEquals();
  // Rows of what was simulated and is not too slow.
  std::set<Candidate> Rows() const;
  // The best of at most so many rows that the table does not have yet, by their bounds.
  void SimulateOtherRows(size_t most);
  void SimulateMovedRows(size_t most);
  void SimulateFrontier();
  void FindOthers(const std::vector<OpenNode>& open);

  const TuneRequest& request_;
  const TunedRecipe& tuned_;
  const ChoiceRule& rule_;
  const std::function<bool(int64_t)>& stopped_;
  NodeSource& source_;
  TuneCounts& counts_;
  OpenNodes open_, moved_, rows_;
  FoundLayouts simulated_;
  std::vector<FoundLayout> known_;
  double known_seconds_ = std::numeric_limits<double>::infinity();  // of a candidate, before it comes up in the space
  // Of nodes that were dropped as there were too many: their least bound, and how many candidates they are.
  double dropped_least_ = std::numeric_limits<double>::infinity(), dropped_ = 0;
  double moved_dropped_ = std::numeric_limits<double>::infinity();  // the same of nodes of AddMoved
  int64_t reported_ = 0, most_simulated_ = 0, most_timed_ = 0;
  int dives_ = 0;
  bool proved_ = false;  // no candidate that was not simulated is among the wanted
  Found found_;
};

}  // namespace planwright
