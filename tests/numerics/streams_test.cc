// A stream says where an instruction runs and never changes a result, not even the last bit. Tested with overlap, which
// is what streams are for, and with instructions put on streams at random and delayed at random. Real processes over
// Gloo.
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

const Layout& LayoutNamed(const std::string& name) {
  static const std::vector<Layout> layouts = TinyLayouts();
  for (const Layout& layout : layouts) {
    if (name == layout.name) return layout;
  }
  throw std::runtime_error("no layout " + name);
}

TrainingRun Train(const std::string& layout, const std::vector<std::string>& more, const char* executor,
                  const std::string& fault) {
  setenv("PLANWRIGHT_FAULT", fault.c_str(), 1);
  return Launch({kTiny, Join({"precision.params=fp64"}, LayoutNamed(layout).overrides, more), kSteps, executor});
}

// All on one stream.
const TrainingRun& Plain(const std::string& layout) {
  static std::map<std::string, TrainingRun> runs;
  auto [it, fresh] = runs.try_emplace(layout);
  if (fresh) it->second = Train(layout, {}, "", "");
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
    EXPECT_EQ(run.steps[i].routing, plain.steps[i].routing);
  }
  ExpectEqualTensors(run.gradients_first, plain.gradients_first, "gradients of the first step");
  ExpectEqualTensors(run.gradients_last, plain.gradients_last, "gradients of the last step");
  ExpectEqualTensors(run.values_last, plain.values_last, "values of the last step");
}

class Overlap : public ::testing::TestWithParam<const char*> {};

TEST_P(Overlap, ChangesNoBit) { ExpectSameBits(Train(GetParam(), kOverlap, "", ""), Plain(GetParam())); }
INSTANTIATE_TEST_SUITE_P(Layouts, Overlap, ::testing::Values("dp2_dp2", "ep4", "fan_in", "colocated_4"),
                         [](const auto& info) { return info.param; });

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
