#include "planner/search/search.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>

#include "planner/search/layout_tree.h"
#include "planner/search/ranking.h"

namespace planwright {
namespace {

constexpr size_t kMostScouts = 3;

bool IsOn(const Candidate& candidate, const Placing& placing) {
  for (size_t m = 0; m < candidate.modules.size(); ++m) {
    const ModuleChoice& module = candidate.modules[m];
    if (module.first_rank != placing.first_rank[m] || module.ranks != placing.ranks[m]) return false;
  }
  return true;
}

class Search {
 public:
  Search(const TuneRequest& request, const TunedRecipe& tuned, Space& space, const ChoiceRule& rule,
         const std::function<bool(int64_t)>& stopped)
      : tuned_(tuned), space_(space), tree_(tuned, space, counts_),
        ranking_(request, tuned, rule, stopped, tree_, counts_) {}

  Found Run() {
    const std::vector<size_t> placings = PlacingsInOrder();
    size_t done = 0;
    for (; done < placings.size() && !ranking_.Stop(); ++done) {
      if (!TryPlacing(placings[done])) break;
    }
    ranking_.Decide(tree_.LeastOf(std::span(placings).subspan(done)));
    MoveLayers();
    Found found = ranking_.Finish();
    found.counts = counts_;
    return found;
  }

 private:
  // A placing, with a candidate on it and a bound of its time; infinite: none is known.
  struct Scouted {
    size_t placing = 0;
    double seconds = kInfinite;
    Candidate candidate;
  };

  // All placings, in the order of the time that the recipe's own sizes of axes would have there: so a good candidate is
  // known early. Where none of these fits, as in a first recipe of a large model, plain layouts take their place. The
  // order decides nothing else.
  std::vector<size_t> PlacingsInOrder() {
    const Candidate given = CandidateOf(tuned_.recipe);
    std::vector<Scouted> order(space_.placings().size());
    for (size_t p = 0; p < order.size(); ++p) {
      Scouted& scouted = order[p];
      scouted.placing = p;
      for (size_t i = 0; i < space_.micro_samples().size() && !ranking_.Stop(); ++i) {
        Candidate candidate = given;
        const double seconds = TimeGivenLayout(space_.placings()[p], space_.micro_samples()[i], candidate);
        if (seconds < scouted.seconds) scouted.seconds = seconds, scouted.candidate = std::move(candidate);
      }
    }
    if (!space_.placings().empty() && IsOn(given, space_.placings().front())) {
      const WholeStep step = SimulateWhole(tuned_, given);
      if (step.fits) ranking_.Know({given, step});
    }
    SimulateFirst(order);
    if (ranking_.Fastest() == kInfinite && ScoutPlainLayouts(order)) SimulateFirst(order);
    std::vector<size_t> placings;
    for (const Scouted& scouted : order) placings.push_back(scouted.placing);
    return placings;
  }

  // Sorts them, and simulates the first few.
  void SimulateFirst(std::vector<Scouted>& order) {
    std::stable_sort(order.begin(), order.end(),
                     [](const Scouted& a, const Scouted& b) { return a.seconds < b.seconds; });
    for (size_t i = 0; i < std::min(order.size(), kMostScouts); ++i) {
      if (order[i].seconds == kInfinite || order[i].seconds > ranking_.Fastest()) continue;
      const WholeStep step = SimulateWhole(tuned_, order[i].candidate);
      if (step.fits) ranking_.Know({order[i].candidate, step});
    }
  }

  // False: there are none.
  bool ScoutPlainLayouts(std::vector<Scouted>& order) {
    double fastest = kInfinite;
    for (Scouted& scouted : order) {
      scouted.seconds = kInfinite;
      const std::optional<OpenNode> plain = PlainLayout(scouted.placing, fastest);
      if (!plain) continue;
      scouted.seconds = plain->seconds, scouted.candidate = tree_.CandidateOf(*plain);
      fastest = std::min(fastest, plain->seconds);
    }
    return fastest < kInfinite;
  }

  // The fastest candidate by its bound, among those whose language model has no axes but tp, dp and ep, and the fewest
  // samples in a microbatch; nothing if none fits or is faster than `most_seconds`.
  std::optional<OpenNode> PlainLayout(size_t p, double most_seconds) {
    std::optional<OpenNode> best;
    const std::vector<ModuleChoice>& layouts = tree_.LayoutsOf(p)[tree_.language()];
    for (size_t l = 0; l < layouts.size() && !ranking_.Stop(); ++l) {
      if (layouts[l].pp > 1 || layouts[l].cp > 1 || layouts[l].expert_tp > 1) continue;
      const int64_t microbatches = tree_.MicrobatchesOf(0, layouts[l]);
      if (microbatches == 0 || tree_.OthersThatFit(p, microbatches).candidates == 0) continue;
      uint64_t too_large = 0;
      for (const OpenNode& node : tree_.WaysOf(p, 0, l, microbatches, most_seconds, too_large).nodes) {
        if (node.seconds < most_seconds) best = node, most_seconds = node.seconds;
      }
    }
    return best;
  }

  // `candidate`: the recipe's, which becomes the one that is timed.
  double TimeGivenLayout(const Placing& placing, int64_t micro, Candidate& candidate) {
    int64_t all_stages = 0;
    for (size_t m = 0; m < candidate.modules.size(); ++m) {
      ModuleChoice& choice = candidate.modules[m];
      choice.first_rank = placing.first_rank[m], choice.ranks = placing.ranks[m];
      if (placing.together) choice.pp = choice.cp = 1, choice.stage_layers.clear();
      if (choice.ranks % (choice.tp * choice.cp * choice.pp) != 0 ||
          choice.ranks % (choice.expert_tp * choice.ep * choice.pp) != 0)
        return kInfinite;
      all_stages += choice.pp;
    }
    candidate.step.micro_samples = micro;
    const ModuleChoice& language = candidate.modules[tree_.language()];
    const int64_t lanes = language.ranks / (language.tp * language.cp * language.pp);
    const int64_t microbatches = tree_.budget().MicrobatchesOf(micro, lanes, all_stages, candidate.step.buckets);
    if (microbatches == 0) return kInfinite;
    const QuickStep quick = tree_.quick().TimeCandidate(candidate, microbatches);
    return tree_.TooLarge(quick.memory) || quick.seconds == 0 ? kInfinite : quick.seconds;
  }

  // False: the search was ended before all was looked at.
  bool TryPlacing(size_t p) {
    const size_t layouts = tree_.LayoutsOf(p)[tree_.language()].size();
    const double listed = tree_.ListedOf(p);
    counts_.space += listed * static_cast<double>(space_.micro_samples().size());
    bool all = true;
    std::vector<uint64_t> too_large(layouts, 0);
    for (size_t micro = 0; micro < space_.micro_samples().size(); ++micro) {
      double valid = 0;  // candidates that are, as far as was looked
      size_t l = 0;
      for (; l < layouts && !ranking_.Stop(); ++l) valid += TryLayout(p, micro, l, too_large[l]);
      all &= l == layouts;
      (l == layouts ? counts_.rules : counts_.left) += listed - valid;
    }
    return all;
  }

  // Returns how many candidates there are. `too_large`: see LayoutTree::WaysOf.
  double TryLayout(size_t p, size_t micro, size_t l, uint64_t& too_large) {
    const ModuleChoice& layout = tree_.LayoutsOf(p)[tree_.language()][l];
    const int64_t microbatches = tree_.MicrobatchesOf(micro, layout);
    if (microbatches == 0) return 0;
    const auto steps = static_cast<double>(space_.steps().size()),
               ways = static_cast<double>(space_.CountWays(tree_.language(), layout));
    const double all = tree_.OthersOf(p) * steps * ways;
    const OtherModules& others = tree_.OthersThatFit(p, microbatches);
    const double fitting = others.candidates * steps;
    if (fitting > 0 && others.least > ranking_.MostSeconds()) {
      counts_.time += fitting * ways, counts_.memory += all - fitting * ways;
      return all;
    }
    if (fitting > 0) {
      const LayoutTree::Ways found = tree_.WaysOf(p, micro, l, microbatches, ranking_.MostSeconds(), too_large);
      counts_.memory += all - fitting * static_cast<double>(found.fit);
      counts_.time += fitting * static_cast<double>(found.fit - found.nodes.size());
      for (const OpenNode& node : found.nodes) ranking_.Add(node);
    } else {
      counts_.memory += all;
    }
    return all;
  }

  // Layouts with any layers in the stages of the language model.
  void MoveLayers() {
    VisitSplits(ranking_.Fastest(), [&](const OpenNode& node) { ranking_.AddMoved(node); });
    const bool all = !ranking_.Stop();
    ranking_.DecideMoved(all);
    if (ranking_.LacksRows()) VisitSplits(ranking_.MostSeconds(), [&](const OpenNode& node) { ranking_.AddRow(node); });
  }

  void VisitSplits(double most_seconds, const std::function<void(const OpenNode&)>& visit) {
    for (size_t p = 0; p < space_.placings().size(); ++p) {
      for (const size_t grid : ranking_.Stop() ? std::vector<size_t>() : tree_.GridsWithStages(p)) {
        for (size_t micro = 0; micro < space_.micro_samples().size() && !ranking_.Stop(); ++micro) {
          for (const OpenNode& node : tree_.SplitsOf(p, micro, grid, most_seconds)) visit(node);
        }
      }
    }
  }

  const TunedRecipe& tuned_;
  Space& space_;
  TuneCounts counts_;
  LayoutTree tree_;
  Ranking ranking_;
};

}  // namespace

Found SearchSpace(const TuneRequest& request, const TunedRecipe& tuned, Space& space, const ChoiceRule& rule,
                  const std::function<bool(int64_t)>& stopped) {
  return Search(request, tuned, space, rule, stopped).Run();
}

}  // namespace planwright
