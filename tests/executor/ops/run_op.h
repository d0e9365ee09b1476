// Runs one handler on tensors made by hand, and compares tensors.
#pragma once

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "executor/ops/handler.h"
#include "tests/executor/ops/bound_form.h"

namespace planwright::executor {

using Handler = Tensors (*)(const ComputeContext&);

// The attributes of an instruction and the context of its call; runs any operation with them, named by its plain form,
// in the form that the executor would choose.
class Op {
 public:
  explicit Op(Attributes attributes = {}) {
    instruction_.attributes = std::move(attributes);
    plan_.budget = {.global_samples = 4, .microbatches = 1, .block_samples = 4};
  }
  Op& OnTpRank(int rank, int tp) {
    call_.tp = tp;
    call_.tp_rank = rank;
    return *this;
  }
  Op& OnCpRank(int rank, int cp) {
    call_.cp = cp;
    call_.cp_rank = rank;
    return *this;
  }
  Op& OnEpRank(int rank, int ep) {
    call_.ep = ep;
    call_.ep_rank = rank;
    return *this;
  }
  Op& OnLane(int lane, int lanes) {
    call_.lanes = lanes;
    call_.lane = lane;
    return *this;
  }
  Op& InLayer(int layer) {
    call_.layer = layer;
    return *this;
  }
  Op& AtStep(int64_t step) {
    call_.step = step;
    return *this;
  }

  // The output may take over the memory of an input.
  Op& Overwriting() {
    overwrites_ = true;
    return *this;
  }
  // The addition is the first of its step.
  Op& Writing() {
    writes_ = true;
    return *this;
  }
  Op& WithOutputs(std::vector<Output> outputs) {
    instruction_.outputs = std::move(outputs);
    return *this;
  }

  Tensors Run(Handler handler, const Tensors& inputs, const Tensors& parameters = {}, const Tensors& gradients = {}) {
    call_.plan = &plan_;
    return RunBound(handler, {instruction_, call_, inputs, parameters, gradients, overwrites_, writes_});
  }

 private:
  Instruction instruction_;
  Plan plan_;
  CallContext call_;
  bool overwrites_ = false, writes_ = false;
};

// Normal numbers, the same in every run: each test seeds the generator.
inline at::Tensor Random(at::IntArrayRef shape) {
  static const testing::TestInfo* seeded = nullptr;
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  if (test == nullptr || test != seeded) at::manual_seed(7);
  seeded = test;
  return at::randn(shape, at::kDouble);
}

// A tensor whose gradient autograd collects.
inline at::Tensor Leaf(const at::Tensor& x) { return x.detach().clone().set_requires_grad(true); }

// Gradient buffers that are not zero: handlers must add to them.
inline Tensors FilledGradients(const Tensors& parameters) {
  Tensors gradients;
  for (const at::Tensor& parameter : parameters) gradients.push_back(parameter.detach().clone().fill_(0.5));
  return gradients;
}
inline at::Tensor Added(const at::Tensor& gradient) { return gradient - 0.5; }

// The largest difference, relative to the largest expected value. Infinite if shapes differ or a value is not finite.
inline double Gap(const at::Tensor& actual, const at::Tensor& expected) {
  if (actual.sizes() != expected.sizes()) return std::numeric_limits<double>::infinity();
  if (actual.numel() == 0) return 0;
  const at::Tensor a = actual.detach().to(at::kDouble), b = expected.detach().to(at::kDouble);
  const double gap = (a - b).abs().max().item<double>(), size = b.abs().max().item<double>();
  if (!(gap < std::numeric_limits<double>::infinity())) return std::numeric_limits<double>::infinity();
  return size > 0 ? gap / size : gap;
}

// The norm of the difference, relative to the norm of what is expected.
inline double NormGap(const at::Tensor& actual, const at::Tensor& expected) {
  const at::Tensor a = actual.cpu().to(at::kDouble), b = expected.cpu().to(at::kDouble);
  return (a - b).norm().item<double>() / b.norm().item<double>();
}

#define EXPECT_SAME(actual, expected) EXPECT_LT(Gap(actual, expected), 1e-10)

}  // namespace planwright::executor
