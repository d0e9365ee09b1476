// What is known about the images of a sample before any sample is read: upper bounds, from which buffers are sized, and
// the average, from which FLOPs are counted.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

inline constexpr int64_t kMostImageSizes = 32;  // of CountedImages::sizes

struct ImageSize {
  int64_t patches = 0;
  double share = 0;  // of all images; shares add up to 1
};

struct SampleImages {
  int64_t max_rows = 0;          // image tokens that one sample can bring
  int64_t max_images = 0;        // images that one sample can bring
  std::vector<ImageSize> sizes;  // empty: where no sample has an image
  double mean_images = 0;        // images of a sample on average
  // False: only the largest images are known, and `sizes` and `mean_images` are of samples full of those.
  bool known = false;

  // False of a damaged plan, and of data that says nothing of images.
  bool any() const { return known || !sizes.empty(); }

  double mean_patches() const;  // of an image
  // Patches of the image that a patch lies in, on average over patches: sum(p^2) / sum(p).
  double patches_around() const;
};

// What a sample brings to one encoder. `sequence`: tokens of a sample.
// mock: a sample has min_images to max_images images, each number equally frequent, with sizes drawn from image_grids.
// sources: what is counted (DataPlan::counted), each source by its weight; else a sample is full of images of
// max_patches patches. recorded, and sources whose images become squares: it is full of images of max_image pixels.
SampleImages ImagesOfSample(const DataPlan& data, const EncoderData& encoder, int64_t sequence);

// The same, with the most that a sample of the training or of an evaluation can bring.
SampleImages ImagesOfRun(const DataPlan& data, const EvaluationPlan& evaluation, const EncoderData& encoder,
                         int64_t sequence);

// True if the plan says that all images of the run have one size: those of mock data that are drawn from one size.
bool OneImageSize(const DataPlan& data);

// The token ids that stand for images: those of the encoders, or data.image_token where there is none.
std::vector<int64_t> ImageTokenIds(const DataPlan& data);

// The smallest vocabulary for mock data: an id for each kind of image, one for padding and one for text.
int64_t MockVocabulary(const DataPlan& data);

}  // namespace planwright
