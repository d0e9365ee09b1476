// The kernels that move rows between tokens and experts, and those between the experts' products.
#include <ATen/ops/bincount.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "tests/executor/kernels/check_kernel.h"

namespace planwright::executor {
namespace {

constexpr int64_t kHidden = 2688, kFfn = 1856;

class ExpertKernels : public Kernels {
 protected:
  // All four operations. Some experts get many slots, others none.
  static void MoveRows(const char* name, int64_t positions, int64_t samples, int64_t k, int64_t experts,
                       int64_t width) {
    SCOPED_TRACE(name);
    const int64_t tokens = positions * samples, slots = tokens * k;
    const at::Tensor n = Random({positions, samples, width}), weights = Random({tokens, k}),
                     ids = at::rand({tokens, k}, at::kDouble).pow(3).mul(experts).to(at::kLong);
    // Rows and weights are copied, not computed.
    const at::Tensor order =
        Check("permute", ops::RunPermuteRows,
              {.inputs = {n, weights, ids}, .wide_inputs = {1}, .tolerances = {.narrow = 0, .wide = 0}})[2]
            .cpu();
    const Attributes attributes = {{"top_k", k}, {"sequence", positions}, {"samples", samples}};
    Check("permute grad", ops::RunPermuteRowsGrad,
          {.attributes = attributes,
           .inputs = {Random({slots, width}), Random({slots}), order},
           .wide_inputs = {1},
           .tolerances = {.wide = 0}});
    Check("unpermute", ops::RunUnpermuteRows, {.attributes = attributes, .inputs = {Random({slots, width}), order}});
    Check("unpermute grad", ops::RunUnpermuteRowsGrad,
          {.attributes = attributes, .inputs = {n, order}, .tolerances = {.narrow = 0}});
  }

  // The four operations of gathered tokens on one of `ranks` ranks. Some experts get many slots, others none.
  static void SelectRows(const char* name, int64_t positions, int64_t samples, int64_t k, int64_t experts,
                         int64_t width, int ranks, int rank) {
    SCOPED_TRACE(name);
    const int64_t tokens = positions * samples, slots = tokens * k, local = experts / ranks;
    const at::Tensor n = Random({positions, samples, width}), weights = Random({tokens, k}),
                     ids = at::rand({tokens, k}, at::kDouble).pow(2).mul(experts).to(at::kLong);
    at::Tensor counts = at::zeros({ranks, local}, at::kLong);
    for (int source = 0; source < ranks; ++source) {
      counts[source] = at::bincount(ids.narrow(0, source * tokens / ranks, tokens / ranks).reshape({-1}), {}, experts)
                           .narrow(0, rank * local, local);
    }
    const Attributes attributes = {{"top_k", k}, {"sequence", positions}, {"samples", samples}};
    const EpCoordinate ep = {rank, ranks};
    const at::Tensor order = Check("select", ops::RunSelectRows,
                                   {.inputs = {n, weights, ids, counts},
                                    .wide_inputs = {1},
                                    .host_inputs = {3},
                                    .tolerances = {.narrow = 0, .wide = 0},
                                    .ep = ep})[2]
                                 .cpu();
    const int64_t rows = order.size(0);
    ASSERT_LT(rows, slots);
    // Sums are wide: nothing is rounded to bf16.
    const Tensors grads =
        Check("select grad", ops::RunSelectRowsGrad,
              {.attributes = attributes, .inputs = {Random({rows, width}), Random({rows}), order}, .wide_inputs = {1}});
    EXPECT_EQ(grads[0].scalar_type(), at::kFloat);
    const Tensors sums =
        Check("combine", ops::RunCombineRows, {.attributes = attributes, .inputs = {Random({rows, width}), order}});
    EXPECT_EQ(sums[0].scalar_type(), at::kFloat);
    Check("combine grad", ops::RunCombineRowsGrad,
          {.attributes = attributes, .inputs = {n, order}, .tolerances = {.narrow = 0}});
  }

  struct Task {
    at::Tensor counts;
    int64_t experts, hidden, ffn;
    bool learns = true, wide_weights = true, gated = false;
  };

  static Task Gated(Task task) {
    task.gated = true;
    return task;
  }

  // Forward and backward. On the way from operands to results, values are rounded to bf16 two or three times: pre
  // (which is then squared), the activation and the result; dact, dpre and the result. The plain form in fp64 rounds
  // none.
  static void Experts(const char* name, const Task& task) {
    SCOPED_TRACE(name);
    const int64_t rows = task.counts.sum().item<int64_t>();
    const bool host = task.counts.dim() == 2;
    const int64_t width = (task.gated ? 2 : 1) * task.ffn;
    const at::Tensor received = Random({rows, task.hidden}), dout = Random({rows, task.hidden}),
                     weights = Random({rows}), pre = Random({rows, width});
    const Tensors matrices = {
        Random({task.experts, width, task.hidden}).div(std::sqrt(static_cast<double>(task.hidden))),
        Random({task.experts, task.hidden, task.ffn}).div(std::sqrt(static_cast<double>(task.ffn)))};
    KernelCheck forward = {
        .inputs = {received, weights, task.counts}, .parameters = matrices, .tolerances = {.narrow = 0.006}};
    KernelCheck backward = {.inputs = {dout, received, weights, pre, task.counts},
                            .parameters = matrices,
                            .tolerances = {.narrow = 0.0045, .wide = 0.003, .gradients = 0.004}};
    if (task.gated) forward.attributes = backward.attributes = {{"ffn", task.ffn}};
    if (task.wide_weights) forward.wide_inputs = {1}, backward.wide_inputs = {2};
    if (host) forward.host_inputs = {2}, backward.host_inputs = {4};
    if (task.learns) backward.gradients_like = matrices;
    const Tensors out = Check("experts", task.gated ? ops::RunGatedExperts : ops::RunExperts, forward);
    const Tensors grads = Check("experts grad", task.gated ? ops::RunGatedExpertsGrad : ops::RunExpertsGrad, backward);
    EXPECT_EQ(out[0].scalar_type(), at::kBFloat16);
    EXPECT_EQ(out[1].scalar_type(), at::kBFloat16);
    EXPECT_EQ(grads[1].scalar_type(), task.wide_weights ? at::kFloat : at::kBFloat16);
    if (task.learns) FirstGradients(task, {dout, received, weights, pre, task.counts}, matrices, host);
  }

  // The first gradients of a step are written over whatever was there, and are those that are added to zero.
  static void FirstGradients(const Task& task, Tensors inputs, Tensors matrices, bool host) {
    const auto narrow = [](const at::Tensor& x) { return x.to(at::kCUDA, at::kBFloat16); };
    for (size_t i = 0; i < 4; ++i) inputs[i] = narrow(inputs[i]);
    if (task.wide_weights) inputs[2] = inputs[2].to(at::kFloat);
    if (!host) inputs[4] = inputs[4].to(at::kCUDA);
    Tensors left, added;
    for (at::Tensor& matrix : matrices) {
      matrix = narrow(matrix);
      left.push_back(at::full(matrix.sizes(), NAN, matrix.options().dtype(at::kFloat)));
      added.push_back(at::full(matrix.sizes(), 0, matrix.options().dtype(at::kFloat)));
    }
    Op op(task.gated ? Attributes{{"ffn", task.ffn}} : Attributes{});
    const Handler handler = task.gated ? ops::RunGatedExpertsGrad : ops::RunExpertsGrad;
    op.Run(handler, inputs, matrices, added);
    op.Writing().Run(handler, inputs, matrices, left);
    for (size_t i = 0; i < left.size(); ++i) EXPECT_TRUE(left[i].equal(added[i])) << "gradient " << i;
  }
};

TEST_F(ExpertKernels, MoveRows) {
  MoveRows("real widths", 75, 2, 6, 128, kHidden);
  MoveRows("one row of 16 bytes", 1, 1, 1, 1, 8);
  MoveRows("rows that fill no warp", 301, 3, 5, 7, 24);
  MoveRows("all experts that the kernels take", 1001, 1, 16, 512, 40);
  MoveRows("rows in several parts", 5, 2, 3, 4, 4104);
  MoveRows("more slots than one part of 256 for each of 128 blocks", 8192, 1, 6, 64, 8);
}

TEST_F(ExpertKernels, SelectRows) {
  SelectRows("real widths", 76, 2, 6, 128, kHidden, 2, 1);
  SelectRows("rows that fill no warp", 300, 3, 5, 8, 24, 4, 2);
  SelectRows("all experts that the kernels take", 1000, 1, 16, 510, 40, 2, 0);
  SelectRows("more slots than one part of 256 for each of 128 blocks", 8192, 1, 6, 64, 8, 8, 7);
  SelectRows("a row in several parts", 6, 2, 3, 4, 4104, 2, 1);
  SelectRows("the plain form, for an odd width", 20, 2, 3, 8, 37, 2, 0);
  SelectRows("the plain form, for many experts", 64, 1, 4, 1024, 16, 2, 1);
}

// No slot has an expert of this rank: nothing comes, and every sum is 0.
TEST_F(ExpertKernels, SelectNoRows) {
  const at::Tensor n = Random({8, 1, 16}).to(at::kCUDA, at::kBFloat16),
                   weights = Random({8, 2}).to(at::kCUDA, at::kFloat),
                   ids = at::zeros({8, 2}, at::TensorOptions(at::kCUDA).dtype(at::kLong));
  const Tensors none = Op().OnEpRank(1, 2).Run(ops::RunSelectRows, {n, weights, ids, at::zeros({2, 2}, at::kLong)});
  EXPECT_EQ(none[0].sizes(), (std::vector<int64_t>{0, 16}));
  const Attributes attributes = {{"top_k", int64_t{2}}, {"sequence", int64_t{8}}, {"samples", int64_t{1}}};
  const at::Tensor sum = Op(attributes).Run(ops::RunCombineRows, {none[0], none[2]})[0];
  EXPECT_TRUE(sum.equal(at::zeros({8, 1, 16}, sum.options())));
  EXPECT_EQ(sum.scalar_type(), at::kFloat);
}

TEST_F(ExpertKernels, MoveRowsInThePlainForm) { MoveRows("an odd width", 20, 2, 3, 8, 37); }

// Rows that do not start at 16 bytes go through the plain form.
TEST_F(ExpertKernels, MoveRowsOfAnyAddress) {
  const int64_t tokens = 40, width = 64, k = 3;
  const auto narrow = at::TensorOptions(at::kCUDA).dtype(at::kBFloat16);
  const at::Tensor n = Random({tokens, 1, width}).to(at::kCUDA, at::kBFloat16),
                   shifted = at::empty({n.numel() + 1}, narrow).narrow(0, 1, n.numel()).view(n.sizes());
  shifted.copy_(n);
  const at::Tensor ids = at::rand({tokens, k}, at::kDouble).mul(9).to(at::kCUDA, at::kLong),
                   weights = Random({tokens, k}).to(at::kCUDA, at::kFloat);
  const Tensors fast = Op().Run(ops::RunPermuteRows, {n, weights, ids}),
                plain = Op().Run(ops::RunPermuteRows, {shifted, weights, ids});
  for (size_t i = 0; i < fast.size(); ++i) EXPECT_TRUE(fast[i].equal(plain[i])) << i;
}

TEST_F(ExpertKernels, ExpertsOfOneSource) {
  const at::Tensor few = at::tensor({70, 0, 81}, at::kLong);  // no row goes to the second
  Experts("real widths", {few, 3, kHidden, kFfn});
  Experts("frozen", {few, 3, kHidden, kFfn, false});
  Experts("half of the width", {few, 3, 64, 936});
  Experts("few rows", {at::tensor({0, 30}, at::kLong), 2, 64, 40});
}

TEST_F(ExpertKernels, ExpertsOfSeveralSources) {
  const at::Tensor counts = at::tensor({20, 0, 31, 10, 0, 40}, at::kLong).view({2, 3});
  Experts("counts on the host", {counts, 3, 264, 136});
  Experts("frozen", {counts, 3, 264, 136, false});
  Experts("one expert", {at::tensor({20, 0, 31}, at::kLong).view({3, 1}), 1, 264, 136});
  // On Hopper rows of these widths are not sorted; with the second, for half of the products.
  Experts("real widths", {counts, 3, kHidden, kFfn});
  Experts("one width", {counts, 3, 256, 136});
  Experts("not sorted and frozen", {counts, 3, 256, 192, false});
  Experts("more rows", {at::tensor({300, 77, 0, 130, 8, 250}, at::kLong).view({2, 3}), 3, 256, 192});
}

TEST_F(ExpertKernels, ExpertsInThePlainForm) {
  const at::Tensor few = at::tensor({30, 0, 21}, at::kLong);
  Experts("an odd width", {few, 3, 64, 36});
  Experts("an odd width on the host", {few.view({1, 3}), 3, 64, 36});
  Experts("weights in bf16", {few, 3, 64, 40, true, false});
}

TEST_F(ExpertKernels, GatedExperts) {
  const at::Tensor few = at::tensor({70, 0, 81}, at::kLong),
                   sources = at::tensor({20, 0, 31, 10, 0, 40}, at::kLong).view({2, 3});
  Experts("real widths", Gated({few, 3, 2048, 768}));
  Experts("frozen", Gated({few, 3, 2048, 768, false}));
  Experts("a wide gate", Gated({few, 3, 64, 1536}));
  Experts("few rows", Gated({at::tensor({0, 30}, at::kLong), 2, 64, 40}));
  Experts("counts on the host", Gated({sources, 3, 264, 136}));
  Experts("rows that are not sorted", Gated({sources, 3, 256, 192}));
  Experts("not sorted and frozen", Gated({sources, 3, 256, 192, false}));
  Experts("one width", Gated({sources, 3, 256, 136}));
  Experts("frozen, counts on the host", Gated({sources, 3, 264, 136, false}));
}

TEST_F(ExpertKernels, GatedExpertsInThePlainForm) {
  const at::Tensor few = at::tensor({30, 0, 21}, at::kLong);
  Experts("an odd width", Gated({few, 3, 64, 36}));
  Experts("an odd width on the host", Gated({few.view({1, 3}), 3, 64, 36}));
  Experts("weights in bf16", Gated({few, 3, 64, 40, true, false}));
}

// Gradient buffers are parts of a flat buffer and start anywhere.
TEST_F(ExpertKernels, GradientsOfAnyAddress) {
  const int64_t experts = 2, rows = 60, hidden = 64, ffn = 40;
  const auto on_gpu = [](const at::Tensor& x) { return x.to(at::kCUDA, at::kBFloat16); };
  const at::Tensor counts = at::tensor({25, 35}, at::kLong).to(at::kCUDA),
                   weights = Random({rows}).to(at::kCUDA, at::kFloat);
  const Tensors matrices = {on_gpu(Random({experts, ffn, hidden})), on_gpu(Random({experts, hidden, ffn}))},
                inputs = {on_gpu(Random({rows, hidden})), on_gpu(Random({rows, hidden})), weights,
                          on_gpu(Random({rows, ffn})), counts};
  const auto gradients = [&](int64_t shift) {
    Tensors made;
    for (const at::Tensor& matrix : matrices) {
      const at::Tensor flat = at::full({matrix.numel() + shift}, 0.5, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
      made.push_back(flat.narrow(0, shift, matrix.numel()).view(matrix.sizes()));
    }
    Op().Run(ops::RunExpertsGrad, inputs, matrices, made);
    return made;
  };
  const Tensors aligned = gradients(0), shifted = gradients(1);
  for (size_t i = 0; i < aligned.size(); ++i) EXPECT_LT(NormGap(shifted[i] - 0.5, aligned[i] - 0.5), 1e-5) << i;
}

TEST_F(ExpertKernels, NoRows) {
  const auto narrow = at::TensorOptions(at::kCUDA).dtype(at::kBFloat16);
  const Tensors matrices = {at::zeros({2, 16, 32}, narrow), at::zeros({2, 32, 16}, narrow)};
  const at::Tensor none = at::empty({0, 32}, narrow), weights = at::empty({0}, narrow.dtype(at::kFloat)),
                   counts = at::zeros({2}, narrow.dtype(at::kLong));
  const Tensors out = Op().Run(ops::RunExperts, {none, weights, counts}, matrices);
  EXPECT_EQ(out[0].sizes(), at::IntArrayRef({0, 32}));
  EXPECT_EQ(out[1].sizes(), at::IntArrayRef({0, 16}));
  const Tensors grads = Op().Run(ops::RunExpertsGrad, {none, none, weights, out[1], counts}, matrices);
  EXPECT_EQ(grads[0].sizes(), at::IntArrayRef({0, 32}));
  EXPECT_EQ(grads[1].sizes(), at::IntArrayRef({0}));
  for (const at::Tensor& known : {counts, counts.cpu().view({1, 2})}) {
    const Tensors left = {at::full({2, 16, 32}, NAN, narrow.dtype(at::kFloat)),
                          at::full({2, 32, 16}, NAN, narrow.dtype(at::kFloat))};
    Op().Writing().Run(ops::RunExpertsGrad, {none, none, weights, out[1], known}, matrices, left);
    for (const at::Tensor& gradient : left) EXPECT_EQ(gradient.abs().max().item<float>(), 0);
  }

  Op gated({{"ffn", int64_t{8}}});
  const Tensors two = {matrices[0], at::zeros({2, 32, 8}, narrow)};
  const Tensors its = gated.Run(ops::RunGatedExperts, {none, weights, counts}, two);
  EXPECT_EQ(its[0].sizes(), at::IntArrayRef({0, 32}));
  EXPECT_EQ(its[1].sizes(), at::IntArrayRef({0, 16}));
  EXPECT_EQ(gated.Run(ops::RunGatedExpertsGrad, {none, none, weights, its[1], counts}, two)[0].sizes(),
            at::IntArrayRef({0, 32}));
}

}  // namespace
}  // namespace planwright::executor
