#include "planner/plan/sample_images.h"

#include <algorithm>
#include <set>

namespace planwright {
namespace {

// The fewest patches that an image of a shard is resized to.
int64_t LeastPatches(const DataPlan& data) {
  if (data.grid == "ceil") return data.min_patches;
  // This rule lets small images small where both limits are the same. Else a side is rounded down only if rounding it
  // up gives more than max_patches: at least half of these stay.
  if (data.min_patches >= data.max_patches) return 1;
  return std::min(data.min_patches, data.max_patches / 2);
}

}  // namespace

SampleImages ImagesOfSample(const DataPlan& data, const EncoderData& encoder, int64_t sequence) {
  SampleImages images;
  if (encoder.patch < 1 || encoder.pixel_shuffle < 1) return images;  // of a damaged plan
  const int64_t merged = encoder.merged();
  if (RowOf(data.kind).drawn) {
    for (const auto& grid : data.image_grids) images.patches.push_back(grid.size() == 2 ? grid[0] * grid[1] : 0);
    const int64_t largest =
        images.patches.empty() ? 0 : *std::max_element(images.patches.begin(), images.patches.end());
    images.max_images = data.max_images;
    images.max_rows = std::min(sequence, data.max_images * (largest / merged));
    images.mean_images = static_cast<double>(data.min_images + data.max_images) / 2;
    images.known = true;
    return images;
  }
  const int64_t side = encoder.side();
  const bool resized = RowOf(data.kind).resized;
  const int64_t largest = std::max(merged, std::min(resized ? data.max_patches : side * side, sequence * merged));
  images.patches = {largest};
  images.max_rows = sequence;
  // The most images fit if each is as small as can be: one token at least, and not fewer patches than the reader
  // resizes it to.
  images.max_images =
      std::min(sequence, sequence * merged / std::max<int64_t>(merged, resized ? LeastPatches(data) : 1));
  images.mean_images = static_cast<double>(sequence * merged) / static_cast<double>(largest);
  return images;
}

bool OneImageSize(const DataPlan& data) {
  return RowOf(data.kind).drawn && std::set(data.image_grids.begin(), data.image_grids.end()).size() == 1;
}

std::vector<int64_t> ImageTokenIds(const DataPlan& data) {
  std::vector<int64_t> tokens;
  for (const EncoderData& encoder : data.encoders) tokens.push_back(encoder.token);
  if (tokens.empty() && data.image_token >= 0) tokens.push_back(data.image_token);
  return tokens;
}

int64_t MockVocabulary(const DataPlan& data) { return static_cast<int64_t>(ImageTokenIds(data).size()) + 2; }

}  // namespace planwright
