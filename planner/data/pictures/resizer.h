// Resizing an image that comes row by row: four filters, each a product of one along rows and one along columns.
#pragma once

#include <cstdint>
#include <functional>
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

// kMixesBytes: what is mixed with white is rounded to 8 bits before the resize. kMakesBytes: so is what each of the two
// products makes, and cut to 0 to 255.

// A triangle, in fp64.
struct Bilinear {
  using Number = double;
  static constexpr bool kMixesBytes = false, kMakesBytes = false;
  static std::vector<ResizeTaps<Number>> Taps(int64_t from, int64_t to);
};

// The cubic with a = -0.5, in fp32 and to the bit as PyTorch computes it on CPUs
// (docs/model/vision_encoder.md#resizing). Results can lie outside of the range of the inputs.
struct Bicubic {
  using Number = float;
  static constexpr bool kMixesBytes = true, kMakesBytes = false;
  static std::vector<ResizeTaps<Number>> Taps(int64_t from, int64_t to);
};

// The same cubic, and a triangle, to the bit as torchvision resizes pixels of 8 bits: weights are multiples of a power
// of two, and sums are exact.
struct BicubicBytes {
  using Number = double;
  static constexpr bool kMixesBytes = true, kMakesBytes = true;
  static std::vector<ResizeTaps<Number>> Taps(int64_t from, int64_t to);
};
struct BilinearBytes {
  using Number = double;
  static constexpr bool kMixesBytes = true, kMakesBytes = true;
  static std::vector<ResizeTaps<Number>> Taps(int64_t from, int64_t to);
};

// Takes the rows of an image one by one, and gives those of the resized image as soon as they are done. Beside them it
// holds as many rows, already resized along themselves, as one row of the result is made of.
template <typename Filter>
class Resizer {
 public:
  using Number = typename Filter::Number;
  // A row of the resized image, [width][3], in their order: values from 0 to 255, for Bicubic a little beyond.
  using TakeRow = std::function<void(const Number* row)>;
  Resizer(int64_t from_height, int64_t from_width, int64_t height, int64_t width, TakeRow take);
  // The next row: [from_width][3].
  void Add(const Number* row);
  void Add(const uint8_t* row);

 private:
  // Adds the row in wide_.
  void AddWide();

  const std::vector<ResizeTaps<Number>> across_, down_;
  const TakeRow take_;
  const int64_t from_width_, width_;
  std::vector<Number> wide_;  // the row, with a zero behind each pixel: four numbers are one vector
  // The last rows, resized along themselves: row y of the image is at y modulo their number. Behind each is a number
  // that means nothing.
  std::vector<std::vector<Number>> narrow_;
  std::vector<Number> done_;  // a row of the result
  int64_t row_ = 0;           // that comes next
  int64_t next_ = 0;          // the row of the result that is done next
};

}  // namespace planwright
