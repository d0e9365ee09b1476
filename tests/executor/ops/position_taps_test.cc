// Position taps of huge images, which the tests of handlers are too small to reach.
#include "executor/ops/position_taps.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace planwright::executor::position_taps_test {
namespace {

constexpr int64_t kSide = 6;
constexpr int64_t kHidden = (int64_t{1} << 31) / 81;  // kHidden * 9 * 9 is below 2^31 - 1, kHidden * 10 * 10 above

// The rows of a table with one column.
at::Tensor Apply(const PositionTaps& taps, const at::Tensor& image) {
  const at::Tensor table = image.reshape({-1});
  at::Tensor out = at::zeros({static_cast<int64_t>(taps.row.size()) / 4}, at::kDouble);
  for (size_t i = 0; i < taps.row.size(); ++i) out[i / 4] += taps.weight[i] * table[taps.row[i]];
  return out;
}

double Gap(const at::Tensor& a, const at::Tensor& b) { return (a - b.reshape(a.sizes())).abs().max().item<double>(); }

TEST(PositionTaps, LargeImagesResizeToASquare) {
  const at::Tensor table = at::rand({1, 1, kSide, kSide}, at::kDouble);
  PositionTaps taps;
  AppendResizedTaps(kSide, 9, 4, kHidden, taps);
  EXPECT_LT(Gap(Apply(taps, table), at::upsample_bilinear2d(table, {9, 9}, false).narrow(3, 0, 4)), 1e-13);
}

TEST(PositionTaps, HugeImagesResizeACropOfTheirAspect) {
  const at::Tensor table = at::rand({1, 1, kSide, kSide}, at::kDouble);
  PositionTaps tall, wide;
  AppendResizedTaps(kSide, 10, 4, kHidden, tall);
  AppendResizedTaps(kSide, 3, 10, kHidden, wide);
  // ceil(6 * 4 / 10)
  EXPECT_LT(Gap(Apply(tall, table), at::upsample_bilinear2d(table.narrow(3, 0, 3), {10, 4}, false)), 1e-13);
  // ceil(6 * 3 / 10)
  EXPECT_LT(Gap(Apply(wide, table), at::upsample_bilinear2d(table.narrow(2, 0, 2), {3, 10}, false)), 1e-13);
}

}  // namespace
}  // namespace planwright::executor::position_taps_test
