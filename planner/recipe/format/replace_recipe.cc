#include "planner/recipe/format/replace_recipe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "planner/base/files/file_io.h"
#include "planner/base/text/text.h"

namespace planwright {
namespace {

bool WriteAt0(int fd, std::string_view text) {
  off_t at = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t count = pwrite(fd, rest.data(), rest.size(), at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    rest.remove_prefix(static_cast<size_t>(count));
    at += count;
  }
  return ftruncate(fd, at) == 0 && fsync(fd) == 0;
}

absl::Status WriteInPlace(const std::string& file, std::string_view before, std::string_view after) {
  const absl::StatusOr<int> fd = OpenPlainFile(file, O_WRONLY);
  if (!fd.ok()) return fd.status();
  const bool good = WriteAt0(*fd, after);
  const int error = errno;
  if (!good) WriteAt0(*fd, before);  // on a full disk, too: these bytes had their place
  close(*fd);
  return good ? absl::OkStatus() : WriteFailed(Cat("cannot write ", file), error);
}

}  // namespace

absl::Status ReplaceRecipe(const std::string& path, std::string_view before, std::string_view after) {
  std::error_code error;
  const std::string file = std::filesystem::canonical(path, error).string();
  struct stat status = {};
  if (error || stat(file.c_str(), &status) != 0) return absl::UnavailableError(Cat("cannot find ", path));
  if (status.st_nlink > 1 || status.st_uid != geteuid() || status.st_gid != getegid())
    return WriteInPlace(file, before, after);
  const int mode = static_cast<int>(status.st_mode & 07777);
  if (absl::Status written = WriteFileAtomically(file, after, mode); !written.ok()) return written;
  if (chmod(file.c_str(), static_cast<mode_t>(mode)) != 0)  // the umask took some away
    return absl::UnavailableError(Cat("cannot give ", path, " its permissions back"));
  return absl::OkStatus();
}

}  // namespace planwright
