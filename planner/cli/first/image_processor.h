// How transformers makes images for a published encoder, in the words of `data`: what the kind of encoder has, and what
// the configuration of the folder's image processor says.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

struct ImageProcessor {
  std::string resize, grid;  // of data.resize and data.grid
  // Of an image that is resized; 0: the folder names no bound.
  int64_t least_pixels = 0, most_pixels = 0;
  std::vector<std::string> notes;  // what was decided without the folder
};

// `kind`: of the encoder. `folder`: it has preprocessor_config.json, or processor_config.json with an image processor,
// or none. FailedPrecondition: the processor does what no recipe can say, a line each; Unavailable, InvalidArgument: a
// file cannot be read, or is none.
absl::StatusOr<ImageProcessor> ReadImageProcessor(const std::string& folder, std::string_view kind);

}  // namespace planwright
