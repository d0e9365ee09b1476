#include "executor/rank/finish_run.h"

#include <filesystem>

#include "executor/communication/rendezvous.h"
#include "executor/log/log.h"
#include "executor/rank/exit.h"
#include "executor/telemetry/device_memory.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"

namespace planwright::executor {
namespace {

int64_t BytesOf(const at::Tensor& tensor) { return tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0; }

// Writes RUN/memory/rank0003.json. On a CPU nothing is measured, and nothing written.
absl::Status WriteMemoryReport(const std::string& run_dir, const Rank& rank) {
#ifdef PLANWRIGHT_CUDA
  if (rank.device.is_cuda()) {
    RankMemory memory = HeldMemory(rank.modules);
    memory.rank = rank.rank;
    const DeviceMemory peaks = MeasureDeviceMemory(rank.device.index());
    memory.tensors_peak = peaks.tensors_peak, memory.reserved_peak = peaks.reserved_peak, memory.used = peaks.used;
    const std::string path = RankMemoryPath(run_dir, rank.rank);
    if (absl::Status made = MakeDirectories(std::filesystem::path(path).parent_path()); !made.ok()) return made;
    return WriteFileAtomically(path, RankMemoryJson(memory));
  }
#endif
  return absl::OkStatus();
}

}  // namespace

RankMemory HeldMemory(const std::map<std::string, ModuleState>& modules) {
  RankMemory memory;
  for (const auto& [name, module] : modules) {
    for (const BucketState& bucket : module.buckets()) {
      memory.parameters += BytesOf(bucket.parameters);
      memory.gradients += BytesOf(bucket.gradients);
      const bool own_master = bucket.master.defined() && !bucket.master.is_alias_of(bucket.parameters);
      memory.optimizer += own_master ? BytesOf(bucket.master) : 0;
      for (const auto& [state, tensor] : bucket.states) memory.optimizer += BytesOf(tensor);
    }
    // Those of a bucket are views of it.
    const std::vector<Storage>& storages = module.module().storages;
    for (size_t i = 0; i < storages.size(); ++i) {
      if (storages[i].bucket < 0 && module.has_storage(i)) memory.parameters += BytesOf(module.storages()[i].parameter);
    }
  }
  return memory;
}

int FinishRun(const TrainingParts& parts, const Training& training, bool whole) {
  const Handlers& handlers = training.walk.handlers;
  const Assignment& assignment = parts.assignment;
  if (RunCheckpoints* checkpoints = parts.start.checkpoints(); checkpoints != nullptr) checkpoints->Finish();
  if (handlers.finish_routing) handlers.finish_routing();
  ExitUnlessOk(parts.files.Close());
  ExitUnlessOk(WriteMemoryReport(assignment.options.run_dir, training.rank));
  parts.trial.Done();
  parts.recorder.Done();
  if (handlers.all_data_waits) LogInfo(handlers.all_data_waits());
  LogInfo(whole ? "done" : "stopped as asked");
  WaitForAll(assignment.environment, "done", assignment.environment.timeout, *parts.store);
  return whole ? kExitSuccess : kExitPreempted;
}

}  // namespace planwright::executor
