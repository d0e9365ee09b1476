// What must not change a result, not even its last bit. A stream says where an instruction runs: tested with overlap,
// which is what streams are for, and with instructions put on streams at random and delayed at random. Recompute runs a
// forward again and gets the same values. Real processes over Gloo.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>
#include <string>
#include <vector>

#include "tests/numerics/covering_layouts.h"
#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"

namespace planwright::testing {
namespace {

constexpr char kTiny[] = "recipes/nemotron_moe_vlm_tiny.yaml";
constexpr int kSteps = 3;
const std::vector<std::string> kOverlap = {"gradients.overlap_reduce=true", "gradients.overlap_gather=true"};

Layout LayoutNamed(const std::string& name) {
  for (auto* of : {TinyLayouts, FrozenLayouts, RecomputeLayouts, DispatchLayouts}) {
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

// `./dev test` takes what covers the axes and features of each list, `./dev soak` all.
class Overlap : public ::testing::TestWithParam<Layout> {};

TEST_P(Overlap, ChangesNoBit) {
  const std::string& name = GetParam().name;
  ExpectSameBits(Train(name, kOverlap, "", ""), Plain(name));
}

std::vector<Layout> Overlapped() {
  std::vector<Layout> layouts;
  for (const char* name :
       {"dp2_dp2", "ep4", "fan_in", "colocated_4", "stage1_tp2_ep2", "stage2_uneven", "frozen_language",
        "frozen_encoder_colocated", "recompute_full_tp2_ep2", "recompute_moe_ep4"})
    layouts.push_back(LayoutNamed(name));
  return layouts;
}
const auto kLayoutName = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Some, Overlap, ::testing::ValuesIn(CoveringLayouts(Overlapped(), Cover::kEach)), kLayoutName);
INSTANTIATE_TEST_SUITE_P(Soak, Overlap, ::testing::ValuesIn(Overlapped()), kLayoutName);

// In fp32, where a sum in another order would show. Recompute is no stream, and is tried with overlap too.
struct Recomputed {
  std::string layout, language, encoder;  // words of `recompute`; empty: the key is not given
  std::vector<std::string> more = {};
  friend void PrintTo(const Recomputed& recomputed, std::ostream* out) {
    *out << recomputed.layout << " language=[" << recomputed.language << "] encoder=[" << recomputed.encoder << "]";
  }
};

std::vector<std::string> OverridesOf(const Recomputed& recomputed) {
  std::vector<std::string> overrides = recomputed.more;
  if (!recomputed.language.empty()) overrides.push_back("modules.language.recompute=[" + recomputed.language + "]");
  if (!recomputed.encoder.empty()) overrides.push_back("modules.radio_encoder.recompute=[" + recomputed.encoder + "]");
  return overrides;
}

class Recompute : public ::testing::TestWithParam<Recomputed> {};

TEST_P(Recompute, ChangesNoBit) {
  const std::string& layout = GetParam().layout;
  ExpectSameBits(Train(layout, OverridesOf(GetParam()), "", "", "fp32"), Plain(layout, "fp32"));
}

std::vector<Recomputed> AllRecomputed() {
  return {{"one_and_one", "moe", ""},
          {"one_and_one", "mamba", ""},
          {"one_and_one", "attention", ""},
          {"one_and_one", "", "block"},
          {"tp2_tp2", "full", "full"},
          {"dp2_dp2", "full", "full", kOverlap},
          {"ep4", "moe", "block"},
          {"ep4", "full", "full", kOverlap},
          {"fan_in", "mamba, attention", "full"},
          {"uneven", "full", ""},
          {"colocated_4", "full", "full", kOverlap},
          {"stage1_ep4", "full", ""},
          {"stage2_uneven", "moe, mamba", ""},
          {"frozen_language", "full", "full"},
          {"frozen_projection", "full", "block", kOverlap}};
}
std::vector<Recomputed> CoveringRecomputed() {
  const std::vector<Recomputed> all = AllRecomputed();
  std::vector<Layout> layouts;  // named by their index
  for (size_t i = 0; i < all.size(); ++i) {
    Layout& layout = layouts.emplace_back(LayoutNamed(all[i].layout));
    layout.name = std::to_string(i);
    layout.overrides = Join(layout.overrides, OverridesOf(all[i]));
  }
  std::vector<Recomputed> chosen;
  for (const Layout& layout : CoveringLayouts(layouts, Cover::kEach)) chosen.push_back(all.at(std::stoul(layout.name)));
  return chosen;
}
const auto kRecomputedName = [](const auto& info) { return info.param.layout + "_" + std::to_string(info.index); };
INSTANTIATE_TEST_SUITE_P(Some, Recompute, ::testing::ValuesIn(CoveringRecomputed()), kRecomputedName);
INSTANTIATE_TEST_SUITE_P(Soak, Recompute, ::testing::ValuesIn(AllRecomputed()), kRecomputedName);

// The shared expert beside the exchanges of tokens, on streams that are delayed at random.
void ExpectDispatchOverlaps(const std::vector<std::string>& layouts, const std::vector<std::string>& more) {
  for (const std::string& layout : layouts) {
    SCOPED_TRACE(layout);
    ExpectSameBits(Train(layout, Join({"modules.language.parallel.overlap_dispatch=true"}, more), "faulty_executor",
                         "delayed_streams"),
                   Plain(layout));
  }
}

TEST(OverlappedDispatch, ChangesNoBit) {
  ExpectDispatchOverlaps({"ep4", "gathered_ep4_tp2", "recompute_moe_ep4"}, {});
  ExpectDispatchOverlaps({"gathered_ep2"}, kOverlap);
}
TEST(OverlappedDispatch, SoakChangesNoBit) {
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, kOverlap}) {
    ExpectDispatchOverlaps(
        {"ep2", "fan_in", "colocated_4", "stage1_tp2_ep2", "frozen_language", "recompute_full_tp2_ep2",
         "gathered_ep4_cp2_tp2", "gathered_ep2_expert_tp2_tp2", "gathered_ep4_expert_tp2_uneven", "gathered_pp2_ep2",
         "gathered_recompute_full_ep2", "gathered_documents_ep4_tp2", "gathered_frozen_language", "gathered_colocated"},
        more);
  }
}

void ExpectNoBitChanged(int first_seed, int seeds) {
  for (const char* layout :
       {"one_and_one", "tp2_tp2", "dp2_dp2", "ep4", "uneven", "colocated_4", "overlapped_gathered_ep2"}) {
    for (int seed = first_seed; seed < first_seed + seeds; ++seed) {
      SCOPED_TRACE(std::string(layout) + " random_streams:" + std::to_string(seed));
      ExpectSameBits(Train(layout, {}, "faulty_executor", "random_streams:" + std::to_string(seed)), Plain(layout));
    }
  }
}

TEST(RandomStreams, ChangeNoBit) { ExpectNoBitChanged(1, 1); }
TEST(RandomStreams, SoakChangeNoBit) { ExpectNoBitChanged(100, 40); }

}  // namespace
}  // namespace planwright::testing
