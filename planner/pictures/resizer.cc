#include "planner/pictures/resizer.h"

#include <algorithm>
#include <cmath>

namespace planwright {

std::vector<ResizeTaps<double>> Bilinear::Taps(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / to, support = std::max(scale, 1.0);
  std::vector<ResizeTaps<double>> taps(to);
  for (int64_t i = 0; i < to; ++i) {
    // The window of the filter around the output's centre, in input coordinates. + 0.5 rounds to the nearest.
    const double centre = (i + 0.5) * scale;
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(centre - support + 0.5), 0);
    const int64_t end = std::min(static_cast<int64_t>(centre + support + 0.5), from);
    taps[i].first = first;
    double sum = 0;
    for (int64_t x = first; x < end; ++x) {
      taps[i].weights.push_back(std::max(0.0, 1 - std::abs((x + 0.5 - centre) / support)));
      sum += taps[i].weights.back();
    }
    for (double& weight : taps[i].weights) weight /= sum;
    taps[i].fused = end - first;  // none is
  }
  return taps;
}

namespace {

// sum + weight * value, rounded once: the product of two floats is exact in fp64.
float Fused(float sum, float weight, float value) {
  return static_cast<float>(sum + static_cast<double>(weight) * value);
}
double Fused(double sum, double weight, double value) { return std::fma(weight, value, sum); }

// The cubic at a distance of at least 0. Here and below products are fused where PyTorch's kernels for processors with
// AVX2 fuse them: other roundings would move patches by up to 3e-6.
float Cubic(float distance) {
  if (distance < 1) return std::fma(std::fma(1.5f, distance, -2.5f) * distance, distance, 1.0f);
  if (distance >= 2) return 0;
  return std::fma(std::fma(std::fma(-0.5f, distance, 2.5f), distance, -4.0f), distance, 2.0f);
}

}  // namespace

// What is float and what is double here is so in PyTorch: a centre in fp32 is off by up to 2^-11 of a pixel in an image
// of 8192, which moves the ends of windows. In fp64 patches of large images would differ by 5e-4.
std::vector<ResizeTaps<float>> Bicubic::Taps(int64_t from, int64_t to) {
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  const float support = 2 * std::max(scale, 1.0f), shrink = scale >= 1 ? 1 / scale : 1;
  std::vector<ResizeTaps<float>> taps(to);
  for (int64_t i = 0; i < to; ++i) {
    const auto centre = static_cast<float>(scale * (i + 0.5));
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(centre - support + 0.5), 0);
    const int64_t end = std::min(static_cast<int64_t>(centre + support + 0.5), from);
    taps[i].first = first;
    float sum = 0;
    for (int64_t x = first; x < end; ++x) {
      const float offset = static_cast<float>(x) - centre;
      taps[i].weights.push_back(Cubic(std::abs(static_cast<float>((offset + 0.5) * shrink))));
      sum += taps[i].weights.back();
    }
    for (float& weight : taps[i].weights) weight /= sum;
    // After the first tap PyTorch multiplies four at once and then adds the products. What remains it fuses.
    taps[i].fused = 1 + (end - first - 1) / 4 * 4;
  }
  return taps;
}

// First along rows, then along columns, as PyTorch does.
template <typename Filter>
Resizer<Filter>::Resizer(int64_t from_height, int64_t from_width, int64_t height, int64_t width)
    : across_(Filter::Taps(from_width, width)), down_(Filter::Taps(from_height, height)),
      narrow_(width * 3), result_{height, width, std::vector<Number>(height * width * 3)} {}

template <typename Filter>
void Resizer<Filter>::Add(const Number* row) {
  const int64_t width = result_.width;
  for (int64_t x = 0; x < width; ++x) {
    const ResizeTaps<Number>& taps = across_[x];
    const auto count = static_cast<int64_t>(taps.weights.size());
    const Number* source = &row[taps.first * 3];
    Number sum[3] = {};
    for (int64_t tap = 0; tap < taps.fused; ++tap, source += 3) {
      for (int64_t c = 0; c < 3; ++c) sum[c] += taps.weights[tap] * source[c];
    }
    for (int64_t tap = taps.fused; tap < count; ++tap, source += 3) {
      for (int64_t c = 0; c < 3; ++c) sum[c] = Fused(sum[c], taps.weights[tap], source[c]);
    }
    std::copy_n(sum, 3, &narrow_[x * 3]);
  }
  const auto end = [&](int64_t y) { return down_[y].first + static_cast<int64_t>(down_[y].weights.size()); };
  while (first_ < result_.height && end(first_) <= row_) ++first_;
  for (int64_t y = first_; y < result_.height && down_[y].first <= row_; ++y) {
    if (end(y) <= row_) continue;
    const int64_t tap = row_ - down_[y].first;
    const Number weight = down_[y].weights[tap];
    Number* to = &result_.values[y * width * 3];
    if (tap < down_[y].fused) {
      for (int64_t i = 0; i < width * 3; ++i) to[i] += weight * narrow_[i];
    } else {
      for (int64_t i = 0; i < width * 3; ++i) to[i] = Fused(to[i], weight, narrow_[i]);
    }
  }
  ++row_;
}

template class Resizer<Bilinear>;
template class Resizer<Bicubic>;

}  // namespace planwright
