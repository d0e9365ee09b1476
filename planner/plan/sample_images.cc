#include "planner/plan/sample_images.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace planwright {
namespace {

// The fewest patches that an image of a shard is resized to.
int64_t LeastPatches(const DataPlan& data, const EncoderData& encoder) {
  if (data.grid == "square") return encoder.side() * encoder.side();
  // Both sides are rounded down, each to half of it at least.
  if (data.grid == "smart_resize") return std::min(data.min_patches, data.max_patches / 4);
  // Where both limits are the same, one rule lets small images small. Else a side is rounded down only if rounding it
  // up gives more than max_patches: at least half of these stay.
  if (data.grid == "round_half_even" && data.min_patches >= data.max_patches) return 1;
  return std::min(data.min_patches, data.max_patches / 2);
}

// What the index counted. Nothing if it counted for other sources.
std::optional<SampleImages> CountedFor(const DataPlan& data, const EncoderData& encoder, int64_t sequence) {
  double weights = 0, images = 0;
  SampleImages counted{.known = true};
  for (const SourcePlan& source : data.sources) {
    const auto of_source = [&](const CountedImages& one) {
      return one.encoder == encoder.module && one.source == source.name;
    };
    const auto one = std::find_if(data.counted.images.begin(), data.counted.images.end(), of_source);
    if (one == data.counted.images.end() || one->samples < 1 || one->sizes.empty() != (one->images == 0))
      return std::nullopt;
    const auto weight = static_cast<double>(source.weight);
    const double of_sample = static_cast<double>(one->images) / static_cast<double>(one->samples);
    weights += weight, images += weight * of_sample;
    counted.max_images = std::max(counted.max_images, one->max_images);
    counted.max_rows = std::max(counted.max_rows, encoder.TokensOf(one->max_patches));
    for (const int64_t patches : one->sizes)
      counted.sizes.push_back({patches, weight * of_sample / static_cast<double>(one->sizes.size())});
  }
  if (!(weights > 0)) return std::nullopt;
  counted.max_rows = std::min(counted.max_rows, sequence);
  counted.mean_images = images / weights;
  for (ImageSize& size : counted.sizes) size.share /= images;
  return counted;
}

}  // namespace

double SampleImages::mean_patches() const {
  double mean = 0;
  for (const ImageSize& size : sizes) mean += static_cast<double>(size.patches) * size.share;
  return mean;
}

double SampleImages::patches_around() const {
  double all = 0, squares = 0;
  for (const ImageSize& size : sizes) {
    const auto patches = static_cast<double>(size.patches);
    all += patches * size.share, squares += patches * patches * size.share;
  }
  return all > 0 ? squares / all : 0;
}

SampleImages ImagesOfRun(const DataPlan& data, const EvaluationPlan& evaluation, const EncoderData& encoder,
                         int64_t sequence) {
  SampleImages images = ImagesOfSample(data, encoder, sequence);
  if (!data.counted.known()) return images;  // it is full of images: no sample has more
  for (const EvaluationSet& set : evaluation.sets) {
    const EncoderData* same = set.data.FindEncoder(encoder.module);
    if (!same) continue;
    const SampleImages evaluated = ImagesOfSample(set.data, *same, sequence);
    images.max_rows = std::max(images.max_rows, evaluated.max_rows);
    images.max_images = std::max(images.max_images, evaluated.max_images);
  }
  return images;
}

SampleImages ImagesOfSample(const DataPlan& data, const EncoderData& encoder, int64_t sequence) {
  SampleImages images;
  if (encoder.patch < 1 || encoder.pixel_shuffle < 1) return images;  // of a damaged plan
  const int64_t merged = encoder.merged();
  if (RowOf(data.kind).drawn) {
    int64_t largest = 0;
    for (const auto& grid : data.image_grids) {
      images.sizes.push_back(
          {grid.size() == 2 ? grid[0] * grid[1] : 0, 1.0 / static_cast<double>(data.image_grids.size())});
      largest = std::max(largest, images.sizes.back().patches);
    }
    images.max_images = data.max_images;
    images.max_rows = std::min(sequence, data.max_images * (largest / merged));
    images.mean_images = static_cast<double>(data.min_images + data.max_images) / 2;
    images.known = !images.sizes.empty();
    return images;
  }
  if (data.counted.known()) {
    if (std::optional<SampleImages> counted = CountedFor(data, encoder, sequence)) return *std::move(counted);
  }
  const int64_t side = encoder.side();
  const bool resized = RowOf(data.kind).resized, square = data.grid == "square";
  const int64_t largest =
      std::max(merged, std::min(resized && !square ? data.max_patches : side * side, sequence * merged));
  images.sizes = {{largest, 1}};
  images.max_rows = sequence;
  // The most images fit if each is as small as can be: one token at least, and not fewer patches than the reader
  // resizes it to.
  images.max_images =
      std::min(sequence, sequence * merged / std::max<int64_t>(merged, resized ? LeastPatches(data, encoder) : 1));
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
