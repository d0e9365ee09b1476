// What must not change a result, not even its last bit. A stream says where an instruction runs: tested with overlap,
// which is what streams are for, and with instructions put on streams at random and delayed at random. Recompute runs a
// forward again and gets the same values. Real processes over Gloo.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>

#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"

namespace planwright::testing {
namespace {

constexpr char kTiny[] = "recipes/nemotron_moe_vlm_tiny.yaml";
constexpr int kSteps = 3;
const std::vector<std::string> kOverlap = {"gradients.overlap_reduce=true", "gradients.overlap_gather=true"};

Layout LayoutNamed(const std::string& name) {
  for (auto* of : {TinyLayouts, FrozenLayouts, RecomputeLayouts}) {
    for (Layout& layout : of()) {
      if (name == layout.name) return std::move(layout);
    }
  }
  throw std::runtime_error("no layout " + name);
}

TrainingRun Train(const std::string& layout, const std::vector<std::string>& more, const char* executor,
                  const std::string& fault, const std::string& precision = "fp64") {
  setenv("PLANWRIGHT_FAULT", fault.c_str(), 1);
  const Layout on = LayoutNamed(layout);
  return Launch(
      {kTiny, Join(Join({"precision.params=" + precision}, on.training), on.overrides, more), kSteps, executor});
}

// As the layout says: all on one stream.
const TrainingRun& Plain(const std::string& layout, const std::string& precision = "fp64") {
  static std::map<std::pair<std::string, std::string>, TrainingRun> runs;
  auto [it, fresh] = runs.try_emplace({layout, precision});
  if (fresh) it->second = Train(layout, {}, "", "", precision);
  return it->second;
}

void ExpectEqualTensors(const Tensors& a, const Tensors& b, const char* what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  ASSERT_FALSE(a.empty()) << what;
  for (const auto& [name, tensor] : a)
    EXPECT_TRUE(b.contains(name) && b.at(name).values == tensor.values) << what << " " << name;
}

void ExpectSameBits(const TrainingRun& run, const TrainingRun& plain) {
  ASSERT_EQ(plain.exit_code, 0) << plain.output;
  ASSERT_EQ(run.exit_code, 0) << run.output;
  ASSERT_EQ(run.steps.size(), static_cast<size_t>(kSteps));
  for (size_t i = 0; i < run.steps.size(); ++i) {
    EXPECT_EQ(run.steps[i].loss, plain.steps[i].loss);
    EXPECT_EQ(run.steps[i].grad_norm, plain.steps[i].grad_norm);
    EXPECT_EQ(run.steps[i].module_grad_norms, plain.steps[i].module_grad_norms);
    EXPECT_EQ(run.steps[i].aux_loss, plain.steps[i].aux_loss);
    EXPECT_EQ(run.steps[i].routing, plain.steps[i].routing);
  }
  ExpectEqualTensors(run.gradients_first, plain.gradients_first, "gradients of the first step");
  ExpectEqualTensors(run.gradients_last, plain.gradients_last, "gradients of the last step");
  ExpectEqualTensors(run.parameters_last, plain.parameters_last, "parameters after the last step");
  ExpectEqualTensors(run.values_last, plain.values_last, "values of the last step");
}

class Overlap : public ::testing::TestWithParam<const char*> {};

TEST_P(Overlap, ChangesNoBit) { ExpectSameBits(Train(GetParam(), kOverlap, "", ""), Plain(GetParam())); }
INSTANTIATE_TEST_SUITE_P(Layouts, Overlap,
                         ::testing::Values("dp2_dp2", "ep4", "fan_in", "colocated_4", "stage1_tp2_ep2", "stage2_uneven",
                                           "frozen_language", "frozen_encoder_colocated", "recompute_full_tp2_ep2",
                                           "recompute_moe_ep4"),
                         [](const auto& info) { return info.param; });

// In fp32, where a sum in another order would show. Recompute is no stream, and is tried with overlap too.
struct Recomputed {
  std::string layout, language, encoder;  // words of `recompute`; empty: the key is not given
  std::vector<std::string> more = {};
};

class Recompute : public ::testing::TestWithParam<Recomputed> {};

TEST_P(Recompute, ChangesNoBit) {
  std::vector<std::string> overrides = GetParam().more;
  if (!GetParam().language.empty()) overrides.push_back("modules.language.recompute=[" + GetParam().language + "]");
  if (!GetParam().encoder.empty()) overrides.push_back("modules.radio_encoder.recompute=[" + GetParam().encoder + "]");
  ExpectSameBits(Train(GetParam().layout, overrides, "", "", "fp32"), Plain(GetParam().layout, "fp32"));
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, Recompute,
    ::testing::Values(Recomputed{"one_and_one", "moe", ""}, Recomputed{"one_and_one", "mamba", ""},
                      Recomputed{"one_and_one", "attention", ""}, Recomputed{"one_and_one", "", "block"},
                      Recomputed{"tp2_tp2", "full", "full"}, Recomputed{"dp2_dp2", "full", "full", kOverlap},
                      Recomputed{"ep4", "moe", "block"}, Recomputed{"ep4", "full", "full", kOverlap},
                      Recomputed{"fan_in", "mamba, attention", "full"}, Recomputed{"uneven", "full", ""},
                      Recomputed{"colocated_4", "full", "full", kOverlap}, Recomputed{"stage1_ep4", "full", ""},
                      Recomputed{"stage2_uneven", "moe, mamba", ""}, Recomputed{"frozen_language", "full", "full"},
                      Recomputed{"frozen_projection", "full", "block", kOverlap}),
    [](const auto& info) { return info.param.layout + "_" + std::to_string(info.index); });

void ExpectNoBitChanged(int first_seed, int seeds) {
  for (const char* layout : {"one_and_one", "tp2_tp2", "dp2_dp2", "ep4", "uneven", "colocated_4"}) {
    for (int seed = first_seed; seed < first_seed + seeds; ++seed) {
      SCOPED_TRACE(std::string(layout) + " random_streams:" + std::to_string(seed));
      ExpectSameBits(Train(layout, {}, "faulty_executor", "random_streams:" + std::to_string(seed)), Plain(layout));
    }
  }
}

TEST(RandomStreams, ChangeNoBit) { ExpectNoBitChanged(1, 2); }
TEST(RandomStreams, SoakChangeNoBit) { ExpectNoBitChanged(100, 40); }

}  // namespace
}  // namespace planwright::testing
