#include "planner/cli/first/folder_counts.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "planner/compile/batches/plan_data.h"
#include "planner/compile/batches/plan_evaluation.h"
#include "planner/compile/batches/source_files.h"
#include "planner/data/samples/count_samples.h"
#include "planner/data/samples/sample_source.h"

namespace planwright {
namespace {

// Nothing: no samples can be made of the index.
std::vector<SourceCounts> CountsOf(DataPlan data, int64_t sequence, std::string& problem) {
  Plan plan;  // as much of one as sources of samples look at
  plan.data = std::move(data), plan.budget.sequence_length = sequence;
  const absl::StatusOr<std::unique_ptr<SampleSource>> source = OpenSources(plan);
  if (!source.ok()) return {};
  const absl::Status kept = KeepCounted(plan.data, sequence, **source);
  if (!kept.ok()) problem = std::string(kept.message());
  return (*source)->Counts();
}

}  // namespace

FolderCounts CountsAtHand(const Recipe& recipe) {
  FolderCounts counts;
  Diagnostics told_later;
  const Recipe with_ids = WithPreparedIds(recipe, told_later);
  std::optional<DataPlan> data = PlanData(with_ids, told_later);
  if (!data || !RowOf(data->kind).indexed) return counts;
  const int64_t sequence = *recipe.batch.sequence_length;
  counts.index = std::filesystem::path(CountedPath(*data, sequence)).parent_path().string();
  counts.data = CountsOf(*std::move(data), sequence, counts.problem);
  if (counts.data.empty()) return counts;
  counts.sequence = sequence;
  EvaluationPlan evaluation = PlanEvaluation(with_ids, told_later);
  if (!evaluation.empty())
    counts.evaluation = CountsOf(std::move(evaluation.sets.front().data), sequence, counts.problem);
  return counts;
}

}  // namespace planwright
