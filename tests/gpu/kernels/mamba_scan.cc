// Times of the Mamba-2 scan at the widths of the 20-layer model.
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include "tests/executor/ops/run_op.h"
#include "tests/gpu/kernels/kernel_case.h"

namespace planwright::executor {

std::vector<KernelCase> ScanCases() {
  constexpr int64_t kPositions = 8192, kSamples = 1, kHeads = 64, kGroups = 8, kState = 128, kInner = 4096,
                    kBc = kGroups * kState, kChunk = 128;
  const at::TensorOptions narrow = at::TensorOptions(at::kCUDA).dtype(at::kBFloat16);
  const at::Tensor xbc = at::randn({kPositions, kSamples, kInner + 2 * kBc}, narrow),
                   zxbcdt = at::randn({kPositions, kSamples, 2 * kInner + 2 * kBc + kHeads}, narrow),
                   dy = at::randn({kPositions, kSamples, kInner}, narrow);
  const Tensors parameters = {at::randn({kHeads}, narrow), at::randn({kHeads}, narrow),
                              at::full({kHeads}, -4.0, narrow)};
  Tensors gradients;
  for (int i = 0; i < 3; ++i) gradients.push_back(at::zeros({kHeads}, narrow.dtype(at::kFloat)));
  Op op({{"inner", kInner}, {"bc", kBc}, {"heads", kHeads}, {"groups", kGroups}, {"state", kState}, {"chunk", kChunk}});
  const at::Tensor states = op.Run(ops::RunMambaScan, {xbc, zxbcdt}, parameters)[1];

  auto forward = [=]() mutable { op.Run(ops::RunMambaScan, {xbc, zxbcdt}, parameters); };
  auto backward = [=]() mutable { op.Run(ops::RunMambaScanGrad, {dy, xbc, zxbcdt, states}, parameters, gradients); };
  const double positions = kPositions * kSamples, of_xbc = positions * (kInner + 2 * kBc) * 2,
               of_y = positions * kInner * 2, of_dt = positions * kHeads * 2,
               of_states = positions / kChunk * kInner * kState * 4;
  const double bytes = of_xbc + of_dt + of_y + of_states, gradient_bytes = bytes + of_xbc + of_dt;
  // For each position, channel and state 7 operations forward, and twice as many backward.
  const double flops = 7.0 * positions * kInner * kState;
  return {{.name = "mamba_scan", .bytes = bytes, .flops = flops, .run = forward},
          {.name = "mamba_scan_grad", .bytes = gradient_bytes, .flops = 2 * flops, .run = backward},
          // Known: the public Triton kernels.
          {.name = "mamba_scan and mamba_scan_grad",
           .bytes = bytes + gradient_bytes,
           .flops = 3 * flops,
           .known_ms = 1.49,
           .run = [=]() mutable { forward(), backward(); }}};
}

}  // namespace planwright::executor
