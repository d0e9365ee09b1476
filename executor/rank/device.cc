#include "executor/rank/device.h"

#ifdef PLANWRIGHT_CUDA
#include <ATen/Context.h>
#endif

#include "executor/communication/backends.h"

namespace planwright::executor {

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

std::string DevicesText() {
#ifdef PLANWRIGHT_CUDA
  return "cuda " + std::to_string(at::getNumGPUs());
#else
  return "cpu";
#endif
}

void FollowDevice(at::Device device, Recorder& recorder) {
#ifdef PLANWRIGHT_CUDA
  if (device.is_cuda()) recorder.Follow(MakeCudaCompletion());
#endif
}

}  // namespace planwright::executor
