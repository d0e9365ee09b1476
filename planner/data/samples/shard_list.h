// Which files the patterns of a recipe name (docs/training/data.md#sources).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace planwright {

// Why a path of a recipe names no file of a mounted file system, for a message; empty: it may name one.
std::string NotMounted(const std::string& path);

// More files than this are refused: a wrong range must not take the memory of the machine.
inline constexpr int64_t kMostShards = 1'000'000;

// The files that one pattern names, sorted and each once, written as the pattern is: relative to `base` (the folder of
// the recipe) or absolute. First braces: {000..099} counts, with the zeros of its ends; {a,b} is each of its parts,
// which may have braces. What comes out without * ? [ is a name, whether there is such a file or not. Else it is
// matched with the files that there are, as a shell does: * ? and [a-z] [!a-z] match no slash, and a dot that begins a
// name only if it is written. InvalidArgument: braces or brackets that do not end, a range that is none, more than
// kMostShards. NotFound: no file matches, and none is named.
absl::StatusOr<std::vector<std::string>> ExpandShards(const std::string& base, const std::string& pattern);

// The files of several patterns: those of each pattern in its order, one pattern after the other. A file that is named
// twice (also by other ways to write its path) is InvalidArgument, with both patterns.
absl::StatusOr<std::vector<std::string>> ExpandAllShards(const std::string& base,
                                                         const std::vector<std::string>& patterns);

}  // namespace planwright
