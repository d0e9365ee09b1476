#include "planner/data/pictures/patches.h"

#include <iterator>

#include "planner/data/pictures/row_loops.h"

namespace planwright {

template <typename Filter>
PatchCutter<Filter>::PatchCutter(const PatchGrid& grid, int64_t patch, const PixelNorm& norm)
    : patch_(patch), norm_(norm), image_{grid.rows, grid.cols, {}}, band_(3 * patch * grid.cols * patch) {
  image_.patches.reserve(grid.rows * grid.cols * 3 * patch * patch);
}

template <typename Filter>
void PatchCutter<Filter>::Add(const typename Filter::Number* row) {
  const int64_t width = image_.cols * patch_, color = patch_ * width;
  if (std::ssize(image_.patches) == image_.rows * patch_ * 3 * width) return;  // below the last row of patches
  if constexpr (Filter::kMakesBytes) {
    bytes_.assign(row, row + 3 * width);
    Normalise(bytes_.data(), width, color, norm_, &band_[rows_ * width]);
  } else {
    Normalise(row, width, color, norm_, &band_[rows_ * width]);
  }
  if (++rows_ < patch_) return;
  rows_ = 0;
  for (int64_t left = 0; left < width; left += patch_) {
    for (int64_t line = left; line < 3 * color; line += width)
      image_.patches.insert(image_.patches.end(), &band_[line], &band_[line] + patch_);
  }
}

template class PatchCutter<Bilinear>;
template class PatchCutter<Bicubic>;
template class PatchCutter<BicubicBytes>;
template class PatchCutter<BilinearBytes>;

template <typename Filter>
absl::StatusOr<Image> PatchesOfPicture(std::string_view file, const PatchGrid& grid, int64_t patch, int orientation,
                                       const PixelNorm& norm, int64_t square) {
  PatchCutter<Filter> cutter(grid, patch, norm);
  const int64_t height = square > 0 ? square : grid.rows * patch, width = square > 0 ? square : grid.cols * patch;
  const absl::Status status = DecodePictureRows<Filter>(
      file, height, width, [&](const typename Filter::Number* row) { cutter.Add(row); }, orientation);
  if (!status.ok()) return status;
  return cutter.Take();
}

template absl::StatusOr<Image> PatchesOfPicture<Bilinear>(std::string_view, const PatchGrid&, int64_t, int,
                                                          const PixelNorm&, int64_t);
template absl::StatusOr<Image> PatchesOfPicture<Bicubic>(std::string_view, const PatchGrid&, int64_t, int,
                                                         const PixelNorm&, int64_t);
template absl::StatusOr<Image> PatchesOfPicture<BicubicBytes>(std::string_view, const PatchGrid&, int64_t, int,
                                                              const PixelNorm&, int64_t);
template absl::StatusOr<Image> PatchesOfPicture<BilinearBytes>(std::string_view, const PatchGrid&, int64_t, int,
                                                               const PixelNorm&, int64_t);

}  // namespace planwright
