#include "executor/rank/assignment.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/plan/plan_json.h"
#include "planner/wire/records/run_timeout.h"
#include "planner/wire/records/trace.h"

namespace planwright::executor {
namespace {

absl::StatusOr<Plan> ReadPlanFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kPlanJson.bytes);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  absl::StatusOr<Plan> plan = ReadPlan(*text);
  if (!plan.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", plan.status().message()));
  return plan;
}

absl::StatusOr<DeadlineRule> DeadlinesOf(const Plan& plan) {
  const absl::StatusOr<std::optional<std::chrono::milliseconds>> given = DeadlineOverride();
  if (!given.ok()) return given.status();
  if (!given->has_value()) return DeadlineRuleOf(plan);
  const double seconds = std::chrono::duration<double>(**given).count();
  return DeadlineRule{.floor = seconds, .first_step = seconds};
}

}  // namespace

std::string Assignment::self() const { return absl::StrCat("rank ", environment.rank, " on ", environment.host, ": "); }

absl::StatusOr<Assignment> ReadAssignment(int argc, const char* const* argv,
                                          const std::function<absl::Status(Plan&)>& prepare, StartUp& start_up) {
  absl::StatusOr<RankOptions> options = ReadOptions(argc, argv);
  if (!options.ok()) return options.status();
  start_up.Enter("plan");
  absl::StatusOr<Plan> plan = ReadPlanFile(options->plan);
  if (!plan.ok()) return plan.status();
  if (absl::Status prepared = prepare(*plan); !prepared.ok()) return prepared;
  const int64_t steps = std::min(plan->budget.steps, options->steps.value_or(plan->budget.steps));
  if (options->profile) {
    if (absl::Status covered = CheckStepRange(*options->profile, steps); !covered.ok()) return covered;
  }
  absl::StatusOr<Environment> environment = ReadEnvironment();
  if (!environment.ok()) return environment.status();
  if (environment->world_size != plan->world_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("WORLD_SIZE=", environment->world_size, " but the plan has ", plan->world_size, " ranks"));
  }
  if (plan->RoleOf(environment->rank) == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("the plan has no role for rank ", environment->rank));
  const absl::StatusOr<DeadlineRule> deadlines = DeadlinesOf(*plan);
  if (!deadlines.ok()) return deadlines.status();
  return Assignment{*std::move(options), *std::move(plan), *std::move(environment), steps, *deadlines};
}

}  // namespace planwright::executor
