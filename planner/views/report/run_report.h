// What a run directory tells of its run (docs/checkpoints.md#lives): gathered from files alone, so it works on another
// node than that of the run, while the run goes on, and after its machine died. What cannot be read becomes a note.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "planner/run/slurm/submitted_job.h"
#include "planner/state/checkpoint/checkpoint_log.h"
#include "planner/views/report/dropped_files.h"
#include "planner/views/report/evaluation_series.h"
#include "planner/views/report/step_series.h"
#include "planner/wire/records/outcome.h"
#include "planner/wire/records/recorder_reader.h"

namespace planwright {

// One launch of the run.
struct RunLife {
  int number = 1;
  int from_life = 0;        // the life whose checkpoint it loaded; 0: it began afresh
  int64_t from_step = 0;    // the step of that checkpoint
  bool started = false;     // it chose where to begin
  std::string plan_digest;  // of the plan that it ran; empty: it does not say
  std::string last_event;   // of its launch, in launch.log
  std::string job;          // of Slurm, whose head launched it; empty: none, or its log does not say
  // The first and the last sign of it. nullopt: there is none.
  std::optional<absl::Time> begin, end;
  std::optional<Outcome> outcome;           // nullopt: it goes on, or it ended without a word
  int64_t first_step = 0, last_step = 0;    // that it did; 0: none
  DroppedSteps dropped;                     // that lives before it did, and that it did again
  double dropped_evaluations = 0;           // seconds of evaluations between them
  std::vector<SampleRange> dropped_before;  // whose records lives before it had dropped, too
  std::vector<CheckpointCost> checkpoints;  // that it wrote
};

struct ReportedCheckpoint {
  int64_t step = 0;
  int life = 0;
  std::optional<int64_t> bytes;
  std::optional<absl::Time> published;
  std::optional<CheckpointCost> cost;
  std::string state;  // "usable", "removed", "damaged: ..."
  bool usable = false;
};

// What is needed of plan.json.
struct PlanFacts {
  std::string name, digest;
  int ranks = 0;
  int64_t steps = 0, global_samples = 0, sequence_length = 0;
  double predicted_step = 0;           // seconds; 0: it does not say
  int64_t evaluate_every_samples = 0;  // 0: nothing is evaluated
};

enum class RunState {
  kRunning,   // a launch holds the run
  kBetween,   // the last life has ended, and its launch has not: it is about to end, or begins another life
  kEnded,     // outcome.json says how
  kVanished,  // no launch holds the run, and nothing says how it ended: its launch was killed, or its machine died
  kUnseen,    // the same, but the launch was on another host, whose lock may not be seen here
  kWaits,     // no launch holds the run, and its job waits in Slurm's queue, or has begun and starts the next life
};

struct RankReport {
  int rank = 0;
  std::optional<RankPosition> position;  // nullopt: it has no recorder pages
};

struct RunReport {
  std::string run_dir;
  std::string run_id;  // empty: the run has none, as it was begun by a release before runs had one
  absl::Time now;      // when it was gathered
  RunState state = RunState::kEnded;
  std::string holder;  // "process 4711 on node3": of the launch
  std::optional<PlanFacts> plan;
  StepSeries steps;                             // that count
  EvenChoice again;                             // of the steps that were lost and done again
  EvaluationSeries evaluations;                 // that count
  std::vector<RunLife> lives;                   // ascending; one at least
  std::vector<ReportedCheckpoint> checkpoints;  // ascending by life, then by step
  std::vector<RankReport> ranks;                // of the newest life, if `ranks` was asked for
  std::optional<absl::Time> restart;            // kBetween: when the launch said that it begins another life
  std::optional<absl::Time> last_sign;          // the newest time that any file of the newest life tells
  std::optional<SubmittedJob> job;              // of a run that no launch holds, if it was asked for
  std::vector<std::string> notes;               // what could not be read

  const RunLife& life() const { return lives.back(); }
  bool live() const { return state != RunState::kEnded && state != RunState::kVanished; }
};

struct GatherOptions {
  int64_t metrics_bytes = 0;  // of the end of metrics.jsonl, without what lives dropped; 0: all of it
  bool ranks = false;         // read the recorder of each rank
  bool plan = true;           // read plan.json
  bool job = false;           // ask Slurm about the job of a run that no launch holds
  // Read steps, evaluations and the checkpoints that are there. Without, `metrics_bytes` says nothing.
  bool steps = true;
};

// InvalidArgument if there is no such folder, or if it is no run directory; FailedPrecondition if the run was submitted
// to Slurm and has not begun: AskOfJob (submitted_job.h) tells what became of its job.
absl::StatusOr<RunReport> GatherRun(const std::string& run_dir, const GatherOptions& options);

// How a script should take it: 0 if the run goes on or is done, else the exit status of the last life; kExitPeerLost
// for a run that ended without a word. A job that ended before a life began counts as a life.
int ExitStatusOf(const RunReport& report);

}  // namespace planwright
