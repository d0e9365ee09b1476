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

// With cp the queries are those of a part and the keys those of the lane. Images end inside parts, and the parts of
// four coordinates begin with other images than the lane.
TEST(FlashAttention, PartsMeetThePlainForm) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no GPU";
  const at::Tensor grid = at::tensor({6, 8, 2, 4, 2, 4, 20, 14}, at::kLong).view({4, 2});
  const int64_t tokens = 48 + 8 + 8 + 280 + 4 * kClassTokens, width = kHeads * kHeadDim, cp = 4;
  const at::Tensor qkv = at::randn({tokens, 3 * width}, at::kDouble).to(at::kBFloat16);
  const at::Tensor da = at::randn({tokens, width}, at::kDouble).to(at::kBFloat16);
  const at::Tensor q = qkv.narrow(1, 0, width), kv = qkv.narrow(1, width, 2 * width).contiguous();
  Plan plan;
  Instruction instruction;
  instruction.attributes = {{"heads", kHeads},
                            {"head_dim", kHeadDim},
                            {"class_tokens", kClassTokens},
                            {"cp", int64_t{cp}},
                            {"factor", int64_t{2}}};
  const auto run = [&](int coordinate, Tensors (*handler)(const ComputeContext&), const Tensors& inputs) {
    CallContext call;
    call.plan = &plan;
    call.cp = cp, call.cp_rank = coordinate;
    return handler({instruction, call, inputs, {}, {}});
  };
  const at::Tensor counts = run(0, ops::RunDealBands, {grid})[0];
  int64_t first = 0;
  for (int part = 0; part < cp; ++part) {
    const int64_t rows = counts[part].item<int64_t>();
    const at::Tensor mine = q.narrow(0, first, rows).contiguous(), d = da.narrow(0, first, rows).contiguous();
    first += rows;
    const at::Tensor wide_q = mine.to(at::kDouble), wide_kv = kv.to(at::kDouble);
    const Tensors exact = run(part, ops::RunPackedAttention, {wide_q, wide_kv, grid});
    const Tensors exact_grad =
        run(part, ops::RunPackedAttentionGrad, {d.to(at::kDouble), wide_q, wide_kv, exact[0], exact[1], grid});
    const Tensors flash = run(part, ops::RunPackedAttention, {mine.to(at::kCUDA), kv.to(at::kCUDA), grid});
    const Tensors grad = run(part, ops::RunPackedAttentionGrad,
                             {d.to(at::kCUDA), mine.to(at::kCUDA), kv.to(at::kCUDA), flash[0], flash[1], grid});
    EXPECT_LT(RelativeGap(flash[0], exact[0]), 0.01);
    EXPECT_LT(RelativeGap(flash[1], exact[1]), 1e-5);
    for (size_t i = 0; i < 2; ++i) EXPECT_LT(RelativeGap(grad[i], exact_grad[i]), 0.01);
  }
}

}  // namespace
}  // namespace planwright::executor
