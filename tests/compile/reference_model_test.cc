// The 20-layer model at its real width: the parameters that follow from its layers have the published counts
// (docs/model/language_model.md#parameter-counts).
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "planner/compile/compile.h"
#include "planner/predict/estimate/model_flops.h"
#include "planner/recipe/recipe_reader.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

const Plan& Reference() {
  static const Plan plan = testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_20l_mock_8r.yaml"));
  return plan;
}

int64_t Elements(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

const Parameter& ParameterNamed(const Module& module, const std::string& name) {
  for (const Parameter& parameter : module.parameters) {
    if (parameter.name == name) return parameter;
  }
  throw std::runtime_error("no parameter " + name);
}

TEST(ReferenceModel, HasItsParameters) {
  const Module& language = *Reference().FindModule("language");
  const Module& encoder = *Reference().FindModule("radio_encoder");
  EXPECT_EQ(language.parameter_count, 11'515'677'504);
  EXPECT_EQ(encoder.parameter_count, 651'645'440);
  EXPECT_EQ(encoder.projector_count, 159'912'960);
}

TEST(ReferenceModel, EachLayerHasIts) {
  for (const LayerSummary& layer : Reference().FindModule("language")->layers) {
    const int64_t expected = layer.kind == 'M' ? 38'744'896 : layer.kind == '*' ? 27'527'808 : 1'297'468'032;
    EXPECT_EQ(layer.parameters, expected) << layer.frame;
  }
  for (const LayerSummary& layer : Reference().FindModule("radio_encoder")->layers)
    EXPECT_EQ(layer.parameters, 19'677'440);
}

// Elements on each rank with tp 2 and ep 4 (docs/model/language_model.md#parameter-counts).
TEST(ReferenceModel, ARankHoldsItsShare) {
  const Module& language = *Reference().FindModule("language");
  int64_t dense = 0, expert = 0;
  for (const Storage& storage : language.storages) {
    if (storage.bucket < 0) continue;
    (language.buckets[storage.bucket].view == View::kExpert ? expert : dense) += Elements(storage.shape);
  }
  EXPECT_EQ(dense, 650'580'960);
  EXPECT_EQ(expert, 2'554'331'136);
}

// docs/flops.md: 81.08, 122.16 and 160.33 million a token of an M, * and E layer, 75.78 TFLOP for a sequence of 8192.
TEST(ReferenceModel, TakesItsFlops) {
  const Module& language = *Reference().FindModule("language");
  for (const LayerSummary& layer : language.layers) {
    const double millions = static_cast<double>(layer.forward_flops) / 1e6;
    EXPECT_NEAR(millions, layer.kind == 'M' ? 81.08 : layer.kind == '*' ? 122.16 : 160.33, 0.006) << layer.frame;
  }
  EXPECT_NEAR(FlopsOf(Reference(), language).sample.model() / 1e12, 75.78, 0.005);
}

TEST(ReferenceModel, StartsAsTheReferenceDoes) {
  const Module& language = *Reference().FindModule("language");
  EXPECT_EQ(ParameterNamed(language, "language.backbone.layers.0.mixer.in_proj.weight").init.a, 0.0173);
  EXPECT_NEAR(ParameterNamed(language, "language.backbone.layers.0.mixer.out_proj.weight").init.a, 0.003868, 5e-7);
  EXPECT_TRUE(ParameterNamed(language, "language.backbone.layers.0.mixer.conv1d.weight").decay);
  EXPECT_FALSE(ParameterNamed(language, "language.backbone.layers.0.mixer.A_log").decay);
  EXPECT_FALSE(ParameterNamed(language, "language.backbone.layers.1.mixer.gate.e_score_correction_bias").trained);
  EXPECT_EQ(ParameterNamed(language, "language.backbone.layers.0.mixer.in_proj.weight").segments,
            (std::vector<int64_t>{4096, 4096, 1024, 1024, 64}));
}

TEST(ReferenceModel, BridgeAndScheduleAreTheReferences) {
  const Bridge& bridge = Reference().bridges.at(0);
  ASSERT_EQ(bridge.forward.size(), 2u);
  EXPECT_EQ(bridge.forward[0].from_rank, 1);
  EXPECT_EQ(bridge.forward[0].to_rank, 4);
  EXPECT_EQ(bridge.forward[1].from_rank, 3);
  EXPECT_EQ(bridge.forward[1].to_rank, 6);
  EXPECT_EQ(Reference().budget.microbatches, 4);
  EXPECT_EQ(Reference().schedule.at(0).warmup, 1);
  EXPECT_EQ(Reference().schedule.at(1).warmup, 0);
}

}  // namespace
}  // namespace planwright
