// Weight gradients of experts: 49,152 rows of 64 experts, both matrices, both forms.
#include "executor/kernels/outer_products.h"

#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "executor/ops/fast/cuda_operands.h"
#include "tests/gpu/kernels/kernel_case.h"

namespace planwright::executor {
namespace {

constexpr int64_t kRows = 49152, kExperts = 64, kFfn = 1856, kHidden = 2688;

// All experts have equally many rows.
at::Tensor EvenEnds() { return at::full({kExperts}, kRows / kExperts, at::kLong).cumsum(0).to(at::kCUDA, at::kInt); }

// Of rows from several ranks: lengths differ by up to 97, and few are multiples of 8.
at::Tensor EndsInParts(int64_t parts, int64_t experts) {
  const int64_t all = parts * experts;
  std::vector<int64_t> ends(static_cast<size_t>(all));
  for (int64_t i = 0; i < all; ++i) ends[static_cast<size_t>(i)] = (i + 1) * kRows / all + (i + 1) % all * 37 % 97;
  return at::tensor(ends, at::kLong).view({parts, experts}).to(at::kCUDA, at::kInt);
}

// The largest expert has 2.5 times the mean, the smallest a sixth of it; not in order.
at::Tensor SkewedEnds() {
  std::vector<int64_t> lengths(kExperts);
  int64_t rows = 0;
  for (int64_t e = 0; e < kExperts; ++e) {
    const int64_t rank = e * 29 % kExperts;
    rows += lengths[e] = rank == 0 ? 1920 : 96 + (kExperts - rank) * 20;
  }
  // The rest goes to all but the largest.
  for (int64_t e = 1; e < kExperts; ++e)
    lengths[e] += (kRows - rows) * e / (kExperts - 1) - (kRows - rows) * (e - 1) / (kExperts - 1);
  return at::tensor(lengths, at::kLong).cumsum(0).to(at::kCUDA, at::kInt);
}

}  // namespace

std::vector<KernelCase> OuterProductCases() {
  const at::TensorOptions gpu(at::kCUDA);
  // The cases share them: the sums alone are 1.3 GB.
  const at::Tensor ffn = at::randn({kRows, kFfn}, gpu.dtype(at::kBFloat16)),
                   hidden = at::randn({kRows, kHidden}, gpu.dtype(at::kBFloat16)),
                   sums = at::zeros({kExperts, kFfn, kHidden}, gpu.dtype(at::kFloat)), even = EvenEnds();
  const auto one = [&](const char* name, auto* launch, const at::Tensor& a, const at::Tensor& b, const at::Tensor& ends,
                       double known_ms, bool writes = false) {
    const auto run = [=] {
      const ops::OuterProducts task = {.sums = ops::Elements<float>(sums),
                                       .a = ops::Elements<__nv_bfloat16>(a),
                                       .b = ops::Elements<__nv_bfloat16>(b),
                                       .ends = ops::Elements<int>(ends),
                                       .parts = ends.dim() == 2 ? ends.size(0) : 1,
                                       .runs = ends.size(-1),
                                       .rows = kRows,
                                       .inner = a.size(1),
                                       .width = b.size(1),
                                       .writes = writes};
      C10_CUDA_CHECK(launch(task, ops::CurrentStream()));
      C10_CUDA_KERNEL_LAUNCH_CHECK();
    };
    const double elements = static_cast<double>(ends.size(-1) * kFfn * kHidden);
    return KernelCase{.name = name,
                      .bytes = 2.0 * kRows * (kFfn + kHidden) + (writes ? 1 : 2) * sizeof(float) * elements,
                      .flops = 2.0 * kRows * kFfn * kHidden,
                      .known_ms = known_ms,
                      .run = run};
  };
  const auto hopper = ops::LaunchAddOuterProductsOfRuns, simple = ops::LaunchAddOuterProductsOfRunsSimple;
  constexpr double kOneByOne = 0.81;  // a product for each of 32 experts with as many rows in all, on two streams
  return {one("outer products, up", hopper, ffn, hidden, even, kOneByOne),
          one("outer products, down", hopper, hidden, ffn, even, kOneByOne),
          one("outer products, up, written", hopper, ffn, hidden, even, 0, /*writes=*/true),
          one("outer products, up, skewed", hopper, ffn, hidden, SkewedEnds(), 0),
          one("outer products, up, odd", hopper, ffn, hidden, EndsInParts(1, 64), 0),
          one("outer products, up, of 2 sources", hopper, ffn, hidden, EndsInParts(2, 64), 0),
          one("outer products, up, of 4 sources", hopper, ffn, hidden, EndsInParts(4, 32), 0),
          one("outer products, up, simple form", simple, ffn, hidden, even, 0),
          one("outer products, down, simple form", simple, hidden, ffn, even, 0)};
}

}  // namespace planwright::executor
