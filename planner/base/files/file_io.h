// Files that are read and written as a whole, and files that are read in parts. Whatever is put in the place of a file
// (a pipe, a device, a folder), opening it never waits and reading it always ends. What a writer cannot do because of
// the storage (it is full, over its quota, read-only or broken) is ResourceExhausted; other failures are Unavailable.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace planwright {

// The reason of a call that was to write and failed with `error` (errno), and the error, "WHAT: reason".
std::string WhyNotWritten(int error);
absl::Status WriteFailed(const std::string& what, int error);

// openat() for a file that is to be written: never waits, and never follows a symbolic link to another file, as a file
// outside of the run would be overwritten then. It follows a link to a device, such as /dev/null. -1 with errno; ELOOP:
// it is a link.
int OpenToWrite(int folder, const std::string& path, int flags, mode_t mode = 0644);

// open() with `flags`, for a plain file alone; one that is to be written must be no symbolic link. NotFound if there is
// none, Unavailable, with the path, for anything else; ResourceExhausted if it is to be written and the storage fails.
// A new file has mode 0666 less the umask.
absl::StatusOr<int> OpenPlainFile(const std::string& path, int flags);

// A plain file, open for reading. It is read and not mapped: a file that is cut off while it is read, or a disk that
// fails, is an error of the call; with mapped memory the process would end by SIGBUS.
class PlainFile {
 public:
  // Errors of OpenPlainFile.
  static absl::StatusOr<PlainFile> Open(const std::string& path);
  PlainFile() = default;
  PlainFile(PlainFile&& other) noexcept { *this = std::move(other); }
  PlainFile& operator=(PlainFile&& other) noexcept;
  ~PlainFile();

  const std::string& path() const { return path_; }
  int64_t bytes() const { return bytes_; }  // when it was opened

  // Fills `to` with the bytes from `offset` on. May be called from several threads. Unavailable, with path and offset,
  // if the file ends before, or cannot be read.
  absl::Status Read(int64_t offset, std::span<std::byte> to) const;

 private:
  std::string path_;
  int fd_ = -1;
  int64_t bytes_ = 0;
};

// The name under which `path` is written before it is renamed: "out.json.writing.1234.0badcafe". It is a new one each
// time. The process id keeps the writers of a machine apart; those of two containers may have one id, and one that was
// killed leaves its file.
std::string NameBeside(const std::string& path);

// Writes a temporary file beside `path` and renames it: a reader sees the old file or the new one, never a half-written
// one. If `path` is a device or a link to one, the bytes are written into it; a pipe and any other link are refused. A
// new file has `mode` less the umask, before it has its bytes. Errors have the path.
absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes, int mode = 0644);
// The same for a file that the user names (`-o FILE`): into a pipe it writes, and what a link leads to is replaced.
absl::Status WriteNamedFile(const std::string& path, std::string_view bytes);
// Whether it could write the file now, for work that takes long before there is something to write: makes the file
// beside `path` and removes it. Errors of WriteNamedFile.
absl::Status CheckNamedFile(const std::string& path);
// The same with the first `bytes` bytes of the plain file at `path`, and `then`. They are copied by the system, in
// bounded memory. A process that has the file before open goes on with that one.
absl::Status CutFileAtomically(const std::string& path, int64_t bytes, std::string_view then = "");
// Makes an empty file. If several processes try at once, one succeeds. AlreadyExists: another one has made it.
absl::Status ClaimFile(const std::string& path);
// Reads a plain file of at most `most` bytes (json_limits.h). Unavailable, with the path, for anything else.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t most);
// A path of a recipe: absolute, or relative to `base`, the folder of the recipe.
std::string ResolvePath(const std::string& base, const std::string& path);
// Makes a folder and the folders above it that do not exist.
absl::Status MakeDirectories(const std::string& path);

}  // namespace planwright
