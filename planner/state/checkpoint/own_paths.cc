#include "planner/state/checkpoint/own_paths.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/state/checkpoint/folder_names.h"
#include "planner/state/checkpoint/format.h"
#include "planner/state/checkpoint/life_start.h"
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

// In RUN/job: what `plan launch --slurm` and heads write before all else.
bool IsOfJob(const std::string& name) { return name == "launch.json" || name.starts_with("head"); }

// It has names of which `plan launch` and its jobs write into RUN/job before the run has begun, and none of theirs.
bool IsOtherJob(const fs::path& job) {
  std::error_code error;
  bool other = false;
  for (fs::directory_iterator entry(job, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (IsOfJob(name)) return false;
    other = other || name == "plan.json" || name.starts_with("fallback-") || name.starts_with("job.");
  }
  return other;
}

// A launch, or the job of one, has begun there: its files are those of a run, however little it has written.
bool HasBegun(const fs::path& folder) {
  if (Exists(folder / "run.json") || Exists(folder / "plan.json")) return true;
  if (Exists(folder / "lock") && !IsOtherLock(folder / "lock")) return true;
  std::error_code error;
  for (fs::directory_iterator entry(folder / "job", error), end; !error && entry != end; entry.increment(error)) {
    if (IsOfJob(entry->path().filename().string())) return true;
  }
  const absl::StatusOr<std::vector<int>> lives = LivesOf(folder.string());
  return !lives.ok() || !lives->empty();
}

// A shell that sends the output of this process into a file has made it before.
bool IsOwnOutput(const std::string& path) {
  struct stat there {};
  struct stat output {};
  if (stat(path.c_str(), &there) != 0) return false;
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    if (fstat(stream, &output) == 0 && output.st_dev == there.st_dev && output.st_ino == there.st_ino) return true;
  }
  return false;
}

bool IsOfRun(const fs::path& path) {
  const std::string name = path.filename().string(), ending = path.extension().string();
  // A file that a launch was writing as it was killed has a longer name. The root of a disk has a lost+found.
  if (name.starts_with('.') || name == "lost+found") return true;
  for (const std::string_view own : kNames) {
    if (name == own || name.starts_with(std::string(own) + ".")) return true;
  }
  for (const std::string_view may_be : {".yaml", ".yml", ".log", ".out", ".err"}) {
    if (ending == may_be) return true;
  }
  std::error_code error;
  return fs::is_empty(path, error) || IsOwnOutput(path.string());
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

absl::Status CheckNoOtherFolder(const std::string& run_dir) {
  std::error_code error;
  const fs::path folder(run_dir);
  if (fs::is_symlink(folder, error) && !fs::exists(folder, error)) {
    return absl::InvalidArgumentError(absl::StrCat(run_dir, " is a link to ", fs::read_symlink(folder, error).string(),
                                                   ", which is not there: make that folder, or name another one"));
  }
  if (!fs::is_directory(folder, error) || HasBegun(folder)) return absl::OkStatus();
  const absl::StatusOr<std::vector<std::string>> names = NamesIn(run_dir);
  if (!names.ok()) return absl::OkStatus();  // whoever writes there says why that cannot be
  std::vector<std::string> others;
  for (const std::string& name : *names) {
    if (!IsOfRun(folder / name)) others.push_back(name);
  }
  if (others.empty()) return absl::OkStatus();
  std::sort(others.begin(), others.end());
  constexpr size_t kShown = 3;
  const std::string more =
      others.size() > kShown ? absl::StrCat(" and ", others.size() - kShown, " more") : std::string();
  others.resize(std::min(others.size(), kShown));
  return absl::InvalidArgumentError(
      absl::StrCat(run_dir, " is no run directory, and it is not empty: it has ", absl::StrJoin(others, ", "), more,
                   "; a run begins in a new or an empty folder: give another --run-dir, or leave it out"));
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
