#include "planner/data/pictures/patch_grid.h"

#include <algorithm>
#include <cmath>

namespace planwright {
namespace {

// `side` rounded to a multiple of `factor`: up if side * other stays within max_patches, else down, but to one factor
// at least.
int64_t ToMultiple(int64_t side, int64_t other, int64_t factor, int64_t max_patches) {
  if (side % factor != 0) {
    const int64_t up = (side / factor + 1) * factor;
    side = up * other <= max_patches ? up : side / factor * factor;
  }
  return std::max(side, factor);
}

// Patches that cover a side.
int64_t Covering(int64_t side, int64_t patch, GridRule rule) {
  const int64_t patches = (side + patch - 1) / patch;
  // n + 0.5 of an exact multiple is as near to n as to n + 1, and goes to the even one.
  return rule == GridRule::kRoundHalfEven && side % patch == 0 ? patches + patches % 2 : patches;
}

// Python's round(side / token): halves go to the even number.
int64_t RoundedTokens(int64_t side, int64_t token) {
  const int64_t below = side / token, twice = 2 * (side % token);
  return below + (twice > token || (twice == token && below % 2 == 1) ? 1 : 0);
}

// A side of one image token is never made shorter, so a thin image can still have too many patches: its longer side
// then is. transformers lets it have them; here memory is planned for max_patches.
PatchGrid Within(PatchGrid grid, int64_t max_patches, int64_t pixel_shuffle) {
  const auto shorten = [&](int64_t& side, int64_t other) {
    if (side * other > max_patches) side = std::max(max_patches / other / pixel_shuffle * pixel_shuffle, pixel_shuffle);
  };
  const bool tall = grid.rows > grid.cols;
  int64_t &longer = tall ? grid.rows : grid.cols, &shorter = tall ? grid.cols : grid.rows;
  shorten(longer, shorter);
  shorten(shorter, longer);  // a square that was made larger, to more than there may be
  return grid;
}

// Each number is found in the order in which transformers finds it, so that it is rounded alike.
PatchGrid SmartResize(int64_t height, int64_t width, int64_t patch, int64_t min_patches, int64_t max_patches,
                      int64_t pixel_shuffle) {
  const auto token = static_cast<double>(patch * pixel_shuffle), pixels = static_cast<double>(height * width);
  const PatchGrid covering = CoveringGrid(height, width, patch, pixel_shuffle, GridRule::kSmartResize);
  int64_t rows = covering.rows / pixel_shuffle, cols = covering.cols / pixel_shuffle;
  const int64_t patches = covering.rows * covering.cols;
  if (patches > max_patches) {
    const double by = std::sqrt(pixels / static_cast<double>(max_patches * patch * patch));
    const auto shrunk = [&](int64_t side) {
      return std::max<int64_t>(static_cast<int64_t>(std::floor(static_cast<double>(side) / by / token)), 1);
    };
    rows = shrunk(height), cols = shrunk(width);
  } else if (patches < min_patches) {
    const double by = std::sqrt(static_cast<double>(min_patches * patch * patch) / pixels);
    const auto grown = [&](int64_t side) {
      return static_cast<int64_t>(std::ceil(static_cast<double>(side) * by / token));
    };
    rows = grown(height), cols = grown(width);
  }
  return Within({rows * pixel_shuffle, cols * pixel_shuffle}, max_patches, pixel_shuffle);
}

}  // namespace

PatchGrid CoveringGrid(int64_t height, int64_t width, int64_t patch, int64_t pixel_shuffle, GridRule rule) {
  if (rule != GridRule::kSmartResize) return {Covering(height, patch, rule), Covering(width, patch, rule)};
  const int64_t token = patch * pixel_shuffle;
  return {RoundedTokens(height, token) * pixel_shuffle, RoundedTokens(width, token) * pixel_shuffle};
}

PatchGrid DynamicResolution(int64_t height, int64_t width, int64_t patch, int64_t min_patches, int64_t max_patches,
                            int64_t pixel_shuffle, GridRule rule) {
  if (rule == GridRule::kSmartResize) return SmartResize(height, width, patch, min_patches, max_patches, pixel_shuffle);
  // Patches that cover the image, shrunk to the maximum and then grown to the minimum; rounding as in the published
  // code.
  auto [rows, cols] = CoveringGrid(height, width, patch, pixel_shuffle, rule);
  // The square root: both sides shrink by it, so the number of patches shrinks by its square.
  const double shrink = std::min(std::sqrt(static_cast<double>(max_patches) / (rows * cols)), 1.0);
  // Of a thin image nothing may stay of a side; transformers divides by it.
  rows = std::max<int64_t>(static_cast<int64_t>(std::floor(shrink * rows)), 1);
  cols = std::max<int64_t>(static_cast<int64_t>(std::floor(shrink * cols)), 1);
  const bool half_even = rule == GridRule::kRoundHalfEven;
  if (rows * cols < min_patches && !(half_even && min_patches == max_patches)) {
    const double grow = std::sqrt(static_cast<double>(min_patches) / (rows * cols));
    rows = static_cast<int64_t>(std::ceil(grow * rows));
    cols = static_cast<int64_t>(std::ceil(grow * cols));
  }
  rows = ToMultiple(rows, cols, pixel_shuffle, max_patches);
  cols = ToMultiple(cols, rows, pixel_shuffle, max_patches);
  return Within({rows, cols}, max_patches, pixel_shuffle);
}

}  // namespace planwright
