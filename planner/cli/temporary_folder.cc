#include "planner/cli/temporary_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace planwright {
namespace {

namespace fs = std::filesystem;

// Says that a folder is one of these: a person may have one of such a name.
constexpr char kMarker[] = ".planwright-temporary";

// Opens and locks a folder of this user. -1: it is gone, of another user, or a command has it.
int TakeFolder(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat opened {
  }, named{};
  // Between opening and locking, another command may have removed the folder.
  if (fd >= 0 && fstat(fd, &opened) == 0 && opened.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
      lstat(path.c_str(), &named) == 0 && named.st_ino == opened.st_ino && named.st_dev == opened.st_dev)
    return fd;
  if (fd >= 0) close(fd);
  return -1;
}

// What a command that was killed could not remove.
void RemoveLeftOvers(const fs::path& parent, const std::string& prefix) {
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(prefix)) continue;
    std::error_code unreadable;
    if (!fs::is_regular_file(fs::symlink_status(entry->path() / kMarker, unreadable))) continue;
    const int lock = TakeFolder(entry->path().string());
    if (lock < 0) continue;
    std::error_code ignored;  // the next command tries again
    fs::remove_all(entry->path(), ignored);
    close(lock);
  }
}

}  // namespace

absl::StatusOr<TemporaryFolder> TemporaryFolder::Make(const std::string& name) {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  if (!error) RemoveLeftOvers(parent, name + "-");
  // Another command may take a new folder for one that was left, before it is locked: then there is another try.
  for (int attempt = 0; !error && attempt < 10; ++attempt) {
    std::string path = (parent / (name + "-XXXXXX")).string();
    if (mkdtemp(path.data()) == nullptr) break;
    const int lock = TakeFolder(path);
    if (lock < 0) continue;
    if (!std::ofstream(path + "/" + kMarker)) {
      fs::remove_all(path, error);
      close(lock);
      break;
    }
    return TemporaryFolder(std::move(path), lock);
  }
  return absl::ResourceExhaustedError("cannot make a folder " + (parent / (name + "-XXXXXX")).string());
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

TemporaryFolder::~TemporaryFolder() {
  if (lock_ < 0) return;
  std::error_code error;
  fs::remove_all(path_, error);
  close(lock_);
}

}  // namespace planwright
