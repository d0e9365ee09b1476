// Runs an operation on the GPU in bf16 and on the CPU in fp64, on the same numbers. The second is the plain form, which
// tests/executor/ops compares with autograd.
#pragma once

#include <ATen/Context.h>
#include <ATen/ops/full.h>

#include <set>

#include "tests/executor/ops/run_op.h"

namespace planwright::executor {

// Norm of the difference over the norm of what is expected. A number rounded to bf16 once is off by 0.0017 on average;
// wide results are off by roundings of fp32. What follows from values that were rounded inside is off by a bit more.
struct Tolerances {
  double narrow = 0.0025;   // outputs in bf16
  double wide = 1e-5;       // outputs in fp32
  double gradients = 1e-5;  // gradients of weights, which are fp32
};

struct EpCoordinate {
  int rank = 0, of = 1;
};

struct KernelCheck {
  Attributes attributes = {};
  Tensors inputs, parameters = {}, gradients_like = {};     // fp64 on the CPU, or integers
  std::set<size_t> wide_inputs = {}, wide_parameters = {};  // fp32 on the GPU instead of bf16
  std::set<size_t> host_inputs = {};                        // stay in host memory
  Tolerances tolerances = {};
  EpCoordinate ep = {};
};

class Kernels : public testing::Test {
 protected:
  void SetUp() override {
    if (!at::hasCUDA()) GTEST_SKIP() << "no GPU";
    // New tensors are full of NaN, so an element that a kernel forgets shows.
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  }
  void TearDown() override { at::globalContext().setDeterministicAlgorithms(false, false); }

  // Compares outputs and gradients, which are added to 0.5. Returns the outputs of the GPU, in their dtypes.
  static Tensors Check(const char* name, Handler handler, const KernelCheck& check) {
    SCOPED_TRACE(name);
    Tensors gradients, exact_gradients;
    for (const at::Tensor& like : check.gradients_like) {
      gradients.push_back(at::full(like.sizes(), 0.5, at::TensorOptions(at::kCUDA).dtype(at::kFloat)));
      exact_gradients.push_back(at::full(like.sizes(), 0.5, at::kDouble));
    }
    const auto exactly = [](const at::Tensor& x, bool wide) {
      return x.is_floating_point() ? x.to(wide ? at::kFloat : at::kBFloat16).to(at::kDouble) : x;
    };
    const auto on_gpu = [](const at::Tensor& x, bool wide, bool host) {
      const at::Tensor typed = x.is_floating_point() ? x.to(wide ? at::kFloat : at::kBFloat16) : x;
      return host ? typed : typed.to(at::kCUDA);
    };
    Tensors inputs, exact_inputs, parameters, exact_parameters;
    for (size_t i = 0; i < check.inputs.size(); ++i) {
      exact_inputs.push_back(exactly(check.inputs[i], check.wide_inputs.contains(i)));
      inputs.push_back(on_gpu(check.inputs[i], check.wide_inputs.contains(i), check.host_inputs.contains(i)));
    }
    for (size_t i = 0; i < check.parameters.size(); ++i) {
      exact_parameters.push_back(exactly(check.parameters[i], check.wide_parameters.contains(i)));
      parameters.push_back(on_gpu(check.parameters[i], check.wide_parameters.contains(i), false));
    }
    Op op(check.attributes);
    op.OnEpRank(check.ep.rank, check.ep.of);
    const Tensors exact = op.Run(handler, exact_inputs, exact_parameters, exact_gradients);
    const Tensors out = op.Run(handler, inputs, parameters, gradients);
    EXPECT_EQ(out.size(), exact.size());
    for (size_t i = 0; i < std::min(out.size(), exact.size()); ++i) {
      SCOPED_TRACE("output " + std::to_string(i));
      EXPECT_EQ(out[i].sizes(), exact[i].sizes());
      if (out[i].sizes() != exact[i].sizes()) continue;
      if (!exact[i].is_floating_point()) {
        EXPECT_TRUE(out[i].cpu().equal(exact[i]));
        continue;
      }
      const double gap = NormGap(out[i], exact[i]);
      // Not EXPECT_LE(gap, ...): NaN must fail.
      EXPECT_TRUE(gap <= (out[i].scalar_type() == at::kBFloat16 ? check.tolerances.narrow : check.tolerances.wide))
          << gap;
    }
    for (size_t i = 0; i < gradients.size(); ++i) {
      const double gap = NormGap(gradients[i] - 0.5, exact_gradients[i] - 0.5);
      EXPECT_TRUE(gap <= check.tolerances.gradients) << "gradient " << i << ": " << gap;
    }
    // The same bits twice: no kernel adds in an order that the scheduler decides.
    Tensors again_gradients;
    for (const at::Tensor& like : check.gradients_like)
      again_gradients.push_back(at::full(like.sizes(), 0.5, at::TensorOptions(at::kCUDA).dtype(at::kFloat)));
    const Tensors again = op.Run(handler, inputs, parameters, again_gradients);
    for (size_t i = 0; i < out.size(); ++i) EXPECT_TRUE(again[i].equal(out[i])) << "output " << i << " differs";
    for (size_t i = 0; i < gradients.size(); ++i)
      EXPECT_TRUE(again_gradients[i].equal(gradients[i])) << "gradient " << i << " differs";
    return out;
  }
};

}  // namespace planwright::executor
