// A picture of any format, decoded and resized row by row.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string_view>

#include "planner/pictures/picture_size.h"
#include "planner/pictures/resizer.h"

namespace planwright {

// Decodes a file and resizes it (Resizer) to height x width pixels, row by row: beside the file there are the result
// and a few rows, or what picture_size.h says of files that come as a whole. Transparent pixels are mixed with white,
// in the file's own values and not in linear light, as common image loaders do. Bilinear: values of PNG become those of
// sRGB, and mixed ones are not rounded. Bicubic: values are as Pillow reads them. What a file says of its gamma is not
// used, of 16 bits the high eight are, and mixed values are rounded to 8 bits. InvalidArgument if the file is damaged,
// of a kind that is not read, or too large (docs/training/data.md#image-files).
template <typename Filter>
absl::StatusOr<Pixels<Filter>> DecodePicture(std::string_view file, int64_t height, int64_t width);

// Decodes a file, and gives only what is wrong with it: the errors of DecodePicture.
absl::Status CheckPicture(std::string_view file);

}  // namespace planwright
