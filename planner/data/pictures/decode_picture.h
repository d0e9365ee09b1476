// A picture of any format, decoded and resized row by row.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "planner/data/pictures/picture_size.h"
#include "planner/data/pictures/resizer.h"

namespace planwright {

// Row by row; red, green and blue of a pixel together.
template <typename Filter>
struct Pixels {
  int64_t height = 0, width = 0;
  std::vector<typename Filter::Number> values;  // [height][width][3]
};

// Decodes a file and resizes it to height x width pixels, row by row: `take` gets each row of the result (Resizer), and
// beside the file there are a few rows, or what picture_size.h says of files that come as a whole. Values are as Pillow
// reads them: what a file says of its gamma is not used, and of 16 bits the high eight are. Transparent pixels are
// mixed with white, in the file's own values and not in linear light, as common image loaders do; mixed values are
// rounded to 8 bits, but not for Bilinear. `orientation`, 1 to 8: the picture is turned before it is
// resized (orientation.h); another one than 1 takes 3 or 4 bytes more for each of its pixels. InvalidArgument if the
// file is damaged, of a kind that is not read, or too large (docs/model/vision_encoder.md#image-files); then the rows
// that were taken mean nothing.
template <typename Filter>
absl::Status DecodePictureRows(std::string_view file, int64_t height, int64_t width,
                               typename Resizer<Filter>::TakeRow take, int orientation = 1);

// All of them.
template <typename Filter>
absl::StatusOr<Pixels<Filter>> DecodePicture(std::string_view file, int64_t height, int64_t width, int orientation = 1);

// Decodes a file, and gives only what is wrong with it: the errors of DecodePicture. Beside the file it takes a row, or
// what picture_size.h says.
absl::Status CheckPicture(std::string_view file);

}  // namespace planwright
