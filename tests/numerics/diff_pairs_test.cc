// What `plan diff` says about the loss curve is true: plans that it calls equivalent train the same curve, and plans
// that it says may differ train another one.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

constexpr char kTiny[] = "recipes/nemotron_moe_vlm_tiny.yaml";
constexpr int kSteps = 3;  // the third loss depends on two updates of the weights
constexpr double kSame = 1e-9, kOther = 1e-6;

// Small and short, in fp64, so that a difference between two curves is never rounding.
const std::vector<std::string> kBase = {"precision.params=fp64", "batch.global_samples=4", "budget.train_samples=40",
                                        "budget.learning_rate.decay_samples=40",
                                        "budget.learning_rate.warmup_samples=4"};

nlohmann::json DiffOf(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const std::string recipe = " '" + InSource(kTiny) + "'";
  std::string command = "'" + InBuild("bin/plan") + "' diff";
  for (const auto* overrides : {&a, &b}) {
    command += recipe;
    for (const std::string& override : *overrides) command += " '" + override + "'";
  }
  std::string output;
  FILE* pipe = popen((command + " --json").c_str(), "r");
  std::array<char, 4096> buffer;
  while (const size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) output.append(buffer.data(), n);
  pclose(pipe);
  return nlohmann::json::parse(output);
}

TrainingRun Train(const std::vector<std::string>& overrides) { return Launch({kTiny, overrides, kSteps, ""}); }

const TrainingRun& Base() {
  static const TrainingRun run = Train(kBase);
  return run;
}

class Equivalent : public ::testing::TestWithParam<Layout> {};

TEST_P(Equivalent, PairsTrainTheSameCurve) {
  const std::vector<std::string> other = Join(kBase, GetParam().overrides);
  const nlohmann::json diff = DiffOf(kBase, other);
  EXPECT_EQ(diff["same"], false);
  ASSERT_EQ(diff["may_change_loss"], false) << diff.dump(1);
  const TrainingRun run = Train(other);
  ASSERT_EQ(Base().exit_code, 0) << Base().output;
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const Comparison comparison = Compare(run, Base(), kSame);
  EXPECT_FALSE(comparison.parted_at);
  for (const std::string& difference : comparison.differences) ADD_FAILURE() << difference;
}

INSTANTIATE_TEST_SUITE_P(
    Diff, Equivalent,
    ::testing::Values(Layout{"tp_dp_ep_and_a_fan_out", Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 4))},
                      Layout{"gathered_tokens", Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 4),
                                                     {"modules.language.parallel.dispatch=all_gather"})},
                      Layout{"uneven_lanes", Join(EncoderOn(3, 1), LanguageOn(3, 2, 1, 1))},
                      Layout{"larger_microbatches", {"batch.micro_samples=4"}},
                      Layout{"buckets_log_and_name", {"gradients.buckets=3", "log.every_steps=1", "name=other"}},
                      Layout{"portions_of_the_scan", {"models.hybrid_moe_tiny.mamba.chunk=8"}},
                      Layout{"colocated", Join(EncoderOn(4, 1), LanguageOn(0, 4, 2, 4))}),
    [](const auto& info) { return info.param.name; });

class Different : public ::testing::TestWithParam<Layout> {};

TEST_P(Different, PairsTrainAnotherCurve) {
  const std::vector<std::string> other = Join(kBase, GetParam().overrides);
  ASSERT_EQ(DiffOf(kBase, other)["may_change_loss"], true);
  const TrainingRun run = Train(other);
  ASSERT_EQ(Base().exit_code, 0) << Base().output;
  ASSERT_EQ(run.exit_code, 0) << run.output;
  double most = 0;
  for (int step = 0; step < kSteps; ++step) {
    most = std::max(
        most, std::abs(run.steps.at(step).loss - Base().steps.at(step).loss) / std::abs(Base().steps.at(step).loss));
  }
  EXPECT_GT(most, kOther) << "called different, but the same curve";
}

INSTANTIATE_TEST_SUITE_P(
    Diff, Different,
    ::testing::Values(Layout{"seed", {"data.seed=5"}}, Layout{"batch", {"batch.global_samples=8"}},
                      Layout{"rate", {"budget.learning_rate.peak=1.0e-3"}},
                      Layout{"clip", {"optimizer.clip_grad_norm=0.1"}},
                      Layout{"rate_of_a_part", {"optimizer.parts=[{match: language, learning_rate: 1.0e-3}]"}},
                      Layout{"init", {"models.hybrid_moe_tiny.init_std=0.03"}},
                      Layout{"norm_eps", {"models.hybrid_moe_tiny.norm_eps=1.0e-3"}},
                      Layout{"expert_scale", {"models.hybrid_moe_tiny.moe.scale=1.0"}},
                      Layout{"experts_undivided", {"models.hybrid_moe_tiny.moe.normalized=false"}},
                      Layout{"heads_of_equal_width",
                             {"models.hybrid_moe_tiny.attention={heads: 8, head_dim: 8, kv_groups: 4}"}},
                      Layout{"aux_loss", {"models.hybrid_moe_tiny.moe.aux_loss=1.0e-1"}},
                      Layout{"positions", {"models.radio_vit_tiny.positions=interpolate"}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace planwright::testing
