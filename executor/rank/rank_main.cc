#include "executor/rank/rank_main.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "executor/log/log.h"
#include "executor/program/program_walker.h"
#include "executor/rank/assignment.h"
#include "executor/rank/device.h"
#include "executor/rank/exit.h"
#include "executor/rank/finish_run.h"
#include "executor/rank/open_logs.h"
#include "executor/rank/peers.h"
#include "executor/rank/process.h"
#include "executor/rank/start_point.h"
#include "executor/rank/time_communications.h"
#include "executor/rank/training.h"
#include "executor/rank/trial.h"
#include "executor/rank/watchdog.h"
#include "executor/telemetry/start_up.h"
#include "planner/wire/fork/become_rank.h"

namespace planwright::executor {
namespace {

// Ranks of one kind of machine would all say the same: the log has it for each, the terminal once.
void TellProfileMismatch(const Assignment& assignment, at::Device device) {
  const std::string mismatch = ProfileMismatch(assignment.plan.cluster.profile, device);
  if (mismatch.empty()) return;
  LogWarning(mismatch);
  if (assignment.rank() == 0) std::fprintf(stderr, "warning: %s\n", mismatch.c_str());
}

CheckpointWriter::Hooks HooksOfCheckpoints(Watchdog& watchdog, const RankMainHooks& hooks) {
  return {.leave = [](int status, const std::string& what) { Exit(status, what); },
          .waits_for_others = [&watchdog](bool waits) { watchdog.WaitForOthers(waits); },
          .fail_point = hooks.fail_point};
}

}  // namespace

int RankMain(int argc, char** argv, const RankMainHooks& hooks) {
  if (argc == 2 && std::string_view(argv[1]) == "--devices") {
    std::puts(DevicesText().c_str());
    return 0;
  }
  StartUp start_up;
  const absl::Status became = BecomeRank();
  PrepareProcess();
  ExitUnlessOk(became);

  // What is it asked to do?
  Assignment assignment = ValueOrExit(ReadAssignment(argc, argv, hooks.prepare, start_up));
  if (assignment.keeps()) EndIfAsked();
  const std::unique_ptr<Recorder> recorder = ValueOrExit(OpenLogs(assignment));
  SetRecorderOfExit(*recorder);

  // Who else is there?
  start_up.Enter("peers");
  const auto store = ValueOrExit(MeetPeers(assignment));
  Trial trial(assignment);
  trial.Begin();

  // Where does it compute, and what does it write?
  StepFiles files = ValueOrExit(OpenStepFiles(assignment));
  start_up.Enter("device");
  const at::Device device =
      ValueOrExit(ChooseDevice(assignment.plan, assignment.options.device, assignment.environment.local_rank));
  SetDeviceOfExit(device);
  LogInfo("device " + device.str());
  FollowDevice(device, *recorder);
  trial.TakeDevice(device);
  TellProfileMismatch(assignment, device);
  Watchdog watchdog(*recorder, WatchdogDuties(assignment, device));

  // Where does the run begin?
  const std::unique_ptr<StartPoint> start =
      ValueOrExit(StartPoint::Choose(assignment, *store, files.log.get(), HooksOfCheckpoints(watchdog, hooks)));
  if (assignment.trial())
    assignment.steps = std::min(assignment.plan.budget.steps, start->Steps(0).first + assignment.steps);

  // The run itself. A failure ends the process in the catch clause, while everything still exists: `training` and
  // `timed` live outside the try block, so that no destructor of a communicator runs and waits for a peer that is gone.
  const TrainingParts parts = {assignment, hooks, store, device, *recorder, files, *start, start_up, trial};
  std::optional<Training> training;
  TimedGroups timed;
  int exit_status = 0;
  try {
    MakeTraining(parts, training);
    const bool whole = ProgramWalker(training->rank, training->walk).Run();
    if (whole) TimeCommunications(parts, timed);
    exit_status = FinishRun(parts, *training, whole);
  } catch (const std::exception& error) {
    ExitBecauseOf(error, assignment.self() + (training ? "" : "while joining the groups of the plan: "));
  }
  // _exit: static destructors of LibTorch, NCCL and CUDA may wait for each other, and nothing is left to write.
  std::fflush(nullptr);
  _exit(exit_status);
}

}  // namespace planwright::executor
