// Files that are opened when they are asked for; those that were used last stay open, up to a bound.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "planner/base/files/file_io.h"

namespace planwright {

// Several threads may ask at once. A file stays open while somebody holds it, also beyond the bound.
class OpenFiles {
 public:
  explicit OpenFiles(size_t most) : most_(most) {}

  // Errors of PlainFile::Open.
  absl::StatusOr<std::shared_ptr<const PlainFile>> Get(const std::string& path);

 private:
  using Entry = std::pair<std::string, std::shared_ptr<const PlainFile>>;

  const size_t most_;
  std::mutex mutex_;
  std::list<Entry> used_;  // the last one first; guarded by mutex_
  std::unordered_map<std::string, std::list<Entry>::iterator> by_path_;
};

// The bytes [offset, offset + count).
absl::StatusOr<std::string> ReadBytesAt(const PlainFile& file, int64_t offset, int64_t count);

}  // namespace planwright
