// PNG files as pixels.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace planwright::executor {

// Row by row, channels (red, green, blue) together, 0 to 255.
struct Pixels {
  int64_t height = 0, width = 0;
  std::vector<double> values;  // [height][width][3]
};

inline constexpr int64_t kMaxPngPixels = int64_t{1} << 26;
inline constexpr int64_t kPngHeaderBytes = 24;

// Height and width from the first kPngHeaderBytes bytes of a file.
struct PngSize {
  int64_t height = 0, width = 0;
};
absl::StatusOr<PngSize> ReadPngSize(const std::string& header);

// Decodes, with white behind what is transparent (mixed in the file's own values, not in linear light, as the field's
// loaders do).
absl::StatusOr<Pixels> DecodePng(const std::string& file);

}  // namespace planwright::executor
