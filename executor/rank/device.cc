#include "executor/rank/device.h"

#include <ATen/Context.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <vector>

#include "executor/communication/backends.h"
#include "executor/program/device_words.h"

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

std::string ProfileMismatch(const DeviceProfile& profile, at::Device device) {
  if (!profile.measured()) return "";
  std::vector<std::string> differences;
  const auto compare = [&](const char* what, const std::string& measured, const std::string& here) {
    if (measured != here) differences.push_back(absl::StrCat(what, " ", measured, ", and here it is ", here));
  };
  compare("the device", profile.device, DeviceName(device));
  compare("the driver", profile.driver, DriverVersion(device));
  compare("the libraries", profile.libraries, LibraryVersions(device));
  if (differences.empty()) return "";
  return absl::StrCat("cluster.profile was measured elsewhere: ", absl::StrJoin(differences, "; "),
                      ". Predicted times and deadlines are of that machine; `plan measure` measures this one");
}

}  // namespace planwright::executor
