// How transformers makes images for a published encoder, in the words of `data`: what the line `first images` of the
// kind has, and what the configuration of the folder's image processor says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

struct ImageProcessor {
  std::string resize, grid;  // of data.resize and data.grid
  // Of an image that is resized; 0: the folder names no bound.
  int64_t least_pixels = 0, most_pixels = 0;
  std::vector<std::string> notes;  // what was decided without the folder, and what of it is not as it says
};

// What its config.json says of an encoder.
struct EncoderSizes {
  std::string kind;
  int64_t patch = 0, pixel_shuffle = 0, max_image = 0;  // pixels, patches, pixels
  int64_t frames = 0;                                   // of a patch; 0: the kind knows only images
};

// `folder`: of the encoder. It has preprocessor_config.json, or processor_config.json with an image processor,
// or none. `asked`: what overrides say: of `data` it comes before the folder. FailedPrecondition: the processor does
// what no recipe can say, a line each; Unavailable, InvalidArgument: a file cannot be read, or is none.
absl::StatusOr<ImageProcessor> ReadImageProcessor(const std::string& folder, const EncoderSizes& encoder,
                                                  const YamlNode& asked);

}  // namespace planwright
