// A folder of a command, which goes when the command ends.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace planwright {

class TemporaryFolder {
 public:
  // Makes /tmp/NAME-XXXXXX, and removes folders of this NAME and this user whose commands are dead: a command holds a
  // lock on its folder. ResourceExhausted if none can be made.
  static absl::StatusOr<TemporaryFolder> Make(const std::string& name);
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder(const TemporaryFolder&) = delete;
  ~TemporaryFolder();  // removes it

  const std::string& path() const { return path_; }

 private:
  TemporaryFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::string path_;
  int lock_ = -1;  // of the folder itself; -1: moved from
};

}  // namespace planwright
