// On a GPU, bf16: the flash kernel against the plain form in fp64 on the same rounded numbers.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "executor/ops/handler.h"

namespace planwright::executor {
namespace {

constexpr int64_t kHeads = 4, kHeadDim = 80, kClassTokens = 10;

Tensors RunOp(Tensors (*handler)(const ComputeContext&), const Tensors& inputs) {
  Plan plan;
  CallContext call;
  call.plan = &plan;
  Instruction instruction;
  instruction.attributes = {{"heads", kHeads}, {"head_dim", kHeadDim}, {"class_tokens", kClassTokens}};
  return handler({instruction, call, inputs, {}, {}});
}

double RelativeGap(const at::Tensor& actual, const at::Tensor& exact) {
  return ((actual.cpu().to(at::kDouble) - exact).norm() / exact.norm()).item<double>();
}

TEST(FlashAttention, MeetsThePlainFormForwardAndBackward) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no GPU";
  const at::Tensor grid = at::tensor({6, 8, 2, 4, 2, 4, 20, 14}, at::kLong).view({4, 2});
  const int64_t tokens = 48 + 8 + 8 + 280 + 4 * kClassTokens;
  const at::Tensor qkv = at::randn({tokens, 3 * kHeads * kHeadDim}, at::kDouble).to(at::kBFloat16);
  const at::Tensor da = at::randn({tokens, kHeads * kHeadDim}, at::kDouble).to(at::kBFloat16);

  const Tensors exact = RunOp(ops::RunPackedAttention, {qkv.to(at::kDouble), grid});
  const at::Tensor exact_grad =
      RunOp(ops::RunPackedAttentionGrad, {da.to(at::kDouble), qkv.to(at::kDouble), exact[0], exact[1], grid})[0];
  const Tensors flash = RunOp(ops::RunPackedAttention, {qkv.to(at::kCUDA), grid});
  const at::Tensor grad =
      RunOp(ops::RunPackedAttentionGrad, {da.to(at::kCUDA), qkv.to(at::kCUDA), flash[0], flash[1], grid})[0];

  ASSERT_EQ(flash[1].sizes(), exact[1].sizes());
  EXPECT_EQ(flash[1].scalar_type(), at::kFloat);
  EXPECT_LT(RelativeGap(flash[0], exact[0]), 0.01);  // bf16 has 8 bits: one rounding is 0.004
  EXPECT_LT(RelativeGap(flash[1], exact[1]), 1e-5);
  EXPECT_LT(RelativeGap(grad, exact_grad), 0.01);
}

}  // namespace
}  // namespace planwright::executor
