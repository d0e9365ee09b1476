#include "planner/state/checkpoint/own_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/plan/plan_json.h"
#include "planner/state/checkpoint/shard_files.h"

namespace planwright {
absl::StatusOr<OwnPlan> ReadOwnPlan(const std::string& folder, const Manifest& manifest) {
  const absl::StatusOr<std::string> text =
      ReadProvedFile(folder + "/" + kCheckpointPlanFile, manifest.plan_bytes, manifest.plan_sha256);
  if (!text.ok()) return text.status();
  absl::StatusOr<Plan> plan = ReadPlan(*text);
  if (plan.ok()) return OwnPlan{*std::move(plan), ""};
  if (absl::IsFailedPrecondition(plan.status())) return OwnPlan{std::nullopt, std::string(plan.status().message())};
  return absl::DataLossError(plan.status().message());
}

absl::Status CheckOwnPlan(const Manifest& manifest, const Plan& plan) {
  const auto differs = [](const char* what, const auto& found, const auto& expected) {
    return absl::DataLossError(absl::StrCat("its ", what, " is ", found, "; by the plan beside it, it is ", expected));
  };
  if (manifest.name != plan.name) return differs("name", manifest.name, plan.name);
  if (manifest.plan_digest != plan.digest) return differs("plan_digest", manifest.plan_digest, plan.digest);
  if (manifest.recipe_digest != plan.recipe_digest)
    return differs("recipe_digest", manifest.recipe_digest, plan.recipe_digest);
  if (manifest.precision != plan.precision) return differs("precision", manifest.precision, plan.precision);
  if (manifest.world_size != plan.world_size) return differs("world_size", manifest.world_size, plan.world_size);
  for (const auto& [name, digest] : manifest.data) {
    const auto& sources = plan.data.sources;
    if (std::none_of(sources.begin(), sources.end(), [&](const SourcePlan& source) { return source.name == name; }))
      return absl::DataLossError(absl::StrCat("its data has a source ", name, "; the plan beside it has none of it"));
  }
  const CheckpointCounters& counters = manifest.counters;
  int64_t samples = 0;
  const bool overflow = __builtin_mul_overflow(counters.step, plan.budget.global_samples, &samples);
  if (overflow || counters.consumed_samples != samples) {
    return absl::DataLossError(absl::StrCat("its consumed_samples is ", counters.consumed_samples, " after ",
                                            counters.step, " steps; by the plan beside it, a step takes ",
                                            plan.budget.global_samples));
  }
  // A first life has begun at step 1. Later ones may have changed the samples of a step, so their steps are renumbered.
  if (manifest.life == 1 && !plan.initialize && counters.applied_steps + counters.skipped_steps != counters.step) {
    return absl::DataLossError(absl::StrCat("its applied_steps and skipped_steps are ", counters.applied_steps, " and ",
                                            counters.skipped_steps, " after ", counters.step, " steps"));
  }
  return absl::OkStatus();
}

absl::StatusOr<OwnPlan> ReadAndCheckOwnPlan(const std::string& folder, const Manifest& manifest) {
  const auto in = [&](const char* file, const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat(folder, "/", file, ": ", status.message()));
  };
  absl::StatusOr<OwnPlan> own = ReadOwnPlan(folder, manifest);
  if (!own.ok()) return in(kCheckpointPlanFile, own.status());
  if (!own->plan) return own;
  if (absl::Status status = CheckOwnPlan(manifest, *own->plan); !status.ok()) return in(kManifestFile, status);
  return own;
}

}  // namespace planwright
