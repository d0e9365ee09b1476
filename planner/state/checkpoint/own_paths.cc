#include "planner/state/checkpoint/own_paths.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "planner/state/checkpoint/folder_names.h"
#include "planner/state/checkpoint/format.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

// What a launch, its ranks and the job of a run write into the run directory.
constexpr std::string_view kNames[] = {
    "checkpoints", "job",      "lives",    "lock",           "logs",        "memory", "metrics.jsonl", "outcome.json",
    "plan.json",   "recorder", "run.json", "starts_in_vain", "tensorboard", "trace",  "trace.json.gz"};

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// By what a launch writes first: a folder of a person may have a folder `checkpoints`, too.
bool HoldsRun(const fs::path& folder) {
  if (Exists(folder / "run.json")) return true;
  return Exists(folder / "plan.json") && (Exists(folder / "lives") || Exists(folder / "logs"));
}

bool IsCheckpoint(const fs::path& folder) {
  return ReadCheckpointName(folder.filename().string()) &&
         (Exists(folder / kManifestFile) || folder.parent_path().filename() == "checkpoints");
}

}  // namespace

absl::Status CheckOutsideOfRuns(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  if (error) return absl::OkStatus();  // whoever writes says why that cannot be
  fs::path whole = fs::weakly_canonical(absolute, error);
  if (error) whole = absolute.lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  for (fs::path at = whole; at.has_relative_path(); at = at.parent_path()) {
    const std::string lies = at == whole ? absl::StrCat(path, " is ") : absl::StrCat(path, " lies in ");
    if (IsCheckpoint(at)) {
      return absl::InvalidArgumentError(
          absl::StrCat(lies, at.string(),
                       ", the folder of a checkpoint, in which a run alone writes, and which it may remove: name "
                       "another place"));
    }
    const std::string name = at.filename().string();
    if (std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames) || !HoldsRun(at.parent_path()))
      continue;
    return absl::InvalidArgumentError(absl::StrCat(lies, at.string(), ", which belongs to the run in ",
                                                   at.parent_path().string(), ": name another place"));
  }
  return absl::OkStatus();
}

}  // namespace planwright
