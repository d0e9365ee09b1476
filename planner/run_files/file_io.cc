#include "planner/run_files/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace planwright {
namespace {

absl::Status Failed(const std::string& what, const std::string& path, int error) {
  return absl::UnavailableError("cannot " + what + " " + path + ": " + std::strerror(error));
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(count);
  }
  return true;
}

absl::Status WriteInto(const std::string& path, std::string_view bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return Failed("write", path, errno);
  bool good = WriteAll(fd, bytes);
  int error = errno;
  if (close(fd) != 0 && good) good = false, error = errno;
  return good ? absl::OkStatus() : Failed("write", path, error);
}

absl::StatusOr<std::string> ReadPlainFile(int fd, const std::string& path, size_t most) {
  struct stat about {};
  if (fstat(fd, &about) != 0) return Failed("read", path, errno);
  if (S_ISDIR(about.st_mode)) return Failed("read", path, EISDIR);
  if (!S_ISREG(about.st_mode)) return absl::UnavailableError("cannot read " + path + ": it is not a plain file");
  std::string bytes;
  char chunk[1 << 16];
  for (;;) {  // until read() returns nothing: the size that fstat reports may be wrong, as for files of /proc
    const ssize_t count = read(fd, chunk, sizeof chunk);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failed("read", path, errno);
    if (count == 0) return bytes;
    if (bytes.size() + count > most)
      return absl::UnavailableError("cannot read " + path + ": it has more than " + std::to_string(most) + " bytes");
    bytes.append(chunk, count);
  }
}

}  // namespace

absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes) {
  // Renaming over a device, a pipe or a link would replace it by a plain file.
  struct stat about {};
  const bool there = stat(path.c_str(), &about) == 0;
  if (there && S_ISDIR(about.st_mode)) return Failed("write", path, EISDIR);
  if (there && !S_ISREG(about.st_mode)) return WriteInto(path, bytes);
  std::error_code unresolved;
  std::string target = std::filesystem::is_symlink(path, unresolved)
                           ? std::filesystem::weakly_canonical(path, unresolved).string()
                           : path;
  if (unresolved) target = path;
  // The process id in the name keeps two writers apart; O_EXCL and O_NOFOLLOW refuse a file or link that somebody else
  // has put there.
  const std::string beside = target + ".writing." + std::to_string(getpid());
  const int fd = open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return Failed("write", path, errno);
  // Without fsync, a crash of the machine after the rename could leave an empty file under the final name.
  bool good = WriteAll(fd, bytes) && fsync(fd) == 0;
  int error = errno;
  if (close(fd) != 0 && good) good = false, error = errno;
  if (good && rename(beside.c_str(), target.c_str()) != 0) good = false, error = errno;
  if (good) return absl::OkStatus();
  unlink(beside.c_str());
  return Failed("write", path, error);
}

absl::Status ClaimFile(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd >= 0) {
    close(fd);
    return absl::OkStatus();
  }
  return errno == EEXIST ? absl::AlreadyExistsError(path + " is there already") : Failed("write", path, errno);
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t most) {
  // O_NONBLOCK: opening a pipe that nobody writes would wait forever. The kind of file is checked before reading, since
  // a device may never end.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return Failed("read", path, errno);
  absl::StatusOr<std::string> bytes = ReadPlainFile(fd, path, most);
  close(fd);
  return bytes;
}

absl::Status MakeDirectories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return absl::UnavailableError("cannot make the folder " + path + ": " + error.message());
  return absl::OkStatus();
}

}  // namespace planwright
