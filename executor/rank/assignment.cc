#include "executor/rank/assignment.h"

#include <absl/strings/numbers.h>
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

absl::Status Usage(const std::string& problem) {
  return absl::InvalidArgumentError(
      absl::StrCat(problem,
                   "\nusage: executor --plan FILE --run-dir DIR [--life N] [--probe DIR] [--steps N] "
                   "[--trace STEP[-LAST]] [--record-routing DIR | --replay-routing DIR] [--rounds FILE] "
                   "[--accept-data DIGEST] [--try FILE] [--device cpu|cuda]"));
}

template <typename Number>
bool ReadPositive(const std::string& value, Number& number) {
  return absl::SimpleAtoi(value, &number) && number > 0;
}

bool ReadFromZero(const std::string& value, int64_t& number) { return absl::SimpleAtoi(value, &number) && number >= 0; }

// False: there is no such option, or it does not take this value.
bool Take(const std::string& name, const std::string& value, RankOptions& options) {
  const auto take = [&](std::string& option) {
    option = value;
    return !value.empty();
  };
  if (name == "--plan") return take(options.plan);
  if (name == "--run-dir") return take(options.run_dir);
  if (name == "--probe") return take(options.probe);
  if (name == "--record-routing") return take(options.record_routing);
  if (name == "--replay-routing") return take(options.replay_routing);
  if (name == "--rounds") return take(options.rounds);
  if (name == "--accept-data") return take(options.accepted_data);
  if (name == "--try") return take(options.trial);
  if (name == "--device") return take(options.device) && (value == "cpu" || value == "cuda");
  if (name == "--steps") return ReadFromZero(value, options.steps.emplace());
  if (name == "--life") return ReadPositive(value, options.life);
  if (name != "--trace") return false;
  const absl::StatusOr<StepRange> steps = ReadStepRange(value);
  if (steps.ok()) options.profile = *steps;
  return steps.ok();
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

absl::StatusOr<RankOptions> ReadOptions(int argc, const char* const* argv) {
  RankOptions options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) return Usage(name + " needs a value");
    const std::string value = argv[i + 1];
    if (!Take(name, value, options)) return Usage("unknown option or value: " + name + " " + value);
  }
  if (!options.record_routing.empty() && !options.replay_routing.empty())
    return Usage("--record-routing and --replay-routing exclude each other");
  if (options.plan.empty() || options.run_dir.empty()) return Usage("--plan and --run-dir are required");
  return options;
}

}  // namespace planwright::executor
