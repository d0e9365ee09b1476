#include "executor/rank/handlers.h"

#include <ATen/ops/pin_memory.h>
#include <c10/core/DeviceGuard.h>

#include "executor/data/batch_reader.h"
#include "executor/data/file_error.h"
#include "executor/data/read_ahead.h"
#include "executor/data/routing_record.h"
#include "executor/optimizer/initialize.h"
#include "executor/optimizer/philox_draws.h"
#include "planner/run_files/exit_status.h"
#include "planner/threads/threads.h"

namespace planwright::executor {
namespace {

// What the rooms of data say of a file, as the end of the rank.
template <typename Work>
auto WithFiles(const Work& work) {
  try {
    return work();
  } catch (const FileError& error) {
    throw ExitError(error.of_storage() ? kExitStorage : kExitUsage, error.what());
  }
}

}  // namespace

void ReadSamples(const Plan& plan, at::Device device, Handlers& handlers) {
  absl::StatusOr<std::unique_ptr<BatchReader>> opened = BatchReader::Open(plan);
  if (!opened.ok()) throw ExitError(kExitUsage, std::string(opened.status().message()));
  const auto read = [reader = std::shared_ptr(*std::move(opened)), dtype = ScalarTypeOf(plan.dtype()), device](
                        const Instruction& instruction, const CallContext& call) {
    Tensors values = reader->Read(instruction, call, dtype);
    if (!device.is_cuda()) return values;
    // From pinned memory the copy to the device is queued, and nobody waits for it. The guard: pinned memory belongs to
    // a device, and on this thread none has been chosen.
    const c10::DeviceGuard guard(device);
    for (size_t i = 0; i < ReadForDevice(instruction.kind); ++i) values[i] = values[i].pin_memory();
    return values;
  };
  const auto ahead = std::make_shared<ReadAhead>(read);
  handlers.data_of_steps = [ahead](std::vector<DataRead> reads, int64_t first_step, int64_t last_step) {
    ahead->Begin(std::move(reads), first_step, last_step);
  };
  handlers.data = [ahead, device](const Instruction& instruction, const CallContext& call) {
    Tensors values = WithFiles([&] { return ahead->Take(instruction, call); });
    for (size_t i = 0; i < ReadForDevice(instruction.kind); ++i) values[i] = ToDevice(values[i], device);
    return values;
  };
}

void DrawParameters(const Plan& plan, int rank, ModuleState& module) {
  InitializeParameters(plan, rank, PhiloxDraws(static_cast<uint64_t>(plan.seed)), ThreadsOfRank(), module);
}

void FollowRouting(const std::string& record, const std::string& replay, Handlers& handlers) {
  if (!record.empty()) {
    const auto routing = std::make_shared<RoutingRecord>(record, RoutingRecord::Mode::kWrite);
    handlers.record_routing = [routing](const CallContext& call, const at::Tensor& ids) {
      WithFiles([&] { routing->Write(call, ids); });
    };
  }
  if (!replay.empty()) {
    const auto routing = std::make_shared<RoutingRecord>(replay, RoutingRecord::Mode::kRead);
    handlers.replay_routing = [routing](const CallContext& call, int64_t samples, int64_t top_k) {
      return WithFiles([&] { return routing->Read(call, samples, top_k); });
    };
  }
}

}  // namespace planwright::executor
