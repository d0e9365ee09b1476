// What operations take beside their outputs is no more than ops.def says (workspace).
#include <ATen/Context.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include "executor/kernels/gated_norm.h"
#include "executor/kernels/layer_norm.h"
#include "executor/kernels/rms_norm.h"
#include "planner/plan/op_costs.h"
#include "tests/executor/kernels/check_kernel.h"

namespace planwright::executor {
namespace {

class Workspaces : public Kernels {
 protected:
  static at::Tensor Bf16(at::IntArrayRef shape) {
    return at::randn(shape, at::TensorOptions(at::kCUDA).dtype(at::kBFloat16));
  }
  static at::Tensor Fp32(at::IntArrayRef shape) { return at::ones(shape, at::TensorOptions(at::kCUDA)); }

  void Expect(OpKind kind, const Attributes& attributes, const Tensors& inputs, const Tensors& parameters = {},
              const Tensors& gradients = {}) const {
    const auto run = [&] { return Op(attributes).Run(PlainFormOf(kind), inputs, parameters, gradients); };
    const auto held = [] { return c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocated_bytes[0]; };
    run();  // libraries take their own workspaces
    c10::cuda::device_synchronize();
    c10::cuda::CUDACachingAllocator::resetPeakStats(0);
    const int64_t before = held().current;
    const Tensors made = run();
    Instruction instruction{.kind = kind, .attributes = attributes};
    instruction.inputs.assign(inputs.size(), "value"), instruction.gradients.assign(gradients.size(), "slot");
    std::vector<std::vector<double>> shapes;
    double planned = 8 << 20;  // blocks of the allocator are larger than what is asked for
    for (const at::Tensor& input : inputs) shapes.emplace_back(input.sizes().begin(), input.sizes().end());
    for (const at::Tensor& output : made) {
      shapes.emplace_back(output.sizes().begin(), output.sizes().end());
      planned += static_cast<double>(output.nbytes());
    }
    planned += OpWorkspace(instruction, shapes, deterministic_);
    const auto taken = static_cast<double>(held().peak - before);
    EXPECT_LE(taken / 1e6, planned / 1e6) << "MB of " << OpName(kind);
    std::printf("%s takes %.0f of %.0f MB\n", std::string(OpName(kind)).c_str(), taken / 1e6, planned / 1e6);
  }

  void ExpectAttention(int64_t positions, int64_t q, int64_t kv, int64_t head_dim) const {
    const Attributes attributes = {{"q_heads", q}, {"kv_heads", kv}, {"head_dim", head_dim}};
    const at::Tensor qkv = Bf16({positions, 1, (q + 2 * kv) * head_dim}), da = Bf16({positions, 1, q * head_dim});
    const Tensors made = Op(attributes).Run(PlainFormOf(OpKind::kCausalAttention), {qkv});
    Expect(OpKind::kCausalAttentionGrad, attributes, {da, qkv, made[0], made[1]});
  }

  void BeDeterministic() {
    deterministic_ = true;
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  }

  bool deterministic_ = false;
};

TEST_F(Workspaces, OfAttention) {
  at::globalContext().setDeterministicAlgorithms(false, false);
  ExpectAttention(4096, 32, 32, 128);
  ExpectAttention(4096, 32, 1, 128);
  ExpectAttention(2048, 16, 2, 256);
}

// LibTorch's kernel keeps a sum of dq for each part of the keys: 33 on an H200 with 4 heads.
TEST_F(Workspaces, OfDeterministicAttention) {
  BeDeterministic();
  ExpectAttention(2048, 4, 4, 128);
  ExpectAttention(4096, 32, 8, 128);
  ExpectAttention(2048, 8, 8, 80);
}

// No kernel takes these sizes.
TEST_F(Workspaces, OfPlainForms) {
  at::globalContext().setDeterministicAlgorithms(false, false);
  const at::Tensor x = Bf16({2048, 8192}), weight = Bf16({8192}), ones = Fp32({2048, 1});
  Expect(OpKind::kRmsNorm, {{"eps", 1e-6}}, {x}, {weight});
  Expect(OpKind::kRmsNormGrad, {}, {x, x, ones}, {weight}, {Fp32({8192})});
  Expect(OpKind::kLayerNorm, {{"eps", 1e-6}}, {x}, {weight, weight});
  Expect(OpKind::kLayerNormGrad, {}, {x, x, ones, ones}, {weight}, {Fp32({8192}), Fp32({8192})});
  const Attributes one_group = {{"inner", int64_t{4096}}, {"group_size", int64_t{4096}}, {"eps", 1e-5}};
  const at::Tensor y = Bf16({2048, 1, 4096}), z = Bf16({2048, 1, 8512}), wide = Bf16({4096});
  Expect(OpKind::kGatedNorm, one_group, {y, z}, {wide});
  Expect(OpKind::kGatedNormGrad, one_group, {y, y, z, Fp32({2048, 1, 1})}, {wide}, {Fp32({4096})});
}

// Needs no GPU.
TEST(PlannedPartialSums, AreAllThatKernelsWrite) {
  constexpr int64_t kRows = int64_t{1} << 20;
  const auto planned = [](OpKind kind, const Attributes& attributes, int64_t width) {
    Instruction instruction{.kind = kind, .attributes = attributes};
    instruction.inputs.assign(4, "value"), instruction.gradients = {"slot"};
    const std::vector<double> rows = {static_cast<double>(kRows), static_cast<double>(width)};
    return OpWorkspace(instruction, {rows, rows, rows, rows}, false);
  };
  for (const int64_t width : {8, 256, 264, 2688, 6144}) {
    EXPECT_LE(4 * width * ops::RmsNormPartials({kRows, width}), planned(OpKind::kRmsNormGrad, {}, width)) << width;
    EXPECT_LE(8 * width * ops::LayerNormPartials({kRows, width}), planned(OpKind::kLayerNormGrad, {}, width)) << width;
  }
  for (const int64_t groups : {1, 2, 3, 4, 7, 8, 16}) {
    const int64_t inner = groups * 512;
    const Attributes attributes = {{"inner", inner}, {"group_size", int64_t{512}}};
    EXPECT_LE(4 * inner * ops::GatedNormPartials({.rows = kRows, .inner = inner, .group = 512}),
              planned(OpKind::kGatedNormGrad, attributes, inner))
        << groups;
  }
}

// Sums of products in bf16 are fp32 until the one rounding, also where cuBLAS makes parts of them apart.
class Products : public Kernels {};
TEST_F(Products, AreRoundedOnce) {
  const at::Tensor x = Random({64, 65536}).to(at::kBFloat16), weight = Random({256, 65536}).div(256).to(at::kBFloat16);
  const at::Tensor exact = x.to(at::kDouble).matmul(weight.to(at::kDouble).t());
  const double rounding = NormGap(exact.to(at::kBFloat16), exact);
  const at::Tensor y = Op().Run(ops::RunLinear, {x.to(at::kCUDA)}, {weight.to(at::kCUDA)})[0];
  std::printf("gap %.6f, one rounding %.6f\n", NormGap(y, exact), rounding);
  EXPECT_LE(NormGap(y, exact), 1.03 * rounding);
}

}  // namespace
}  // namespace planwright::executor
