// The loops over rows of pixels that take the time of a resize.
#pragma once

#include <cstdint>

#include "planner/data/pictures/resizer.h"

namespace planwright {

// Mean and deviation of red, green and blue over the images that CLIP was trained on.
inline constexpr double kClipMean[3] = {0.48145466, 0.4578275, 0.40821073};
inline constexpr double kClipDeviation[3] = {0.26862954, 0.26130258, 0.27577711};

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

// (x / 255 - mean) / deviation of `width` pixels, with CLIP's mean and deviation of each color; red to `to`, green to
// to + color, blue behind it. Floats: in the arithmetic of torchvision, fp32, with the constants multiplied by 255.
void Normalise(const float* row, int64_t width, int64_t color, double* to);
void Normalise(const double* row, int64_t width, int64_t color, double* to);

}  // namespace planwright
