#include "planner/run/launch/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <thread>

#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/plan/plan_json.h"
#include "planner/state/checkpoint/own_paths.h"
#include "planner/state/checkpoint/run_id.h"
#include "planner/state/checkpoint/run_lives.h"
#include "planner/wire/records/outcome.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

// A descriptor of RUN/lock, locked; AlreadyExists, with its name, if another launch holds it. File systems without
// locks let everyone in: the number of the life still tells two launches apart.
absl::StatusOr<int> Lock(const std::string& run_dir) {
  const std::string path = run_dir + "/lock";
  const int fd = OpenToWrite(AT_FDCWD, path, O_RDWR | O_CREAT);
  if (fd < 0) return WriteFailed("cannot write " + path, errno);
  // A process that looks whether the run goes on has the lock for an instant (LookAtLock). And the holder writes its
  // name a moment after it has the lock; it may have no room for it. So the wait is short.
  std::string holder;
  for (int tries = 0; tries < (holder.empty() ? 100 : 20); ++tries) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) {
      const std::string name = OwnProcessName();
      // On a full disk the name is missing, and the lock still holds.
      [[maybe_unused]] const bool named =
          ftruncate(fd, 0) == 0 && pwrite(fd, name.data(), name.size(), 0) == static_cast<ssize_t>(name.size());
      return fd;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    holder = ReadWholeFile(path, kLargestNameFile).value_or("");
  }
  close(fd);
  return absl::AlreadyExistsError(run_dir + " is in use: another `plan launch` still runs in it" +
                                  (holder.empty() ? "" : " (" + holder + ")"));
}

// Moves what the life before left in RUN to RUN/lives/N. Files that a life which still breathes has open move with it.
absl::Status Archive(const std::string& run_dir, int life) {
  const fs::path to = fs::path(run_dir) / "lives" / std::to_string(life);
  // The plan is copied: if this launch ends here, the next one must still find what the run so far was.
  const std::string plan = run_dir + "/plan.json";
  if (std::error_code error; fs::exists(plan, error)) {
    const absl::StatusOr<std::string> text = ReadWholeFile(plan, kPlanJson.bytes);
    if (!text.ok()) return text.status();
    if (absl::Status status = WriteFileAtomically(to / "plan.json", *text); !status.ok()) return status;
  }
  for (const char* name : {"logs", "recorder", "outcome.json", "trace", "trace.json.gz", "memory"}) {
    std::error_code error;
    const fs::path from = fs::path(run_dir) / name;
    if (!fs::exists(from, error)) continue;
    fs::rename(from, to / name, error);
    if (error) return WriteFailed("cannot move " + from.string(), error.value());
  }
  return absl::OkStatus();
}

}  // namespace

std::string DefaultRunDirectory(const Plan& plan) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%S", &local);
  std::string name = plan.name.substr(0, 128);  // a folder name may have 255 bytes
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-') c = '-';
  }
  return "runs/" + name + "-" + stamp;
}

std::string OwnProcessName() {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return "process " + std::to_string(getpid()) + " on " + host;
}

RunLock LookAtLock(const std::string& run_dir) {
  const std::string path = run_dir + "/lock";
  RunLock lock;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return lock;
  lock.held = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  lock.holder = ReadWholeFile(path, kLargestNameFile).value_or("");
  return lock;
}

absl::StatusOr<RunDirectory> RunDirectory::Open(const Plan& plan, const std::string& path, bool trial) {
  if (absl::Status status = CheckFreeForRun(path); !status.ok()) return status;
  if (absl::Status status = MakeDirectories(path); !status.ok()) return status;
  const absl::StatusOr<int> lock = Lock(path);
  if (!lock.ok()) return lock.status();
  RunDirectory directory(path, *lock);
  std::error_code error;
  const absl::StatusOr<std::vector<int>> lives = LivesOf(path);
  if (!lives.ok()) return lives.status();
  const bool holds_run = fs::exists(path + "/plan.json", error), has_lives = !lives->empty();
  const bool checkpoints = plan.checkpoint.every_steps > 0 && !trial;
  if (holds_run && !(checkpoints && has_lives)) {
    const char* why = " that kept no checkpoints";
    if (has_lives) {
      why = ", and without checkpoint.every_steps this plan cannot go on with it";
    } else if (fs::exists(path + "/lives", error)) {
      why = " whose lives are gone: the folder lives is empty (a disk that is not mounted?)";
    } else if (fs::exists(path + "/checkpoints", error)) {
      why = " whose folder lives is gone";
    }
    return absl::AlreadyExistsError(path + " already holds a run" + why + "; choose another --run-dir");
  }
  if (checkpoints) {
    const absl::StatusOr<int> life = TakeLife(path);
    if (!life.ok()) return life.status();
    directory.life_ = *life;
    directory.has_lives_ = true;
    if (*life > 1) {
      if (absl::Status status = Archive(path, *life - 1); !status.ok()) {
        // The files in RUN are still those of the life before: the number is given back, as they would count as this
        // one's. What has a file in it stays.
        fs::remove(LifeFolder(path, *life), error);
        return status;
      }
    }
  } else if (absl::Status status = ClaimFile(path + "/plan.json"); !status.ok()) {
    return status;
  }
  absl::StatusOr<std::string> run_id = TakeRunId(path);
  if (!run_id.ok()) return run_id.status();
  directory.run_id_ = *std::move(run_id);
  // How a job ended before a life began is of no interest any more.
  std::filesystem::remove(OutcomePath(path + "/job"), error);
  for (const char* inner : {"/logs", "/recorder"}) {
    if (absl::Status status = MakeDirectories(path + inner); !status.ok()) return status;
  }
  if (absl::Status status = WriteFileAtomically(path + "/plan.json", WritePlan(plan)); !status.ok()) return status;
  return directory;
}

RunDirectory::~RunDirectory() {
  if (lock_ < 0) return;
  [[maybe_unused]] const int emptied = ftruncate(lock_, 0);  // the name is no longer that of the holder
  close(lock_);
}

absl::StatusOr<bool> RunDirectory::IsReplaced() const {
  return has_lives_ ? planwright::IsReplaced(path_, life_) : false;
}

}  // namespace planwright
