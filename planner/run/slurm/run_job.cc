#include "planner/run/slurm/run_job.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/base/text/status_macros.h"
#include "planner/run/agents/fleet.h"
#include "planner/run/launch/held_signals.h"
#include "planner/run/launch_run.h"
#include "planner/run/measure/measure_parts.h"
#include "planner/run/slurm/agent_step.h"
#include "planner/run/slurm/job_clock.h"
#include "planner/run/slurm/job_files.h"
#include "planner/run/slurm/job_script.h"
#include "planner/run/slurm/save_time.h"
#include "planner/run/slurm/slurm_commands.h"
#include "planner/run/slurm/starts_in_vain.h"
#include "planner/run/slurm/submitted_job.h"
#include "planner/state/checkpoint/run_lives.h"
#include "planner/wire/records/run_timeout.h"
#include "planner/wire/rendezvous/interface_address.h"
#include "planner/wire/rendezvous/own_address.h"

namespace planwright {
namespace {

using namespace std::chrono_literals;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Slurm puts the job into its queue again, or, where that is not allowed, gets one job to follow it.
absl::Status ContinueLater(const std::string& run_dir, const Terminal& terminal) {
  const std::string job = Variable("SLURM_JOB_ID");
  const absl::Status requeued = RequeueJob(job);
  if (requeued.ok()) {
    terminal(true, "job " + job + " waits in the queue again");
    return requeued;
  }
  // Slurm may have taken it, and a successor would be one too many.
  if (absl::IsDeadlineExceeded(requeued)) return requeued;
  terminal(true, "job " + job + " cannot be put into the queue again: " + std::string(requeued.message()));
  if (!Variable("SLURM_ARRAY_TASK_ID").empty())
    return absl::UnavailableError("submit this task of the array again to go on with " + run_dir);
  // One successor, even if this job is started twice.
  const std::string claim = run_dir + "/job/successor-of-" + job;
  ABSL_RETURN_IF_ERROR(ClaimFile(claim));
  ABSL_ASSIGN_OR_RETURN(const std::string successor, SubmitScript(JobScriptPath(run_dir)));
  terminal(true, "job " + successor + " follows it");
  if (absl::Status written = WriteJobNumber(run_dir, successor); !written.ok())
    terminal(true, std::string(written.message()));
  return WriteFileAtomically(claim, successor + "\n");
}

// Of a measurement in a job: the outcome of the part that failed, or that all are measured.
absl::StatusOr<Outcome> MeasureThrough(Fleet& fleet, const JobFiles& job, const Terminal& terminal) {
  const MeasureJob& measure = *job.measure;
  std::vector<MeasurePart> parts;
  for (size_t i = 0; i < job.plans.size(); ++i) {
    const MeasureJob::Part& part = measure.parts[i];
    parts.push_back({.plan = job.plans[i], .what = part.what, .rounds = part.rounds, .fullest = part.fullest});
  }
  const absl::StatusOr<Measured> measured =
      MeasureParts(parts, {.output = measure.output,
                           .executor = job.options.executor,
                           .device = job.options.device,
                           .progress = [&](const std::string& line) { terminal(true, line); },
                           .passed_on = job.options.passed_on,
                           .starter = &fleet});
  if (!measured.ok()) return measured.status();
  if (!measured->failed) return Outcome{kExitSuccess, "wrote " + measure.output};
  terminal(true, measured->failed_part + " was not measured; its run directory: " + measured->failed_run);
  return *measured->failed;
}

// How far the run of a job is, in whatever it does not do again.
int64_t ProgressOf(const JobFiles& job) {
  return job.measure ? PartsDone(job.measure->output) : NewestStep(job.options.run_dir);
}

// The run directory of this task of a job array, or that of the job.
std::string OwnRunDirectory(const std::string& run_dir) {
  const std::string task = Variable("SLURM_ARRAY_TASK_ID");
  return task.empty() ? run_dir : run_dir + "/array-" + task;
}

// For whoever asks what became of a job that ended before a life of its run began.
void WriteJobOutcome(const std::string& run_dir, const Outcome& outcome, const Terminal& terminal) {
  const std::string own = OwnRunDirectory(run_dir);
  absl::Status written = MakeDirectories(own + "/job");
  if (written.ok()) written = WriteFileAtomically(JobOutcomePath(own), OutcomeFile(outcome));
  if (!written.ok()) terminal(true, "the outcome of the job is not written: " + std::string(written.message()));
}

// A head that was killed leaves a file that says how to reach it. Nobody listens there any more, and a later head
// cannot be told by it.
void RemoveLeftOf(const std::string& run_dir, const std::string& own_id) {
  std::vector<std::string> ids;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(run_dir + "/job", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    constexpr std::string_view kBegin = "head-", kEnd = ".json";
    if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) continue;
    ids.push_back(name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size()));
  }
  for (const std::string& id : ids) {
    // Tasks of an array run beside each other.
    if (id == own_id || AskAboutJob(id, kSlurmPatience).is != SubmittedJob::Is::kOver) continue;
    for (const char* ending : {".json", ".json.lock"}) {
      std::filesystem::remove(run_dir + "/job/head-" + id + ending, error);
    }
  }
}

absl::StatusOr<EndedJob> RunReadJob(const std::string& run_dir, const Terminal& terminal) {
  absl::StatusOr<JobFiles> job = ReadJobFiles(run_dir);
  if (!job.ok()) return job.status();
  for (const auto& [name, value] : job->environment) setenv(name.c_str(), value.c_str(), 1);
  if (chdir(job->folder.c_str()) != 0) return absl::UnavailableError("there is no folder " + job->folder);
  ABSL_ASSIGN_OR_RETURN(const std::chrono::milliseconds timeout, RunTimeout());
  const std::string id = Variable("SLURM_JOB_ID");
  int job_nodes = 0;
  if (id.empty() || !absl::SimpleAtoi(Variable("SLURM_JOB_NUM_NODES"), &job_nodes) || job_nodes < 1)
    return absl::InvalidArgumentError("`plan job` runs inside a Slurm job; `plan launch --slurm` submits one");
  // From here on a signal is an answer to read. Slurm's announcement of the end may come when the run has ended by that
  // of the clock: then it is too late to matter.
  signal(SIGUSR1, SIG_IGN);
  HeldSignals signals;
  // The time of the allocation, where Slurm tells it, and the clocks of its controller and of this node agree.
  job->options.allocated = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  if (int64_t start = 0; absl::SimpleAtoi(Variable("SLURM_JOB_START_TIME"), &start) && start > 0)
    job->options.allocated = std::min(job->options.allocated, static_cast<double>(start));
  job->options.job = id;
  job->options.until_killed = SecondsUntilKilled();
  const std::string task = Variable("SLURM_ARRAY_TASK_ID");
  job->options.run_dir = OwnRunDirectory(run_dir);
  if (!task.empty()) ABSL_RETURN_IF_ERROR(MakeDirectories(job->options.run_dir));
  if (task.empty()) ABSL_RETURN_IF_ERROR(WriteJobNumber(run_dir, id));
  RemoveLeftOf(run_dir, id);

  const Plan& plan = LargestPlan(job->plans);
  ABSL_ASSIGN_OR_RETURN(const std::string address,
                        plan.launch.interface.empty() ? OwnAddress() : InterfaceAddress(plan.launch.interface));
  const std::string file = run_dir + "/job/head-" + id + ".json";
  // What srun says is read while the fleet is waited for, as in all of a run: else it comes late, and a srun that says
  // much is held up.
  std::unique_ptr<AgentStep> step;
  const auto listen = [&step] {
    if (step) step->Drain();
  };
  ABSL_ASSIGN_OR_RETURN(std::unique_ptr<Fleet> fleet,
                        Fleet::Open({.address = address, .file = file, .each_turn = listen}));
  const int nodes = NodesOfPlan(plan);
  terminal(true, "job " + id + " on " + Variable("SLURM_JOB_NODELIST") + ", life of Slurm's " +
                     (Variable("SLURM_RESTART_COUNT").empty() ? "0" : Variable("SLURM_RESTART_COUNT")) + " restarts");
  ABSL_ASSIGN_OR_RETURN(
      const std::vector<std::string> arguments,
      AgentStepCommand(plan, job_nodes, {.program = job->program, .run_dir = run_dir, .mounts = job->mounts}, file));
  ABSL_ASSIGN_OR_RETURN(step, AgentStep::Begin(arguments, terminal));

  absl::StatusOr<Outcome> outcome;
  int interrupted = 0;
  const absl::Status came = fleet->WaitForAgents(
      nodes, timeout, [&] { return step->GivenUp(); }, interrupted);
  if (came.ok()) {
    std::optional<JobClock> clock;
    if (!job->measure && Keeps(plan, job->options)) {
      clock.emplace(Variable("SLURM_JOB_END_TIME"),
                    [&] { return static_cast<double>(SecondsToSave(plan, job->options)); });
    }
    outcome =
        job->measure ? MeasureThrough(*fleet, *job, terminal) : LaunchRun(job->plans, job->options, *fleet, terminal);
  } else if (interrupted != 0) {
    outcome = Outcome{128 + interrupted, std::string(came.message())};
  } else {
    outcome = Outcome{kExitPeerLost, std::string(came.message())};
  }
  if (!came.ok()) WriteJobOutcome(run_dir, *outcome, terminal);
  // A signal that comes from here on changes nothing any more, and must not end this program before the job is put into
  // the queue again.
  const absl::Cleanup drop = [&signals] {
    while (signals.Next() != 0) {
    }
  };
  fleet.reset();  // ends the agents
  step.reset();
  if (!outcome.ok()) return outcome.status();
  const auto ended = [&](bool comes_back) { return EndedJob{*outcome, *std::move(job), task, comes_back}; };
  const bool goes_on = job->measure || Keeps(plan, job->options);
  if (outcome->exit_code == kExitSuccess || !goes_on) return ended(false);
  // Slurm tells by SIGUSR1 that the job's time is nearly over. Whoever sends SIGTERM decides what comes next. Where a
  // node is lost, another start of the job gets other nodes, as often as the recipe allows: Slurm's own count has all
  // starts in it, also those after the job's time was over.
  const bool time_is_over = outcome->interrupted_by == SIGUSR1 || interrupted == SIGUSR1;
  bool node_is_lost = !time_is_over && outcome->exit_code == kExitNodeLost;
  if (node_is_lost) {
    const absl::StatusOr<int> lost = CountLostNode(job->options.run_dir, id);
    if (!lost.ok()) terminal(true, std::string(lost.status().message()));
    node_is_lost = lost.ok() && *lost <= plan.launch.restarts;
  }
  if (time_is_over) {
    const absl::StatusOr<int> in_vain = CountStart(job->options.run_dir, ProgressOf(*job));
    if (!in_vain.ok()) terminal(true, std::string(in_vain.status().message()));
    if (in_vain.ok() && *in_vain >= kMostStartsInVain) {
      terminal(true, "job " + id + " is not put into the queue again: " + std::to_string(*in_vain) +
                         " starts in a row " + (job->measure ? "measured no part" : "wrote no checkpoint") +
                         "; give launch.slurm.time more");
      return ended(false);
    }
  }
  if (time_is_over || node_is_lost) {
    const absl::Status later = ContinueLater(run_dir, terminal);
    if (!later.ok()) terminal(true, std::string(later.message()));
    return ended(later.ok());
  }
  return ended(false);
}

}  // namespace

absl::StatusOr<EndedJob> RunJob(const std::string& run_dir, const Terminal& terminal) {
  std::error_code error;
  std::filesystem::remove(JobOutcomePath(OwnRunDirectory(run_dir)), error);  // of a start before
  absl::StatusOr<EndedJob> ended = RunReadJob(run_dir, terminal);
  if (!ended.ok()) {
    const int status = absl::IsResourceExhausted(ended.status()) ? kExitStorage : kExitUsage;
    WriteJobOutcome(run_dir, {status, std::string(ended.status().message())}, terminal);
  }
  return ended;
}

}  // namespace planwright
