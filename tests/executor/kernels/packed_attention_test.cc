// On a GPU, bf16: the kernels of packed attention against the plain form in fp64 on the same rounded numbers.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "executor/kernels/attention.h"
#include "executor/ops/fast/cudnn_attention.h"
#include "executor/ops/handler.h"
#include "tests/executor/ops/bound_form.h"

namespace planwright::executor::flash_attention_test {
namespace {

// Our own kernels take heads of 64 and 80 elements, cuDNN's take others too.
constexpr int64_t kHeads = 4, kHeadDim = 80, kOtherHeadDim = 72, kClassTokens = 10;
constexpr int64_t kOwnHeadDims[] = {64, 80};

using Kernels = std::set<std::string>;

// Which of LibTorch's functions of attention are called while it lives. Our own kernels are none of them.
class CalledKernels {
 public:
  CalledKernels() { names_.clear(); }
  ~CalledKernels() { at::removeCallback(handle_); }
  CalledKernels(const CalledKernels&) = delete;
  CalledKernels& operator=(const CalledKernels&) = delete;
  Kernels names() const { return names_; }

 private:
  static std::unique_ptr<at::ObserverContext> Note(const at::RecordFunction& call) {
    const std::string name = call.name();
    if (name.rfind("aten::_flash_attention", 0) == 0) names_.insert("flash");
    if (name.rfind("aten::_scaled_dot_product_cudnn_attention", 0) == 0) names_.insert("cudnn");
    return nullptr;
  }
  static thread_local Kernels names_;
  at::CallbackHandle handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(Note));
};
thread_local Kernels CalledKernels::names_;

const Kernels kOwn = {};

Tensors RunOp(Tensors (*handler)(const ComputeContext&), const Tensors& inputs, const Plan& plan, int64_t head_dim) {
  CallContext call;
  call.plan = &plan;
  Instruction instruction;
  instruction.attributes = {{"heads", kHeads}, {"head_dim", head_dim}, {"class_tokens", kClassTokens}};
  return RunBound(handler, {instruction, call, inputs, {}, {}});
}

double RelativeGap(const at::Tensor& actual, const at::Tensor& exact) {
  return ((actual.cpu().to(at::kDouble) - exact).norm() / exact.norm()).item<double>();
}

// Queries are `apart` more than random numbers, and keys as much less.
struct Draw {
  int64_t head_dim = kHeadDim;
  double apart = 0, tolerance = 0.01;  // bf16 has 8 bits: one rounding is 0.004
};

// Forward and backward on the GPU in bf16 and on the CPU in fp64. Returns the kernels that the GPU took.
Kernels CompareWithThePlainForm(const std::vector<int64_t>& sizes, const Plan& plan, Draw draw = {}) {
  const at::Tensor grid = at::tensor(sizes, at::kLong).view({-1, 2});
  const int64_t tokens = grid.prod(1).sum().item<int64_t>() + grid.size(0) * kClassTokens;
  const int64_t width = kHeads * draw.head_dim;
  at::Tensor wide = at::randn({tokens, 3 * width}, at::kDouble);
  wide.narrow(1, 0, width).add_(draw.apart), wide.narrow(1, width, width).sub_(draw.apart);
  const at::Tensor qkv = wide.to(at::kBFloat16);
  const at::Tensor da = at::randn({tokens, width}, at::kDouble).to(at::kBFloat16);

  const auto run = [&](auto* handler, const Tensors& inputs) { return RunOp(handler, inputs, plan, draw.head_dim); };
  const Tensors exact = run(ops::RunPackedAttention, {qkv.to(at::kDouble), grid});
  const at::Tensor exact_grad =
      run(ops::RunPackedAttentionGrad, {da.to(at::kDouble), qkv.to(at::kDouble), exact[0], exact[1], grid})[0];
  const CalledKernels called;
  const Tensors fast = run(ops::RunPackedAttention, {qkv.to(at::kCUDA), grid});
  const at::Tensor grad =
      run(ops::RunPackedAttentionGrad, {da.to(at::kCUDA), qkv.to(at::kCUDA), fast[0], fast[1], grid})[0];

  EXPECT_EQ(fast[0].sizes(), exact[0].sizes());
  EXPECT_EQ(fast[1].sizes(), exact[1].sizes());
  EXPECT_EQ(grad.sizes(), exact_grad.sizes());
  EXPECT_EQ(fast[1].scalar_type(), at::kFloat);
  EXPECT_LT(RelativeGap(fast[0], exact[0]), draw.tolerance);
  EXPECT_LT(RelativeGap(fast[1], exact[1]), 1e-5);
  for (int64_t part = 0; part < 3; ++part)  // q, k, v
    EXPECT_LT(RelativeGap(grad.narrow(1, part * width, width), exact_grad.narrow(1, part * width, width)),
              draw.tolerance);
  return called.names();
}

Plan PlanOfOneSize(int64_t rows, int64_t columns) {
  Plan plan;
  plan.data.kind = DataKind::kMock;
  plan.data.image_grids = {{rows, columns}};
  return plan;
}

// Whether library and device have cuDNN's kernel.
bool HasCudnn() {
  const at::Tensor x = at::empty({1, 64, kHeads, kHeadDim}, at::TensorOptions(at::kCUDA).dtype(at::kBFloat16));
  return ops::TakesCudnn({x, x, x});
}

bool HasOwn() {
  return ops::HopperTakes(
      ops::Attention{.runs = {{.sequences = 1, .length = 1}}, .heads = kHeads, .head_dim = kHeadDim});
}

TEST(FlashAttention, MeetsThePlainFormForwardAndBackward) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no GPU";
  const Draw draw = {.head_dim = kOtherHeadDim};
  EXPECT_EQ(CompareWithThePlainForm({6, 8, 2, 4, 2, 4, 20, 14}, Plan{}, draw), Kernels{"flash"});
}

// Images of one size are a batch of cuDNN's kernel. 290 and 58 rows: no whole number of the kernel's tiles.
TEST(FlashAttention, ImagesOfOneSizeMeetThePlainForm) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no GPU";
  const Kernels expected = {HasCudnn() ? "cudnn" : "flash"};
  const Draw draw = {.head_dim = kOtherHeadDim};
  EXPECT_EQ(CompareWithThePlainForm({20, 14}, PlanOfOneSize(20, 14), draw), expected);
  EXPECT_EQ(CompareWithThePlainForm({20, 14, 20, 14}, PlanOfOneSize(20, 14), draw), expected);
  EXPECT_EQ(CompareWithThePlainForm({20, 14, 20, 14, 20, 14}, PlanOfOneSize(20, 14), draw), expected);
  EXPECT_EQ(CompareWithThePlainForm({6, 8, 6, 8, 6, 8}, PlanOfOneSize(6, 8), draw), expected);
}

// Around whole numbers of 64, 112, 128 and 192 rows, of which the kernels make tiles.
TEST(FlashAttention, OwnKernelsMeetThePlainForm) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no GPU";
  if (!HasOwn()) GTEST_SKIP() << "no Hopper";
  for (const int64_t head_dim : kOwnHeadDims) {
    SCOPED_TRACE(head_dim);
    for (const int64_t rows : {11, 63, 64, 112, 113, 128, 129, 192, 193, 1000}) {
      SCOPED_TRACE(rows);
      const int64_t patches = rows - kClassTokens;
      EXPECT_EQ(CompareWithThePlainForm({1, patches}, Plan{}, {.head_dim = head_dim}), kOwn);
      EXPECT_EQ(CompareWithThePlainForm({patches, 1, 1, patches, 1, patches}, Plan{}, {.head_dim = head_dim}), kOwn);
    }
  }
}

// So many rows that a block of the forward takes a second piece of work.
TEST(FlashAttention, OwnKernelsTakeManyImages) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no GPU";
  if (!HasOwn()) GTEST_SKIP() << "no Hopper";
  for (const int64_t head_dim : kOwnHeadDims) {
    SCOPED_TRACE(head_dim);
    for (const int64_t rows : {100, 113, 225}) {
      SCOPED_TRACE(rows);
      std::vector<int64_t> sizes;
      for (int image = 0; image < 40; ++image) sizes.insert(sizes.end(), {1, rows - kClassTokens});
      EXPECT_EQ(CompareWithThePlainForm(sizes, Plan{}, {.head_dim = head_dim}), kOwn);
    }
  }
}

// Images of several sizes, in any order: those of one size that follow each other are a run.
TEST(FlashAttention, OwnKernelsTakeImagesOfSeveralSizes) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no GPU";
  if (!HasOwn()) GTEST_SKIP() << "no Hopper";
  for (const int64_t head_dim : kOwnHeadDims) {
    SCOPED_TRACE(head_dim);
    EXPECT_EQ(CompareWithThePlainForm({6, 8, 2, 4, 2, 4, 20, 14}, Plan{}, {.head_dim = head_dim}), kOwn);
    EXPECT_EQ(CompareWithThePlainForm({1, 990, 1, 1, 1, 990, 1, 990, 1, 102}, Plan{}, {.head_dim = head_dim}), kOwn);
    EXPECT_EQ(CompareWithThePlainForm({1, 54, 1, 53, 1, 55, 1, 118, 1, 182, 1, 183}, Plan{}, {.head_dim = head_dim}),
              kOwn);
  }
}

// More runs than a launch takes, one more than that, and as many.
TEST(FlashAttention, OwnKernelsTakeMoreSizesThanALaunch) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no GPU";
  if (!HasOwn()) GTEST_SKIP() << "no Hopper";
  for (const int64_t head_dim : kOwnHeadDims) {
    SCOPED_TRACE(head_dim);
    for (const int64_t images : {16, 17, 40}) {
      SCOPED_TRACE(images);
      std::vector<int64_t> sizes;
      for (int64_t image = 0; image < images; ++image) sizes.insert(sizes.end(), {1, 1 + image * 37 % 230});
      EXPECT_EQ(CompareWithThePlainForm(sizes, Plan{}, {.head_dim = head_dim}), kOwn);
    }
  }
}

// Equal scores of about -1000 in every block of keys: the maximum stays, so what is summed up must stay too. The sum of
// exponentials is then the number of keys, to the rounding of a number of this size.
TEST(FlashAttention, OwnKernelsKeepSumsWhereTheMaximumStays) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no GPU";
  if (!HasOwn()) GTEST_SKIP() << "no Hopper";
  constexpr int64_t kRows = 2000, kWidth = kHeads * kHeadDim;
  const at::Tensor grid = at::tensor({int64_t{1}, kRows - kClassTokens}, at::kLong).view({-1, 2});
  at::Tensor qkv = at::empty({kRows, 3 * kWidth}, at::kDouble);
  for (const double query : {1.3, 4.7, 10.6, 11.9}) {
    SCOPED_TRACE(query);
    qkv.narrow(1, 0, kWidth).fill_(query), qkv.narrow(1, kWidth, kWidth).fill_(-query);
    qkv.narrow(1, 2 * kWidth, kWidth).fill_(1);
    const at::Tensor rounded = qkv.to(at::kBFloat16);
    const Tensors exact = RunOp(ops::RunPackedAttention, {rounded.to(at::kDouble), grid}, Plan{}, kHeadDim);
    const Tensors fast = RunOp(ops::RunPackedAttention, {rounded.to(at::kCUDA), grid}, Plan{}, kHeadDim);
    EXPECT_LT((fast[1].cpu().to(at::kDouble) - exact[1]).abs().max().item<double>(), 2e-4);
    EXPECT_LT(RelativeGap(fast[0], exact[0]), 1e-6);
  }
}

// Scores far below 0: keys that are not there have score 0, and with it a weight that no fp32 number holds. The
// gradient of q is a small difference of large numbers here.
TEST(FlashAttention, OwnKernelsGiveAbsentKeysNoWeight) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no GPU";
  if (!HasOwn()) GTEST_SKIP() << "no Hopper";
  for (const int64_t head_dim : kOwnHeadDims) {
    SCOPED_TRACE(head_dim);
    EXPECT_EQ(CompareWithThePlainForm({20, 14, 20, 14}, Plan{}, {.head_dim = head_dim, .apart = 4, .tolerance = 0.05}),
              kOwn);
  }
}

// The flash kernel's order of additions is fixed; and what the plan says of sizes is not trusted blindly.
TEST(FlashAttention, DeterministicRunsAndOtherSizesTakeTheFlashKernel) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no GPU";
  EXPECT_EQ(CompareWithThePlainForm({20, 14, 6, 8}, PlanOfOneSize(20, 14), {.head_dim = kOtherHeadDim}),
            Kernels{"flash"});
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  EXPECT_EQ(CompareWithThePlainForm({20, 14, 20, 14}, PlanOfOneSize(20, 14)), Kernels{"flash"});
  at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false);
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
    return RunBound(handler, {instruction, call, inputs, {}, {}});
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
}  // namespace planwright::executor::flash_attention_test
