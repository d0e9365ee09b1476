// What is known about the images of a sample before any sample is read: upper bounds, from which buffers are sized, and
// the average, from which FLOPs are counted.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

struct SampleImages {
  int64_t max_rows = 0;          // image tokens that one sample can bring
  int64_t max_images = 0;        // images that one sample can bring
  std::vector<int64_t> patches;  // patches of each kind of image; all kinds are equally frequent
  double mean_images = 0;        // images of a sample on average
  // False: only the largest images are known, and `patches` and `mean_images` are of samples full of those.
  bool known = false;
};

// `sequence`: tokens of a sample. Without an encoder, everything is 0.
// mock: a sample has 0 to max_images images, each number equally frequent, with sizes drawn from image_grids.
// webdataset: a sample is full of images of max_patches patches. recorded: it is full of images of max_image pixels.
SampleImages ImagesOfSample(const DataPlan& data, int64_t sequence);

}  // namespace planwright
