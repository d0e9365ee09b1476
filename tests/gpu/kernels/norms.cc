// Norms and what stands beside them in a layer, at the widths of Qwen3-VL-2B: RMS norm of its decoder's rows, LayerNorm
// and biases of its encoder's. Backwards also together with the sum that follows.
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <string>

#include "tests/executor/ops/run_joined.h"
#include "tests/executor/ops/run_op.h"
#include "tests/gpu/kernels/kernel_case.h"

namespace planwright::executor {
namespace {

constexpr int64_t kTokens = 16384, kHidden = 2048, kPatches = 24576, kWidth = 1024;

at::TensorOptions Gpu(at::ScalarType type) { return at::TensorOptions(at::kCUDA).dtype(type); }
at::Tensor Values(at::IntArrayRef shape) { return at::randn(shape, Gpu(at::kBFloat16)); }

// `passes` over all rows.
KernelCase Case(const std::string& name, int passes, const KernelCall& call) {
  return CaseOf(name, 2.0 * passes * static_cast<double>(call.inputs[0].numel()), 0, call);
}

Tensors RmsNormGradWithAdd(const ComputeContext& context) {
  constexpr OfFirst kOf = {.inputs = 3, .parameters = 1, .gradients = 1, .place = 0};
  return RunJoined<OpKind::kRmsNormGrad, OpKind::kAdd, kOf>(context);
}
Tensors LayerNormGradWithAdd(const ComputeContext& context) {
  constexpr OfFirst kOf = {.inputs = 4, .parameters = 2, .gradients = 2, .place = 0};
  return RunJoined<OpKind::kLayerNormGrad, OpKind::kAdd, kOf>(context);
}

void AddRmsNorm(std::vector<KernelCase>& cases) {
  const Attributes eps = {{"eps", 1e-6}};
  const at::Tensor x = Values({kTokens, 1, kHidden}), dy = Values({kTokens, 1, kHidden}),
                   other = Values({kTokens, 1, kHidden});
  const Tensors weight = {Values({kHidden})}, gradient = {at::zeros({kHidden}, Gpu(at::kFloat))};
  const at::Tensor scale = Op(eps).Run(ops::RunRmsNorm, {x}, weight)[1];
  cases.push_back(Case("rms_norm of 2048", 2, {ops::RunRmsNorm, eps, {x}, weight}));
  cases.push_back(Case("rms_norm_grad of 2048", 3, {ops::RunRmsNormGrad, {}, {dy, x, scale}, weight, gradient}));
  cases.push_back(Case("add of 2048", 3, {ops::RunAdd, {}, {dy, other}}));
  cases.push_back(
      Case("rms_norm_grad with add of 2048", 4, {RmsNormGradWithAdd, {}, {dy, x, scale, other}, weight, gradient}));
}

void AddLayerNorm(std::vector<KernelCase>& cases) {
  const Attributes eps = {{"eps", 1e-6}};
  const at::Tensor x = Values({kPatches, kWidth}), dy = Values({kPatches, kWidth}), other = Values({kPatches, kWidth});
  const Tensors parameters = {Values({kWidth}), Values({kWidth})},
                gradients = {at::zeros({kWidth}, Gpu(at::kFloat)), at::zeros({kWidth}, Gpu(at::kFloat))};
  const Tensors made = Op(eps).Run(ops::RunLayerNorm, {x}, parameters);
  const at::Tensor mean = made[1], scale = made[2];
  cases.push_back(Case("layer_norm of 1024", 2, {ops::RunLayerNorm, eps, {x}, parameters}));
  cases.push_back(
      Case("layer_norm_grad of 1024", 3, {ops::RunLayerNormGrad, {}, {dy, x, mean, scale}, parameters, gradients}));
  cases.push_back(Case("add of 1024", 3, {ops::RunAdd, {}, {dy, other}}));
  cases.push_back(Case("layer_norm_grad with add of 1024", 4,
                       {LayerNormGradWithAdd, {}, {dy, x, mean, scale, other}, parameters, gradients}));
  cases.push_back(Case("add_residual_bias of 1024", 3, {ops::RunAddResidualBias, {}, {x, dy}, {parameters[1]}}));
  cases.push_back(Case("bias_grad of 1024", 1, {ops::RunBiasGrad, {}, {dy}, {}, {gradients[1]}}));
}

}  // namespace

std::vector<KernelCase> NormCases() {
  std::vector<KernelCase> cases;
  AddRmsNorm(cases);
  AddLayerNorm(cases);
  return cases;
}

}  // namespace planwright::executor
