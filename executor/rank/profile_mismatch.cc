#include "executor/rank/profile_mismatch.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <vector>

#include "executor/program/device_words.h"

namespace planwright::executor {

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
