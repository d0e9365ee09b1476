#include "planner/base/files/file_io.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <system_error>

namespace planwright {
namespace {

// What no other path and no other permission would mend.
bool IsOfStorage(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG || error == EROFS || error == EIO;
}

absl::Status CannotRead(const std::string& path, const std::string& why) {
  return absl::UnavailableError("cannot read " + path + ": " + why);
}

absl::Status CannotWrite(const std::string& path, int error) { return WriteFailed("cannot write " + path, error); }

bool IsDevice(int fd) {
  struct stat about {};
  return fstat(fd, &about) == 0 && S_ISCHR(about.st_mode);
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

// `waits`: for somebody who reads, if it is a pipe.
absl::Status WriteInto(const std::string& path, std::string_view bytes, bool waits) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | (waits ? 0 : O_NONBLOCK));
  if (fd < 0) return CannotWrite(path, errno);
  bool good = WriteAll(fd, bytes);
  int error = errno;
  if (close(fd) != 0 && good) good = false, error = errno;
  return good ? absl::OkStatus() : CannotWrite(path, error);
}

// Copies the first `bytes` bytes. File systems that can do so share them instead.
bool CopyBegin(int from, int to, int64_t bytes) {
  while (bytes > 0) {
    const ssize_t count = copy_file_range(from, nullptr, to, nullptr, static_cast<size_t>(bytes), 0);
    if (count <= 0) break;  // not between these file systems
    bytes -= count;
  }
  std::string chunk(bytes > 0 ? size_t{1} << 20 : 0, '\0');
  while (bytes > 0) {
    const ssize_t count = read(from, chunk.data(), static_cast<size_t>(std::min<int64_t>(bytes, chunk.size())));
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) errno = EIO;  // the file has become shorter
    if (count <= 0 || !WriteAll(to, std::string_view(chunk.data(), static_cast<size_t>(count)))) return false;
    bytes -= count;
  }
  return true;
}

// Renaming over a device or a pipe would replace it by a plain file, so these are written into.
bool IsWrittenInto(const std::string& path) {
  struct stat about {};
  return stat(path.c_str(), &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode);
}

// As is a device that somebody has put there, such as /dev/null. A pipe has no place where nobody has named it.
bool IsDeviceAt(const std::string& path) {
  struct stat about {};
  return stat(path.c_str(), &about) == 0 && S_ISCHR(about.st_mode);
}

bool IsNoFile(const std::string& path) {
  struct stat about {};
  return lstat(path.c_str(), &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode) &&
         !S_ISLNK(about.st_mode);
}

// O_EXCL and O_NOFOLLOW refuse a file or link that somebody else has put there. -1 with errno.
int OpenBeside(const std::string& beside, int mode) {
  return open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
}

// Puts what `write` writes into the place of `path`, whatever is there but a folder.
absl::Status Replace(const std::string& path, int mode, const std::function<bool(int fd)>& write) {
  const std::string beside = NameBeside(path);
  const int fd = OpenBeside(beside, mode);
  if (fd < 0) return CannotWrite(path, errno);
  // Without fsync, a crash of the machine after the rename could leave an empty file under the final name.
  bool good = write(fd) && fsync(fd) == 0;
  int error = errno;
  if (close(fd) != 0 && good) good = false, error = errno;
  if (good && rename(beside.c_str(), path.c_str()) != 0) good = false, error = errno;
  if (good) return absl::OkStatus();
  unlink(beside.c_str());
  return CannotWrite(path, error);
}

// What is replaced where the user names `path`: the file to which a link leads.
absl::StatusOr<std::string> NamedTarget(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  const std::filesystem::path target = std::filesystem::weakly_canonical(path, error);
  if (error) return CannotWrite(path, error.value());
  return target.string();
}

// The problem of an open descriptor that is no plain file; empty: it is one.
std::string WhyNotPlain(int fd, int64_t& bytes) {
  struct stat about {};
  if (fstat(fd, &about) != 0) return std::strerror(errno);
  bytes = about.st_size;
  if (S_ISDIR(about.st_mode)) return std::strerror(EISDIR);
  return S_ISREG(about.st_mode) ? "" : "it is not a plain file";
}

}  // namespace

std::string NameBeside(const std::string& path) {
  std::random_device random;
  return absl::StrCat(path, ".writing.", getpid(), ".", absl::Hex(random(), absl::kZeroPad8));
}

std::string WhyNotWritten(int error) { return error == ELOOP ? "it is a symbolic link" : std::strerror(error); }

absl::Status WriteFailed(const std::string& what, int error) {
  const std::string message = what + ": " + WhyNotWritten(error);
  return IsOfStorage(error) ? absl::ResourceExhaustedError(message) : absl::UnavailableError(message);
}

int OpenToWrite(int folder, const std::string& path, int flags, mode_t mode) {
  flags |= O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  int fd = openat(folder, path.c_str(), flags | O_NOFOLLOW, mode);
  if (fd >= 0 || errno != ELOOP) return fd;
  // What the link leads to must not be made or changed before it is known.
  fd = openat(folder, path.c_str(), flags & ~(O_CREAT | O_EXCL | O_TRUNC));
  if (fd >= 0 && IsDevice(fd)) return fd;
  if (fd >= 0) close(fd);
  errno = ELOOP;
  return -1;
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes, int mode) {
  if (IsDeviceAt(path)) return WriteInto(path, bytes, /*waits=*/false);
  if (IsNoFile(path)) return absl::UnavailableError("cannot write " + path + ": it is not a plain file");
  std::error_code error;
  if (std::filesystem::is_symlink(path, error)) return CannotWrite(path, ELOOP);
  return Replace(path, mode, [&](int fd) { return WriteAll(fd, bytes); });
}

absl::Status WriteNamedFile(const std::string& path, std::string_view bytes) {
  if (IsWrittenInto(path)) return WriteInto(path, bytes, /*waits=*/true);
  const absl::StatusOr<std::string> target = NamedTarget(path);
  if (!target.ok()) return target.status();
  return Replace(*target, 0644, [&](int fd) { return WriteAll(fd, bytes); });
}

absl::Status CheckNamedFile(const std::string& path) {
  if (IsWrittenInto(path)) return access(path.c_str(), W_OK) == 0 ? absl::OkStatus() : CannotWrite(path, errno);
  const absl::StatusOr<std::string> target = NamedTarget(path);
  if (!target.ok()) return target.status();
  std::error_code error;
  if (std::filesystem::is_directory(*target, error)) return CannotWrite(path, EISDIR);
  const std::string beside = NameBeside(*target);
  const int fd = OpenBeside(beside, 0644);
  if (fd < 0) return CannotWrite(path, errno);
  close(fd), unlink(beside.c_str());
  return absl::OkStatus();
}

absl::Status CutFileAtomically(const std::string& path, int64_t bytes, std::string_view then) {
  const absl::StatusOr<int> from = OpenPlainFile(path, O_RDWR);  // not through a link
  if (!from.ok()) return from.status();
  const absl::Status status =
      Replace(path, 0644, [&](int fd) { return CopyBegin(*from, fd, bytes) && WriteAll(fd, then); });
  close(*from);
  return status;
}

absl::Status ClaimFile(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd >= 0) {
    close(fd);
    return absl::OkStatus();
  }
  return errno == EEXIST ? absl::AlreadyExistsError(path + " is there already") : CannotWrite(path, errno);
}

absl::StatusOr<int> OpenPlainFile(const std::string& path, int flags) {
  const bool reads = (flags & O_ACCMODE) == O_RDONLY;
  const auto failed = [&](int error) {
    if (error == ENOENT)
      return absl::NotFoundError((reads ? "cannot read " : "cannot write ") + path + ": " + std::strerror(error));
    return reads ? CannotRead(path, std::strerror(error)) : CannotWrite(path, error);
  };
  // O_NONBLOCK: opening a pipe would wait for its other end. The kind of file is checked before it is read, since a
  // device may never end.
  const int fd =
      reads ? open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : OpenToWrite(AT_FDCWD, path, flags, 0666);
  if (fd < 0) return failed(errno);
  int64_t bytes = 0;
  const std::string why = WhyNotPlain(fd, bytes);
  if (why.empty()) return fd;
  close(fd);
  return absl::UnavailableError(std::string("cannot ") + (reads ? "read " : "write ") + path + ": " + why);
}

absl::StatusOr<PlainFile> PlainFile::Open(const std::string& path) {
  const absl::StatusOr<int> fd = OpenPlainFile(path, O_RDONLY);
  if (!fd.ok()) return fd.status();
  PlainFile file;
  file.path_ = path;
  file.fd_ = *fd;
  if (const std::string why = WhyNotPlain(*fd, file.bytes_); !why.empty()) return CannotRead(path, why);
  return file;
}

PlainFile& PlainFile::operator=(PlainFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

PlainFile::~PlainFile() {
  if (fd_ >= 0) close(fd_);
}

absl::Status PlainFile::Read(int64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t count = pread(fd_, to.data(), to.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return CannotRead(path_, "at byte " + std::to_string(offset) + ": " + std::strerror(errno));
    if (count == 0) {
      struct stat about {};
      const int64_t end = fstat(fd_, &about) == 0 ? about.st_size : offset;
      return CannotRead(path_, absl::StrCat("it ends at byte ", end, ", and byte ", offset, " is wanted"));
    }
    to = to.subspan(count);
    offset += count;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t most) {
  const absl::StatusOr<int> opened = OpenPlainFile(path, O_RDONLY);
  if (!opened.ok())
    return absl::IsNotFound(opened.status()) ? CannotRead(path, std::strerror(ENOENT)) : opened.status();
  const int fd = *opened;
  std::string bytes, problem;
  char chunk[1 << 16];
  for (;;) {  // until read() returns nothing: the size that fstat reports may be wrong, as for files of /proc
    const ssize_t count = read(fd, chunk, sizeof chunk);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) problem = std::strerror(errno);
    if (count <= 0) break;
    if (bytes.size() + count > most) {
      problem = "it has more than " + std::to_string(most) + " bytes";
      break;
    }
    bytes.append(chunk, count);
  }
  close(fd);
  if (!problem.empty()) return CannotRead(path, problem);
  return bytes;
}

std::string ResolvePath(const std::string& base, const std::string& path) {
  return base.empty() || path.starts_with('/') ? path : base + "/" + path;
}

absl::Status MakeDirectories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? WriteFailed("cannot make the folder " + path, error.value()) : absl::OkStatus();
}

}  // namespace planwright
