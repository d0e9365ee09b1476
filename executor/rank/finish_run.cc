#include "executor/rank/finish_run.h"

#include "executor/communication/rendezvous.h"
#include "executor/log/log.h"
#include "executor/rank/leave.h"
#include "executor/rank/memory_report.h"
#include "planner/base/files/exit_status.h"

namespace planwright::executor {

int FinishRun(const TrainingParts& parts, const Rank& rank, bool whole) {
  const Assignment& assignment = parts.assignment;
  if (RunCheckpoints* checkpoints = parts.beginning.checkpoints(); checkpoints != nullptr) checkpoints->Finish();
  if (rank.handlers.finish_routing) rank.handlers.finish_routing();
  LeaveUnlessOk(parts.files.Close());
  LeaveUnlessOk(WriteMemoryReport(assignment.options.run_dir, rank));
  parts.recorder.Done();
  if (rank.handlers.all_data_waits) LogInfo(rank.handlers.all_data_waits());
  LogInfo(whole ? "done" : "stopped as asked");
  // If rank 0 serves the store, it must be the last to leave.
  WaitForAll(assignment.environment, "done", assignment.environment.timeout, *parts.store);
  return whole ? kExitSuccess : kExitPreempted;
}

}  // namespace planwright::executor
