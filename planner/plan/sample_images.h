// What a plan knows of a sample's images before any is read: bounds for buffers, and the images that FLOPs are counted
// for.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

struct SampleImages {
  int64_t max_rows = 0;          // image tokens that one sample can bring
  int64_t max_images = 0;        // images that one sample can bring
  std::vector<int64_t> patches;  // of the kinds of image, each as frequent as the others
  double mean_images = 0;        // a sample
  // false: the data is not described, and `patches` and `mean_images` are its largest instead
  bool known = false;
};

// `sequence`: tokens of a sample. mock: 0 to max_images images, each count as frequent, drawn from image_grids.
// webdataset: samples full of images of max_patches. recorded: samples full of images of max_image pixels.
SampleImages ImagesOfSample(const DataPlan& data, int64_t sequence);

}  // namespace planwright
