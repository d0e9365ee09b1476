#include "planner/data/samples/mapped_file.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "planner/base/files/file_io.h"

namespace planwright {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  const absl::StatusOr<int> fd = OpenPlainFile(path, O_RDONLY);
  if (!fd.ok()) return fd.status();
  struct stat about {};
  MappedFile file;
  int error = fstat(*fd, &about) == 0 ? 0 : errno;
  if (error == 0 && about.st_size > 0) {
    file.bytes_ = static_cast<size_t>(about.st_size);
    void* begin = mmap(nullptr, file.bytes_, PROT_READ, MAP_SHARED, *fd, 0);
    if (begin == MAP_FAILED) {
      error = errno;
    } else {
      file.begin_ = static_cast<const char*>(begin);
    }
  }
  close(*fd);
  if (error == 0) return file;
  return absl::UnavailableError(absl::StrCat("cannot read ", path, ": ", std::strerror(error)));
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (begin_ != nullptr) munmap(const_cast<char*>(begin_), bytes_);
}

}  // namespace planwright
