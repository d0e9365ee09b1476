// The picture that a vision encoder sees, as a file for people: patches put together again.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "planner/data/pictures/patches.h"

namespace planwright {

// A PNG file of an image's patches: scaled back with the mean and deviation by which they were normalized, rounded, and
// what is outside of 0 to 255 cut off. `patch`: pixels of a patch's side.
absl::StatusOr<std::string> PngOfPatches(const Image& image, int64_t patch, const PixelNorm& norm);
// Whether a file that begins so is one of these: they say so in a text of theirs.
bool IsPngOfPatches(std::string_view head);

}  // namespace planwright
