// What EXIF and XMP say of a picture's orientation, wherever they stand in a file.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "planner/data/pictures/picture_size.h"

namespace planwright {

// Bytes [begin, begin + bytes) of a file. What is outside of them is read as nothing.
struct FileStretch {
  int64_t begin = 0, bytes = 0;
};

// The number of `count` bytes at `offset`, which must be there.
int64_t BytesAsNumber(std::string_view bytes, size_t offset, size_t count, bool big_endian);

// The value of tag 274 of the EXIF in a stretch; nothing if it has none, or is damaged before it. Errors of `read`.
absl::StatusOr<std::optional<int64_t>> OrientationOfExif(ReadBytes read, FileStretch exif);

// The digit of the first tiff:Orientation of an XMP packet, if it has one.
std::optional<int64_t> OrientationOfXmp(std::string_view xmp);

// Such a value, or 1 if there is none, or it is no orientation.
inline int OrientationOr1(std::optional<int64_t> value) {
  return value && *value >= 1 && *value <= 8 ? static_cast<int>(*value) : 1;
}

}  // namespace planwright
