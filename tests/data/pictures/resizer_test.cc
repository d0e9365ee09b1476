// The resize beside plain loops over whole images, by the same weights: equal to the bit, whatever vectors the
// processor has.
#include "planner/data/pictures/resizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace planwright {
namespace {

float AddFused(float sum, float weight, float value) {
  return static_cast<float>(sum + static_cast<double>(weight) * value);
}
double AddFused(double sum, double weight, double value) { return std::fma(weight, value, sum); }

// The weighted sum of values that are `stride` apart.
template <typename Number>
Number SumOf(const ResizeTaps<Number>& taps, const Number* from, int64_t stride) {
  Number sum = 0;
  for (int64_t tap = 0; tap < static_cast<int64_t>(taps.weights.size()); ++tap) {
    const Number value = from[(taps.first + tap) * stride], weight = taps.weights[tap];
    sum = tap < taps.fused ? sum + weight * value : AddFused(sum, weight, value);
  }
  return sum;
}

template <typename Filter, typename Number = typename Filter::Number>
Number Made(Number sum) {
  if constexpr (Filter::kMakesBytes) return std::min<Number>(255, std::max<Number>(0, std::floor(sum + 0.5)));
  return sum;
}

template <typename Filter, typename Number = typename Filter::Number>
std::vector<Number> Plain(const std::vector<Number>& image, int64_t from_height, int64_t from_width, int64_t height,
                          int64_t width) {
  const auto across = Filter::Taps(from_width, width), down = Filter::Taps(from_height, height);
  std::vector<Number> narrow, result;
  for (int64_t y = 0; y < from_height; ++y) {
    for (int64_t i = 0; i < width * 3; ++i)
      narrow.push_back(Made<Filter>(SumOf<Number>(across[i / 3], &image[y * from_width * 3 + i % 3], 3)));
  }
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t i = 0; i < width * 3; ++i)
      result.push_back(Made<Filter>(SumOf<Number>(down[y], &narrow[i], width * 3)));
  }
  return result;
}

template <typename Filter>
void ExpectPlain() {
  using Number = typename Filter::Number;
  std::mt19937 random(1);
  const auto side = [&] { return static_cast<int64_t>(1 + random() % (random() % 2 == 0 ? 9 : 70)); };
  for (int i = 0; i < 400; ++i) {
    const int64_t from_height = side(), from_width = side();
    const int64_t height = random() % 6 == 0 ? from_height : side(), width = random() % 6 == 0 ? from_width : side();
    std::vector<uint8_t> bytes(from_height * from_width * 3);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    std::vector<Number> image(bytes.begin(), bytes.end()), resized;
    const bool whole = i % 2 == 0;
    if (!whole) {
      for (Number& value : image) value *= static_cast<Number>(0.987);
    }
    Resizer<Filter> resizer(from_height, from_width, height, width,
                            [&](const Number* row) { resized.insert(resized.end(), row, row + width * 3); });
    for (int64_t y = 0; y < from_height; ++y) {
      const int64_t at = y * from_width * 3;
      if (whole) {
        resizer.Add(&bytes[at]);
      } else {
        resizer.Add(&image[at]);
      }
    }
    EXPECT_EQ(resized, Plain<Filter>(image, from_height, from_width, height, width))
        << from_height << " by " << from_width << " to " << height << " by " << width;
  }
}

TEST(Resizer, BilinearIsThatOfPlainLoops) { ExpectPlain<Bilinear>(); }
TEST(Resizer, BicubicIsThatOfPlainLoops) { ExpectPlain<Bicubic>(); }
TEST(Resizer, BicubicOfBytesIsThatOfPlainLoops) { ExpectPlain<BicubicBytes>(); }

}  // namespace
}  // namespace planwright
