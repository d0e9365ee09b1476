#include "planner/tune/tune.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "planner/compile.h"
#include "planner/compile/cluster_of.h"
#include "planner/data/source_files.h"
#include "planner/rates/rates.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/topology/check_modules.h"
#include "planner/tune/space.h"
#include "planner/tune/tuned_layout.h"
#include "planner/tune/whole_step.h"

namespace planwright {
namespace {

using Clock = std::chrono::steady_clock;

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

struct Timed {
  Candidate candidate;
  WholeStep step;
};

class Search {
 public:
  Search(const TuneRequest& request, const TunedRecipe& tuned, const Space& space)
      : request_(request), tuned_(tuned), space_(space), began_(Clock::now()) {}

  void Run(TuneResult& result) {
    space_.ForEach([&](const Candidate& candidate) {
      if (Stopped()) return result.interrupted = true, false;
      ++result.counts.space;
      const WholeStep step = SimulateWhole(tuned_, candidate);
      if (!step.valid) return ++result.counts.rules, true;
      if (!step.fits) return ++result.counts.memory, true;
      ++result.counts.timed, ++result.counts.simulated, ++timed_;
      found_.push_back({candidate, step});
      return true;
    });
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Timed& a, const Timed& b) { return a.step.seconds < b.step.seconds; });
  }

  const std::vector<Timed>& found() const { return found_; }

 private:
  bool Stopped() const {
    if (request_.stop && *request_.stop) return true;
    if (request_.candidates > 0 && timed_ >= request_.candidates) return true;
    return request_.seconds > 0 && std::chrono::duration<double>(Clock::now() - began_).count() > request_.seconds;
  }

  const TuneRequest& request_;
  const TunedRecipe& tuned_;
  const Space& space_;
  const Clock::time_point began_;
  std::vector<Timed> found_;
  int64_t timed_ = 0;
};

}  // namespace

absl::StatusOr<TuneResult> Tune(const TuneRequest& request, Diagnostics& diagnostics) {
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
  if (!recipe || tuned.levels.has_errors()) return invalid();
  tuned.recipe = WithPreparedIds(*recipe, diagnostics);
  tuned.cluster = ClusterOf(tuned.recipe.cluster, diagnostics);
  if (diagnostics.has_errors()) return invalid();

  TuneResult result;
  result.seconds = RatesOf(tuned.cluster).known();
  Diagnostics ignored = tuned.levels;
  const std::optional<Plan> given = CompileRecipe(*recipe, ignored);
  if (given && given->world_size == gpus) {
    result.given = FiguresOf(*given);
    result.given->changes = tuned.changes;
    result.given->line = LineOf(tuned.recipe, CandidateOf(tuned.recipe));
    result.given->proved = true;
  }
  const Space space(tuned.recipe, gpus, request.fixed);
  Search search(request, tuned, space);
  search.Run(result);
  for (const Timed& timed : search.found()) {
    if (result.best.size() >= request.best) break;
    std::optional<TunedLayout> layout = ProveLayout(request, tuned, timed.candidate, given ? &*given : nullptr);
    if (layout) result.best.push_back(*std::move(layout));
  }
  if (result.best.empty()) {
    return absl::NotFoundError(absl::StrCat("no candidate of ", result.counts.space,
                                            " is valid and fits: ", result.counts.rules, " break a rule, ",
                                            result.counts.memory, " do not fit memory"));
  }
  const double fastest = result.best.front().seconds;
  for (TunedLayout& layout : result.best) layout.equal = layout.seconds <= fastest * (1 + result.error);
  result.lower_bound = fastest;
  return result;
}

}  // namespace planwright
