// Reading and writing whole files. A reader sees the old file or the new one, never a half-written one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace planwright {

// Writes a temporary file beside `path` and renames it. If `path` is a link, the file that it leads to is replaced. If
// `path` is a device or a pipe, the bytes are written into it. Unavailable, with the path, if something fails.
absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes);
// Makes an empty file. If several processes try at once, one succeeds. AlreadyExists: another one has made it.
absl::Status ClaimFile(const std::string& path);
// Reads a plain file of at most `most` bytes. Unavailable, with the path, for anything else.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t most = size_t{1} << 30);
// Makes a folder and the folders above it that do not exist.
absl::Status MakeDirectories(const std::string& path);

}  // namespace planwright
