#include "planner/run/outcome/gather_outcome.h"

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "planner/base/files/exit_status.h"
#include "planner/predict/estimate/expert_rows.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/predict/rates/rates.h"
#include "planner/run/outcome/assemble_probe.h"
#include "planner/run/outcome/cause.h"
#include "planner/run/outcome/join_traces.h"
#include "planner/run/outcome/last_lines.h"
#include "planner/run/outcome/measured_memory.h"
#include "planner/run/outcome/not_loaded.h"
#include "planner/run/outcome/slow_ranks.h"
#include "planner/run/outcome/sum_traces.h"
#include "planner/run/trial/judge_trial.h"
#include "planner/state/checkpoint/checkpoint_log.h"
#include "planner/wire/records/routing_folder.h"
#include "planner/wire/records/trace.h"

namespace planwright {
namespace {

// The predicted step, with the rows of experts that the run had if it recorded or replayed its choices.
StepTime Predicted(const Plan& plan, const RunOptions& options) {
  const std::string& folder = options.record_routing.empty() ? options.replay_routing : options.record_routing;
  if (folder.empty()) return TimeStep(plan);
  const absl::StatusOr<ExpertRows> rows = ReadExpertRows(plan, folder);
  return rows.ok() ? TimeStep(plan, RatesOf(plan), &*rows) : TimeStep(plan);  // not ok: the run did not come so far
}

// Joins what ranks that ended well have left, and says what that makes of the outcome.
void Complete(const Plan& plan, const RunOptions& options, const EndedLife& life, const std::function<bool()>& stop,
              Outcome& outcome) {
  const auto incomplete = [&](const char* what, const absl::Status& status) {
    outcome = {kExitStorage, "the run is done, but its " + std::string(what) + ": " + std::string(status.message())};
  };
  if (outcome.exit_code == kExitSuccess && !options.record_routing.empty()) {
    const absl::Status status = FinishRoutingFolder(plan, StepsOf(plan, options), options.record_routing);
    if (!status.ok()) incomplete("choices are incomplete", status);
  }
  if (outcome.exit_code == kExitSuccess && !options.probe_dir.empty()) {
    const bool evaluates = StepsOf(plan, options) == 0;
    const absl::Status status = evaluates ? AssembleValues(plan, options.probe_dir, "values_evaluated")
                                          : AssembleProbe(plan, options.probe_dir);
    if (!status.ok()) incomplete("probe is incomplete", status);
  }
  if (outcome.exit_code == kExitSuccess) outcome.memory = ReadRunMemory(plan, options.run_dir, OnGpus(plan, options));
  if (!options.profile || !options.joins_traces) return;
  // A later life may have begun behind the steps. What an earlier one traced is in its own folder.
  std::error_code error;
  if (life.directory.life() > 1 && !std::filesystem::exists(TracePath(options.run_dir, 0), error)) return;
  // A run on another kind of device has no prediction.
  const bool as_planned = OnGpus(plan, options) == (plan.cluster.gpu != "none");
  const StepTime time = as_planned ? Predicted(plan, options) : StepTime();
  absl::StatusOr<RunProfile> profile = ReadRunProfile(plan, time, options.run_dir, stop);
  if (absl::IsCancelled(profile.status())) return;
  if (profile.ok()) {
    outcome.profile = *std::move(profile);
    const absl::Status joined = JoinTraces(plan, time, options.run_dir, stop);
    if (!joined.ok() && !absl::IsCancelled(joined) && outcome.exit_code == kExitSuccess)
      incomplete("trace is incomplete", joined);
  } else if (outcome.exit_code == kExitSuccess) {  // a run that failed may not have come to these steps
    incomplete("trace is incomplete", profile.status());
  }
}

// What a trial found, which decides whether it passed.
void Judge(const Plan& plan, const RunOptions& options, const EndedLife& life, Outcome& outcome) {
  const double allocated = options.allocated > 0 ? options.allocated : life.begun;
  outcome.trial = JudgeTrial(plan, ReadTrial(plan, options.run_dir),
                             {.exit_code = outcome.exit_code,
                              .cause = outcome.cause,
                              .on_gpus = OnGpus(plan, options),
                              .allocated = allocated,
                              .begun = life.begun,
                              .memory = outcome.memory});
  if (outcome.exit_code != kExitSuccess || outcome.trial->passed()) return;
  outcome.exit_code = kExitTrial;
  outcome.cause = "the trial did not pass";
}

}  // namespace

Outcome GatherOutcome(const Plan& plan, const RunOptions& options, const EndedLife& life,
                      const std::function<bool()>& stop) {
  const auto position = [&](int rank) { return life.processes->Position(rank); };
  const std::string& run_id = life.directory.run_id();
  const absl::StatusOr<CheckpointLog> log = ReadCheckpointLog(options.run_dir, life.directory.life(), run_id);
  Outcome outcome = CauseOf(plan, life.supervision, position, log.ok() && !log->checkpoints.empty());
  if (outcome.failure) outcome.failure->last_lines = LastLinesOf(options.run_dir, outcome.failure->rank);
  if (const std::optional<ProcessEnd>& end = life.supervision.cause) TellIfNotLoaded(*end, outcome);
  Complete(plan, options, life, stop, outcome);
  outcome.slow = FindSlowRanks(plan, position);
  outcome.run_id = run_id;
  outcome.environment = ReadRankVariables(options.run_dir, plan.world_size);
  if (options.trial) Judge(plan, options, life, outcome);
  return outcome;
}

}  // namespace planwright
