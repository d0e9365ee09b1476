// Timing of what libraries do: dense products and attention, and the passes that move values between kernels. The same
// products are timed in plain PyTorch by torch_layers.py, under the same names.
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "tests/executor/ops/run_op.h"
#include "tests/gpu/kernels/kernel_case.h"

namespace planwright::executor {
namespace {

constexpr int64_t kPositions = 8192, kHeads = 32, kKeyHeads = 8, kHeadDim = 128;

at::Tensor Rows(int64_t width) {
  return at::randn({kPositions, 1, width}, at::TensorOptions(at::kCUDA).dtype(at::kBFloat16));
}

void AddProductCases(std::vector<KernelCase>& cases, const std::string& name, int64_t in, int64_t out) {
  const at::Tensor x = Rows(in), dy = Rows(out),
                   weight = at::randn({out, in}, at::TensorOptions(at::kCUDA).dtype(at::kBFloat16)).mul_(0.02),
                   gradient = at::zeros({out, in}, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
  const auto elements = [](int64_t a, int64_t b) { return static_cast<double>(a) * static_cast<double>(b); };
  const double bytes = 2 * (elements(kPositions, in) + elements(kPositions, out) + elements(in, out)),
               flops = 2 * elements(kPositions, in) * static_cast<double>(out);
  cases.push_back({"linear " + name, bytes, flops, 0, [=] { Op().Run(ops::RunLinear, {x}, {weight}); }});
  cases.push_back(
      {"linear_input_grad " + name, bytes, flops, 0, [=] { Op().Run(ops::RunLinearInputGrad, {dy}, {weight}); }});
  // The gradient is fp32, read and written.
  cases.push_back({"linear_weight_grad " + name, bytes + 6 * elements(in, out), flops, 0, [=] {
                     Op().Run(ops::RunLinearWeightGrad, {dy, x}, {}, {gradient});
                   }});
}

void AddAttentionCases(std::vector<KernelCase>& cases) {
  const Attributes heads = {{"q_heads", kHeads}, {"kv_heads", kKeyHeads}, {"head_dim", kHeadDim}};
  const at::Tensor qkv = Rows((kHeads + 2 * kKeyHeads) * kHeadDim), da = Rows(kHeads * kHeadDim);
  const Tensors forward = Op(heads).Run(ops::RunCausalAttention, {qkv});
  // Half of the scores: causal.
  const double flops = 2.0 * kPositions * kPositions * kHeads * kHeadDim,
               bytes = 2.0 * kPositions * (2 * kHeads + 2 * kKeyHeads) * kHeadDim;
  cases.push_back({"causal_attention", bytes, flops, 0, [=] { Op(heads).Run(ops::RunCausalAttention, {qkv}); }});
  cases.push_back({"causal_attention_grad", 2 * bytes, 2.5 * flops, 0, [=] {
                     Op(heads).Run(ops::RunCausalAttentionGrad, {da, qkv, forward[0], forward[1]});
                   }});
}

// Images of a vision encoder, 16 heads. Each has so many patches, in squares of 4, and 8 class tokens.
void AddImageCases(std::vector<KernelCase>& cases, int64_t head_dim, const std::string& sizes_name,
                   const std::vector<int64_t>& patches) {
  constexpr int64_t kImageHeads = 16, kClassTokens = 8;
  const int64_t width = kImageHeads * head_dim;
  const std::string name = std::to_string(head_dim) + ", " + sizes_name;
  const Attributes heads = {{"heads", kImageHeads}, {"head_dim", head_dim}, {"class_tokens", kClassTokens}};
  std::vector<int64_t> sizes;
  double pairs = 0, rows = 0;
  for (const int64_t each : patches) {
    sizes.insert(sizes.end(), {4, each / 4});
    const auto of_image = static_cast<double>(each + kClassTokens);
    rows += of_image, pairs += of_image * of_image;
  }
  const at::Tensor grid = at::tensor(sizes, at::kLong).view({-1, 2});
  const auto values = [&](int64_t columns) {
    return at::randn({static_cast<int64_t>(rows), columns}, at::TensorOptions(at::kCUDA).dtype(at::kBFloat16));
  };
  const at::Tensor qkv = values(3 * width), da = values(width);
  const Tensors forward = Op(heads).Run(ops::RunPackedAttention, {qkv, grid});
  const double flops = 4 * pairs * static_cast<double>(width), bytes = 8 * rows * static_cast<double>(width);
  cases.push_back({"packed_attention " + name, bytes, flops, 0, [=] {
                     Op(heads).Run(ops::RunPackedAttention, {qkv, grid});
                   }});
  cases.push_back({"packed_attention_grad " + name, 2 * bytes, 2.5 * flops, 0, [=] {
                     Op(heads).Run(ops::RunPackedAttentionGrad, {da, qkv, forward[0], forward[1], grid});
                   }});
}

}  // namespace

std::vector<KernelCase> DenseCases() {
  std::vector<KernelCase> cases;
  AddAttentionCases(cases);
  for (const int64_t head_dim : {64, 80}) {
    AddImageCases(cases, head_dim, "2 x 6144", {6144, 6144});
    AddImageCases(cases, head_dim, "6144, 4096, 2048", {6144, 4096, 2048});
    AddImageCases(cases, head_dim, "12 sizes", {3072, 256, 1024, 2048, 512, 1536, 256, 1280, 3072, 768, 640, 1792});
  }
  AddProductCases(cases, "in_proj", 2688, 10304);
  AddProductCases(cases, "out_proj", 4096, 2688);
  AddProductCases(cases, "qkv", 2688, 6144);
  AddProductCases(cases, "o_proj", 4096, 2688);
  AddProductCases(cases, "shared_up", 2688, 3712);
  AddProductCases(cases, "shared_down", 3712, 2688);
  AddProductCases(cases, "lm_head", 2688, 131072);
  const at::Tensor dz = Rows(4096), dxbc = Rows(6144), ddt = Rows(64);
  cases.push_back({"concat", 2 * 2.0 * kPositions * 10304, 0, 0, [=] {
                     Op({{"dim", int64_t{2}}}).Run(ops::RunConcat, {dz, dxbc, ddt});
                   }});
  return cases;
}

}  // namespace planwright::executor
