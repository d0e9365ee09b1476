// The position embedding of an image as a sparse matrix: the embedding of each patch is a weighted sum of four rows of
// the position table (docs/model/vision_encoder.md#position-embedding). The forward multiplies with this matrix, the
// backward with its transpose. Computed on the host in fp64, for every precision of the run. Does not use LibTorch.
#pragma once

#include <cstdint>
#include <vector>

namespace planwright::executor {

// The embedding of patch p (counted row by row) is the sum over t = 0..3 of weight[4 p + t] * table[row[4 p + t]].
struct PositionTaps {
  std::vector<int64_t> row;
  std::vector<double> weight;
};

// Four numbers in [0, 1), in the order in which they are drawn.
struct CropDraws {
  double scale = 0, aspect = 0, x = 0, y = 0;
};

// Without random crops. The side x side table is resized to (m, m), m = max(rows, columns): bilinear, half-pixel
// centres, edges clamped, no antialias. Then its top-left rows x columns window is taken. If the image has the size of
// the table, the table is taken as it is. If hidden * m * m >= 2^31 - 1 (the published code's limit for a tensor), the
// table is first cropped to the image's aspect and then resized to (rows, columns) directly. Appends the taps of one
// image.
void AppendResizedTaps(int64_t side, int64_t rows, int64_t columns, int64_t hidden, PositionTaps& taps);

// With random crops (training): a random window of the table, sampled with aligned corners and zeros outside. An image
// of the table's size takes the table as it is.
void AppendCroppedTaps(int64_t side, int64_t rows, int64_t columns, const CropDraws& draws, PositionTaps& taps);

// The side x side table is resized to (rows, columns): bilinear, with aligned corners, so that the outer positions of
// the image are those of the table. Appends the taps of one image.
void AppendAlignedTaps(int64_t side, int64_t rows, int64_t columns, PositionTaps& taps);

}  // namespace planwright::executor
