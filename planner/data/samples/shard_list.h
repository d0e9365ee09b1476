// Which files the patterns of a recipe name (docs/training/data.md#sources).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace planwright {

// More files of a source than this are refused, by the names that braces make before any is made, and by the files that
// are found: a wrong range must not take the memory of the machine.
inline constexpr int64_t kMostShards = 1'000'000;

// The files that one pattern names, sorted and each once, written as the pattern is: relative to `base` (the folder of
// the recipe) or absolute. First braces (brace_pattern.h). What comes out without * ? [ is a name, whether there is
// such a file or not. Else it is matched with the files that there are, as a shell does: * ? and [a-z] [!a-z] match no
// slash, and a dot that begins a name only if it is written. InvalidArgument: braces or brackets that do not end, a
// range that is none, more than kMostShards, a name that is longer than a path can be. NotFound: no file matches, and
// none is named.
absl::StatusOr<std::vector<std::string>> ExpandShards(const std::string& base, const std::string& pattern);

// The files of several patterns: those of each pattern in its order, one pattern after the other. A file that is named
// twice (also by other ways to write its path) is InvalidArgument, with both patterns; so are more than kMostShards
// names in all.
absl::StatusOr<std::vector<std::string>> ExpandAllShards(const std::string& base,
                                                         const std::vector<std::string>& patterns);

// For those that only look whether patterns name something: how much may still be looked at.
struct ShardLimit {
  int64_t names = 0;    // that braces make, and files that match
  int64_t entries = 0;  // of folders that are read
};

struct FirstShards {
  std::vector<std::string> files;  // sorted
  bool all = true;                 // false: there may be more, beyond the limit
};

// As ExpandShards, of the first names that braces make; NotFound only if all were looked at. Takes what it looks at
// from `left`, also where it fails.
absl::StatusOr<FirstShards> FirstShardsOf(const std::string& base, const std::string& pattern, ShardLimit& left);

// How many names the braces of a pattern make, without making one. Errors of ExpandShards.
absl::StatusOr<int64_t> CountShardNames(const std::string& pattern);

}  // namespace planwright
