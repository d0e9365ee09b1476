// Cross entropy by kernels, beside the plain form.
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>

#include <cmath>

#include "tests/executor/kernels/check_kernel.h"

namespace planwright::executor {
namespace {

at::Tensor MaskOf(int64_t samples, int64_t positions) {
  return at::randint(4, {samples, positions}, at::kLong).clamp_max(1).to(at::kDouble);
}

// A row of gradients has few large elements, so roundings do not average out: each is off by 2^-8 at most.
constexpr double kOneRounding = 0.004;

class CrossEntropyKernels : public Kernels {
 protected:
  // Runs the three instructions, each on what the one before it made on the GPU.
  static void CheckAll(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& mask) {
    SCOPED_TRACE(testing::Message() << logits.sizes());
    const at::Tensor m = Check("max", ops::RunCrossEntropyMax, {.inputs = {logits}})[0];
    EXPECT_EQ(m.scalar_type(), at::kFloat);
    const at::Tensor exact_m = m.cpu().to(at::kDouble);
    const at::Tensor sums =
        Check("sums", ops::RunCrossEntropySums, {.inputs = {logits, exact_m, labels}, .wide_inputs = {1}})[0];
    EXPECT_EQ(sums.scalar_type(), at::kFloat);
    const at::Tensor dlogits = Check("grad", ops::RunCrossEntropyGrad,
                                     {.inputs = {logits, exact_m, sums.cpu().to(at::kDouble), labels, mask},
                                      .wide_inputs = {1, 2},
                                      .tolerances = {.narrow = kOneRounding}})[0];
    EXPECT_EQ(dlogits.scalar_type(), at::kBFloat16);
  }
};

TEST_F(CrossEntropyKernels, AtTheRealWidth) {
  at::manual_seed(3);
  CheckAll(Random({3, 2, 131072}), at::randint(131072, {2, 3}, at::kLong), MaskOf(2, 3));
}

// Less than one access of a block, exactly some, and a rest; labels of other parts, on both sides; exp would overflow
// without the maximum.
TEST_F(CrossEntropyKernels, AtOddWidths) {
  at::manual_seed(3);
  for (const int64_t columns : {8, 1000, 4096, 16384, 16392, 20008}) {
    const at::Tensor labels = at::randint(-columns / 2, columns + columns / 2, {3, 5}, at::kLong);
    CheckAll(Random({5, 3, columns}) * 30 + 500, labels, MaskOf(3, 5));
  }
}

// 1001 columns: rows are not aligned.
TEST_F(CrossEntropyKernels, LeaveTheRestToThePlainForm) {
  at::manual_seed(3);
  CheckAll(Random({2, 2, 1001}), at::randint(1001, {2, 2}, at::kLong), MaskOf(2, 2));
}

// The second of two ranks, and labels and mask that are a cut of a longer sequence.
TEST_F(CrossEntropyKernels, FindLabelsWhereTheyLie) {
  at::manual_seed(3);
  constexpr int64_t kColumns = 512, S = 6, B = 2;
  const at::Tensor logits = Random({S, B, kColumns}).to(at::kBFloat16),
                   labels = at::randint(2 * kColumns, {B, 3 * S}, at::kLong), mask = MaskOf(B, 3 * S);
  const auto run = [&](const auto& place) {
    const auto part = [&](const at::Tensor& x) { return place(x).narrow(1, S, S); };
    const at::Tensor x = place(logits);
    Op op;
    op.OnTpRank(1, 2);
    const at::Tensor m = op.Run(ops::RunCrossEntropyMax, {x})[0],
                     sums = op.Run(ops::RunCrossEntropySums, {x, m, part(labels)})[0];
    return Tensors{sums, op.Run(ops::RunCrossEntropyGrad, {x, m, sums, part(labels), part(mask)})[0]};
  };
  const Tensors actual = run([](const at::Tensor& x) { return x.to(at::kCUDA); });
  const Tensors exact = run([](const at::Tensor& x) { return x.is_floating_point() ? x.to(at::kDouble) : x; });
  EXPECT_LE(NormGap(actual[0][0], exact[0][0]), 1e-5);
  EXPECT_LE(NormGap(actual[0][1], exact[0][1]), 1e-5);
  EXPECT_LE(NormGap(actual[1], exact[1]), kOneRounding);
}

TEST_F(CrossEntropyKernels, OverwriteTheLogits) {
  at::manual_seed(3);
  const at::Tensor logits = Random({4, 2, 20008}).to(at::kBFloat16).to(at::kCUDA),
                   labels = at::randint(20008, {2, 4}, at::kLong).to(at::kCUDA), mask = MaskOf(2, 4).to(at::kCUDA);
  const at::Tensor m = Op().Run(ops::RunCrossEntropyMax, {logits})[0],
                   sums = Op().Run(ops::RunCrossEntropySums, {logits, m, labels})[0];
  const at::Tensor expected = Op().Run(ops::RunCrossEntropyGrad, {logits, m, sums, labels, mask})[0];
  const at::Tensor dlogits = Op().Overwriting().Run(ops::RunCrossEntropyGrad, {logits, m, sums, labels, mask})[0];
  EXPECT_TRUE(dlogits.is_same(logits));
  EXPECT_TRUE(dlogits.equal(expected));
}

TEST_F(CrossEntropyKernels, NanIsNotLost) {
  const at::Tensor logits = Random({2, 1, 4096}).to(at::kBFloat16).to(at::kCUDA);
  logits[1][0][4000].fill_(std::nan(""));
  const at::Tensor labels = at::tensor({5, 6}, at::kLong).view({1, 2}).to(at::kCUDA);
  const at::Tensor m = Op().Run(ops::RunCrossEntropyMax, {logits})[0];
  const at::Tensor sums = Op().Run(ops::RunCrossEntropySums, {logits, m, labels})[0];
  for (const at::Tensor& x : {m, sums[0]}) {
    EXPECT_TRUE(std::isfinite(x[0][0].item<float>()));
    EXPECT_TRUE(std::isnan(x[1][0].item<float>()));
  }
}

TEST_F(CrossEntropyKernels, TakeNoRows) {
  const at::Tensor logits = Random({0, 2, 64}).to(at::kBFloat16).to(at::kCUDA);
  EXPECT_EQ(Op().Run(ops::RunCrossEntropyMax, {logits})[0].sizes(), at::IntArrayRef({0, 2}));
}

}  // namespace
}  // namespace planwright::executor
