#include "planner/search/tune.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/paper/table.h"
#include "planner/compile/batches/source_files.h"
#include "planner/compile/cluster_of.h"
#include "planner/compile/compile.h"
#include "planner/compile/topology/check_modules.h"
#include "planner/predict/rates/device.h"
#include "planner/predict/rates/rates.h"
#include "planner/recipe/model_facts.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/search/given_problems.h"
#include "planner/search/search.h"
#include "planner/search/sensitivity.h"
#include "planner/search/space.h"
#include "planner/search/tuned_layout.h"
#include "planner/search/whole_step.h"

namespace planwright {
namespace {

int64_t RanksOf(const Recipe& recipe) {
  int64_t ranks = 0;
  for (const ModuleRecipe& module : recipe.modules) ranks = std::max(ranks, EndOf(module));
  return ranks;
}

// The overrides of the cluster that has so many ranks. Nodes stay as they are, if these are whole nodes.
absl::StatusOr<std::vector<std::string>> ClusterChanges(const Recipe& recipe, int64_t gpus) {
  std::vector<std::string> changes;
  const int64_t node = *recipe.cluster.gpus_per_node;
  const auto change = [&](const char* key, int64_t from, int64_t to) {
    if (from != to) changes.push_back(absl::StrCat("cluster.", key, "=", to));
  };
  if (gpus % node != 0 && gpus > node)
    return absl::InvalidArgumentError(absl::StrCat(gpus, " GPUs are not whole nodes of ", node));
  change("gpus_per_node", node, std::min(gpus, node));
  change("nodes", *recipe.cluster.nodes, std::max<int64_t>(1, gpus / node));
  return changes;
}

// How far the times of a profile scatter: the mean of half the distance of their quartiles, as a share of their median.
double ErrorOf(const DeviceProfile& profile) {
  double sum = 0, count = 0;
  const auto add = [&](const MeasuredTime& time) {
    if (time.median > 0) sum += (time.high - time.low) / 2 / time.median, ++count;
  };
  for (const MeasuredCompute& point : profile.compute) add(point.seconds);
  for (const MeasuredCommunication& point : profile.communication) add(point.seconds);
  return count > 0 ? sum / count : 0;
}

// Bytes that a layout must need less than a faster one that is equal to it, to be worth more.
int64_t WorthOf(const Cluster& cluster, const FoundLayout& fastest) {
  const int64_t memory = DeviceOf(cluster).memory;
  return (memory > 0 ? memory : fastest.step.memory) / 100;
}

// Those that take no more than `equal` in the order of FirstOfEqual, and then the others as they come: `whole` is by
// time. The fastest is among the first `shown`, if these are more than one.
std::vector<FoundLayout> InOrder(std::vector<FoundLayout> whole, double equal, int64_t worth, size_t shown) {
  const FoundLayout fastest = whole.front();
  const auto first_slower =
      std::find_if(whole.begin(), whole.end(), [&](const FoundLayout& layout) { return layout.step.seconds > equal; });
  const auto equals = static_cast<size_t>(first_slower - whole.begin());
  for (size_t i = 0; i < std::min(equals, shown); ++i) {
    const auto from = whole.begin() + static_cast<std::ptrdiff_t>(i);
    const auto at = from + static_cast<std::ptrdiff_t>(FirstOfEqual({from, first_slower}, worth));
    std::rotate(from, at, at + 1);
  }
  const auto at = std::find_if(whole.begin(), whole.end(),
                               [&](const FoundLayout& layout) { return layout.candidate == fastest.candidate; });
  if (shown > 1 && at - whole.begin() >= static_cast<std::ptrdiff_t>(shown))
    std::rotate(whole.begin() + static_cast<std::ptrdiff_t>(shown) - 1, at, at + 1);
  return whole;
}

TuneMoved MovedOf(const Recipe& recipe, const Space& space, const Found& found) {
  TuneMoved moved{.timed = found.moved_timed, .simulated = found.moved_simulated, .even = found.even};
  for (size_t m = 0; m < recipe.modules.size(); ++m) {
    const std::string& name = *recipe.modules[m].name;
    const bool may = space.MayMoveLayers(m);
    if (CarriesLoss(recipe.modules[m].model)) {
      moved.module = name, moved.possible = may;
    } else if (may) {
      moved.even_modules.push_back(name);
    }
  }
  moved.searched = moved.possible && found.moved_all;
  return moved;
}

// Why no layout was found.
std::string NothingFound(const TuneResult& result) {
  const TuneCounts& counts = result.counts;
  if (result.timed_out) {
    return absl::StrCat("The search ended after ", result.seconds_given,
                        " s, before a candidate was found that is valid and fits; ", kMoreSeconds, ".");
  }
  if (result.interrupted) return "The search was ended before a candidate was found that is valid and fits.";
  if (counts.space == 0) {
    return absl::StrFormat("There is no candidate: with the keys that are fixed, no layout has %d ranks.", result.gpus);
  }
  if (result.at_limit)
    return absl::StrCat("The search ended early: none of ", Counted(counts.simulated, "candidate"),
                        " that were simulated is valid and fits; ", kMoreSimulations, ".");
  if (counts.memory == 0) return "No candidate is valid: each breaks a rule.";
  return counts.rules == 0 ? "No candidate fits memory." : "No candidate is valid and fits memory.";
}

}  // namespace

double SecondsNow(const TuneRequest& request) {
  if (request.clock) return request.clock();
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

absl::StatusOr<TuneResult> Tune(const TuneRequest& request, Diagnostics& diagnostics) {
  const double began = SecondsNow(request);
  const auto passed = [&](double limit) { return limit > 0 && SecondsNow(request) - began > limit; };
  const auto read = [&](const std::vector<std::string>& changes, Diagnostics& problems) {
    std::vector<std::string> overrides = request.overrides;
    overrides.insert(overrides.end(), changes.begin(), changes.end());
    return ReadRecipe(request.recipe, overrides, problems);
  };
  const auto invalid = [] { return absl::InvalidArgumentError("the recipe cannot be tuned"); };
  std::optional<Recipe> recipe = read({}, diagnostics);
  if (!recipe || diagnostics.has_errors()) return invalid();
  TunedRecipe tuned;
  const int64_t gpus = request.gpus > 0 ? request.gpus : RanksOf(*recipe);
  if (request.gpus > 0) {
    absl::StatusOr<std::vector<std::string>> changes = ClusterChanges(*recipe, gpus);
    if (!changes.ok()) return changes.status();
    tuned.changes = *std::move(changes);
  }
  recipe = read(tuned.changes, tuned.levels);
  if (!recipe || tuned.levels.has_errors()) {
    diagnostics = tuned.levels;
    return invalid();
  }
  tuned.recipe = WithPreparedIds(*recipe, diagnostics);
  tuned.cluster = ClusterOf(tuned.recipe.cluster, diagnostics);
  CheckProfilePrecision(tuned.recipe, tuned.cluster, diagnostics);
  if (diagnostics.has_errors()) return invalid();

  TuneResult result{.gpus = gpus, .cluster = tuned.cluster, .changes = tuned.changes, .asked = request.best};
  result.seconds = RatesOf(tuned.cluster).known();
  Diagnostics of_given = tuned.levels;
  const std::optional<Plan> given = CompileRecipe(*recipe, of_given);
  if (!LayoutsMayEnd(of_given.as_found())) {
    diagnostics = of_given;
    return invalid();
  }
  if (given && given->world_size == gpus) {
    result.given = FiguresOf(*given);
    result.given->changes = tuned.changes;
    result.given->line = LineOf(tuned.recipe, CandidateOf(tuned.recipe));
    result.given->proved = true;
  }
  Space space(tuned.recipe, gpus, request.fixed);
  if (request.begins) {
    const bool refused = of_given.has_errors();
    request.begins({refused ? of_given.sorted() : std::vector<Diagnostic>(), space.About()});
  }
  result.seconds_given = request.seconds;
  const auto stopped = [&](int64_t timed) {
    if (request.stop && *request.stop) return true;
    if (request.candidates > 0 && timed >= request.candidates) return true;
    result.timed_out = result.timed_out || passed(request.seconds);
    return result.timed_out;
  };
  result.error = ErrorOf(tuned.cluster.profile);
  const Found found = SearchSpace(request, tuned, space, result.error, stopped);
  result.counts = found.counts, result.interrupted = found.interrupted;
  result.at_limit = found.at_limit;
  result.moved = MovedOf(tuned.recipe, space, found);
  result.lower_bound = found.lower_bound;
  if (result.moved.searched && found.moved_bound > 0) {
    const bool none = found.even == 0 && !found.at_limit;  // only layouts with other layers fit
    result.lower_bound = none ? found.moved_bound : std::min(found.lower_bound, found.moved_bound);
  }
  if (found.whole.empty()) {
    result.problem = NothingFound(result);
    return result;
  }
  const auto prove = [&](const FoundLayout& layout) {
    return ProveLayout(request, tuned, layout.candidate, given ? &*given : nullptr);
  };
  const double fastest = found.whole.front().step.seconds;
  result.within = found.most_seconds / fastest - 1;
  result.worth = WorthOf(tuned.cluster, found.whole.front());
  std::vector<FoundLayout> whole = found.whole;
  std::erase_if(whole, [&](const FoundLayout& layout) { return layout.step.seconds > found.most_seconds; });
  const Candidate fastest_one = whole.front().candidate;  // the first row may be an equal one with less memory
  std::vector<Candidate> others = found.others;           // what could be chosen if speeds were others
  if (result.given && (result.given->limit == 0 || result.given->memory <= result.given->limit))
    others.push_back(CandidateOf(tuned.recipe));
  for (const FoundLayout& next : InOrder(whole, fastest * (1 + result.error), result.worth, request.best)) {
    if (result.best.size() >= std::max<size_t>(1, request.best)) break;
    if (!result.best.empty() && passed(request.proofs)) break;
    std::optional<TunedLayout> layout = prove(next);
    if (!layout) continue;  // a lint that is an error
    layout->equal = layout->seconds <= fastest * (1 + result.error);
    others.push_back(next.candidate);
    result.best.push_back(*std::move(layout));
  }
  if (result.best.empty()) {
    result.problem = "Lints that are errors refuse every layout that was found.";
    return result;
  }
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const FoundLayout& next : whole) {
    // A hundredth less is not worth a line.
    if (next.step.memory >= least - least / 100) continue;
    least = next.step.memory;
    const auto known = std::find_if(result.best.begin(), result.best.end(), [&](const TunedLayout& layout) {
      return layout.line == LineOf(tuned.recipe, next.candidate);
    });
    if (known == result.best.end() && passed(request.proofs)) continue;
    std::optional<TunedLayout> layout = known != result.best.end() ? *known : prove(next);
    if (layout) result.frontier.push_back(*std::move(layout));
  }
  result.fastest = fastest;
  result.gap = result.lower_bound > 0 ? fastest / result.lower_bound - 1 : std::numeric_limits<double>::infinity();
  if (!result.interrupted && result.seconds)
    result.sensitivity = SensitivityOf(tuned, fastest_one, others, [&] { return passed(request.proofs); });
  return result;
}

}  // namespace planwright
