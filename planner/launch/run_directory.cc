#include "planner/launch/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "planner/checkpoint/run_lives.h"
#include "planner/plan/plan_json.h"
#include "planner/run_files/file_io.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

absl::Status Unwritable(const std::string& what, const std::string& path, int error) {
  return absl::UnavailableError(what + " " + path + ": " + std::strerror(error));
}

// A descriptor of RUN/lock, locked; AlreadyExists if another launch holds it. File systems without locks let everyone
// in: the number of the life still tells two launches apart.
absl::StatusOr<int> Lock(const std::string& run_dir) {
  const std::string path = run_dir + "/lock";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return Unwritable("cannot write", path, errno);
  if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return fd;
  close(fd);
  return absl::AlreadyExistsError(run_dir + " is in use: another `plan launch` still runs in it");
}

// Moves what the life before left in RUN to RUN/lives/N. Files that a life which still breathes has open move with it.
absl::Status Archive(const std::string& run_dir, int life) {
  const fs::path to = fs::path(run_dir) / "lives" / std::to_string(life);
  for (const char* name : {"plan.json", "logs", "recorder", "outcome.json"}) {
    std::error_code error;
    const fs::path from = fs::path(run_dir) / name;
    if (!fs::exists(from, error)) continue;
    fs::rename(from, to / name, error);
    if (error) return absl::UnavailableError("cannot move " + from.string() + ": " + error.message());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RunDirectory> RunDirectory::Open(const Plan& plan, const std::string& path) {
  if (absl::Status status = MakeDirectories(path); !status.ok()) return status;
  const absl::StatusOr<int> lock = Lock(path);
  if (!lock.ok()) return lock.status();
  RunDirectory directory(path, *lock);
  std::error_code error;
  const bool holds_run = fs::exists(path + "/plan.json", error), has_lives = fs::exists(path + "/lives", error);
  const bool checkpoints = plan.checkpoint.every_steps > 0;
  if (holds_run && !(checkpoints && has_lives)) {
    return absl::AlreadyExistsError(
        path + " already holds a run" +
        (has_lives ? ", and without checkpoint.every_steps this plan cannot go on with it" : " that kept no checkpoints") +
        "; choose another --run-dir");
  }
  if (checkpoints) {
    const absl::StatusOr<int> life = TakeLife(path);
    if (!life.ok()) return life.status();
    directory.life_ = *life;
    if (*life > 1) {
      if (absl::Status status = Archive(path, *life - 1); !status.ok()) return status;
    }
  } else if (absl::Status status = ClaimFile(path + "/plan.json"); !status.ok()) {
    return status;
  }
  for (const char* inner : {"/logs", "/recorder"}) {
    if (absl::Status status = MakeDirectories(path + inner); !status.ok()) return status;
  }
  if (absl::Status status = WriteFileAtomically(path + "/plan.json", WritePlan(plan)); !status.ok()) return status;
  return directory;
}

RunDirectory::~RunDirectory() {
  if (lock_ >= 0) close(lock_);
}

bool RunDirectory::IsOurs() const {
  std::error_code error;
  if (!fs::exists(path_ + "/lives", error)) return true;
  const absl::StatusOr<bool> replaced = IsReplaced(path_, life_);
  return replaced.ok() && !*replaced;
}

}  // namespace planwright
