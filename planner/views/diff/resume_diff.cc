#include "planner/views/diff/resume_diff.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "planner/data/samples/index_files.h"
#include "planner/plan/lr_schedule.h"
#include "planner/state/checkpoint/plan_fit.h"

namespace planwright {
namespace {

// Where the two plans' numbers part. `rate(plan, sample)` is one of them.
std::optional<RateChange> FirstOther(const Plan& wrote, const Plan& plan, int64_t steps_done,
                                     const std::function<double(const Plan&, double)>& rate) {
  constexpr int64_t kMostSteps = 2'000'000;  // keeps `plan diff` fast; nobody waits for a step that is farther away
  const int64_t end = std::min(plan.budget.steps, steps_done + kMostSteps);
  for (int64_t step = steps_done; step < end; ++step) {
    const double sample = static_cast<double>(step * plan.budget.global_samples);
    const double from = rate(wrote, sample), to = rate(plan, sample);
    if (from != to) return RateChange{step + 1, from, to};
  }
  return std::nullopt;
}

bool HasArea(const PlanDiff& diff, std::initializer_list<std::string_view> areas, bool only_of_the_curve) {
  return std::any_of(diff.changes.begin(), diff.changes.end(), [&](const PlanChange& change) {
    return (change.may_change_loss || !only_of_the_curve) &&
           std::find(areas.begin(), areas.end(), change.area) != areas.end();
  });
}

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

std::vector<std::string> OtherFiles(const std::map<std::string, std::string>& before,
                                    const std::map<std::string, std::string>& now) {
  std::vector<std::string> names;
  for (const auto& [name, digest] : before) {
    const auto found = now.find(name);
    if (found != now.end() && found->second != digest) names.push_back(name);
  }
  return names;
}

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
  AddRefusals(checkpoint, plan, diff);
  CompareFiles(plan, diff);
  for (const Role& role : plan.roles) {
    const int64_t bytes = BytesToLoad(plan, role);
    diff.most_bytes = std::max(diff.most_bytes, bytes);
    for (const RankRange& range : role.ranks) diff.all_bytes += bytes * range.count;
  }
  if (wrote == nullptr) return diff;
  diff.plan = DiffPlans(*wrote, plan);
  diff.other_layout = HasArea(*diff.plan, {"ranks", "groups", "bridges"}, false);
  diff.other_samples = HasArea(*diff.plan, {"data"}, true) || !diff.other_files.empty();
  const int64_t consumed = diff.manifest.counters.consumed_samples;
  // Nobody knows which documents of other files are the same ones.
  const std::optional<int64_t> other = FirstOtherSample(*diff.plan, *wrote, plan, consumed);
  diff.first_other_sample = diff.other_files.empty() ? other.value_or(consumed) : consumed;
  const bool skips = wrote->data.damaged == "error" && plan.data.damaged == "skip";
  diff.padded_samples = diff.other_samples && diff.other_files.empty() && !other && skips;
  diff.learning_rate = FirstOther(*wrote, plan, diff.steps_done, [](const Plan& of, double sample) {
    return LearningRateAt(of.budget.learning_rate, sample);
  });
  diff.weight_decay = FirstOther(*wrote, plan, diff.steps_done, [](const Plan& of, double sample) {
    return WeightDecayAt(of.budget.weight_decay, sample);
  });
  return diff;
}

}  // namespace planwright
