#include "planner/state/checkpoint/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace planwright {
namespace {

int OpenAgain(const std::string& path, int flags) {
  int fd = -1;
  do {
    fd = open(path.c_str(), flags | O_CLOEXEC, 0644);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

int SyncAgain(int fd) {
  int result = 0;
  do {
    result = fsync(fd);
  } while (result != 0 && errno == EINTR);
  return result;
}

}  // namespace

absl::Status CannotWrite(const std::string& path, int error) {
  return absl::ResourceExhaustedError(absl::StrCat("cannot write ", path, ": ", std::strerror(error)));
}

DurableFile::~DurableFile() {
  if (fd_ >= 0) close(fd_);
}

absl::Status DurableFile::Open(const std::string& path, bool fresh) {
  path_ = path;
  // A link that somebody has put there is not followed, and nobody waits for the reader of a pipe.
  fd_ = OpenAgain(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | (fresh ? O_EXCL : O_TRUNC));
  if (fd_ < 0) return CannotWrite(path_, errno);
  struct stat about {};
  return fstat(fd_, &about) == 0 && S_ISREG(about.st_mode) ? absl::OkStatus() : CannotWrite(path_, EINVAL);
}

absl::Status DurableFile::Write(const void* bytes, size_t count) {
  const char* next = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t wrote = write(fd_, next, count);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return CannotWrite(path_, wrote < 0 ? errno : EIO);  // nothing written would repeat forever
    next += wrote;
    count -= wrote;
  }
  return absl::OkStatus();
}

absl::Status DurableFile::Finish() {
  if (SyncAgain(fd_) != 0) return CannotWrite(path_, errno);
  const int fd = fd_;
  fd_ = -1;  // closed whatever close() says, so it is never closed again
  // The bytes are synced, so an interrupted close has lost nothing.
  if (close(fd) != 0 && errno != EINTR) return CannotWrite(path_, errno);
  return absl::OkStatus();
}

absl::Status SyncFolder(const std::string& folder) {
  const int fd = OpenAgain(folder, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return CannotWrite(folder, errno);
  // EINVAL: a file system whose folders need no sync.
  const int error = SyncAgain(fd) == 0 || errno == EINVAL ? 0 : errno;
  close(fd);
  return error == 0 ? absl::OkStatus() : CannotWrite(folder, error);
}

}  // namespace planwright
