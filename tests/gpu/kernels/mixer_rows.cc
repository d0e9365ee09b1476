// The kernels on rows of the mixer and of norms, and the elementwise ones of a layer of experts.
#include <ATen/ops/randn.h>

#include "tests/executor/ops/run_op.h"
#include "tests/gpu/kernels/kernel_case.h"

namespace planwright::executor {
namespace {

constexpr int64_t kPositions = 8192, kHidden = 2688, kSharedFfn = 3712;
constexpr int64_t kInner = 4096, kBc = 1024, kHeads = 64, kGroup = 512;
constexpr int64_t kChannels = kInner + 2 * kBc, kFeatures = 2 * kInner + 2 * kBc + kHeads;

at::Tensor Rows(int64_t width) {
  return at::randn({kPositions, 1, width}, at::TensorOptions(at::kCUDA).dtype(at::kBFloat16));
}
at::Tensor Parameter(at::IntArrayRef shape) {
  return at::randn(shape, at::TensorOptions(at::kCUDA).dtype(at::kBFloat16));
}

// Bytes of as many bf16 values at each position.
double Bytes(int64_t values) { return 2.0 * kPositions * static_cast<double>(values); }

KernelCase Case(const char* name, int64_t values, double known_ms, const KernelCall& call) {
  KernelCase made = CaseOf(name, Bytes(values), 0, call);
  made.known_ms = known_ms;
  return made;
}

}  // namespace

std::vector<KernelCase> MixerRowCases() {
  const Attributes conv = {{"inner", kInner}, {"bc", kBc}, {"heads", kHeads}},
                   gate = {{"inner", kInner}, {"group_size", kGroup}, {"eps", 1e-5}}, eps = {{"eps", 1e-5}};
  const at::Tensor zxbcdt = Rows(kFeatures), dxbc = Rows(kChannels), y = Rows(kInner), dyn = Rows(kInner);
  const at::Tensor x = Rows(kHidden), dx = Rows(kHidden), more = Rows(kHidden);
  const at::Tensor up = Rows(kSharedFfn), dup = Rows(kSharedFfn);
  const Tensors taps = {Parameter({kChannels, 1, 4}), Parameter({kChannels})}, inner = {Parameter({kInner})},
                hidden = {Parameter({kHidden})}, both = {Parameter({kHidden}), Parameter({kHidden})};
  const Tensors layer = Op(eps).Run(ops::RunLayerNorm, {x}, both);
  const at::Tensor inner_scale = Op(gate).Run(ops::RunGatedNorm, {y, zxbcdt}, inner)[1],
                   scale = Op(eps).Run(ops::RunRmsNorm, {x}, hidden)[1];
  return {
      Case("mamba_conv", 2 * kChannels, 0.09, {ops::RunMambaConv, conv, {zxbcdt}, taps}),
      Case("mamba_conv_grad", 3 * kChannels, 0.25,
           {ops::RunMambaConvGrad, conv, {dxbc, zxbcdt}, taps, GradientsOf(taps)}),
      Case("gated_norm", 3 * kInner, 0, {ops::RunGatedNorm, gate, {y, zxbcdt}, inner}),
      Case("gated_norm_grad", 5 * kInner, 0,
           {ops::RunGatedNormGrad, gate, {dyn, y, zxbcdt, inner_scale}, inner, GradientsOf(inner)}),
      Case("rms_norm", 2 * kHidden, 0, {ops::RunRmsNorm, eps, {x}, hidden}),
      Case("rms_norm_grad", 3 * kHidden, 0.07, {ops::RunRmsNormGrad, eps, {dx, x, scale}, hidden, GradientsOf(hidden)}),
      Case("layer_norm", 2 * kHidden, 0, {ops::RunLayerNorm, eps, {x}, both}),
      Case("layer_norm_grad", 3 * kHidden, 0,
           {ops::RunLayerNormGrad, {}, {dx, x, layer[1], layer[2]}, both, GradientsOf(both)}),
      Case("add_residual_bias", 3 * kHidden, 0, {ops::RunAddResidualBias, {}, {x, dx}, hidden}),
      Case("bias_grad", kHidden, 0, {ops::RunBiasGrad, {}, {dx}, {}, GradientsOf(hidden)}),
      Case("squared_relu", 2 * kSharedFfn, 0, {ops::RunSquaredRelu, {}, {up}}),
      Case("squared_relu_grad", 3 * kSharedFfn, 0, {ops::RunSquaredReluGrad, {}, {dup, up}}),
      Case("add two", 3 * kHidden, 0, {ops::RunAdd, {}, {x, dx}}),
      Case("add three", 4 * kHidden, 0, {ops::RunAdd, {}, {x, dx, more}}),
  };
}

}  // namespace planwright::executor
