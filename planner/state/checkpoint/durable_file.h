// A file that is on the disk when Finish() has succeeded, also after a power cut. Every call's answer is checked: a
// full disk may show only when a file is synced or closed.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"

namespace planwright {

class DurableFile {
 public:
  DurableFile() = default;
  ~DurableFile();  // closes; what was written stays
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  // ResourceExhausted, with the path, here and below. `fresh`: the file must not exist; else it is emptied.
  absl::Status Open(const std::string& path, bool fresh);
  absl::Status Write(const void* bytes, size_t count);
  absl::Status Finish();  // syncs and closes

 private:
  std::string path_;
  int fd_ = -1;
};

// Syncs the names in a folder. ResourceExhausted, with the path.
absl::Status SyncFolder(const std::string& folder);

// ResourceExhausted: "cannot write PATH: No space left on device".
absl::Status CannotWrite(const std::string& path, int error);

}  // namespace planwright
