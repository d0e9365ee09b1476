#include "planner/cli/checkpoint_folders.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "planner/base/text/status_macros.h"
#include "planner/state/checkpoint/folder_names.h"

namespace planwright {
namespace {

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(path, error));
}
bool IsCheckpoint(const std::string& folder) { return Exists(folder + "/" + kManifestFile); }

// Nothing if it is a checkpoint or a run.
absl::Status CheckMeaning(const std::string& folder) {
  ABSL_RETURN_IF_ERROR(CheckFolder(folder));
  if (IsCheckpoint(folder) || IsRunDirectory(folder)) return absl::OkStatus();
  return absl::InvalidArgumentError(folder + " is no checkpoint, as it has no " + kManifestFile +
                                    ", and no run directory, as it has no folder checkpoints");
}

absl::Status NothingPublished(const std::string& run_dir) {
  return absl::InvalidArgumentError(run_dir + " has no checkpoint that was published; `plan checkpoint ls` tells more");
}

}  // namespace

bool IsFolder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

absl::StatusOr<CheckpointList> CheckpointsOf(const std::string& run_dir) {
  const absl::StatusOr<int> newest = NewestLife(run_dir);
  if (!newest.ok()) return newest.status();
  return ListCheckpoints(run_dir, *newest + 1);
}

absl::StatusOr<std::vector<std::string>> CheckpointFoldersOf(const std::string& folder) {
  ABSL_RETURN_IF_ERROR(CheckMeaning(folder));
  if (IsCheckpoint(folder)) return std::vector<std::string>{folder};
  ABSL_ASSIGN_OR_RETURN(const CheckpointList list, CheckpointsOf(folder));
  std::vector<std::pair<std::pair<int, int64_t>, std::string>> folders;
  for (const FoundCheckpoint& found : list.found)
    folders.push_back({{found.manifest.life, found.manifest.counters.step}, found.folder});
  for (const UnusableCheckpoint& unusable : list.unusable) {
    // One of another run is among them, so that `verify` says so.
    if (unusable.kind == UnusableCheckpoint::Kind::kDamaged || unusable.kind == UnusableCheckpoint::Kind::kOtherRun)
      folders.push_back({{unusable.life, unusable.step}, unusable.folder});
  }
  std::sort(folders.rbegin(), folders.rend());
  std::vector<std::string> names;
  for (auto& [order, name] : folders) names.push_back(std::move(name));
  if (names.empty()) return NothingPublished(folder);
  return names;
}

}  // namespace planwright
