// Reads a file from front to back through a window in memory, so that many small neighbours are one call of the system,
// and the large ones between them are passed over.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "planner/base/files/file_io.h"

namespace planwright {

class FileWindow {
 public:
  // `file` must outlive the window.
  explicit FileWindow(const PlainFile& file) : file_(file) {}

  // The bytes [offset, offset + count), which must lie in the file. They stay until the next call. Errors of PlainFile.
  absl::StatusOr<std::string_view> Read(int64_t offset, int64_t count);

 private:
  const PlainFile& file_;
  int64_t begin_ = 0;  // of the window in the file
  std::string window_;
};

}  // namespace planwright
