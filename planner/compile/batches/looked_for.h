// The files of sources that were looked for on this machine. A recipe is checked again for each value that advice
// tries: its files are looked for once. How much is looked for is bounded for all patterns of a recipe together, before
// any name is made (docs/training/data.md#sources, docs/limits.md).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/data/samples/prepared.h"
#include "planner/data/samples/shard_list.h"

namespace planwright {

// Each costs a message to a file server. Patterns share what is for all of them evenly, and leave what they do not
// need.
inline constexpr int64_t kMostLookedFor = 4096, kMostLookedForInAll = 1 << 14;  // files of a pattern, of all patterns
inline constexpr int64_t kMostOpened = 16, kMostOpenedInAll = 1 << 11;          // the same, of those that are opened
inline constexpr int64_t kMostEntriesRead = 1 << 18;                            // of folders, for all patterns

class LookedFor {
 public:
  // `patterns`: how many the recipe has, which share the limits.
  explicit LookedFor(int64_t patterns) : patterns_(patterns) {}

  struct Shards {
    std::string wrong;                // with the pattern, or with its files; empty: nothing
    std::string missing_folder;       // that is not on this machine, so that the rest is not known; empty: none
    std::vector<std::string> beside;  // a file of each folder that has some
    std::vector<std::string> files;   // the first that are named or found, with their folders
  };
  // Of a pattern, relative to `base`.
  const Shards& OfPattern(const std::string& base, const std::string& pattern);

  struct Tokens {
    std::string wrong, missing_folder;
  };
  // Of PATH.bin and PATH.idx.
  const Tokens& OfTokens(const std::string& base, const std::string& path);

  // FindPrepared of the folder of a file. Null: there is none.
  using PreparedFile = absl::StatusOr<std::shared_ptr<const Prepared>>;
  const PreparedFile& PreparedBeside(const std::string& file);

  const ShardLimit& used() const { return used_; }

 private:
  bool HasFolder(const std::string& folder);
  Shards LookFor(const std::string& base, const std::string& pattern);
  // What the next pattern may use of what is left for all.
  int64_t ShareOf(int64_t left, int64_t most) const;

  const int64_t patterns_;
  ShardLimit used_;
  int64_t opened_ = 0;
  std::map<std::pair<std::string, std::string>, Shards> shards_;  // by base and pattern
  std::map<std::pair<std::string, std::string>, Tokens> tokens_;
  std::map<std::string, bool> folders_;           // whether they are there
  std::map<std::string, PreparedFile> prepared_;  // by folder
};

}  // namespace planwright
