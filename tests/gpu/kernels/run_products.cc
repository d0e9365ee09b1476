// Products of experts' rows with their matrices: 49,152 rows of 64 experts, forward (up, down) and backward (of act, of
// x), on Hopper alone.
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
  // Experts differ by at most 97 rows from the mean, and fill no tiles.
  std::vector<int64_t> ends(kExperts);
  for (int64_t e = 0; e < kExperts; ++e) ends[e] = (e + 1) * kRows / kExperts + (e + 1) % kExperts * 37 % 97;
  const at::Tensor on_gpu = at::tensor(ends, at::kLong).to(at::kCUDA, at::kInt);
  const auto one = [&](const char* name, const at::Tensor& x, int64_t width, bool transposed, double known_ms) {
    const int64_t inner = x.size(1);
    const double elements = static_cast<double>(kExperts * kFfn * kHidden);
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
                                                                  .runs = kExperts,
                                                                  .rows = kRows,
                                                                  .inner = inner,
                                                                  .width = width},
                                                                 ops::CurrentStream()));
                        C10_CUDA_KERNEL_LAUNCH_CHECK();
                      }};
  };
  // Known: LibTorch's grouped product.
  return {one("run products, up", hidden, kFfn, true, 0.824), one("run products, down", ffn, kHidden, true, 0.798),
          one("run products, of act", hidden, kFfn, false, 0.828),
          one("run products, of x", ffn, kHidden, false, 0.799)};
}

}  // namespace planwright::executor
