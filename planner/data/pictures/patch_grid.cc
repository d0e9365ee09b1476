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

}  // namespace

PatchGrid CoveringGrid(int64_t height, int64_t width, int64_t patch, GridRule rule) {
  return {Covering(height, patch, rule), Covering(width, patch, rule)};
}

PatchGrid DynamicResolution(int64_t height, int64_t width, int64_t patch, int64_t min_patches, int64_t max_patches,
                            int64_t pixel_shuffle, GridRule rule) {
  // Patches that cover the image, shrunk to the maximum and then grown to the minimum; rounding as in the published
  // code.
  auto [rows, cols] = CoveringGrid(height, width, patch, rule);
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
  // A side of one factor is never rounded down further, so a thin image can still have too many patches. transformers
  // lets it have them; here memory is planned for max_patches.
  int64_t& longer = rows > cols ? rows : cols;
  const int64_t shorter = std::min(rows, cols);
  if (rows * cols > max_patches)
    longer = std::max(max_patches / shorter / pixel_shuffle * pixel_shuffle, pixel_shuffle);
  return PatchGrid{rows, cols};
}

}  // namespace planwright
