// Timing of the loss, of gradients that are added to buffers, and of the end of a step. Bytes of the step are for 1e9
// elements.
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <memory>

#include "executor/optimizer/optimizer.h"
#include "tests/executor/ops/run_op.h"
#include "tests/gpu/kernels/kernel_case.h"

namespace planwright::executor {
namespace {

constexpr int64_t kPositions = 8192, kVocabulary = 131072, kHidden = 2688, kProjected = 10304,
                  kElements = 1'000'000'000;

at::TensorOptions Narrow() { return at::TensorOptions(at::kCUDA).dtype(at::kBFloat16); }

void AddLossCases(std::vector<KernelCase>& cases) {
  const at::Tensor logits = at::randn({kPositions, 1, kVocabulary}, Narrow()),
                   labels = at::randint(kVocabulary, {1, kPositions}, at::TensorOptions(at::kCUDA).dtype(at::kLong)),
                   mask = at::ones({1, kPositions}, Narrow());
  const Tensors parts = Op().Run(ops::RunCrossEntropyParts, {logits, labels});
  const at::Tensor m = parts[0], sums = Op().Run(ops::RunCrossEntropySums, {parts[1], m})[0];
  const double bytes = 2.0 * kPositions * kVocabulary;
  cases.push_back({"cross_entropy_parts", bytes, 0, 0, [=] { Op().Run(ops::RunCrossEntropyParts, {logits, labels}); }});
  cases.push_back({"cross_entropy_sums", 4.0 * kPositions * (4 + 1 + 2), 0, 0, [=] {
                     Op().Run(ops::RunCrossEntropySums, {parts[1], m});
                   }});
  // In place, as in a step. From the second call on it reads gradients, which takes the same time.
  cases.push_back({"cross_entropy_grad", 2 * bytes, 0, 0, [=] {
                     Op().Overwriting().Run(ops::RunCrossEntropyGrad, {logits, m, sums, labels, mask});
                   }});
}

void AddWeightGradientCases(std::vector<KernelCase>& cases) {
  const at::TensorOptions wide = at::TensorOptions(at::kCUDA).dtype(at::kFloat);
  const at::Tensor de = at::randn({kPositions, 1, kHidden}, Narrow()),
                   tokens = at::randint(kVocabulary, {1, kPositions}, at::TensorOptions(at::kCUDA).dtype(at::kLong)),
                   table = at::zeros({kVocabulary, kHidden}, wide);
  const double rows = static_cast<double>(kPositions) * kHidden;
  cases.push_back({"embed_tokens_grad", rows * (2 + 8), 0, 0.61, [=] {
                     Op({{"image_token", int64_t{-1}}}).Run(ops::RunEmbedTokensGrad, {de, tokens}, {}, {table});
                   }});
  const at::Tensor dy = at::randn({kPositions, 1, kProjected}, Narrow()),
                   gradient = at::zeros({kProjected, kHidden}, wide);
  cases.push_back({"linear_weight_grad", 2 * rows + 2.0 * kPositions * kProjected + 8.0 * kProjected * kHidden,
                   2.0 * kPositions * kProjected * kHidden, 0, [=] {
                     Op().Run(ops::RunLinearWeightGrad, {dy, de}, {}, {gradient});
                   }});
}

// One bucket in bf16, half of which decays.
struct Step {
  static Plan MakePlan() {
    Plan plan;
    plan.precision = "bf16";
    plan.world_size = 1;
    Module module;
    module.name = "m";
    for (const bool decay : {true, false}) {
      const std::string name = decay ? "w" : "b";
      module.parameters.push_back({.name = "m." + name, .shape = {kElements / 2}, .decay = decay});
      module.storages.push_back({.frame = "m.l",
                                 .slot = name,
                                 .shape = {kElements / 2},
                                 .parameters = {decay ? 0 : 1},
                                 .bucket = 0,
                                 .offset = decay ? 0 : kElements / 2});
    }
    module.buckets = {{.name = "m.0", .elements = kElements, .dtype = DType::kBf16, .master = DType::kFp32}};
    plan.modules = {module};
    plan.accumulators = {{"$integers", DType::kInt64, 1, {"loss_tokens"}}, {"$reals", DType::kFp64, 1, {"norm.m"}}};
    plan.optimizer = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .clip_grad_norm = 1.0};
    return plan;
  }
  Step() : module(plan, plan.modules[0], 0, at::kCUDA), state(plan, at::kCUDA), bucket(module.buckets()[0]) {
    bucket.gradients.normal_();
    bucket.parameters.normal_();
    module.RefreshMasters();
    state.learning_rate = 1e-4, state.weight_decay = 0.1;
    state.loss_tokens.fill_(1), state.applied_steps.fill_(10);
  }

  const Plan plan = MakePlan();
  ModuleState module;
  StepState state;
  BucketState& bucket;
};

void AddStepCases(std::vector<KernelCase>& cases) {
  const auto step = std::make_shared<Step>();
  const BucketForms& forms = BucketFormsOn(at::kCUDA);
  constexpr double kBillion = 1e9;
  // Zeroing comes last: the others work on numbers.
  cases.push_back({"square_norm of 1e9", 4 * kBillion, 0, 0.9,
                   [=] { forms.square_norm(step->state, step->bucket, step->state.squares[0]); }});
  cases.push_back(
      {"adamw of 1e9", 30 * kBillion, 0, 7.1, [=] { forms.adamw(step->plan.optimizer, step->state, step->bucket); }});
  cases.push_back({"zero gradients of 1e9", 4 * kBillion, 0, 0.9, [=] { step->module.ZeroGradients({false, false}); }});
}

}  // namespace

std::vector<KernelCase> LossAndStepCases() {
  std::vector<KernelCase> cases;
  AddLossCases(cases);
  AddWeightGradientCases(cases);
  AddStepCases(cases);
  return cases;
}

}  // namespace planwright::executor
