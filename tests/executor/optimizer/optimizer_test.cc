#include "executor/optimizer/optimizer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "planner/plan/shard_map.h"

namespace planwright::executor {
namespace {

// One module "m" with a 3x4 matrix that decays, a bias of 5 that does not, and padding, over `shards` ranks along dp.
Plan MakePlan(int shards, const std::string& precision = "fp64", int tp = 1) {
  Plan plan;
  plan.precision = precision;
  plan.world_size = shards * tp;
  Module module;
  module.name = "m";
  module.grid.tp = tp;
  module.grid.dp = shards;
  module.parameters = {{.name = "m.w", .shape = {3, 4}, .decay = true}, {.name = "m.b", .shape = {5}, .decay = false}};
  module.storages = {{.frame = "m.l", .slot = "w", .shape = {3, 4}, .parameters = {0}, .bucket = 0, .offset = 0},
                     {.frame = "m.l", .slot = "b", .shape = {5}, .parameters = {1}, .bucket = 0, .offset = 13}};
  const DType narrow = *DTypeFromName(precision), wide = narrow == DType::kFp64 ? narrow : DType::kFp32;
  module.buckets = {{.name = "m.dense.sharded.0",
                     .elements = 24,
                     .reduce_group = shards > 1 ? "m.dp" : "",
                     .shards = shards,
                     .dtype = narrow,
                     .master = wide}};
  plan.modules = {module};
  plan.accumulators = {{"$integers", DType::kInt64, 1, {"loss_tokens"}},
                       {"$reals", DType::kFp64, 2, {"norm.m", "norm.n"}},
                       {"$expert_counts", DType::kInt64, 6, {}}};
  plan.groups = {{.name = "m.dp", .short_name = "dp", .module = "m", .axes = {Axis::kDp}, .streams = {""}}};
  plan.optimizer = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .clip_grad_norm = 1.0};
  return plan;
}

at::Tensor Weights() { return at::arange(24, at::kDouble).mul_(0.1).add_(-1); }
at::Tensor Gradients(int step) { return at::arange(24, at::kDouble).mul_(0.03).add_(0.2 * step - 0.3); }

// Steps the same problem on `ranks` shards and returns the whole parameters.
std::vector<double> Train(int shards, int steps, const std::string& precision = "fp64") {
  const Plan plan = MakePlan(shards, precision);
  std::vector<double> result;
  for (int rank = 0; rank < shards; ++rank) {
    ModuleState module(plan, plan.modules[0], rank, at::kCPU);
    StepState step(plan, at::kCPU);
    BucketState& bucket = module.buckets()[0];
    bucket.parameters.copy_(Weights());
    module.RefreshMasters();
    for (int i = 0; i < steps; ++i) {
      step.Begin(i);
      step.learning_rate = 0.01 * (i + 1), step.weight_decay = 0.1;
      step.applied_steps.fill_(i + 1);
      bucket.gradient_shard.copy_(Gradients(i).narrow(0, bucket.shard_first, bucket.gradient_shard.numel()));
      BucketFormsOn(at::kCPU).adamw(plan.optimizer, step, bucket);
    }
    const at::Tensor shard = bucket.parameter_shard.to(at::kDouble).contiguous();
    result.insert(result.end(), shard.const_data_ptr<double>(), shard.const_data_ptr<double>() + shard.numel());
  }
  return result;
}

TEST(AdamW, MatchesTheScalarFormula) {
  const std::vector<double> got = Train(1, 4);
  for (int e = 0; e < 24; ++e) {
    double w = Weights()[e].item<double>(), m = 0, v = 0;
    const bool decays = e < 12;
    for (int t = 1; t <= 4; ++t) {
      const double g = Gradients(t - 1)[e].item<double>(), lr = 0.01 * t;
      m = 0.9 * m + 0.1 * g;
      v = 0.95 * v + 0.05 * g * g;
      const double m_hat = m / (1 - std::pow(0.9, t)), v_hat = v / (1 - std::pow(0.95, t));
      w -= lr * (m_hat / (std::sqrt(v_hat) + 1e-8) + (decays ? 0.1 * w : 0));
    }
    EXPECT_NEAR(got[e], w, 1e-13) << e;
  }
}

// A storage that joins three parameters, of which two have rates of their own, and stacks of experts, of which each
// joins two. One more parameter is in no part. Ranks cut them by tp, ep and dp.
Plan PlanOfParts(int tp, int ep, int dp) {
  Plan plan = MakePlan(1);
  plan.world_size = tp * dp;
  Module& module = plan.modules[0];
  module.grid = {.tp = tp, .dp = dp, .ep = ep, .expert_dp = tp * dp / ep};
  module.parameters = {
      {.name = "m.q", .shape = {8, 3}, .shard_dim = 0, .segments = {8}, .decay = true, .part = 0},
      {.name = "m.k", .shape = {4, 3}, .shard_dim = 0, .segments = {4}, .decay = true},
      {.name = "m.v", .shape = {4, 3}, .shard_dim = 0, .segments = {4}, .decay = true, .part = 1},
      {.name = "m.b", .shape = {5}, .part = 1},
      {.name = "m.{expert}.gate", .shape = {2, 3}, .experts = 4, .decay = true, .part = 1},
      {.name = "m.{expert}.up", .shape = {2, 3}, .experts = 4, .decay = true},
  };
  module.storages = {
      {.frame = "m.l", .slot = "qkv", .shape = {16 / tp, 3}, .parameters = {0, 1, 2}, .bucket = 0, .offset = 64},
      {.frame = "m.l", .slot = "b", .shape = {5}, .parameters = {3}, .bucket = 0, .offset = 0},
      {.frame = "m.e", .slot = "up", .shape = {4 / ep, 4, 3}, .parameters = {4, 5}, .bucket = 1, .offset = 0}};
  const auto bucket = [&](const char* name, int64_t elements, int shards, View view) {
    Bucket made = {.name = name,
                   .view = view,
                   .elements = elements,
                   .shards = shards,
                   .dtype = DType::kFp64,
                   .master = DType::kFp64};
    if (shards > 1) made.reduce_group = view == View::kDense ? "m.dp" : "m.ep_dp";
    return made;
  };
  module.buckets = {bucket("m.dense", 128, dp, View::kDense),
                    bucket("m.expert", 48 / ep, module.grid.expert_dp, View::kExpert)};
  plan.groups = {{.name = "m.dp", .short_name = "dp", .module = "m", .axes = {Axis::kDp}, .streams = {""}},
                 {.name = "m.ep_dp", .module = "m", .view = View::kExpert, .axes = {Axis::kExpertDp}, .streams = {""}}};
  plan.optimizer.parts = {{"q", 0, 0}, {"v", 0, 0}};
  return plan;
}

// The loop that anybody would write: each element of each published tensor by itself, with the rates of its tensor.
TEST(AdamW, PartsHaveRatesOfTheirOwnOnEveryLayout) {
  const StepRates kSchedule = {0.01, 0.1};
  const std::vector<StepRates> kParts = {{0.003, 0.4}, {0.05, 0.0}};
  const auto begin = [](const std::string& name, int64_t element) {
    return std::sin(static_cast<double>(element) + static_cast<double>(name.back()));
  };
  const auto gradient = [](const std::string& name, int64_t element, int step) {
    return std::cos(0.7 * static_cast<double>(element) + step + static_cast<double>(name.back()));
  };
  struct Cuts {
    int tp, ep, dp;
  };
  for (const auto& [tp, ep, dp] : {Cuts{1, 1, 1}, Cuts{2, 1, 1}, Cuts{1, 2, 2}, Cuts{2, 4, 2}, Cuts{1, 1, 4}}) {
    SCOPED_TRACE(::testing::Message() << "tp " << tp << " ep " << ep << " dp " << dp);
    const Plan plan = PlanOfParts(tp, ep, dp);
    const Module& of_plan = plan.modules[0];
    int64_t compared = 0;
    for (int rank = 0; rank < plan.world_size; ++rank) {
      ModuleState module(plan, of_plan, rank, at::kCPU);
      StepState step(plan, at::kCPU);
      step.learning_rate = kSchedule.learning_rate, step.weight_decay = kSchedule.weight_decay;
      step.part_rates = kParts;
      const auto each = [&](const auto& work) {
        for (const Storage& storage : of_plan.storages) {
          BucketState& bucket = module.buckets()[static_cast<size_t>(storage.bucket)];
          for (const PublishedSlice& slice : SlicesOf(of_plan, storage, CoordinatesOf(of_plan.grid, rank))) {
            for (const ElementRun& run : slice.runs) {
              for (int64_t i = 0; i < run.count; ++i) {
                const int64_t at = storage.offset + run.local + i;
                if (at >= bucket.shard_first && at < bucket.shard_end)
                  work(slice, run.whole + i, bucket, at - bucket.shard_first);
              }
            }
          }
        }
      };
      each([&](const PublishedSlice& slice, int64_t element, BucketState& bucket, int64_t at) {
        bucket.master[at].fill_(begin(slice.name, element));
      });
      for (int t = 1; t <= 3; ++t) {
        each([&](const PublishedSlice& slice, int64_t element, BucketState& bucket, int64_t at) {
          bucket.gradient_shard[at].fill_(gradient(slice.name, element, t));
        });
        step.applied_steps.fill_(t);
        for (BucketState& bucket : module.buckets()) BucketFormsOn(at::kCPU).adamw(plan.optimizer, step, bucket);
      }
      each([&](const PublishedSlice& slice, int64_t element, BucketState& bucket, int64_t at) {
        const Parameter& parameter = of_plan.parameters[static_cast<size_t>(slice.parameter)];
        const StepRates rates = parameter.part < 0 ? kSchedule : kParts[static_cast<size_t>(parameter.part)];
        double w = begin(slice.name, element), m = 0, v = 0;
        for (int t = 1; t <= 3; ++t) {
          const double g = gradient(slice.name, element, t);
          m = 0.9 * m + 0.1 * g;
          v = 0.95 * v + 0.05 * g * g;
          const double m_hat = m / (1 - std::pow(0.9, t)), v_hat = v / (1 - std::pow(0.95, t));
          w -= rates.learning_rate *
               (m_hat / (std::sqrt(v_hat) + 1e-8) + (parameter.decay ? rates.weight_decay * w : 0));
        }
        EXPECT_NEAR(bucket.parameter_shard[at].item<double>(), w, 1e-13) << slice.name << " " << element;
        ++compared;
      });
    }
    // Every element is stepped by some rank: those of the bias, which tp does not cut, by as many as tp has.
    EXPECT_EQ(compared, 48 + 5 * tp + 48);
  }
}

TEST(AdamW, ClipsAndLeavesASkippedStepOut) {
  const Plan plan = MakePlan(1);
  ModuleState module(plan, plan.modules[0], 0, at::kCPU);
  StepState step(plan, at::kCPU);
  BucketState& bucket = module.buckets()[0];
  bucket.parameters.copy_(Weights());
  step.learning_rate = 0.1, step.weight_decay = 0.1;
  step.skipped.fill_(1);
  bucket.gradients.fill_(std::nan(""));
  BucketFormsOn(at::kCPU).adamw(plan.optimizer, step, bucket);
  EXPECT_TRUE(bucket.parameters.equal(Weights()));
  EXPECT_EQ(bucket.states.at("exp_avg").abs().max().item<double>(), 0);
  step.skipped.fill_(0), step.applied_steps.fill_(1), step.clip.fill_(0.25);
  bucket.gradients.fill_(2.0);
  BucketFormsOn(at::kCPU).adamw(plan.optimizer, step, bucket);
  EXPECT_NEAR(bucket.states.at("exp_avg")[3].item<double>(), 0.1 * 0.5, 1e-9);
}

TEST(AdamW, ShardsDoNotChangeIt) {
  for (int shards : {2, 3, 4}) EXPECT_EQ(Train(shards, 3), Train(1, 3)) << shards;
}

TEST(AdamW, Bf16ParametersKeepFp32Masters) {
  const std::vector<double> narrow = Train(1, 4, "bf16"), exact = Train(1, 4);
  for (int e = 0; e < 24; ++e) EXPECT_NEAR(narrow[e], exact[e], 0.01 + std::abs(exact[e]) / 128);
  // A step smaller than half a unit of bf16 is not lost: it stays in the master.
  const Plan plan = MakePlan(1, "bf16");
  ModuleState module(plan, plan.modules[0], 0, at::kCPU);
  StepState step(plan, at::kCPU);
  BucketState& bucket = module.buckets()[0];
  bucket.parameters.fill_(1.0);
  module.RefreshMasters();
  for (int i = 0; i < 100; ++i) {
    step.Begin(i);
    step.learning_rate = 1e-4;
    step.applied_steps.fill_(i + 1);
    bucket.gradient_shard.fill_(1.0);
    BucketFormsOn(at::kCPU).adamw(plan.optimizer, step, bucket);
  }
  EXPECT_NEAR(bucket.parameter_shard[0].item<float>(), 0.99, 0.004);
}

TEST(Norm, CountsEachElementOnce) {
  Plan plan = MakePlan(2, "fp64", 2);
  plan.modules[0].buckets[0].tp = TpGradient::kReplicated;
  plan.modules[0].buckets[0].once_over = {Axis::kTp};
  double sum = 0;
  for (int rank = 0; rank < 4; ++rank) {
    ModuleState module(plan, plan.modules[0], rank, at::kCPU);
    StepState step(plan, at::kCPU);
    BucketState& bucket = module.buckets()[0];
    bucket.gradient_shard.copy_(Gradients(1).narrow(0, bucket.shard_first, 12));
    BucketFormsOn(at::kCPU).square_norm(step, bucket, step.sum("$reals.norm.m"));
    sum += step.sum("$reals.norm.m").item<double>();
  }
  EXPECT_NEAR(sum, Gradients(1).square().sum().item<double>(), 1e-12);
}

// One parameter of `elements` elements that decays, on one rank.
Plan PlanOfOne(int64_t elements, const std::string& precision) {
  Plan plan = MakePlan(1, precision);
  Module& module = plan.modules[0];
  module.parameters = {{.name = "m.w", .shape = {elements}, .decay = true}};
  module.storages = {{.frame = "m.l", .slot = "w", .shape = {elements}, .parameters = {0}, .bucket = 0, .offset = 0}};
  module.buckets[0].elements = elements;
  return plan;
}

TEST(Norm, OfDoublesIsOneDotProductBitForBit) {
  constexpr int64_t kElements = 100'003;
  const Plan plan = PlanOfOne(kElements, "fp64");
  ModuleState module(plan, plan.modules[0], 0, at::kCPU);
  StepState step(plan, at::kCPU);
  const BucketState& bucket = module.buckets()[0];
  const at::Tensor& gradient = bucket.gradient_shard;
  gradient.copy_(at::arange(kElements, at::kDouble).mul_(0.7310001).sin_());
  BucketFormsOn(at::kCPU).square_norm(step, bucket, step.sum("$reals.norm.m"));
  EXPECT_EQ(step.sum("$reals.norm.m").item<double>(), gradient.dot(gradient).item<double>());
}

// More elements than are processed in one part, and a rest: the formula holds on both sides of every cut, and each
// element counts once.
TEST(LargeShard, IsWorkedThroughInPartsWithoutATrace) {
  constexpr int64_t kPart = 1 << 24, kElements = kPart + 5;
  const Plan plan = PlanOfOne(kElements, "fp32");
  ModuleState module(plan, plan.modules[0], 0, at::kCPU);
  StepState step(plan, at::kCPU);
  step.learning_rate = 0.01, step.weight_decay = 0.1;
  step.applied_steps.fill_(1);
  BucketState& bucket = module.buckets()[0];
  bucket.parameters.fill_(1.0);
  // 1, 2, 3, 1, ...: squares add up to a whole number
  bucket.gradient_shard.copy_(at::arange(kElements, at::kInt).remainder(3).add_(1));
  BucketFormsOn(at::kCPU).square_norm(step, bucket, step.sum("$reals.norm.m"));
  const int64_t rest = kElements % 3;  // of the pattern's 1 + 4 + 9
  EXPECT_EQ(step.sum("$reals.norm.m").item<double>(), 14.0 * (kElements / 3) + (rest > 0 ? 1 : 0) + (rest > 1 ? 4 : 0));
  BucketFormsOn(at::kCPU).adamw(plan.optimizer, step, bucket);
  // The first step moves each weight by the learning rate against the sign of its gradient, after decay.
  for (int64_t e : {int64_t{0}, kPart - 1, kPart, kPart + 1, kElements - 1}) {
    EXPECT_NEAR(bucket.parameters[e].item<double>(), 1 - 0.001 - 0.01, 1e-6) << e;
  }
  EXPECT_EQ(bucket.parameters.narrow(0, 0, kPart - kPart % 3)
                .view({-1, 3})
                .sub(bucket.parameters.narrow(0, 0, 3))
                .abs()
                .max()
                .item<double>(),
            0);
  EXPECT_EQ(bucket.parameters[kPart].item<float>(), bucket.parameters[kPart % 3].item<float>());
}

TEST(Gate, ClipsAboveTheLimitOnly) {
  Plan plan = MakePlan(1);
  plan.modules.push_back({.name = "n"});
  StepState step(plan, at::kCPU);
  step.squares[0].fill_(25.0);
  step.squares[1].fill_(144.0);
  ClipAndGate(plan, step);
  EXPECT_EQ(step.norms[2].item<double>(), 13.0);
  EXPECT_EQ(step.norms[0].item<double>(), 5.0);
  EXPECT_EQ(step.clip.item<double>(), 1.0 / (13.0 + 1e-6));
  EXPECT_EQ(step.skipped.item<float>(), 0);
  for (double limit : {20.0, 0.0}) {
    plan.optimizer.clip_grad_norm = limit;
    ClipAndGate(plan, step);
    EXPECT_EQ(step.clip.item<double>(), 1.0);
  }
  EXPECT_EQ(step.applied_steps.item<int64_t>(), 3);
  EXPECT_EQ(step.skipped_steps.item<int64_t>(), 0);
}

TEST(Gate, ANonFiniteNormSkipsTheStepAndItsCount) {
  const Plan plan = MakePlan(1);
  for (double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    ModuleState module(plan, plan.modules[0], 0, at::kCPU);
    StepState step(plan, at::kCPU);
    module.buckets()[0].parameters.copy_(Weights());
    module.buckets()[0].gradients.fill_(bad);
    step.learning_rate = 0.1;
    BucketFormsOn(at::kCPU).square_norm(step, module.buckets()[0], step.squares[0]);
    ClipAndGate(plan, step);
    EXPECT_EQ(step.skipped.item<float>(), 1);
    BucketFormsOn(at::kCPU).adamw(plan.optimizer, step, module.buckets()[0]);
    EXPECT_EQ(step.applied_steps.item<int64_t>(), 0);
    EXPECT_EQ(step.skipped_steps.item<int64_t>(), 1);
    EXPECT_LE(step.clip.item<double>(), 1);
    EXPECT_TRUE(module.buckets()[0].parameters.equal(Weights()));
  }
}

TEST(Scale, DividesByTheLossTokensAndNotByZero) {
  const Plan plan = MakePlan(1);
  ModuleState module(plan, plan.modules[0], 0, at::kCPU);
  StepState step(plan, at::kCPU);
  for (int64_t tokens : {0, 1, 8}) {
    module.buckets()[0].gradients.fill_(4.0);
    step.loss_tokens.fill_(tokens);
    BucketFormsOn(at::kCPU).scale_gradients(step, module.buckets()[0]);
    EXPECT_EQ(module.buckets()[0].gradients[3].item<double>(), tokens == 8 ? 0.5 : 4.0);
    EXPECT_TRUE(
        BucketFormsOn(at::kCPU).scaled_gradients(step, module.buckets()[0]).equal(module.buckets()[0].gradient_shard));
  }
}

TEST(ExpertBias, MovesBySignOfTheDistanceFromTheMean) {
  Plan plan = MakePlan(1);
  Module& m = plan.modules[0];
  m.constants = {{"moe.experts", int64_t{3}}, {"moe.bias_rate", 0.001}};
  m.layers = {{.kind = 'M', .frame = "m.layers.0"},
              {.kind = 'E', .frame = "m.layers.1", .expert_row = 0},
              {.kind = '*', .frame = "m.layers.2"},
              {.kind = 'E', .frame = "m.layers.3", .expert_row = 1}};
  for (const char* frame : {"m.layers.3", "m.layers.1"}) {
    m.parameters.push_back({.name = frame, .shape = {3}, .trained = false, .buffer = true});
    m.storages.push_back(
        {.frame = frame, .slot = "gate_bias", .shape = {3}, .parameters = {static_cast<int>(m.parameters.size()) - 1}});
  }
  ModuleState module(plan, m, 0, at::kCPU);
  StepState step(plan, at::kCPU);
  const int64_t counts[2][3] = {{3, 4, 5}, {10, 1, 1}};  // means 4 and 4
  for (int row = 0; row < 2; ++row) {
    for (int e = 0; e < 3; ++e) step.expert_counts[3 * row + e].fill_(counts[row][e]);
  }
  step.skipped.fill_(1);
  UpdateExpertBias(step, module);
  EXPECT_EQ(module.slot("m.layers.3", "gate_bias").parameter.abs().max().item<double>(), 0);
  step.skipped.fill_(0);
  UpdateExpertBias(step, module);
  const double expected[2][3] = {{0.001, 0, -0.001}, {-0.001, 0.001, 0.001}};
  for (int e = 0; e < 3; ++e) {
    EXPECT_EQ(module.slot("m.layers.1", "gate_bias").parameter[e].item<double>(), expected[0][e]);
    EXPECT_EQ(module.slot("m.layers.3", "gate_bias").parameter[e].item<double>(), expected[1][e]);
  }
}

}  // namespace
}  // namespace planwright::executor
