#include "planner/views/diff/resume_diff.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/data/samples/index_files.h"
#include "planner/plan/lr_schedule.h"
#include "planner/state/checkpoint/plan_fit.h"
#include "planner/state/checkpoint/trained_files.h"
#include "planner/state/weights/base_digest.h"
#include "planner/views/diff/part_pairs.h"
#include "planner/views/diff/same_base.h"

namespace planwright {
namespace {

// Steps that are compared, of all parts together: keeps `plan diff` fast; nobody waits for a step that is farther away.
constexpr int64_t kMostStepsCompared = 2'000'000;

// Where the rates of the two plans part, of the next `most` steps: those of the tensors that are in these parts.
void FirstOthers(const Plan& wrote, const Plan& plan, const PartPair& parts, int64_t steps_done, int64_t most,
                 std::optional<RateChange>& learning_rate, std::optional<RateChange>& weight_decay) {
  const int64_t end = std::min(plan.budget.steps, steps_done + most);
  for (int64_t step = steps_done; step < end && !(learning_rate && weight_decay); ++step) {
    const double sample = static_cast<double>(step * plan.budget.global_samples);
    const StepRates from = RatesAt(wrote, parts.from, sample), to = RatesAt(plan, parts.to, sample);
    if (!learning_rate && from.learning_rate != to.learning_rate)
      learning_rate = {step + 1, from.learning_rate, to.learning_rate};
    if (!weight_decay && from.weight_decay != to.weight_decay)
      weight_decay = {step + 1, from.weight_decay, to.weight_decay};
  }
}

std::string MatchOf(const Plan& plan, int part) {
  return part < 0 ? "" : plan.optimizer.parts.at(static_cast<size_t>(part)).match;
}

bool HasArea(const PlanDiff& diff, std::initializer_list<std::string_view> areas, bool only_of_the_curve) {
  return std::any_of(diff.changes.begin(), diff.changes.end(), [&](const PlanChange& change) {
    return (change.may_change_loss || !only_of_the_curve) &&
           std::find(areas.begin(), areas.end(), change.area) != areas.end();
  });
}

// The tensors last: what they are is told behind it.
void AddRefusals(const CheckpointReader& checkpoint, const Plan& plan, ResumeDiff& diff) {
  if (plan.checkpoint.every_steps == 0) {
    diff.refusals.push_back(
        "the plan writes no checkpoints, and such a plan cannot go on with a run; set checkpoint.every_steps");
  }
  const absl::StatusOr<int64_t> done = StepsDone(plan, checkpoint.folder(), checkpoint.manifest().counters);
  if (!done.ok()) diff.refusals.emplace_back(done.status().message());
  diff.misfits = TensorMisfits(plan, checkpoint);
  if (!diff.misfits.empty()) {
    diff.refusals.push_back(absl::StrCat("its tensors are not those of the plan, ", diff.misfits.size(),
                                         diff.misfits.size() == 1 ? " difference" : " differences",
                                         "; use the model and the precision of the run, or begin another run"));
  }
}

// What adapters stand on is in no checkpoint: the plan names it, and its digest must be that of the run.
// Returns that digest; empty if it is not known.
std::map<std::string, std::string> CompareBase(const Plan& plan, ResumeDiff& diff) {
  if (diff.manifest.base.empty()) return {};
  absl::StatusOr<std::map<std::string, std::string>> base = BaseToGoOn(plan);
  if (!base.ok()) {
    diff.base_not_compared = std::string(base.status().message());
    return {};
  }
  const std::string other = OtherBase(plan, diff.manifest.base, *base, diff.folder);
  if (!other.empty()) diff.refusals.push_back(other);
  return *std::move(base);
}

void CompareFiles(const Plan& plan, ResumeDiff& diff) {
  if (!RowOf(plan.data.kind).indexed) return;
  if (diff.manifest.data.empty()) {
    diff.files_not_compared = "the checkpoint does not say on which documents it was trained";
    return;
  }
  const auto now = DigestsAtHand(plan.data);
  if (now) {
    diff.other_files = OtherFiles(diff.manifest.data, *now);
  } else {
    diff.files_not_compared = "there is no index, or it is older than the files; `plan data index` makes it";
  }
}

}  // namespace

bool ResumeDiff::same() const {
  return refusals.empty() && other_files.empty() && (plan ? plan->same() : manifest.plan_digest == plan_digest);
}

bool ResumeDiff::may_change_loss() const { return plan->may_change_loss() || !other_files.empty(); }

ResumeDiff DiffResume(const CheckpointReader& checkpoint, const Plan* wrote, const Plan& plan) {
  ResumeDiff diff;
  diff.folder = checkpoint.folder();
  diff.manifest = checkpoint.manifest();
  diff.plan_digest = plan.digest;
  diff.tensors = checkpoint.tensors().size();
  for (const ManifestShard& shard : diff.manifest.shards) diff.checkpoint_bytes += shard.bytes;
  diff.steps_done = diff.manifest.counters.consumed_samples / plan.budget.global_samples;
  diff.steps = plan.budget.steps;
  diff.world_size = plan.world_size;
  const std::map<std::string, std::string> base = CompareBase(plan, diff);
  AddRefusals(checkpoint, plan, diff);
  CompareFiles(plan, diff);
  for (const Role& role : plan.roles) {
    const int64_t bytes = BytesToLoad(plan, role);
    diff.most_bytes = std::max(diff.most_bytes, bytes);
    for (const RankRange& range : role.ranks) diff.all_bytes += bytes * range.count;
  }
  if (wrote == nullptr) return diff;
  diff.plan = DiffPlans(*wrote, plan);
  AcceptSameBase(*wrote, plan, diff.manifest.base, base, *diff.plan);
  diff.other_layout = HasArea(*diff.plan, {"ranks", "groups", "bridges"}, false);
  diff.other_samples = HasArea(*diff.plan, {"data"}, true) || !diff.other_files.empty();
  const int64_t consumed = diff.manifest.counters.consumed_samples;
  // Nobody knows which documents of other files are the same ones.
  const std::optional<int64_t> other = FirstOtherSample(*diff.plan, *wrote, plan, consumed);
  diff.first_other_sample = diff.other_files.empty() ? other.value_or(consumed) : consumed;
  const bool skips = wrote->data.damaged == "error" && plan.data.damaged == "skip";
  diff.padded_samples = diff.other_samples && diff.other_files.empty() && !other && skips;
  const std::vector<PartPair> pairs = PartsOfTensors(*wrote, plan);
  const int64_t steps = kMostStepsCompared / (1 + static_cast<int64_t>(pairs.size()));
  FirstOthers(*wrote, plan, {}, diff.steps_done, steps, diff.learning_rate, diff.weight_decay);
  for (const PartPair& pair : pairs) {
    PartRateChange change = {MatchOf(*wrote, pair.from), MatchOf(plan, pair.to), pair.first, pair.tensors, {}, {}};
    FirstOthers(*wrote, plan, pair, diff.steps_done, steps, change.learning_rate, change.weight_decay);
    if (change.learning_rate || change.weight_decay) diff.parts.push_back(std::move(change));
  }
  return diff;
}

}  // namespace planwright
