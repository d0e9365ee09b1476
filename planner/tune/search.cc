#include "planner/tune/search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "planner/recipe/model_facts.h"
#include "planner/tune/budget_rule.h"
#include "planner/tune/quick_step.h"
#include "planner/tune/ranking.h"

namespace planwright {
namespace {

constexpr size_t kMostScouts = 3;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

int64_t LanesOf(const ModuleChoice& choice) { return choice.ranks / (choice.tp * choice.cp * choice.pp); }

bool IsOn(const Candidate& candidate, const Placing& placing) {
  for (size_t m = 0; m < candidate.modules.size(); ++m) {
    const ModuleChoice& module = candidate.modules[m];
    if (module.first_rank != placing.first_rank[m] || module.ranks != placing.ranks[m]) return false;
  }
  return true;
}

int64_t LargestLane(int64_t samples, int64_t lanes) { return (samples + lanes - 1) / lanes; }

// A layout of one module, with its costs for a number of samples.
struct Option {
  OpenCandidates::Layout at;
  int64_t pp = 1;
  ModuleStages stages;
  double least = 0;  // seconds of a step
};

// What is being looked at: a placing, with a number of samples of a microbatch.
struct Place {
  size_t placing = 0, micro = 0;
  bool together = false;
  int64_t microbatches = 0, block = 0;  // samples of a microbatch on all lanes
  double others = 1;                    // layouts of all modules but the language model
};

// Layouts of all modules but the language model, by module.
struct OtherModules {
  std::vector<std::vector<Option>> options;  // those that may fit and are not too slow
  double fitting = 1;                        // how many together may fit
};

class Search {
 public:
  Search(const TuneRequest& request, const TunedRecipe& tuned, Space& space, double error,
         const std::function<bool(int64_t)>& stopped)
      : tuned_(tuned), space_(space), rates_(RatesOf(tuned.cluster)), quick_(tuned, rates_), budget_(tuned.recipe),
        layouts_(space.placings().size()),
        ranking_(
            request, tuned, error, stopped,
            [this](const TimedCandidate& timed, const OpenCandidates::Layout* at) { return CandidateAt(timed, at); }),
        counts_(ranking_.counts()) {
    for (size_t m = 0; m < tuned.recipe.modules.size(); ++m) {
      if (CarriesLoss(tuned.recipe.modules[m].model)) language_ = m;
    }
  }

  Found Run() {
    for (size_t p : PlacingsByGivenLayout()) {
      if (ranking_.Stop()) break;
      TryPlacing(p);
    }
    return ranking_.Finish();
  }

 private:
  bool TooLarge(int64_t memory) const { return quick_.limit() > 0 && memory > quick_.limit(); }

  // All placings, in the order of the time that the recipe's own sizes of axes would have there: so a good candidate is
  // known early. The order decides nothing else.
  std::vector<size_t> PlacingsByGivenLayout() {
    const Candidate given = CandidateOf(tuned_.recipe);
    struct Scouted {
      double seconds = kInfinite;
      size_t placing = 0;
      Candidate candidate;
    };
    std::vector<Scouted> order;
    for (size_t p = 0; p < space_.placings().size(); ++p) {
      const Placing& placing = space_.placings()[p];
      Scouted& scouted = order.emplace_back();
      scouted.placing = p;
      for (size_t i = 0; i < space_.micro_samples().size() && !ranking_.Stop(); ++i) {
        Candidate candidate = given;
        const double seconds = TimeGivenLayout(placing, space_.micro_samples()[i], candidate);
        if (seconds < scouted.seconds) scouted.seconds = seconds, scouted.candidate = std::move(candidate);
      }
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Scouted& a, const Scouted& b) { return a.seconds < b.seconds; });
    if (!space_.placings().empty() && IsOn(given, space_.placings().front())) {
      const WholeStep step = SimulateWhole(tuned_, given);
      if (step.fits) ranking_.Know({given, step});
    }
    std::vector<size_t> placings;
    for (const Scouted& scouted : order) {
      placings.push_back(scouted.placing);
      if (placings.size() > kMostScouts || scouted.seconds == kInfinite || scouted.seconds > ranking_.Fastest())
        continue;
      const WholeStep step = SimulateWhole(tuned_, scouted.candidate);
      if (step.fits) ranking_.Know({scouted.candidate, step});
    }
    return placings;
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
    const int64_t microbatches =
        budget_.MicrobatchesOf(micro, LanesOf(candidate.modules[language_]), all_stages, candidate.step.buckets);
    if (microbatches == 0) return kInfinite;
    const QuickStep quick = quick_.TimeCandidate(candidate, microbatches);
    return TooLarge(quick.memory) || quick.seconds == 0 ? kInfinite : quick.seconds;
  }

  void TryPlacing(size_t p) {
    const Placing& placing = space_.placings()[p];
    const size_t count = tuned_.recipe.modules.size();
    Place place{.placing = p, .together = placing.together};
    double listed = static_cast<double>(space_.steps().size());  // with each number of samples
    for (size_t m = 0; m < count; ++m) {
      layouts_[p].push_back(space_.LayoutsOf(m, placing));
      double ways = 0;
      for (const ModuleChoice& layout : layouts_[p][m]) ways += static_cast<double>(space_.CountWays(m, layout));
      // Refused layouts count with as many ways as an allowed one has on average.
      const double each = layouts_[p][m].empty() ? 1 : ways / static_cast<double>(layouts_[p][m].size());
      listed *= static_cast<double>(space_.listed()) * each;
      if (m != language_) place.others *= ways;
    }
    listed = std::round(listed);
    counts_.space += listed * static_cast<double>(space_.micro_samples().size());
    std::vector<char> too_large(layouts_[p][language_].size(), false);
    for (place.micro = 0; place.micro < space_.micro_samples().size(); ++place.micro) {
      const Looked looked = TryMicro(place, too_large);
      (looked.all ? counts_.rules : counts_.left) += listed - looked.valid;
      ranking_.SimulateFaster();
    }
  }

  struct Looked {
    double valid = 0;  // candidates that are, as far as was looked
    bool all = true;   // false: the search was ended before
  };

  // `too_large`: layouts of the language model of which all ways are too large, also with more samples.
  Looked TryMicro(Place& place, std::vector<char>& too_large) {
    const int64_t micro = space_.micro_samples()[place.micro], global = *tuned_.recipe.batch.global_samples;
    const double each = place.others * static_cast<double>(space_.steps().size());
    const std::vector<ModuleChoice>& layouts = layouts_[place.placing][language_];
    std::map<int64_t, OtherModules> others;  // by samples of a block
    double valid = 0;
    size_t l = 0;
    for (; l < layouts.size() && !ranking_.Stop(); ++l) {
      const ModuleChoice& layout = layouts[l];
      place.microbatches = budget_.MicrobatchesOf(
          micro, LanesOf(layout), static_cast<int64_t>(tuned_.recipe.modules.size()) + layout.pp - 1, 1);
      if (place.microbatches == 0) continue;
      place.block = global / place.microbatches;
      const auto ways = static_cast<double>(space_.CountWays(language_, layout));
      valid += each * ways;
      const auto [at, is_new] = others.try_emplace(place.block);
      if (is_new) at->second = OtherOptions(place);
      const OtherModules& rest = at->second;
      const double fitting_each = rest.fitting * static_cast<double>(space_.steps().size());
      counts_.memory += (each - fitting_each) * ways;
      if (too_large[l] || rest.fitting == 0) {
        counts_.memory += fitting_each * ways;
        continue;
      }
      double least = 0;
      for (size_t m = 0; m < rest.options.size(); ++m) {
        if (m == language_) continue;
        double fastest = kInfinite;
        for (const Option& option : rest.options[m]) fastest = std::min(fastest, option.least);
        least = place.together ? least + fastest : std::max(least, fastest);
      }
      if (least > ranking_.MostSeconds()) {
        counts_.time += fitting_each * ways;
        continue;
      }
      std::vector<Option> options;
      const size_t fitting = AddOptions(place, language_, l, micro, place.together ? least : 0, options);
      too_large[l] = fitting == 0;
      counts_.memory += fitting_each * (ways - static_cast<double>(fitting));
      counts_.time += fitting_each * static_cast<double>(fitting - options.size());
      for (const Option& option : options) TimeWithOthers(place, option, rest);
    }
    return {valid, l == layouts.size()};
  }

  OtherModules OtherOptions(const Place& place) {
    OtherModules others;
    others.options.resize(tuned_.recipe.modules.size());
    for (size_t m = 0; m < others.options.size(); ++m) {
      if (m == language_) continue;
      const std::vector<ModuleChoice>& layouts = layouts_[place.placing][m];
      size_t fitting = 0;
      for (size_t l = 0; l < layouts.size(); ++l)
        fitting += AddOptions(place, m, l, LargestLane(place.block, LanesOf(layouts[l])), 0, others.options[m]);
      others.fitting *= static_cast<double>(fitting);
    }
    return others;
  }

  // Adds those ways of a layout that may fit and are not too slow. `beside`: seconds that other modules take on the
  // same ranks. Returns how many may fit.
  size_t AddOptions(const Place& place, size_t m, size_t l, int64_t samples, double beside,
                    std::vector<Option>& options) {
    const std::vector<ModuleChoice> ways = space_.WaysOf(m, layouts_[place.placing][m][l]);
    const size_t recomputes = space_.recomputes(m);
    size_t fitting = 0;
    // Ways differ first in how tokens travel. What recomputes nothing is the fastest of those, and what recomputes all
    // the smallest: if that is too slow or too large, so are the others.
    for (size_t first = 0; first < ways.size(); first += recomputes) {
      const auto look = [&](size_t w) {
        Option option{{static_cast<uint32_t>(l), static_cast<uint32_t>(w)}, ways[w].pp, {}, 0};
        option.stages = quick_.StagesOf(m, ways[w], samples);
        option.least = option.stages.microbatch * static_cast<double>(place.microbatches) + option.stages.rest;
        return option;
      };
      std::map<size_t, Option> known;
      const auto at = [&](size_t w) -> const Option& {
        const auto found = known.find(w);
        return found != known.end() ? found->second : known.emplace(w, look(w)).first->second;
      };
      const auto find = [&](const char* word) {
        for (size_t w = first; w < first + recomputes; ++w) {
          if (ways[w].recompute == std::vector<std::string>{word}) return w;
        }
        return first + recomputes;
      };
      const size_t none = find("none"), full = find("full"), end = first + recomputes;
      const auto fits = [&](const Option& option) { return !TooLarge(option.stages.memory); };
      // It keeps the input of each layer, which others may drop.
      const auto far_too_large = [&](const Option& option) {
        return option.stages.known && TooLarge(option.stages.memory - 2 * option.stages.stages.front().out);
      };
      if (full < end && far_too_large(at(full))) continue;
      if (none < end && at(none).least + beside > ranking_.MostSeconds()) {
        fitting += recomputes;
        continue;
      }
      for (size_t w = first; w < end; ++w) {
        const Option& option = at(w);
        if (!fits(option)) continue;
        ++fitting;
        if (option.least + beside <= ranking_.MostSeconds()) options.push_back(option);
      }
    }
    return fitting;
  }

  void TimeWithOthers(const Place& place, const Option& language, const OtherModules& others) {
    std::vector<const Option*> chosen(others.options.size(), &language);
    const auto steps = static_cast<double>(space_.steps().size());
    double looked = 0;
    const std::function<void(size_t, double)> choose = [&](size_t m, double least) {
      if (m == language_) return choose(m + 1, least);
      if (m == others.options.size()) {
        looked += steps;
        return TimeSteps(place, chosen);
      }
      for (const Option& option : others.options[m]) {
        const double with = place.together ? least + option.least : std::max(least, option.least);
        if (with > ranking_.MostSeconds()) continue;
        chosen[m] = &option;
        choose(m + 1, with);
      }
    };
    choose(0, language.least);
    // The loops passed over layouts that are too large or too slow.
    counts_.time += others.fitting * steps - looked;
  }

  void TimeSteps(const Place& place, const std::vector<const Option*>& chosen) {
    std::vector<const ModuleStages*> stages;
    std::vector<OpenCandidates::Layout> layouts;
    int64_t all_stages = 0;
    for (const Option* option : chosen) {
      stages.push_back(&option->stages), layouts.push_back(option->at);
      all_stages += option->pp;
    }
    const int64_t micro = space_.micro_samples()[place.micro],
                  lanes = LanesOf(layouts_[place.placing][language_][layouts[language_].layout]);
    const auto time = [&](const StepChoice& step) {
      return quick_.Time(stages, place.together, place.microbatches, step);
    };
    // What overlaps is never slower in this model.
    const QuickStep best = time({.overlap_reduce = true, .overlap_gather = true});
    std::array<std::optional<QuickStep>, 4> times;
    times[3] = best;
    std::optional<uint32_t> at;
    for (size_t s = 0; s < space_.steps().size(); ++s) {
      const StepChoice& step = space_.steps()[s];
      if (budget_.MicrobatchesOf(micro, lanes, all_stages, step.buckets) == 0) {
        ++counts_.rules;
        continue;
      }
      if (TooLarge(best.memory)) {
        ++counts_.memory;
        continue;
      }
      ++counts_.timed;
      std::optional<QuickStep>& quick = times[(step.overlap_reduce ? 1 : 0) + (step.overlap_gather ? 2 : 0)];
      if (best.seconds <= ranking_.MostSeconds() && !quick) quick = time(step);  // the number of buckets does not count
      if (!quick || quick->seconds > ranking_.MostSeconds()) {
        ++counts_.time;
        continue;
      }
      if (!at) at = ranking_.AddLayouts(layouts);
      ranking_.Add({.seconds = quick->seconds,
                    .memory = quick->memory,
                    .placing = static_cast<uint32_t>(place.placing),
                    .micro = static_cast<uint32_t>(place.micro),
                    .step = static_cast<uint32_t>(s),
                    .layouts = *at});
    }
    ranking_.Tidy();
  }

  Candidate CandidateAt(const TimedCandidate& timed, const OpenCandidates::Layout* at) const {
    Candidate candidate;
    for (size_t m = 0; m < tuned_.recipe.modules.size(); ++m) {
      const ModuleChoice& layout = layouts_[timed.placing][m][at[m].layout];
      candidate.modules.push_back(space_.WaysOf(m, layout)[at[m].way]);
    }
    candidate.step = space_.steps()[timed.step];
    candidate.step.micro_samples = space_.micro_samples()[timed.micro];
    return candidate;
  }

  const TunedRecipe& tuned_;
  Space& space_;
  const Rates rates_;
  QuickSteps quick_;
  BudgetRule budget_;
  size_t language_ = 0;
  std::vector<std::vector<std::vector<ModuleChoice>>> layouts_;  // by placing and module
  Ranking ranking_;
  TuneCounts& counts_;
};

}  // namespace

Found SearchSpace(const TuneRequest& request, const TunedRecipe& tuned, Space& space, double error,
                  const std::function<bool(int64_t)>& stopped) {
  return Search(request, tuned, space, error, stopped).Run();
}

}  // namespace planwright
