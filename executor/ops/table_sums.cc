#include "executor/ops/table_sums.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "executor/base/tensors.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

constexpr int64_t kTaps = 4;

}  // namespace

void KeepRowsOfPart(size_t first, const ImageSpan& span, PositionTaps& taps) {
  const auto keep = [&](auto& values) {
    const int64_t width = kTaps * span.columns;
    const auto begin = values.begin() + static_cast<int64_t>(first);
    values.erase(begin + (span.first_row + span.rows) * width, values.end());
    values.erase(begin, begin + span.first_row * width);
  };
  keep(taps.row);
  keep(taps.weight);
}

TableSums::TableSums(PositionTaps taps, const at::Tensor& like) {
  const auto patches = static_cast<int64_t>(taps.row.size()) / kTaps;
  // Copies: of one patch, contiguous() would be the vector itself, which ends here.
  rows_ = ToDevice(at::from_blob(taps.row.data(), {patches, kTaps}, at::kLong).t().clone(at::MemoryFormat::Contiguous),
                   like.device());
  const at::Tensor exact = at::from_blob(taps.weight.data(), {patches, kTaps}, at::kDouble)
                               .t()
                               .clone(at::MemoryFormat::Contiguous)
                               .unsqueeze(2);
  weights_ = ToDevice(exact.to(WideType(like)), like.device());
}

at::Tensor TableSums::Of(const at::Tensor& table) const {
  at::Tensor sum = at::zeros({rows_.size(1), table.size(1)}, table.options().dtype(weights_.scalar_type()));
  for (int64_t tap = 0; tap < kTaps; ++tap)
    sum += table.index_select(0, rows_[tap]).to(weights_.scalar_type()) * weights_[tap];
  return sum;
}

void TableSums::AddTransposed(const at::Tensor& d, const at::Tensor& d_table) const {
  at::Tensor sum = at::zeros(d_table.sizes(), d.options().dtype(weights_.scalar_type()));
  for (int64_t tap = 0; tap < kTaps; ++tap)
    sum.index_put_({rows_[tap]}, d.to(weights_.scalar_type()) * weights_[tap], /*accumulate=*/true);
  d_table.add_(sum);
}

}  // namespace planwright::executor::ops
