#include "planner/compile/batches/plan_evaluation.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/bug.h"
#include "planner/base/text/limits.h"
#include "planner/compile/batches/plan_data.h"
#include "planner/data/samples/mixture.h"

namespace planwright {
namespace {

using std::string;

// Puts the samples of the set in the place of those that the recipe has.
void TakeSamplesOf(const EvaluationSetRecipe& set, DataRecipe& data) {
  switch (*data.kind) {
    case DataKind::kMock:
      if (set.seed) data.seed = *set.seed;
      break;
    case DataKind::kRecorded: data.path = set.path; break;
    case DataKind::kSources: data.sources = set.sources; break;
  }
  // No step has these samples, so that there is no order of a step.
  data.balance.value = "none";
}

// Whether the set has what its kind of data needs; if not, that is reported (recipe/evaluation_checks.cc).
bool HasSamples(const DataRecipe& data, const EvaluationSetRecipe& set) {
  switch (*data.kind) {
    case DataKind::kMock: return set.seed.has_value();
    case DataKind::kRecorded: return set.path.has_value();
    case DataKind::kSources: break;
  }
  return !set.sources.empty();
}

// EvaluationSet::samples before an index has counted them: 0 of `all`.
int64_t SamplesOf(const WordOrCount& samples) {
  int64_t number = 0;
  Require(samples.text == "all" || absl::SimpleAtoi(samples.text, &number), "samples are a word or a number");
  return number;
}

// Sources of which an evaluation reads nothing, as the set has too few samples for their weights: their loss is none.
void LintUnread(const EvaluationSetRecipe& set, const DataPlan& data, Diagnostics& diagnostics) {
  constexpr size_t kMostNamed = 4;
  const int64_t samples = SamplesOf(*set.samples);
  if (samples == 0 || data.sources.size() < 2) return;
  std::vector<int64_t> weights;
  for (const SourcePlan& source : data.sources) weights.push_back(source.weight);
  const Mixture mixture(weights);
  const auto unread = [&](int64_t of) {
    const std::vector<int64_t> counts = mixture.CountsOf(of);
    std::vector<string> names;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == 0) names.push_back(data.sources[i].name);
    }
    return names;
  };
  std::vector<string> names = unread(samples);
  if (names.empty()) return;
  // A whole period of the mixture has samples of each.
  int64_t few = samples, enough = std::accumulate(weights.begin(), weights.end(), int64_t{0});
  while (enough - few > 1) {
    const int64_t middle = few + (enough - few) / 2;
    (unread(middle).empty() ? enough : few) = middle;
  }
  const size_t all = names.size();
  if (all > kMostNamed) names.resize(kMostNamed);
  diagnostics.Warning(
      DiagnosticKind::kKeyWithoutEffect, set.samples.where,
      absl::StrCat("of the ", samples, samples == 1 ? " sample" : " samples", " of evaluation set ", *set.name,
                   " none is of source ", absl::StrJoin(names, ", "),
                   all > kMostNamed ? absl::StrCat(" and ", all - kMostNamed, " more") : "", ": there is no loss of ",
                   all == 1 ? "it" : "them"),
      absl::StrCat("write `samples: all`, which reads each sample once, or samples: ", enough, " or more"));
}

// What makes two problems one that is told once.
using Told = std::tuple<DiagnosticKind, string, string, int, int>;
Told ToldOf(const Diagnostic& problem) {
  const Location& where = problem.where;
  return {problem.kind, problem.message, where.file ? *where.file : "", where.line, where.column};
}

// A folder of its own: sources of two sets, or of a set and the training, may have one name.
void MoveIndex(const string& name, DataPlan& data) {
  if (RowOf(data.kind).indexed) data.index = (std::filesystem::path(data.index) / "evaluation" / name).string();
}

}  // namespace

EvaluationPlan PlanEvaluation(const Recipe& recipe, Diagnostics& diagnostics) {
  EvaluationPlan plan;
  if (!recipe.evaluation || !AllKnown(recipe.data.kind)) return plan;
  plan.every_samples = *recipe.evaluation->every_samples;
  Diagnostics of_data;
  CheckedData(recipe, of_data);
  std::set<Told> known;
  for (const Diagnostic& one : of_data.as_found()) known.insert(ToldOf(one));
  Recipe of_set = recipe;
  // That there are more is told.
  const std::vector<EvaluationSetRecipe>& sets = recipe.evaluation->sets;
  for (const EvaluationSetRecipe& set : std::span(sets).first(std::min(sets.size(), kMostEvaluationSets))) {
    if (!HasSamples(recipe.data, set) || !AllKnown(set.name, set.samples)) continue;
    Diagnostics found;
    TakeSamplesOf(set, of_set.data);
    std::optional<DataPlan> data = CheckedData(of_set, found);
    for (const Diagnostic& one : found.sorted()) {
      if (!known.contains(ToldOf(one))) diagnostics.Add(one);
    }
    if (!data) continue;
    MoveIndex(*set.name, *data);
    if (RowOf(data->kind).mixed && !found.has_errors()) LintUnread(set, *data, diagnostics);
    plan.sets.push_back({.name = *set.name, .samples = SamplesOf(*set.samples), .data = *std::move(data)});
  }
  return plan;
}

}  // namespace planwright
