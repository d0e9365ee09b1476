// The rule by which the images of an encoder's lane are dealt to the ranks of its cp axis
// (docs/layouts/sequence.md#encoder). Reading and every operation of the encoder follow this one function.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace planwright {

// Consecutive rows of patches of one image.
struct ImageRows {
  int64_t image = 0;  // index among the images of the lane
  int64_t first = 0, count = 0;

  // The class tokens of an image are with its first band.
  bool has_class_tokens() const { return first == 0; }
};

// `grids`: rows and columns of patches of each image; with cp above 1, `factor` (the pixel shuffle) must divide them.
// Returns for each of `cp` coordinates what it has of the lane, in the order of images; a part may have nothing. The
// parts one after another are the whole lane, and each consists of whole bands of `factor` rows.
std::vector<std::vector<ImageRows>> DealBands(const std::vector<std::array<int64_t, 2>>& grids, int64_t factor,
                                              int64_t cp);

}  // namespace planwright
