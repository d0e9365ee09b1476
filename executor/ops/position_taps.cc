#include "executor/ops/position_taps.h"

#include <algorithm>
#include <cmath>

namespace planwright::executor {
namespace {

// Along one direction: a weighted sum of two neighbouring cells of the table.
struct AxisTap {
  int64_t low = 0, high = 0;
  double low_weight = 1, high_weight = 0;
};

// Cell `i` of a resize from `from` cells to `to`.
AxisTap ResizedTap(int64_t i, int64_t from, int64_t to) {
  const double center =
      std::max(0.0, (static_cast<double>(i) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5);
  const int64_t low = std::min(static_cast<int64_t>(center), from - 1);
  const double fraction = std::min(center - static_cast<double>(low), 1.0);
  return {low, std::min(low + 1, from - 1), 1 - fraction, fraction};
}

// The table of `side` cells at coordinate x, where 0 and side - 1 are the centres of the outer cells. A cell outside
// has weight 0.
AxisTap SampledTap(double x, int64_t side) {
  const double floor = std::floor(x);
  const auto low = static_cast<int64_t>(floor);
  const double fraction = x - floor;
  const auto inside = [&](int64_t cell) { return cell >= 0 && cell < side; };
  AxisTap tap = {low, low + 1, inside(low) ? 1 - fraction : 0, inside(low + 1) ? fraction : 0};
  // A cell outside must still be a valid index, as its row is read and multiplied by 0.
  tap.low = std::clamp<int64_t>(tap.low, 0, side - 1);
  tap.high = std::clamp<int64_t>(tap.high, 0, side - 1);
  return tap;
}

// The taps of a grid from those of its two directions.
void AppendProduct(const std::vector<AxisTap>& y, const std::vector<AxisTap>& x, int64_t side, PositionTaps& taps) {
  taps.row.reserve(taps.row.size() + 4 * y.size() * x.size());
  taps.weight.reserve(taps.weight.size() + 4 * y.size() * x.size());
  for (const AxisTap& row : y) {
    for (const AxisTap& column : x) {
      const auto add = [&](int64_t table_row, int64_t table_column, double weight) {
        taps.row.push_back(table_row * side + table_column);
        taps.weight.push_back(weight);
      };
      add(row.low, column.low, row.low_weight * column.low_weight);
      add(row.low, column.high, row.low_weight * column.high_weight);
      add(row.high, column.low, row.high_weight * column.low_weight);
      add(row.high, column.high, row.high_weight * column.high_weight);
    }
  }
}

// The first `count` cells of a resize from `from` cells to `to`.
std::vector<AxisTap> ResizedAxis(int64_t count, int64_t from, int64_t to) {
  std::vector<AxisTap> taps;
  for (int64_t i = 0; i < count; ++i) taps.push_back(ResizedTap(i, from, to));
  return taps;
}

// `count` samples at equal distances over [offset, offset + scale] of the table, both in parts of its side.
std::vector<AxisTap> SampledAxis(int64_t count, double offset, double scale, int64_t side) {
  std::vector<AxisTap> taps;
  for (int64_t i = 0; i < count; ++i) {
    const double along = count > 1 ? static_cast<double>(i) / static_cast<double>(count - 1) : 0;
    taps.push_back(SampledTap((offset + scale * along) * static_cast<double>(side - 1), side));
  }
  return taps;
}

// All cells of a resize from `side` cells to `count` with aligned corners. Fractions are exact quotients: a cell that
// lies on one of the table is that one.
std::vector<AxisTap> AlignedAxis(int64_t count, int64_t side) {
  std::vector<AxisTap> taps;
  const int64_t steps = std::max<int64_t>(count - 1, 1);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t along = i * (side - 1), low = along / steps;
    const double fraction = static_cast<double>(along % steps) / static_cast<double>(steps);
    taps.push_back({low, std::min(low + 1, side - 1), 1 - fraction, fraction});
  }
  return taps;
}

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

void AppendResizedTaps(int64_t side, int64_t rows, int64_t columns, int64_t hidden, PositionTaps& taps) {
  constexpr int64_t kLargestTensor = (int64_t{1} << 31) - 1;
  const int64_t m = std::max(rows, columns);
  if (rows == side && columns == side) {
    // A resize to the same size: all weights are exactly 1 and 0.
    AppendProduct(ResizedAxis(rows, side, side), ResizedAxis(columns, side, side), side, taps);
  } else if (hidden * m < CeilDivide(kLargestTensor, m)) {
    AppendProduct(ResizedAxis(rows, side, m), ResizedAxis(columns, side, m), side, taps);
  } else {
    AppendProduct(ResizedAxis(rows, CeilDivide(side * rows, m), rows),
                  ResizedAxis(columns, CeilDivide(side * columns, m), columns), side, taps);
  }
}

void AppendAlignedTaps(int64_t side, int64_t rows, int64_t columns, PositionTaps& taps) {
  AppendProduct(AlignedAxis(rows, side), AlignedAxis(columns, side), side, taps);
}

void AppendCroppedTaps(int64_t side, int64_t rows, int64_t columns, const CropDraws& draws, PositionTaps& taps) {
  if (rows == side && columns == side) return AppendResizedTaps(side, rows, columns, 1, taps);
  // The side of the window is at least sqrt(0.1) of the table's, before it is stretched by 3/4 to 4/3 in x and
  // inversely in y: the numbers of the published code.
  const double smallest = std::sqrt(0.1), widest = std::log(4.0 / 3.0);
  const double scale = smallest + draws.scale * (1 - smallest), aspect = std::exp((2 * draws.aspect - 1) * widest);
  const double scale_x = std::clamp(scale * aspect, 0.0, 1.0), scale_y = std::clamp(scale / aspect, 0.0, 1.0);
  AppendProduct(SampledAxis(rows, draws.y * (1 - scale_y), scale_y, side),
                SampledAxis(columns, draws.x * (1 - scale_x), scale_x, side), side, taps);
}

}  // namespace planwright::executor
