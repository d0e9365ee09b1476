// Where the members of tar files are that documents refer to (KEY.images). A tar is scanned when one of its members is
// asked for, once; what is known of tars is kept in bounded memory.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "planner/data/samples/tar_file.h"

namespace planwright {

// The members of one tar.
class TarMembers {
 public:
  // Errors of WalkTar.
  static absl::StatusOr<TarMembers> Scan(const std::string& path);

  int64_t bytes() const { return bytes_; }  // of the tar
  size_t size() const { return members_.size(); }
  // NotFound: none of that name. InvalidArgument: several.
  absl::StatusOr<TarMember> Find(std::string_view name) const;

 private:
  struct Entry {
    uint64_t name = 0;  // where it begins in names_
    uint32_t name_bytes = 0;
    int64_t offset = 0, bytes = 0;
  };
  std::string_view NameOf(const Entry& entry) const {
    return std::string_view(names_).substr(entry.name, entry.name_bytes);
  }

  int64_t bytes_ = 0;
  std::string names_;
  std::vector<Entry> members_;  // by name
};

// Several threads may ask at once.
class TarMembersCache {
 public:
  // Errors of TarMembers::Scan, the same for each who asks.
  absl::StatusOr<std::shared_ptr<const TarMembers>> Get(const std::string& path);

 private:
  using Scanned = absl::StatusOr<std::shared_ptr<const TarMembers>>;
  struct Entry {
    std::once_flag once;
    Scanned scanned = absl::UnavailableError("not scanned");
    size_t counted = 0;  // of its members, in members_; guarded by mutex_
  };
  using Use = std::pair<std::string, std::shared_ptr<Entry>>;

  std::mutex mutex_;
  std::list<Use> used_;  // the last one first; guarded by mutex_, as are the following
  std::unordered_map<std::string, std::list<Use>::iterator> by_path_;
  size_t members_ = 0;  // of all that are kept
};

}  // namespace planwright
