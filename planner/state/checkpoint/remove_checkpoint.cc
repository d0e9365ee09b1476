#include "planner/state/checkpoint/remove_checkpoint.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/limits.h"
#include "planner/state/checkpoint/durable_file.h"
#include "planner/state/checkpoint/folder_names.h"
#include "planner/state/checkpoint/format.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

// Whether a run writes files of this name into the folder of a checkpoint. Some have another name until they are whole
// (WriteDurably).
bool IsOfACheckpoint(std::string_view name) {
  constexpr std::string_view kRank = "rank-", kWriting = ".writing.";
  name = name.substr(0, name.find(kWriting));
  if (name == kManifestFile || name == kCheckpointPlanFile) return true;
  if (!name.starts_with(kRank)) return false;
  const std::string_view rest = name.substr(kRank.size());
  const int64_t rank = NumberFrom(rest.substr(0, rest.find('.')));
  if (rank < 0 || rank > kMostRanks) return false;
  return name == ShardFile(static_cast<int>(rank)) || name == IndexFile(static_cast<int>(rank));
}

bool IsPlainFile(const std::string& path) {
  struct stat about {};
  return lstat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode);
}

// Files that a run has written there, and all other names.
struct Contents {
  std::vector<std::string> own, others;
};
absl::StatusOr<Contents> ContentsOf(const std::string& folder) {
  const absl::StatusOr<std::vector<std::string>> names = NamesIn(folder);
  if (!names.ok()) return names.status();
  Contents contents;
  for (const std::string& name : *names) {
    const bool own = IsOfACheckpoint(name) && IsPlainFile(folder + "/" + name);
    (own ? contents.own : contents.others).push_back(name);
  }
  std::sort(contents.others.begin(), contents.others.end());
  return contents;
}

}  // namespace

bool IsRemoved(const std::string& folder) {
  struct stat about {};
  return lstat((folder + "/" + kManifestFile).c_str(), &about) != 0 && errno == ENOENT;
}

std::string WhyNotPublished(const std::string& folder, bool ended) {
  const std::string lacks = absl::StrCat("it has no ", kManifestFile);
  if (!ended) return lacks + "; it is being written or removed, or that was cut off";
  const absl::StatusOr<Contents> contents = ContentsOf(folder);
  if (!contents.ok() || !contents->own.empty() || contents->others.empty())
    return lacks + ", as its life ended before; a newer life removes it with its first checkpoint";
  return absl::StrCat(lacks, "; it has only what no run has written: ", absl::StrJoin(contents->others, ", "));
}

absl::StatusOr<std::vector<std::string>> RemoveCheckpoint(const std::string& folder) {
  const fs::path path(folder);
  const std::string plain = (path.has_filename() ? path : path.parent_path()).string();
  if (!ReadCheckpointName(fs::path(plain).filename().string()))
    return absl::InvalidArgumentError(folder + " is not removed: its name is not that of a checkpoint");
  const auto failed = [&](const std::string& why) {
    return absl::UnavailableError(absl::StrCat("cannot remove ", folder, ": ", why));
  };
  std::error_code error;
  if (fs::is_symlink(plain, error)) return std::vector<std::string>{plain};
  if (!fs::exists(plain, error) && !error) return std::vector<std::string>();
  const absl::StatusOr<Contents> contents = ContentsOf(plain);
  if (absl::IsNotFound(contents.status())) return std::vector<std::string>();
  if (!contents.ok()) return failed(std::string(contents.status().message()));
  const auto remove = [&](const std::string& name) {
    return unlink((plain + "/" + name).c_str()) == 0 || errno == ENOENT;
  };
  if (IsPlainFile(plain + "/" + kManifestFile) && !remove(kManifestFile)) return failed(std::strerror(errno));
  // After a power cut the manifest must not be there without its files.
  if (absl::Status status = SyncFolder(plain); !status.ok()) return failed(std::string(status.message()));
  for (const std::string& name : contents->own) {
    if (!remove(name)) return failed(absl::StrCat(name, ": ", std::strerror(errno)));
  }
  if (rmdir(plain.c_str()) == 0 || errno == ENOENT) return std::vector<std::string>();
  if (errno == ENOTEMPTY || errno == EEXIST) return contents->others;
  return failed(std::strerror(errno));
}

absl::StatusOr<std::vector<std::string>> LeftByEndedLives(const std::string& run_dir, int life) {
  const std::string checkpoints = run_dir + "/checkpoints";
  const absl::StatusOr<std::vector<std::string>> names = NamesIn(checkpoints);
  if (!names.ok()) return names.status();
  std::vector<std::string> left;
  for (const std::string& name : *names) {
    const std::optional<CheckpointName> of = ReadCheckpointName(name);
    const std::string folder = checkpoints + "/" + name;
    std::error_code error;
    if (!of || of->life >= life || fs::is_symlink(folder, error) || !fs::is_directory(folder, error)) continue;
    if (!IsRemoved(folder)) continue;
    const absl::StatusOr<Contents> contents = ContentsOf(folder);
    if (contents.ok() && (!contents->own.empty() || contents->others.empty())) left.push_back(folder);
  }
  std::sort(left.begin(), left.end());
  return left;
}

}  // namespace planwright
