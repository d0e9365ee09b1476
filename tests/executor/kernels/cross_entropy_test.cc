// Cross entropy by kernels, beside the plain form.
#include <ATen/ops/allclose.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <limits>

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
    const Tensors parts = Check("parts", ops::RunCrossEntropyParts, {.inputs = {logits, labels}});
    for (const at::Tensor& x : parts) EXPECT_EQ(x.scalar_type(), at::kFloat);
    const at::Tensor exact_m = parts[0].cpu().to(at::kDouble), exact_parts = parts[1].cpu().to(at::kDouble);
    // Sums alone: beside large logits their error would not show.
    const Tensors plain = Op().Run(ops::RunCrossEntropyParts, {logits.to(at::kBFloat16).to(at::kDouble), labels});
    EXPECT_LE(NormGap(exact_parts[0], plain[1][0]), 1e-5);
    // The largest logit of all parts may be another rank's.
    for (const double larger : {0, 3}) {
      Check("sums", ops::RunCrossEntropySums, {.inputs = {exact_parts, exact_m + larger}, .wide_inputs = {0, 1}});
    }
    const at::Tensor sums =
        Check("sums", ops::RunCrossEntropySums, {.inputs = {exact_parts, exact_m}, .wide_inputs = {0, 1}})[0];
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
  const auto run = [&](const auto& moved) {
    const auto part = [&](const at::Tensor& x) { return moved(x).narrow(1, S, S); };
    const at::Tensor x = moved(logits);
    Op op;
    op.OnTpRank(1, 2);
    const Tensors parts = op.Run(ops::RunCrossEntropyParts, {x, part(labels)});
    const at::Tensor m = parts[0], sums = op.Run(ops::RunCrossEntropySums, {parts[1], m})[0];
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
  const Tensors parts = Op().Run(ops::RunCrossEntropyParts, {logits, labels});
  const at::Tensor m = parts[0], sums = Op().Run(ops::RunCrossEntropySums, {parts[1], m})[0];
  const at::Tensor expected = Op().Run(ops::RunCrossEntropyGrad, {logits, m, sums, labels, mask})[0];
  const at::Tensor dlogits = Op().Overwriting().Run(ops::RunCrossEntropyGrad, {logits, m, sums, labels, mask})[0];
  EXPECT_TRUE(dlogits.is_same(logits));
  EXPECT_TRUE(dlogits.equal(expected));
}

TEST_F(CrossEntropyKernels, NanIsNotLost) {
  const at::Tensor logits = Random({2, 1, 4096}).to(at::kBFloat16).to(at::kCUDA);
  logits[1][0][4000].fill_(std::nan(""));
  const at::Tensor labels = at::tensor({5, 6}, at::kLong).view({1, 2}).to(at::kCUDA);
  const Tensors parts = Op().Run(ops::RunCrossEntropyParts, {logits, labels});
  const at::Tensor m = parts[0], sums = Op().Run(ops::RunCrossEntropySums, {parts[1], m})[0];
  for (const at::Tensor& x : {m, parts[1][0], sums[0]}) {
    EXPECT_TRUE(std::isfinite(x[0][0].item<float>()));
    EXPECT_TRUE(std::isnan(x[1][0].item<float>()));
  }
}

// Rows: some of the part are -inf; all are, though another rank has finite logits; all are, everywhere; one is +inf.
TEST_F(CrossEntropyKernels, InfiniteLogits) {
  at::manual_seed(3);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const at::Tensor logits = Random({4, 1, 20008}), labels = at::tensor({5, 20008, 6, 7}, at::kLong).view({1, 4});
  logits[0][0].narrow(0, 1000, 15000).fill_(-kInfinity);
  logits.narrow(0, 1, 2).fill_(-kInfinity);
  logits[3][0][4000].fill_(kInfinity);
  const auto run = [&](const at::Tensor& x) {
    const Tensors parts = Op().Run(ops::RunCrossEntropyParts, {x, labels.to(x.device())});
    const at::Tensor m = parts[0].clone();
    m[1].fill_(2);
    return Tensors{parts[0].cpu().to(at::kDouble), parts[1].cpu().to(at::kDouble),
                   Op().Run(ops::RunCrossEntropySums, {parts[1], m})[0].cpu().to(at::kDouble)};
  };
  const Tensors actual = run(logits.to(at::kBFloat16).to(at::kCUDA)), exact = run(logits.to(at::kBFloat16));
  for (size_t i = 0; i < exact.size(); ++i)
    EXPECT_TRUE(at::allclose(actual[i], exact[i], 1e-5, 1e-5, /*equal_nan=*/true)) << i << actual[i] << exact[i];
  EXPECT_EQ(actual[0][1][0].item<double>(), -kInfinity);
  EXPECT_EQ(actual[2][0][1][0].item<double>(), 0);
  EXPECT_TRUE(std::isnan(actual[2][0][2][0].item<double>()));
}

TEST_F(CrossEntropyKernels, TakeNoRows) {
  const at::Tensor logits = Random({0, 2, 64}).to(at::kBFloat16).to(at::kCUDA);
  const at::Tensor labels = at::randint(64, {2, 0}, at::kLong).to(at::kCUDA);
  const Tensors parts = Op().Run(ops::RunCrossEntropyParts, {logits, labels});
  EXPECT_EQ(parts[0].sizes(), at::IntArrayRef({0, 2}));
  EXPECT_EQ(Op().Run(ops::RunCrossEntropySums, {parts[1], parts[0]})[0].sizes(), at::IntArrayRef({2, 0, 2}));
}

}  // namespace
}  // namespace planwright::executor
