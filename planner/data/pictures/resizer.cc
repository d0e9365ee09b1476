#include "planner/data/pictures/resizer.h"

#include <algorithm>
#include <cmath>

#include "planner/data/pictures/row_loops.h"

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

namespace {

// `weight`: of a distance of at least 0, in inputs where the image does not shrink; 0 from `reach` on.
std::vector<ResizeTaps<double>> TapsOfBytes(int64_t from, int64_t to, double reach, double (*weight)(double)) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), support = reach * std::max(scale, 1.0);
  const double shrink = scale >= 1 ? 1 / scale : 1;
  std::vector<ResizeTaps<double>> taps(to);
  double most = 0;
  for (int64_t i = 0; i < to; ++i) {
    const double centre = scale * (static_cast<double>(i) + 0.5);
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(centre - support + 0.5), 0);
    const int64_t end = std::min(static_cast<int64_t>(centre + support + 0.5), from);
    taps[i].first = first;
    taps[i].fused = end - first;  // none is
    double sum = 0;
    for (int64_t x = first; x < end; ++x) {
      taps[i].weights.push_back(weight(std::abs((static_cast<double>(x) - centre + 0.5) * shrink)));
      sum += taps[i].weights.back();
    }
    for (double& of : taps[i].weights) {
      of /= sum;
      most = std::max(most, of);
    }
  }
  // As many binary places as let the largest weight be an integer of 16 bits with a sign.
  double places = 1;
  for (int i = 0; i < 22 && static_cast<int64_t>(0.5 + most * 2 * places) < (1 << 15); ++i) places *= 2;
  for (ResizeTaps<double>& all : taps) {
    for (double& of : all.weights) of = std::trunc(of * places + (of < 0 ? -0.5 : 0.5)) / places;
  }
  return taps;
}

}  // namespace

std::vector<ResizeTaps<double>> BicubicBytes::Taps(int64_t from, int64_t to) {
  return TapsOfBytes(from, to, 2, [](double distance) {
    if (distance < 1) return (1.5 * distance - 2.5) * distance * distance + 1;
    return distance < 2 ? (((distance - 5) * distance + 8) * distance - 4) * -0.5 : 0;
  });
}

std::vector<ResizeTaps<double>> BilinearBytes::Taps(int64_t from, int64_t to) {
  return TapsOfBytes(from, to, 1, [](double distance) { return std::max(0.0, 1 - distance); });
}

namespace {

// To the nearest of 256 values, halves up.
void ToBytes(int64_t count, double* values) {
  for (int64_t i = 0; i < count; ++i) values[i] = std::clamp(std::floor(values[i] + 0.5), 0.0, 255.0);
}

// Without the weights of zero at both ends, which change nothing: at its own size a picture has one tap.
template <typename Number>
std::vector<ResizeTaps<Number>> Trimmed(std::vector<ResizeTaps<Number>> all) {
  for (ResizeTaps<Number>& taps : all) {
    std::vector<Number>& weights = taps.weights;
    while (weights.back() == 0) weights.pop_back();
    const auto zeros = std::find_if(weights.begin(), weights.end(), [](Number weight) { return weight != 0; });
    const int64_t dropped = zeros - weights.begin();
    weights.erase(weights.begin(), zeros);
    taps.first += dropped;
    taps.fused = std::clamp<int64_t>(taps.fused - dropped, 0, static_cast<int64_t>(weights.size()));
  }
  return all;
}

// The most taps that a position has.
template <typename Number>
int64_t MostTaps(const std::vector<ResizeTaps<Number>>& all) {
  size_t most = 0;
  for (const ResizeTaps<Number>& taps : all) most = std::max(most, taps.weights.size());
  return static_cast<int64_t>(most);
}

}  // namespace

// First along rows, then along columns, as PyTorch does.
template <typename Filter>
Resizer<Filter>::Resizer(int64_t from_height, int64_t from_width, int64_t height, int64_t width, TakeRow take)
    : across_(Trimmed(Filter::Taps(from_width, width))), down_(Filter::Taps(from_height, height)),
      take_(std::move(take)), from_width_(from_width), width_(width), wide_(from_width * 4),
      narrow_(MostTaps(down_), std::vector<Number>(width * 3 + 1)), done_(width * 3) {}

template <typename Filter>
void Resizer<Filter>::Add(const Number* row) {
  Widen(row, from_width_, wide_.data());
  AddWide();
}

template <typename Filter>
void Resizer<Filter>::Add(const uint8_t* row) {
  Widen(row, from_width_, wide_.data());
  AddWide();
}

template <typename Filter>
void Resizer<Filter>::AddWide() {
  const auto held = static_cast<int64_t>(narrow_.size());
  Across(wide_.data(), across_.data(), width_, narrow_[row_ % held].data());
  if constexpr (Filter::kMakesBytes) ToBytes(width_ * 3, narrow_[row_ % held].data());
  ++row_;
  for (; next_ < static_cast<int64_t>(down_.size()); ++next_) {
    const ResizeTaps<Number>& taps = down_[next_];
    const auto count = static_cast<int64_t>(taps.weights.size());
    if (taps.first + count > row_) return;
    std::fill(done_.begin(), done_.end(), 0);
    for (int64_t tap = 0; tap < count; ++tap) {
      if (taps.weights[tap] == 0) continue;
      const Number* narrow = narrow_[(taps.first + tap) % held].data();
      if (tap < taps.fused) {
        Down(narrow, taps.weights[tap], width_ * 3, done_.data());
      } else {
        DownFused(narrow, taps.weights[tap], width_ * 3, done_.data());
      }
    }
    if constexpr (Filter::kMakesBytes) ToBytes(width_ * 3, done_.data());
    take_(done_.data());
  }
}

template class Resizer<Bilinear>;
template class Resizer<Bicubic>;
template class Resizer<BicubicBytes>;
template class Resizer<BilinearBytes>;

}  // namespace planwright
