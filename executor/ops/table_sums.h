// Weighted sums of rows of a table of positions, four for each patch (position_taps.h): a sparse matrix times the
// table, and in the backward its transpose. Weights are found on the host in fp64; the sums are fp32 (fp64 for fp64).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>

#include "executor/ops/position_taps.h"
#include "executor/ops/vision_images.h"

namespace planwright::executor::ops {

// Keeps of the taps behind `first`, which are those of one whole image, the rows that the part has of it.
void KeepRowsOfPart(size_t first, const ImageSpan& span, PositionTaps& taps);

class TableSums {
 public:
  // The taps of P patches, on the device of `like` and in its wide dtype.
  TableSums(PositionTaps taps, const at::Tensor& like);

  // table [positions,h] -> [P,h], wide.
  at::Tensor Of(const at::Tensor& table) const;
  // Adds to d_table what d [P,h] gives to its rows. Where many patches share a row they are added in a fixed order, on
  // GPUs too.
  void AddTransposed(const at::Tensor& d, const at::Tensor& d_table) const;

 private:
  // Row t of each tensor holds tap t of every patch.
  at::Tensor rows_;     // int64 [4, P]
  at::Tensor weights_;  // [4, P, 1]
};

}  // namespace planwright::executor::ops
