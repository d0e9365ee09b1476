// Each pixel is a vector of four numbers along a row, and down the columns all numbers are alike. The compiler makes
// vectors of both, for three kinds of processors. It must not fuse products on its own (CMakeLists.txt), so the bits
// are the same on each.
#include "planner/data/pictures/row_loops.h"

#include <cmath>
#include <cstring>
#include <type_traits>

// The processor decides when the program starts. clang 14 knows these processors only by other names.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define PLANWRIGHT_EVERY_WIDTH __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define PLANWRIGHT_INLINE __attribute__((always_inline)) inline
#else
#define PLANWRIGHT_EVERY_WIDTH
#define PLANWRIGHT_INLINE inline
#endif

namespace planwright {
namespace {

template <typename Number>
struct QuadOf {
  typedef Number Type __attribute__((vector_size(4 * sizeof(Number))));  // NOLINT: `using` takes no such attribute here
};
template <typename Number>
using Quad = typename QuadOf<Number>::Type;

template <typename Value, typename Number>
PLANWRIGHT_INLINE void WidenAny(const Value* row, int64_t pixels, Number* wide) {
  for (int64_t x = 0; x < pixels; ++x) {
    wide[4 * x] = static_cast<Number>(row[3 * x]);
    wide[4 * x + 1] = static_cast<Number>(row[3 * x + 1]);
    wide[4 * x + 2] = static_cast<Number>(row[3 * x + 2]);
    wide[4 * x + 3] = 0;
  }
}

template <typename Number>
PLANWRIGHT_INLINE void AcrossAny(const Number* wide, const ResizeTaps<Number>* all, int64_t width, Number* narrow) {
  for (int64_t x = 0; x < width; ++x) {
    const ResizeTaps<Number>& taps = all[x];
    const auto count = static_cast<int64_t>(taps.weights.size());
    const Number* weights = taps.weights.data();
    const Number* source = wide + taps.first * 4;
    Quad<Number> sum = {}, pixel;
    int64_t tap = 0;
    for (; tap < taps.fused; ++tap) {
      std::memcpy(&pixel, source + 4 * tap, sizeof pixel);
      sum += weights[tap] * pixel;
    }
    // The product of two floats is exact in fp64. Bilinear has none that is fused.
    if constexpr (std::is_same_v<Number, float>) {
      for (; tap < count; ++tap) {
        std::memcpy(&pixel, source + 4 * tap, sizeof pixel);
        const Quad<double> exact = static_cast<double>(weights[tap]) * __builtin_convertvector(pixel, Quad<double>);
        sum = __builtin_convertvector(__builtin_convertvector(sum, Quad<double>) + exact, Quad<float>);
      }
    }
    // The next pixel overwrites the fourth number.
    std::memcpy(narrow + 3 * x, &sum, sizeof sum);
  }
}

template <typename Number>
PLANWRIGHT_INLINE void DownAny(const Number* __restrict narrow, Number weight, int64_t count, Number* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] += weight * narrow[i];
}

}  // namespace

PLANWRIGHT_EVERY_WIDTH void Widen(const uint8_t* row, int64_t pixels, float* wide) { WidenAny(row, pixels, wide); }
PLANWRIGHT_EVERY_WIDTH void Widen(const uint8_t* row, int64_t pixels, double* wide) { WidenAny(row, pixels, wide); }
PLANWRIGHT_EVERY_WIDTH void Widen(const float* row, int64_t pixels, float* wide) { WidenAny(row, pixels, wide); }
PLANWRIGHT_EVERY_WIDTH void Widen(const double* row, int64_t pixels, double* wide) { WidenAny(row, pixels, wide); }

PLANWRIGHT_EVERY_WIDTH void Across(const float* wide, const ResizeTaps<float>* taps, int64_t width, float* narrow) {
  AcrossAny(wide, taps, width, narrow);
}
PLANWRIGHT_EVERY_WIDTH void Across(const double* wide, const ResizeTaps<double>* taps, int64_t width, double* narrow) {
  AcrossAny(wide, taps, width, narrow);
}

PLANWRIGHT_EVERY_WIDTH void Down(const float* narrow, float weight, int64_t count, float* to) {
  DownAny(narrow, weight, count, to);
}
PLANWRIGHT_EVERY_WIDTH void Down(const double* narrow, double weight, int64_t count, double* to) {
  DownAny(narrow, weight, count, to);
}

PLANWRIGHT_EVERY_WIDTH void DownFused(const float* __restrict narrow, float weight, int64_t count,
                                      float* __restrict to) {
  const double wide = weight;
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(to[i] + wide * narrow[i]);
}
void DownFused(const double* narrow, double weight, int64_t count, double* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = std::fma(weight, narrow[i], to[i]);
}

PLANWRIGHT_EVERY_WIDTH void Normalise(const float* __restrict row, int64_t width, int64_t color, const PixelNorm& norm,
                                      double* __restrict to) {
  for (int64_t c = 0; c < 3; ++c) {
    const float mean = static_cast<float>(norm.mean[c]) * 255, deviation = static_cast<float>(norm.deviation[c]) * 255;
    for (int64_t x = 0; x < width; ++x) to[c * color + x] = (row[3 * x + c] - mean) / deviation;
  }
}
PLANWRIGHT_EVERY_WIDTH void Normalise(const double* __restrict row, int64_t width, int64_t color, const PixelNorm& norm,
                                      double* __restrict to) {
  for (int64_t c = 0; c < 3; ++c) {
    const double mean = norm.mean[c], deviation = norm.deviation[c];
    for (int64_t x = 0; x < width; ++x) to[c * color + x] = (row[3 * x + c] / 255 - mean) / deviation;
  }
}

}  // namespace planwright
