// The chunks of a PNG file that may say how the picture is to be turned: eXIf, and texts of ImageMagick and of XMP.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>

#include "planner/data/pictures/picture_size.h"

namespace planwright {

// ReadOrientation of a PNG.
absl::StatusOr<int> OrientationOfPng(ReadBytes read, int64_t bytes, bool whole);

}  // namespace planwright
