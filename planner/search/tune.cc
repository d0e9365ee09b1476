#include "planner/search/tune.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <utility>

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
#include "planner/search/equal_layouts.h"
#include "planner/search/given_problems.h"
#include "planner/search/search.h"
#include "planner/search/sensitivity.h"
#include "planner/search/space.h"
#include "planner/search/tuned_layout.h"
#include "planner/search/whole_step.h"
#include "planner/views/show/quantities.h"

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

// Bytes that a layout must need less than a faster one that is equal to it, to be worth more. `otherwise`: of which a
// hundredth counts where the device's memory is not known.
int64_t WorthOf(const Cluster& cluster, int64_t otherwise) {
  const int64_t memory = DeviceOf(cluster).memory;
  return (memory > 0 ? memory : otherwise) / 100;
}

// The rows of the table, with the figures of their layouts. What a lint refuses that is an error gives its place to
// others. `over`: no more is proved than one row.
std::vector<std::pair<LayoutRow, TunedLayout>> ProvedRows(
    std::vector<FoundLayout> whole, const ChoiceRule& rule, size_t rows,
    const std::function<std::optional<TunedLayout>(const FoundLayout&)>& prove, const std::function<bool()>& over) {
  std::map<Candidate, TunedLayout> known;
  std::vector<std::pair<LayoutRow, TunedLayout>> proved;
  while (!whole.empty()) {
    proved.clear();
    const FoundLayout* refused = nullptr;
    const std::vector<LayoutRow> all = RowsOf(whole, rule, std::max<size_t>(1, rows));
    for (const LayoutRow& row : all) {
      auto at = known.find(row.layout.candidate);
      if (at == known.end()) {
        if (!proved.empty() && over()) break;
        std::optional<TunedLayout> layout = prove(row.layout);
        if (!layout) refused = &row.layout;
        if (!layout) break;
        at = known.emplace(row.layout.candidate, *std::move(layout)).first;
      }
      proved.emplace_back(row, at->second);
    }
    if (!refused) return proved;
    std::erase_if(whole, [&](const FoundLayout& layout) { return layout.candidate == refused->candidate; });
  }
  return {};
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
  const std::string margin =
      result.margin > 0 ? absl::StrCat(" with a margin of ", BytesText(result.margin)) : std::string();
  return absl::StrCat(counts.rules == 0 ? "No candidate fits memory" : "No candidate is valid and fits memory", margin,
                      ".");
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

  tuned.margin = request.margin;
  if (request.margin > 0 && DeviceOf(tuned.cluster).memory <= request.margin) {
    return absl::InvalidArgumentError(
        DeviceOf(tuned.cluster).memory > 0
            ? absl::StrCat("a margin of ", BytesText(request.margin), " leaves nothing of the device's ",
                           BytesText(DeviceOf(tuned.cluster).memory))
            : "a margin needs a device whose memory is known: `cluster.gpu`, or `cluster.device.memory`");
  }
  TuneResult result{.gpus = gpus,
                    .cluster = tuned.cluster,
                    .changes = tuned.changes,
                    .asked = request.best,
                    .prefer = request.prefer,
                    .margin = request.margin};
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
  if (result.seconds) result.error = kDifferenceErrors;
  ChoiceRule rule{.errors = result.error, .prefer = request.prefer, .worth = WorthOf(tuned.cluster, 0)};
  const Found found = SearchSpace(request, tuned, space, rule, stopped);
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
  result.worth = rule.worth = WorthOf(tuned.cluster, found.whole.front().step.memory);
  std::vector<FoundLayout> whole = found.whole;
  std::erase_if(whole, [&](const FoundLayout& layout) { return layout.step.seconds > found.most_seconds; });
  const Candidate fastest_one = whole.front().candidate;  // the first row may be an equal one that is simpler
  std::vector<Candidate> others = found.others;           // what could be chosen if speeds were others
  if (result.given && (result.given->limit == 0 || result.given->memory <= result.given->limit - request.margin))
    others.push_back(CandidateOf(tuned.recipe));
  for (const auto& [row, proved] :
       ProvedRows(whole, rule, request.best, prove, [&] { return passed(request.proofs); })) {
    TunedLayout& layout = result.best.emplace_back(proved);
    layout.equal = row.equal, layout.simplest = row.simplest, layout.alike = row.alike;
    layout.simplicity = SimplicityText(row.layout.candidate);
    others.push_back(row.layout.candidate);
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
