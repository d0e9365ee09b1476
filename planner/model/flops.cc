#include "planner/model/flops.h"

#include <cmath>

namespace planwright {

int64_t HeadForwardFlops(const HybridLmModel& model) { return 2 * model.hidden * model.vocabulary; }

BlockFlops BlockForwardFlops(const RadioVitModel& model, const std::vector<int64_t>& patches) {
  // row: qkv, attention projection and MLP of one row (patch or class token)
  const int64_t h = model.hidden, row = 2 * h * 3 * h + 2 * h * h + 4 * h * model.ffn;
  double all = 0, linear = 0, mixing = 0;
  for (int64_t count : patches) {
    const double rows = static_cast<double>(count + model.class_tokens);
    all += static_cast<double>(count);
    linear += rows * static_cast<double>(row);
    // queries x keys and probabilities x values, over all pairs of rows of an image
    mixing += 4 * rows * rows * static_cast<double>(h);
  }
  if (all == 0) return {};
  return {std::llround((linear + mixing) / all), std::llround(mixing / all)};
}

int64_t EmbedderForwardFlops(const RadioVitModel& model) { return 2 * 3 * model.patch * model.patch * model.hidden; }

int64_t ProjectorForwardFlops(const RadioVitModel& model, int64_t output_width) {
  // one output row for each square of patches
  const int64_t merged = model.pixel_shuffle * model.pixel_shuffle, wide = model.hidden * merged;
  return 2 * model.projector_hidden * (wide + output_width) / merged;
}

}  // namespace planwright
