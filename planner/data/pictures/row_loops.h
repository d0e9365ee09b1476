// The loops over rows of pixels that take the time of a resize.
#pragma once

#include <cstdint>

#include "planner/data/pictures/resizer.h"
#include "planner/plan/pixel_norm.h"

namespace planwright {

// Pixels of three numbers to pixels of four, the last of which is 0. `pixels` is at least 1.
void Widen(const uint8_t* row, int64_t pixels, float* wide);
void Widen(const uint8_t* row, int64_t pixels, double* wide);
void Widen(const float* row, int64_t pixels, float* wide);
void Widen(const double* row, int64_t pixels, double* wide);

// narrow[x] = sum over taps[x] of weight * wide pixel, in the order of the taps. `narrow` has three numbers for each of
// `width` pixels, and one more.
void Across(const float* wide, const ResizeTaps<float>* taps, int64_t width, float* narrow);
void Across(const double* wide, const ResizeTaps<double>* taps, int64_t width, double* narrow);

// to += weight * narrow, for `count` numbers. Fused: the product is not rounded before it is added.
void Down(const float* narrow, float weight, int64_t count, float* to);
void Down(const double* narrow, double weight, int64_t count, double* to);
void DownFused(const float* narrow, float weight, int64_t count, float* to);
void DownFused(const double* narrow, double weight, int64_t count, double* to);

// (x / 255 - mean) / deviation of `width` pixels; red to `to`, green to to + color, blue behind it. Floats: in the
// arithmetic of torchvision, fp32, with the constants multiplied by 255.
void Normalise(const float* row, int64_t width, int64_t color, const PixelNorm& norm, double* to);
void Normalise(const double* row, int64_t width, int64_t color, const PixelNorm& norm, double* to);

}  // namespace planwright
