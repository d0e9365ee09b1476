// Decodes PNG files.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace planwright::executor {

// Row by row; red, green and blue of a pixel together; values from 0 to 255.
struct Pixels {
  int64_t height = 0, width = 0;
  std::vector<double> values;  // [height][width][3]
};

inline constexpr int64_t kMaxPngPixels = int64_t{1} << 26;  // 1.5 GB once decoded; larger files are refused
inline constexpr int64_t kPngHeaderBytes = 24;

// Height and width, from the first kPngHeaderBytes bytes of a file. InvalidArgument if they are not those of a PNG.
struct PngSize {
  int64_t height = 0, width = 0;
};
absl::StatusOr<PngSize> ReadPngSize(const std::string& header);

// Decodes a file. Transparent pixels are mixed with white, in the file's own values and not in linear light, as common
// image loaders do. InvalidArgument if the file is damaged or too large.
absl::StatusOr<Pixels> DecodePng(const std::string& file);

}  // namespace planwright::executor
