// Small file helpers: whole files, written so that a reader sees the old one or the new one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace planwright {

// Writes beside `path` and renames; through a link, beside what it leads to. What is there and no plain file (a device,
// a pipe) is written into. Errors name the path.
absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes);
// Makes an empty file, which of several who try at once one alone does. AlreadyExists: somebody has.
absl::Status ClaimFile(const std::string& path);
// Of a plain file of at most `most` bytes.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t most = size_t{1} << 30);
absl::Status MakeDirectories(const std::string& path);

}  // namespace planwright
