#include "executor/rank/setup.h"

#include <mutex>

#include "executor/communication/backends.h"
#include "executor/data/batch_reader.h"
#include "executor/data/file_error.h"
#include "executor/data/routing_record.h"
#include "executor/optimizer/initialize.h"
#include "executor/optimizer/philox_draws.h"
#include "executor/threads/threads.h"
#include "planner/run_files/exit_status.h"

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

absl::StatusOr<at::Device> ChooseDevice(const Plan& plan, const std::string& wanted, int local_rank) {
#ifdef PLANWRIGHT_CUDA
  if (wanted == "cuda" || (wanted.empty() && plan.cluster.gpu != "none")) {
    try {
      UseCudaDevice(local_rank, plan.deterministic);
    } catch (const c10::Error& error) {
      return absl::InvalidArgumentError(error.what_without_backtrace());
    }
    return at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(local_rank));
  }
#else
  if (wanted == "cuda") return absl::InvalidArgumentError("this executor was built without CUDA (PLANWRIGHT_CUDA)");
  // No silent fallback to CPUs: the user planned for GPUs and would wait for a run that crawls.
  if (wanted.empty() && plan.cluster.gpu != "none") {
    return absl::InvalidArgumentError(
        "the plan is for " + plan.cluster.gpu +
        " GPUs and this executor was built without CUDA; for CPU ranks launch with --device cpu or cluster.gpu=none");
  }
#endif
  return at::Device(at::kCPU);
}

std::function<Tensors(const Instruction&, const CallContext&)> MakeDataHandler(const Plan& plan, at::Device device) {
  absl::StatusOr<std::unique_ptr<BatchReader>> opened = BatchReader::Open(plan);
  if (!opened.ok()) throw ExitError(kExitUsage, std::string(opened.status().message()));
  const std::shared_ptr<BatchReader> reader = *std::move(opened);
  const at::ScalarType dtype = ScalarTypeOf(plan.dtype());
  // Data instructions on several streams run on several threads, and the reader is not made for that.
  const auto mutex = std::make_shared<std::mutex>();
  return [reader, mutex, device, dtype](const Instruction& instruction, const CallContext& call) {
    const std::lock_guard lock(*mutex);
    return WithFiles([&] {
      switch (instruction.kind) {
        case OpKind::kReadTokens: return reader->ReadTokens(call, device, dtype);
        case OpKind::kReadImages: return reader->ReadImages(call, device, dtype);
        case OpKind::kReadImageSizes: return reader->ReadImageSizes(call);
        default: TORCH_CHECK(false, OpName(instruction.kind), " reads no samples");
      }
    });
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
