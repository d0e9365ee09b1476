// Products of a layer that add the residual or multiply by the slope of gelu, as one and one by one: the language model
// of Qwen3-VL-2B with four samples of 4096 positions, its encoder with eight images.
#include <ATen/ops/randn.h>

#include <string>

#include "tests/executor/ops/run_joined.h"
#include "tests/executor/ops/run_op.h"
#include "tests/gpu/kernels/kernel_case.h"

namespace planwright::executor {
namespace {

void AddSum(std::vector<KernelCase>& cases, int64_t rows, int64_t in, int64_t out, bool biased) {
  const auto values = [](at::IntArrayRef shape) {
    return at::randn(shape, at::TensorOptions(at::kCUDA).dtype(at::kBFloat16));
  };
  const at::Tensor x = values({rows, in}), residual = values({rows, out}), weight = values({out, in}).mul_(0.02),
                   bias = values({out});
  const std::string name = std::string(biased ? "linear + add_residual_bias" : "linear + add") + " of " +
                           std::to_string(in) + " to " + std::to_string(out);
  const auto count = [](int64_t a, int64_t b) { return static_cast<double>(a) * static_cast<double>(b); };
  const double bytes = 2 * (count(rows, in) + count(out, in) + 2 * count(rows, out)),
               flops = 2 * count(rows, in) * static_cast<double>(out);
  constexpr OfFirst kOf = {.inputs = 1, .parameters = 1, .place = 1};
  cases.push_back(
      {name, bytes, flops, 0, [=] {
         if (biased) {
           Op().Run(RunJoined<OpKind::kLinear, OpKind::kAddResidualBias, kOf>, {x, residual}, {weight, bias});
         } else {
           Op().Run(RunJoined<OpKind::kLinear, OpKind::kAdd, kOf>, {x, residual}, {weight});
         }
       }});
  cases.push_back({name + ", one by one", bytes, flops, 0, [=] {
                     const at::Tensor product = Op().Run(ops::RunLinear, {x}, {weight})[0];
                     if (biased) {
                       Op().Run(ops::RunAddResidualBias, {residual, product}, {bias});
                     } else {
                       Op().Run(ops::RunAdd, {residual, product});
                     }
                   }});
}

// The first layer of an MLP with gelu, and the backward of the second with that of gelu.
void AddSlope(std::vector<KernelCase>& cases, int64_t rows, int64_t in, int64_t out) {
  const auto values = [](at::IntArrayRef shape) {
    return at::randn(shape, at::TensorOptions(at::kCUDA).dtype(at::kBFloat16));
  };
  const at::Tensor dy = values({rows, in}), pre = values({rows, out}), weight = values({in, out}).mul_(0.02);
  const double bytes = 2.0 * static_cast<double>(rows * in + in * out + 2 * rows * out),
               flops = 2.0 * static_cast<double>(rows * in) * static_cast<double>(out);
  cases.push_back(
      {"linear_input_grad + gelu_grad", bytes, flops, 0, [=] {
         Op().Run(
             RunJoined<OpKind::kLinearInputGrad, OpKind::kGeluGrad, OfFirst{.inputs = 1, .parameters = 1, .place = 0}>,
             {dy, pre}, {weight});
       }});
  const at::Tensor bias = values({out}), wide = values({out, in}).mul_(0.02);
  cases.push_back({"linear + gelu", bytes, flops, 0, [=] {
                     Op().Run(
                         RunJoined<OpKind::kLinear, OpKind::kGelu, OfFirst{.inputs = 1, .parameters = 2, .place = 0}>,
                         {dy}, {wide, bias});
                   }});
  cases.push_back({"linear + gelu, one by one", bytes, flops, 0, [=] {
                     Op().Run(ops::RunGelu, {Op().Run(ops::RunLinear, {dy}, {wide, bias})[0]});
                   }});
  cases.push_back({"linear_input_grad + gelu_grad, one by one", bytes, flops, 0, [=] {
                     Op().Run(ops::RunGeluGrad, {Op().Run(ops::RunLinearInputGrad, {dy}, {weight})[0], pre});
                   }});
}

}  // namespace

std::vector<KernelCase> JoinedSumCases() {
  constexpr int64_t kTokens = 16384, kPatches = 24576;
  std::vector<KernelCase> cases;
  AddSum(cases, kTokens, 6144, 2048, false);
  AddSum(cases, kTokens, 2048, 2048, false);
  AddSum(cases, kPatches, 4096, 1024, true);
  AddSum(cases, kPatches, 1024, 1024, true);
  AddSlope(cases, kPatches, 1024, 4096);
  AddSlope(cases, kPatches + 1024, 1024, 4096);
  return cases;
}

}  // namespace planwright::executor
