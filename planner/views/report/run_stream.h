// A run as a stream of events, for programs that follow it (docs/run_reports.md#stream): each record of its steps and
// evaluations, its checkpoints, its lives and its outcome. The stream of a run is the same whenever it is read, while
// the run goes on or after its end; only checkpoints stand where they were seen among the steps of their life.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "planner/views/report/run_report.h"

namespace planwright {

// Gets one event after the other: an object with `event` first. False: nobody takes more.
using EventTaker = std::function<bool(const nlohmann::ordered_json& event)>;

class RunStream {
 public:
  explicit RunStream(std::string run_dir) : run_dir_(std::move(run_dir)) {}

  // Gives what has happened since the last call. Each event is given once, in this order:
  //   submitted   the run waits for its Slurm job
  //   run         name, ranks and steps of its plan
  //   life        a launch has chosen where to begin
  //   step, evaluation, checkpoint   as the life does them
  //   end         the life is over, and another one has begun
  //   outcome     the run is over: the last one
  // Of a job that ended before its run began, the outcome follows `submitted`. Slurm is asked about jobs of runs that
  // no launch holds. Returns whether the last one was given, or nobody takes more. Errors are those of GatherRun,
  // without FailedPrecondition, and Unavailable if a file of records cannot be read.
  absl::StatusOr<bool> Next(const EventTaker& take);

  int exit_status() const { return exit_status_; }  // of the run, when the last event was given

 private:
  // Where a record is in its life: by samples, and evaluations behind the step of as many samples.
  using Place = std::pair<int64_t, bool>;

  bool Give(nlohmann::ordered_json event, const EventTaker& take);
  absl::Status GiveRecords(const std::string& path, bool dropped, const EventTaker& take);
  absl::Status GiveLife(const RunReport& report, const RunLife& life, const EventTaker& take);

  bool GiveJob(bool asks, const EventTaker& take);

  const std::string run_dir_;
  std::string run_id_;
  bool submitted_ = false, described_ = false, taken_ = true;
  int life_ = 0;            // that was given last; 0: none
  Place last_{-1, true};    // of the record of this life that was given last
  int64_t samples_ = 0;     // the most that a life has consumed so far
  int64_t before_ = 0;      // the same of the lives before this one
  size_t checkpoints_ = 0;  // of this life that were given
  // Where the line ends that was read last of metrics.jsonl, and the line: the file may be cut meanwhile.
  int64_t offset_ = 0;
  std::string line_;
  int exit_status_ = 0;
  std::chrono::steady_clock::time_point next_ask_{};  // when Slurm may be asked again
  bool waits_ = false;                                // as it said last
};

}  // namespace planwright
