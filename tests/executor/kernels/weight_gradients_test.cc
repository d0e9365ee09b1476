// Gradients of weights that are added to fp32 buffers on the GPU: embedding table and linear.
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "tests/executor/kernels/check_kernel.h"

namespace planwright::executor {
namespace {

const Attributes kImageToken5 = {{"image_token", int64_t{5}}};

class WeightGradients : public Kernels {
 protected:
  static void CheckEmbedding(const at::Tensor& tokens, int64_t rows, int64_t width) {
    SCOPED_TRACE(testing::Message() << tokens.sizes() << " of " << rows << " rows of " << width);
    const at::Tensor de = Random({tokens.size(1), tokens.size(0), width});
    Check("embed grad", ops::RunEmbedTokensGrad,
          {.attributes = kImageToken5, .inputs = {de, tokens}, .gradients_like = {Random({rows, width})}});
  }
};

// Tokens that repeat, image tokens, and ids of other ranks' rows.
TEST_F(WeightGradients, OfTheEmbedding) {
  at::manual_seed(3);
  CheckEmbedding(at::randint(-20, 80, {3, 37}, at::kLong), 64, 2688);
  CheckEmbedding(at::randint(0, 5000, {1, 301}, at::kLong), 4096, 1048);
  CheckEmbedding(at::randint(0, 4, {2, 200}, at::kLong), 8, 8);     // each token 100 times
  CheckEmbedding(at::tensor({7}, at::kLong).view({1, 1}), 16, 64);  // a single token
}

TEST_F(WeightGradients, OfImageTokensAloneAreNothing) {
  const at::Tensor de = Random({2, 1, 64}).to(at::kBFloat16).to(at::kCUDA),
                   tokens = at::tensor({5, 5}, at::kLong).view({1, 2}).to(at::kCUDA),
                   gradient = at::zeros({16, 64}, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
  Op(kImageToken5).Run(ops::RunEmbedTokensGrad, {de, tokens}, {}, {gradient});
  EXPECT_EQ(gradient.abs().max().item<float>(), 0);
}

TEST_F(WeightGradients, OfAnEmbeddingOfOddWidthInThePlainForm) {
  at::manual_seed(3);
  CheckEmbedding(at::randint(0, 40, {2, 21}, at::kLong), 32, 37);
}

// The sum is fp32, and no product is rounded to bf16 on the way.
TEST_F(WeightGradients, OfLinear) {
  for (const int64_t rows : {1, 37, 512}) {
    const at::Tensor dy = Random({rows, 2, 136}), x = Random({rows, 2, 264});
    Check("linear weight grad", ops::RunLinearWeightGrad,
          {.inputs = {dy, x}, .gradients_like = {Random({136, 264}), Random({136})}});
    Check("bias grad", ops::RunBiasGrad, {.inputs = {dy}, .gradients_like = {Random({136})}});
  }
}

// A gradient in the middle of a buffer, aligned to 4 bytes only.
TEST_F(WeightGradients, OfLinearInABufferThatIsCutAnywhere) {
  const at::Tensor dy = Random({64, 1, 24}).to(at::kBFloat16), x = Random({64, 1, 40}).to(at::kBFloat16);
  const at::Tensor buffer = at::zeros({24 * 40 + 2}, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
  const at::Tensor gradient = buffer.narrow(0, 1, 24 * 40).view({24, 40}), exact = at::zeros({24, 40}, at::kDouble);
  Op().Run(ops::RunLinearWeightGrad, {dy.to(at::kCUDA), x.to(at::kCUDA)}, {}, {gradient});
  Op().Run(ops::RunLinearWeightGrad, {dy.to(at::kDouble), x.to(at::kDouble)}, {}, {exact});
  EXPECT_LE(NormGap(gradient, exact), 1e-5);
  EXPECT_EQ(buffer[0].item<float>(), 0);
  EXPECT_EQ(buffer[24 * 40 + 1].item<float>(), 0);
}

}  // namespace
}  // namespace planwright::executor
