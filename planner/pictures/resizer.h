// Resizing an image that comes row by row: two filters, each a product of one along rows and one along columns.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace planwright {

// One output position is a weighted sum of the inputs [first, first + weights.size()), added in their order. From the
// tap `fused` on a product is not rounded before it is added.
template <typename Number>
struct ResizeTaps {
  int64_t first = 0, fused = 0;
  std::vector<Number> weights;
};

// The filters. Both have half-pixel centres, and antialias: if the image shrinks, their support grows with the scale.
// Weights beyond the edges are dropped and the rest is normalised. Taps: of each of `to` positions, of `from` inputs.

// A triangle, in fp64.
struct Bilinear {
  using Number = double;
  static std::vector<ResizeTaps<Number>> Taps(int64_t from, int64_t to);
};

// The cubic with a = -0.5, in fp32 and to the bit as PyTorch computes it on CPUs
// (docs/model/vision_encoder.md#resizing). Results can lie outside of the range of the inputs.
struct Bicubic {
  using Number = float;
  static std::vector<ResizeTaps<Number>> Taps(int64_t from, int64_t to);
};

// Row by row; red, green and blue of a pixel together; values from 0 to 255, for Bicubic a little beyond.
template <typename Filter>
struct Pixels {
  int64_t height = 0, width = 0;
  std::vector<typename Filter::Number> values;  // [height][width][3]
};

// Takes the rows of an image one by one, and holds one of them beside the result.
template <typename Filter>
class Resizer {
 public:
  using Number = typename Filter::Number;
  Resizer(int64_t from_height, int64_t from_width, int64_t height, int64_t width);
  // The next row: [from_width][3].
  void Add(const Number* row);
  // After the last row.
  Pixels<Filter> Take() { return std::move(result_); }

 private:
  const std::vector<ResizeTaps<Number>> across_, down_;
  std::vector<Number> narrow_;  // the row, resized along itself
  Pixels<Filter> result_;
  int64_t row_ = 0;    // that comes next
  int64_t first_ = 0;  // rows of the result before this one are done
};

}  // namespace planwright
