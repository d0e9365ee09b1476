#include "planner/state/checkpoint/own_paths.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/state/checkpoint/folder_names.h"
#include "planner/state/checkpoint/format.h"
#include "planner/state/checkpoint/run_lives.h"
#include "planner/wire/records/probe_format.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

// What a launch, its ranks and the job of a run write into the run directory.
constexpr std::string_view kNames[] = {"checkpoints", "job",           "lives",         "lock",           "logs",
                                       "lost_nodes",  "memory",        "metrics.jsonl", "outcome.json",   "plan.json",
                                       "recorder",    "rounds",        "run.json",      "starts_in_vain", "tensorboard",
                                       "trace",       "trace.json.gz", "trial"};

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

// What a run replaces or writes on, where no run says that it is its own.
struct Written {
  std::string_view name;
  std::string_view inside;  // of a folder: how the names of its files begin; empty: it is a file itself
};
constexpr Written kWritten[] = {{"logs", "rank"},      {"logs", "launch.log"}, {"recorder", "rank"},
                                {"memory", "rank"},    {"trace", "rank"},      {"tensorboard", "events.out.tfevents"},
                                {"metrics.jsonl", ""}, {"outcome.json", ""},   {"trace.json.gz", ""}};

// A plain file with something in it. Through a link no run writes to another file, and of a pipe or a folder whoever
// opens it tells.
bool HoldsSomething(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(fs::symlink_status(path, error)) && fs::file_size(path, error) > 0;
}

// The first file of the folder that `written` names; empty: there is none.
std::string FoundOf(const fs::path& folder, const Written& written) {
  const fs::path path = folder / written.name;
  if (written.inside.empty()) return HoldsSomething(path) ? path.string() : "";
  std::string first;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    const std::string found = entry->path().string();
    if (!entry->path().filename().string().starts_with(written.inside) || !HoldsSomething(entry->path())) continue;
    if (first.empty() || found < first) first = found;
  }
  return first;
}

// A launch that ended before it made more has left a lock, which is empty or names it.
bool IsOtherLock(const fs::path& path) {
  if (!HoldsSomething(path)) return false;
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kLargestNameFile);
  return !text.ok() || !text->starts_with("process ");
}

// What `plan launch` and its jobs write into RUN/job before the run has begun.
bool IsOtherJob(const fs::path& job) {
  std::error_code error;
  bool other = false;
  for (fs::directory_iterator entry(job, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name == "launch.json" || name.starts_with("head")) return false;
    other = other || name == "plan.json" || name.starts_with("fallback-") || name.starts_with("job.");
  }
  return other;
}

absl::Status IsInTheWay(const std::string& path, const std::string& of) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is in the way: ", of, " would write there, and none has made it; name another folder"));
}

}  // namespace

absl::Status CheckFreeForRun(const std::string& run_dir) {
  const fs::path folder(run_dir);
  std::error_code error;
  if (!fs::is_directory(folder, error) || Exists(folder / "run.json") || Exists(folder / "plan.json"))
    return absl::OkStatus();
  const absl::StatusOr<std::vector<int>> lives = LivesOf(run_dir);
  if (!lives.ok() || !lives->empty()) return absl::OkStatus();  // the life that begins says what is wrong
  for (const Written& written : kWritten) {
    if (const std::string found = FoundOf(folder, written); !found.empty()) return IsInTheWay(found, "a run");
  }
  if (IsOtherLock(folder / "lock")) return IsInTheWay(folder / "lock", "a run");
  return IsOtherJob(folder / "job") ? IsInTheWay(folder / "job", "a run") : absl::OkStatus();
}

absl::Status CheckFreeForProbe(const std::string& folder) {
  for (const char* kind : {"parameters", "parameters_last", "gradients_first", "gradients_last", "values_first",
                           "values_last", "values_evaluated"}) {
    const std::string whole = absl::StrCat(folder, "/", kind, ".safetensors");
    if (Exists(whole) && !Exists(ProbePartPath(folder, kind, 0))) return IsInTheWay(whole, "a probe");
  }
  return absl::OkStatus();
}

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
