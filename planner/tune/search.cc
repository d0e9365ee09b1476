#include "planner/tune/search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "planner/recipe/model_facts.h"
#include "planner/tune/budget_rule.h"
#include "planner/tune/open_candidates.h"
#include "planner/tune/quick_step.h"

namespace planwright {
namespace {

// Candidates whose bound is above the fastest by more than this are cut. Those within may be smaller.
constexpr double kKept = 1.1;
constexpr size_t kMostOpen = 500'000, kMostOnFrontier = 12, kMostOthers = 8, kMostScouts = 3;
constexpr double kMuchBetter = 0.9;  // a candidate with such a bound is simulated at once
constexpr int kMostDives = 50;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

int64_t LanesOf(const ModuleChoice& choice) { return choice.ranks / (choice.tp * choice.cp * choice.pp); }

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
      : request_(request), tuned_(tuned), space_(space), error_(error), stopped_(stopped),
        rates_(RatesOf(tuned.cluster)), quick_(tuned, rates_), budget_(tuned.recipe),
        layouts_(space.placings().size()) {
    for (size_t m = 0; m < tuned.recipe.modules.size(); ++m) {
      if (CarriesLoss(tuned.recipe.modules[m].model)) language_ = m;
    }
  }

  Found Run() {
    for (size_t p : PlacingsByGivenLayout()) {
      if (Stop()) break;
      TryPlacing(p);
    }
    const bool complete = !found_.interrupted;
    while (!open_.empty() && open_.least() < Needed() && !Stop()) Simulate(open_.Next());
    const bool proved = !found_.interrupted;
    if (!proved) TakeWhatIsKnown();
    SimulateEquals();
    SimulateFrontier();
    found_.whole = simulated_.Sorted(tuned_.recipe);
    // What is open has a bound; what was not reached has none.
    if (complete) found_.lower_bound = std::min(simulated_.Fastest(), open_.empty() ? kInfinite : open_.least());
    if (found_.whole.empty()) found_.lower_bound = 0;
    found_.interrupted = !proved;
    found_.counts.time += static_cast<double>(open_.size());
    return std::move(found_);
  }

 private:
  bool Stop() {
    if (!found_.interrupted && stopped_(found_.counts.timed)) found_.interrupted = true;
    return found_.interrupted;
  }

  double Fastest() const { return std::min(known_seconds_, simulated_.Fastest()); }
  // Below this a candidate may be one of those that are wanted.
  double Needed() const { return simulated_.Fastest(std::max<size_t>(1, request_.best) - 1); }
  double MostSeconds() const { return std::max(kKept, 1 + error_) * Fastest(); }
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
      for (size_t i = 0; i < space_.micro_samples().size() && !Stop(); ++i) {
        Candidate candidate = given;
        const double seconds = TimeGivenLayout(placing, space_.micro_samples()[i], candidate);
        if (seconds < scouted.seconds) scouted.seconds = seconds, scouted.candidate = std::move(candidate);
      }
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Scouted& a, const Scouted& b) { return a.seconds < b.seconds; });
    int64_t end = 0;
    for (const ModuleChoice& module : given.modules) end = std::max(end, module.first_rank + module.ranks);
    if (!space_.placings().empty() && space_.placings().front().ranks[0] == given.modules[0].ranks) {
      const WholeStep step = SimulateWhole(tuned_, given);
      if (step.fits) Know({given, step});
    }
    std::vector<size_t> placings;
    for (const Scouted& scouted : order) {
      placings.push_back(scouted.placing);
      if (placings.size() > kMostScouts || scouted.seconds == kInfinite || scouted.seconds > Fastest()) continue;
      const WholeStep step = SimulateWhole(tuned_, scouted.candidate);
      if (step.fits) Know({scouted.candidate, step});
    }
    return placings;
  }

  // A candidate that will come up in the space once more.
  void Know(FoundLayout layout) {
    known_seconds_ = std::min(known_seconds_, layout.step.seconds);
    known_.push_back(std::move(layout));
  }

  // Of a search that was stopped: what was known before it, and those with the least bounds.
  void TakeWhatIsKnown() {
    for (int tries = 0; tries < 3 && !open_.empty(); ++tries) Simulate(open_.Next());
    for (FoundLayout& known : known_) {
      const std::vector<FoundLayout>& all = simulated_.layouts();
      if (std::none_of(all.begin(), all.end(),
                       [&](const FoundLayout& found) { return found.candidate == known.candidate; }))
        simulated_.Add(std::move(known));
    }
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
    double listed = static_cast<double>(space_.micro_samples().size() * space_.steps().size());
    for (size_t m = 0; m < count; ++m) {
      layouts_[p].push_back(space_.LayoutsOf(m, placing));
      double ways = 0;
      for (const ModuleChoice& layout : layouts_[p][m]) ways += static_cast<double>(space_.CountWays(m, layout));
      // Refused layouts count with as many ways as an allowed one has on average.
      const double each = layouts_[p][m].empty() ? 1 : ways / static_cast<double>(layouts_[p][m].size());
      listed *= static_cast<double>(space_.listed()) * each;
      if (m != language_) place.others *= ways;
    }
    found_.counts.space += listed;
    double valid = 0;
    std::vector<char> too_large(layouts_[p][language_].size(), false);
    for (place.micro = 0; place.micro < space_.micro_samples().size() && !Stop(); ++place.micro) {
      valid += TryMicro(place, too_large);
      for (int tries = 0; tries < 4 && !open_.empty() && open_.least() < Fastest(); ++tries) Simulate(open_.Next());
    }
    found_.counts.rules += std::max(0.0, listed - valid);
  }

  // Returns how many candidates are valid. `too_large`: layouts of the language model of which all ways are too large,
  // also with more samples.
  double TryMicro(Place& place, std::vector<char>& too_large) {
    const int64_t micro = space_.micro_samples()[place.micro], global = *tuned_.recipe.batch.global_samples;
    const double each = place.others * static_cast<double>(space_.steps().size());
    const std::vector<ModuleChoice>& layouts = layouts_[place.placing][language_];
    std::map<int64_t, OtherModules> others;  // by samples of a block
    double valid = 0;
    for (size_t l = 0; l < layouts.size() && !Stop(); ++l) {
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
      found_.counts.memory += (each - fitting_each) * ways;
      if (too_large[l] || rest.fitting == 0) {
        found_.counts.memory += fitting_each * ways;
        continue;
      }
      double least = 0;
      for (size_t m = 0; m < rest.options.size(); ++m) {
        if (m == language_) continue;
        double fastest = kInfinite;
        for (const Option& option : rest.options[m]) fastest = std::min(fastest, option.least);
        least = place.together ? least + fastest : std::max(least, fastest);
      }
      if (least > MostSeconds()) {
        found_.counts.time += fitting_each * ways;
        continue;
      }
      std::vector<Option> options;
      const size_t fitting = AddOptions(place, language_, l, micro, place.together ? least : 0, options);
      too_large[l] = fitting == 0;
      found_.counts.memory += fitting_each * (ways - static_cast<double>(fitting));
      found_.counts.time += fitting_each * static_cast<double>(fitting - options.size());
      for (const Option& option : options) TimeWithOthers(place, option, rest);
    }
    return valid;
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
      if (none < end && at(none).least + beside > MostSeconds()) {
        fitting += recomputes;
        continue;
      }
      for (size_t w = first; w < end; ++w) {
        const Option& option = at(w);
        if (!fits(option)) continue;
        ++fitting;
        if (option.least + beside <= MostSeconds()) options.push_back(option);
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
        if (with > MostSeconds()) continue;
        chosen[m] = &option;
        choose(m + 1, with);
      }
    };
    choose(0, language.least);
    // The loops passed over layouts that are too large or too slow.
    found_.counts.time += others.fitting * steps - looked;
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
        ++found_.counts.rules;
        continue;
      }
      if (TooLarge(best.memory)) {
        ++found_.counts.memory;
        continue;
      }
      ++found_.counts.timed;
      std::optional<QuickStep>& quick = times[(step.overlap_reduce ? 1 : 0) + (step.overlap_gather ? 2 : 0)];
      if (best.seconds <= MostSeconds() && !quick) quick = time(step);  // the number of buckets does not count
      if (!quick || quick->seconds > MostSeconds()) {
        ++found_.counts.time;
        continue;
      }
      if (!at) at = open_.AddLayouts(layouts);
      open_.Add({.seconds = quick->seconds,
                 .memory = quick->memory,
                 .placing = static_cast<uint32_t>(place.placing),
                 .micro = static_cast<uint32_t>(place.micro),
                 .step = static_cast<uint32_t>(s),
                 .layouts = *at});
      // A much better one cuts much of what follows.
      if (quick->seconds < kMuchBetter * Fastest() && dives_ < kMostDives) ++dives_, Simulate(open_.Next());
    }
    if (open_.size() > kMostOpen) {
      found_.counts.time += static_cast<double>(open_.DropAbove(MostSeconds()));
      // Of too many, those stay that may be among the best.
      if (open_.size() > kMostOpen / 2) found_.counts.time += static_cast<double>(open_.DropAbove(Needed()));
    }
    if (found_.counts.timed / 1000 != reported_) reported_ = found_.counts.timed / 1000, Report();
  }

  void Report() {
    if (!request_.progress) return;
    request_.progress({.space = found_.counts.space,
                       .timed = found_.counts.timed,
                       .simulated = found_.counts.simulated,
                       .best = simulated_.empty() ? 0 : simulated_.Fastest()});
  }

  Candidate CandidateAt(const TimedCandidate& timed) const {
    Candidate candidate;
    const OpenCandidates::Layout* at = open_.layouts(timed);
    for (size_t m = 0; m < tuned_.recipe.modules.size(); ++m) {
      const ModuleChoice& layout = layouts_[timed.placing][m][at[m].layout];
      candidate.modules.push_back(space_.WaysOf(m, layout)[at[m].way]);
    }
    candidate.step = space_.steps()[timed.step];
    candidate.step.micro_samples = space_.micro_samples()[timed.micro];
    return candidate;
  }

  // Returns what the whole plan says.
  WholeStep Simulate(const TimedCandidate& timed) {
    FoundLayout found{CandidateAt(timed), {}};
    found.step = SimulateWhole(tuned_, found.candidate);
    const WholeStep step = found.step;
    ++found_.counts.simulated;
    found_.counts.rules += step.valid ? 0 : 1;
    found_.counts.memory += step.valid && !step.fits ? 1 : 0;
    if (step.fits) simulated_.Add(std::move(found));
    Report();
    return step;
  }

  // Of those that are as fast as the fastest, within the error of the times, the ones with the least memory.
  void SimulateEquals() {
    if (!(error_ > 0) || simulated_.empty() || Stop()) return;
    const double most = simulated_.Fastest() * (1 + error_);
    std::vector<int64_t> memory;
    for (const FoundLayout& found : simulated_.layouts()) {
      if (found.step.seconds <= most) memory.push_back(found.step.memory);
    }
    std::sort(memory.begin(), memory.end());
    std::vector<TimedCandidate> open = open_.TakeUpTo(most);
    std::stable_sort(open.begin(), open.end(),
                     [](const TimedCandidate& a, const TimedCandidate& b) { return a.memory < b.memory; });
    size_t next = 0;
    for (; next < open.size() && !Stop(); ++next) {
      if (memory.size() >= request_.best && open[next].memory >= memory[request_.best - 1]) break;
      const WholeStep step = Simulate(open[next]);
      if (step.fits && step.seconds <= most)
        memory.insert(std::upper_bound(memory.begin(), memory.end(), step.memory), step.memory);
    }
    open.erase(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(next));
    open_.Reopen(open);
  }

  // By the bounds, which are near: layouts that are smaller than all faster ones.
  void SimulateFrontier() {
    if (simulated_.empty() || Stop()) return;
    std::vector<TimedCandidate> open = open_.TakeUpTo(kInfinite);
    std::vector<size_t> smaller;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const FoundLayout& found : simulated_.layouts()) least = std::min(least, found.step.memory);
    for (size_t i = 0; i < open.size(); ++i) {
      // A hundredth less is not worth a line.
      if (static_cast<double>(open[i].memory) >= 0.99 * static_cast<double>(least)) continue;
      smaller.push_back(i);
      least = open[i].memory;
    }
    std::set<size_t> done;
    const size_t step = std::max<size_t>(1, (smaller.size() + kMostOnFrontier - 1) / kMostOnFrontier);
    for (size_t i = smaller.size(); i > 0 && !Stop(); i -= std::min(i, step)) {
      Simulate(open[smaller[i - 1]]);
      done.insert(smaller[i - 1]);
    }
    FindOthers(open);
    std::vector<TimedCandidate> left;
    for (size_t i = 0; i < open.size(); ++i) {
      if (!done.contains(i)) left.push_back(open[i]);
    }
    open_.Reopen(left);
  }

  // `open`: by time.
  void FindOthers(const std::vector<TimedCandidate>& open) {
    std::set<std::vector<std::array<int64_t, 7>>> seen;
    const auto add = [&](Candidate candidate) {
      if (seen.insert(GridsOf(candidate)).second) found_.others.push_back(std::move(candidate));
    };
    for (const FoundLayout& found : simulated_.Sorted(tuned_.recipe)) {
      if (found_.others.size() < kMostOthers) add(found.candidate);
    }
    for (const TimedCandidate& timed : open) {
      if (found_.others.size() < kMostOthers) add(CandidateAt(timed));
    }
  }

  const TuneRequest& request_;
  const TunedRecipe& tuned_;
  Space& space_;
  const double error_;
  const std::function<bool(int64_t)>& stopped_;
  const Rates rates_;
  QuickSteps quick_;
  BudgetRule budget_;
  size_t language_ = 0;
  std::vector<std::vector<std::vector<ModuleChoice>>> layouts_;  // by placing and module
  OpenCandidates open_;
  FoundLayouts simulated_;
  std::vector<FoundLayout> known_;
  double known_seconds_ = kInfinite;  // of a candidate of the space, before it comes up there
  int64_t reported_ = 0;
  int dives_ = 0;
  Found found_;
};

}  // namespace

Found SearchSpace(const TuneRequest& request, const TunedRecipe& tuned, Space& space, double error,
                  const std::function<bool(int64_t)>& stopped) {
  return Search(request, tuned, space, error, stopped).Run();
}

}  // namespace planwright
