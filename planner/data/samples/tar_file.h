// Reads tar archives (POSIX ustar, with pax extended headers). Archives may come from others, so nothing in them is
// trusted: names that leave the folder, links, devices, and sizes beyond the archive are refused.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/files/file_io.h"
#include "planner/data/samples/file_window.h"

namespace planwright {

inline constexpr int64_t kTarBlock = 512;  // bytes of a header

// Whether the checksum of a header of kTarBlock bytes fits: the sum of all its bytes, with its own eight counted as
// spaces.
bool TarChecksumFits(std::string_view header);

// The size in a header of kTarBlock bytes; -1 if it is not octal. What counts can be that of an extended header.
int64_t TarHeaderSize(std::string_view header);

struct TarMember {
  std::string name;
  int64_t offset = 0, bytes = 0;  // of the contents, behind the header
  int64_t in_header = -1;         // TarHeaderSize
};

// Calls each(member) for the regular files of an archive, in its order, as their headers are read; each() may read
// members through the same `window`. Ends with the first error: that of each(), or InvalidArgument, with the path of
// the archive and the offset in it.
absl::Status WalkTar(const PlainFile& file, FileWindow& window,
                     absl::FunctionRef<absl::Status(const TarMember& member)> each);

}  // namespace planwright
