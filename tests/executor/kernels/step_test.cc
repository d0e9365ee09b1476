// The end of a step on a GPU, beside the same functions on the CPU.
#include <ATen/ops/empty.h>

#include <cmath>

#include "executor/optimizer/optimizer.h"
#include "tests/executor/kernels/check_kernel.h"

namespace planwright::executor {
namespace {

// A bucket of 40,005 elements: decaying storages, storages that do not decay, and gaps, so that accesses of 16 bytes
// and thread blocks lie across the borders. Three shards have 13,335 elements, an odd number: the second starts
// anywhere.
constexpr int64_t kElements = 40'005;

Plan MakePlan(const std::string& precision, int shards, int64_t elements = kElements) {
  Plan plan;
  plan.precision = precision;
  plan.world_size = shards;
  Module module;
  module.name = "m";
  module.grid.dp = shards;
  const auto add = [&](int64_t size, int64_t offset, bool decay, int part = -1) {
    if (offset + size > elements) return;
    const int index = static_cast<int>(module.parameters.size());
    const std::string name = "w" + std::to_string(index);
    module.parameters.push_back({.name = "m." + name, .shape = {size}, .decay = decay, .part = part});
    module.storages.push_back(
        {.frame = "m.l", .slot = name, .shape = {size}, .parameters = {index}, .bucket = 0, .offset = offset});
  };
  add(2, 0, true);
  add(5, 3, false);
  add(6001, 64, true, 0);
  add(4000, 6080, true, 1);
  add(77, 10'112, false, 0);
  add(24'000, 10'240, true);
  add(300, 34'304, false);
  const DType narrow = *DTypeFromName(precision), wide = narrow == DType::kFp64 ? narrow : DType::kFp32;
  module.buckets = {{.name = "m.0",
                     .elements = elements,
                     .reduce_group = shards > 1 ? "m.dp" : "",
                     .shards = shards,
                     .dtype = narrow,
                     .master = wide}};
  plan.modules = {module};
  plan.accumulators = {{"$integers", DType::kInt64, 1, {"loss_tokens"}}, {"$reals", DType::kFp64, 1, {"norm.m"}}};
  plan.groups = {{.name = "m.dp", .short_name = "dp", .module = "m", .axes = {Axis::kDp}, .streams = {""}}};
  plan.optimizer = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .clip_grad_norm = 1.0, .parts = {{"a"}, {"b"}}};
  return plan;
}

// One rank's shard on a device.
struct Shard {
  Shard(const Plan& plan, int rank, at::Device device)
      : module(plan, plan.modules[0], rank, device), step(plan, device), bucket(module.buckets()[0]),
        forms(BucketFormsOn(device)) {}
  void Fill(const at::Tensor& weights) {
    bucket.parameters.copy_(weights);
    module.RefreshMasters();
  }
  // Of a sum over so many loss tokens.
  void SetGradients(const at::Tensor& gradients, int64_t loss_tokens = 1) {
    bucket.gradient_shard.copy_(gradients.narrow(0, bucket.shard_first, bucket.shard_end - bucket.shard_first));
    step.loss_tokens.fill_(loss_tokens);
    if (forms.scale_gradients != nullptr) forms.scale_gradients(step, bucket);
  }

  ModuleState module;
  StepState step;
  BucketState& bucket;
  const BucketForms& forms;
};

class StepKernels : public Kernels {};

// Formulas are equal; the order of roundings is not.
double ToleranceOf(const std::string& precision) { return precision == "fp64" ? 1e-13 : 1e-6; }

TEST_F(StepKernels, AdamWIsThatOfTheCpu) {
  for (const char* precision : {"bf16", "fp32", "fp64"}) {
    for (const int shards : {1, 3}) {
      const Plan plan = MakePlan(precision, shards);
      const at::Tensor weights = Random({kElements}).to(at::kFloat);
      for (int rank = 0; rank < shards; ++rank) {
        SCOPED_TRACE(testing::Message() << precision << " " << rank << " of " << shards);
        Shard gpu(plan, rank, at::kCUDA), cpu(plan, rank, at::kCPU);
        for (int i = 0; i < 4; ++i) {
          const at::Tensor gradients = Random({kElements});
          for (Shard* shard : {&gpu, &cpu}) {
            if (i == 0) shard->Fill(weights);
            shard->SetGradients(gradients, /*loss_tokens=*/3 * i);  // of 0 it is 1
            shard->step.learning_rate = 0.01 * (i + 1), shard->step.weight_decay = 0.1;
            shard->step.part_rates = {{0.002 * (i + 1), 0.5}, {0.05, 0.0}};
            shard->step.applied_steps.fill_(i + 1);
            shard->step.clip.fill_(i == 2 ? 0.25 : 1.0);
            shard->forms.adamw(plan.optimizer, shard->step, shard->bucket);
          }
        }
        EXPECT_LE(Gap(gpu.bucket.master.cpu(), cpu.bucket.master), ToleranceOf(precision));
        for (const char* state : {"exp_avg", "exp_avg_sq"})
          EXPECT_LE(Gap(gpu.bucket.states.at(state).cpu(), cpu.bucket.states.at(state)), ToleranceOf(precision))
              << state;
        // The parameters are the masters, rounded once; those of other ranks are as they were.
        const at::Tensor& parameters = gpu.bucket.parameters;
        EXPECT_TRUE(gpu.bucket.parameter_shard.equal(gpu.bucket.master.to(parameters.scalar_type())));
        const at::Tensor before = weights.to(parameters.scalar_type()), after = parameters.cpu();
        const int64_t first = gpu.bucket.shard_first, end = gpu.bucket.shard_end;
        EXPECT_TRUE(after.narrow(0, 0, first).equal(before.narrow(0, 0, first)));
        EXPECT_TRUE(after.narrow(0, end, kElements - end).equal(before.narrow(0, end, kElements - end)));
      }
    }
  }
}

TEST_F(StepKernels, AFewElements) {
  for (const int64_t elements : {1, 2, 3, 4, 5, 7}) {
    const Plan plan = MakePlan("bf16", 1, elements);
    Shard gpu(plan, 0, at::kCUDA), cpu(plan, 0, at::kCPU);
    const at::Tensor weights = Random({elements}), gradients = Random({elements});
    for (Shard* shard : {&gpu, &cpu}) {
      shard->Fill(weights);
      shard->SetGradients(gradients);
      shard->step.learning_rate = 0.01, shard->step.weight_decay = 0.1;
      shard->step.applied_steps.fill_(1);
      shard->forms.adamw(plan.optimizer, shard->step, shard->bucket);
    }
    EXPECT_LE(Gap(gpu.bucket.master.cpu(), cpu.bucket.master), 1e-6) << elements;
  }
}

TEST_F(StepKernels, ASkippedStepChangesNothing) {
  const Plan plan = MakePlan("bf16", 1);
  Shard gpu(plan, 0, at::kCUDA);
  gpu.Fill(Random({kElements}));
  const at::Tensor before = gpu.bucket.parameters.clone(), master = gpu.bucket.master.clone();
  gpu.bucket.gradients.fill_(std::nan(""));
  gpu.step.learning_rate = 0.1, gpu.step.weight_decay = 0.1;
  gpu.step.skipped.fill_(1);
  gpu.forms.adamw(plan.optimizer, gpu.step, gpu.bucket);
  EXPECT_TRUE(gpu.bucket.parameters.equal(before));
  EXPECT_TRUE(gpu.bucket.master.equal(master));
  for (const char* state : {"exp_avg", "exp_avg_sq"})
    EXPECT_EQ(gpu.bucket.states.at(state).abs().max().item<double>(), 0) << state;
}

// Gradients that are read from the GPU for probes. Those in its memory are not scaled.
TEST_F(StepKernels, ScaledGradientsAreThoseOfTheCpu) {
  for (const char* precision : {"bf16", "fp64"}) {
    for (const int64_t elements : {int64_t{1}, int64_t{7}, kElements}) {
      for (const int64_t tokens : {0, 1, 7}) {
        const Plan plan = MakePlan(precision, 1, elements);
        Shard gpu(plan, 0, at::kCUDA), cpu(plan, 0, at::kCPU);
        const at::Tensor gradients = Random({elements});
        for (Shard* shard : {&gpu, &cpu}) shard->SetGradients(gradients, tokens);
        const at::Tensor scaled = gpu.forms.scaled_gradients(gpu.step, gpu.bucket),
                         exact = gradients.to(gpu.bucket.master.scalar_type());
        EXPECT_TRUE(scaled.is_cpu());
        EXPECT_TRUE(scaled.equal(cpu.bucket.gradient_shard)) << precision << " " << elements << " " << tokens;
        EXPECT_TRUE(gpu.bucket.gradient_shard.cpu().equal(exact)) << precision << " " << elements << " " << tokens;
      }
    }
  }
}

// The sum is fp64, and the same bits in every run.
TEST_F(StepKernels, NormIsThatOfTheCpu) {
  constexpr int64_t kLarge = 9'000'001;  // more than all thread blocks read at once
  for (const char* precision : {"bf16", "fp64"}) {
    for (const int64_t elements : {int64_t{1}, int64_t{3}, kElements, kLarge}) {
      const Plan plan = MakePlan(precision, 1, elements);
      Shard gpu(plan, 0, at::kCUDA), cpu(plan, 0, at::kCPU);
      const at::Tensor gradients = Random({elements});
      // On the CPU the scale and each scaled gradient are rounded, except where the scale is a power of two.
      for (const int64_t tokens : {0, 7, 64}) {
        SCOPED_TRACE(testing::Message() << precision << " " << elements << " " << tokens);
        double sums[3];
        for (double& sum : sums) {
          Shard& shard = &sum == &sums[2] ? cpu : gpu;
          shard.SetGradients(gradients, tokens);
          shard.step.squares[0].fill_(3.0);  // it is added to
          shard.forms.square_norm(shard.step, shard.bucket, shard.step.squares[0]);
          sum = shard.step.squares[0].item<double>();
        }
        EXPECT_EQ(sums[0], sums[1]);
        EXPECT_NEAR(sums[0] / sums[2], 1, tokens == 7 && std::string(precision) == "bf16" ? 3e-7 : 1e-13);
      }
    }
  }
}

}  // namespace
}  // namespace planwright::executor
