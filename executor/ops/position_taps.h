// The position embedding of an image as a sparse matrix: every patch is a weighted sum of four rows of the position
// table. Forward gathers, backward is the exact transpose. Computed on the host in double, whatever the run's
// precision. No torch.
#pragma once

#include <cstdint>
#include <vector>

namespace planwright::executor {

// Patch p (row-major in the image) = sum over t of weight[4 p + t] * table[row[4 p + t]].
struct PositionTaps {
  std::vector<int64_t> row;
  std::vector<double> weight;
};

// Four numbers in [0, 1): scale, aspect, offset x, offset y, in the order they are drawn.
struct CropDraws {
  double scale = 0, aspect = 0, x = 0, y = 0;
};

// Facts 3.9, evaluation mode: the side x side table resized to (m, m), m = max(rows, columns): bilinear, half-pixel
// centres, edges clamped, no antialias; then its top-left rows x columns window. A table of the image's own size is
// taken as it is. Where hidden * m * m >= 2^31 - 1 the table is first cropped to the image's aspect and resized
// straight to (rows, columns).
void AppendResizedTaps(int64_t side, int64_t rows, int64_t columns, int64_t hidden, PositionTaps& taps);

// Facts 3.9, training mode: a random window of the table, sampled with corners aligned and zeros outside.
void AppendCroppedTaps(int64_t side, int64_t rows, int64_t columns, const CropDraws& draws, PositionTaps& taps);

}  // namespace planwright::executor
