// Products of experts' rows with their matrices: 49,152 rows of 64 experts, forward (up, down) and backward (of act, of
// x), on Hopper alone; and of rows that came from several ranks.
#include "executor/kernels/run_products.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>

#include "executor/ops/fast/cuda_operands.h"
#include "tests/gpu/kernels/kernel_case.h"

namespace planwright::executor {

std::vector<KernelCase> RunProductCases() {
  constexpr int64_t kRows = 49152, kExperts = 64, kFfn = 1856, kHidden = 2688;
  const at::TensorOptions narrow = at::TensorOptions(at::kCUDA).dtype(at::kBFloat16);
  const at::Tensor ffn = at::randn({kRows, kFfn}, narrow), hidden = at::randn({kRows, kHidden}, narrow),
                   matrices = at::randn({kExperts, kFfn, kHidden}, narrow).mul_(0.02),
                   out = at::empty({kRows, kHidden}, narrow);
  // Experts, or their parts, differ by at most 97 rows from the mean, and fill no tiles.
  const auto ends_of = [&](int64_t all) {
    std::vector<int64_t> ends(static_cast<size_t>(all));
    for (int64_t i = 0; i < all; ++i) ends[static_cast<size_t>(i)] = (i + 1) * kRows / all + (i + 1) % all * 37 % 97;
    return at::tensor(ends, at::kLong).to(at::kCUDA, at::kInt);
  };
  const auto one = [&](const char* name, const at::Tensor& x, int64_t width, bool transposed, double known_ms,
                       int64_t experts = 64, int64_t parts = 1) {
    const at::Tensor on_gpu = ends_of(experts * parts);
    const int64_t inner = x.size(1);
    const double elements = static_cast<double>(experts * kFfn * kHidden);
    return KernelCase{.name = name,
                      .bytes = 2.0 * (kRows * (kFfn + kHidden) + elements),
                      .flops = 2.0 * kRows * kFfn * kHidden,
                      .known_ms = known_ms,
                      .run = [=] {
                        C10_CUDA_CHECK(ops::LaunchProductsOfRuns({.out = ops::Elements<__nv_bfloat16>(out),
                                                                  .x = ops::Elements<__nv_bfloat16>(x),
                                                                  .matrices = ops::Elements<__nv_bfloat16>(matrices),
                                                                  .transposed = transposed,
                                                                  .ends = ops::Elements<int>(on_gpu),
                                                                  .parts = parts,
                                                                  .runs = experts,
                                                                  .rows = kRows,
                                                                  .inner = inner,
                                                                  .width = width},
                                                                 ops::CurrentStream()));
                        C10_CUDA_KERNEL_LAUNCH_CHECK();
                      }};
  };
  // Known: LibTorch's grouped product.
  return {one("run products, up", hidden, kFfn, true, 0.824),
          one("run products, down", ffn, kHidden, true, 0.798),
          one("run products, of act", hidden, kFfn, false, 0.828),
          one("run products, of x", ffn, kHidden, false, 0.799),
          one("run products, up, of 2 sources", hidden, kFfn, true, 0, 64, 2),
          one("run products, down, of 2 sources", ffn, kHidden, true, 0, 64, 2),
          one("run products, up, of 4 sources", hidden, kFfn, true, 0, 32, 4)};
}

}  // namespace planwright::executor
