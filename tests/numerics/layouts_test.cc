// Numbers must not depend on the layout: the same recipe on any layout trains the same curve as on one rank
// (docs/training/layout_independence.md). Real processes over Gloo. `./dev test` trains a few steps of layouts that
// cover every feature and every two axes (covering_layouts.h), `./dev soak` twenty steps of all.
#include "tests/numerics/layouts.h"

#include <absl/strings/str_join.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <set>

#include "tests/numerics/covering_layouts.h"
#include "tests/numerics/run.h"

namespace planwright::testing {
namespace {

// Rounding grows over twenty steps of AdamW. A wrong weight, sample or factor shows at 1e-3 and above, and within two
// steps (faults_test.cc). The first step that follows an update of all weights is the third: the first has rate 0.
constexpr double kFp64 = 1e-9, kFp32 = 1e-5;
constexpr int kFewSteps = 5, kAllSteps = 20;

// The overrides of the one rank that a layout is compared with. Only the layout's own recipe and training count.
std::vector<std::string> ReferenceOf(const Layout& layout, const std::string& precision) {
  return Join({"precision.params=" + precision}, layout.one_rank, layout.training);
}
std::vector<std::string> OverridesOf(const Layout& layout, const std::string& precision) {
  return Join({"precision.params=" + precision}, layout.training, layout.overrides);
}

const TrainingRun& OneRank(const Layout& layout, const std::string& precision, int steps) {
  static std::map<std::string, TrainingRun> runs;
  auto [it, fresh] = runs.try_emplace(
      absl::StrJoin({layout.recipe, absl::StrJoin(layout.training, " "), precision, std::to_string(steps)}, " "));
  if (fresh) it->second = Launch({layout.recipe, ReferenceOf(layout, precision), steps, ""});
  return it->second;
}

// Tokens of one expert layer whose chosen experts differ between two runs, and the largest difference of router scores
// among those and among all others.
struct Flips {
  size_t tokens = 0;
  double noise_there = 0, noise_elsewhere = 0;
};

Flips FlipsOf(const std::string& layer, const Tensors& a, const Tensors& b) {
  const WholeTensor &ids_a = a.at(layer + ".expert_ids"), &ids_b = b.at(layer + ".expert_ids");
  const WholeTensor &logits_a = a.at(layer + ".router_logits"), &logits_b = b.at(layer + ".router_logits");
  const int64_t k = ids_a.shape.back(), experts = logits_a.shape.back();
  Flips flips;
  for (size_t token = 0; token < ids_a.values.size() / k; ++token) {
    const auto chosen = [&](const WholeTensor& ids) {
      return std::set<double>(ids.values.begin() + token * k, ids.values.begin() + (token + 1) * k);
    };
    double noise = 0;
    for (int64_t e = 0; e < experts; ++e) {
      const auto score = [&](const WholeTensor& logits) {
        return 1 / (1 + std::exp(-logits.values[token * experts + e]));
      };
      noise = std::max(noise, std::abs(score(logits_a) - score(logits_b)));
    }
    const bool flipped = chosen(ids_a) != chosen(ids_b);
    flips.tokens += flipped;
    double& largest = flipped ? flips.noise_there : flips.noise_elsewhere;
    largest = std::max(largest, noise);
  }
  return flips;
}

// If two runs choose different experts, the choice must have been a tie within the measured noise. Both runs have the
// same expert bias there: it moves by integer counts, which agreed until then. So if they prefer different experts
// although no score of the token differs by more than d, the gap between the two experts was below 2 d in both. And d
// must not be larger than what rounding does to the other tokens. This is checked in the first layer with different
// choices: values of later layers differ for a reason.
void ExpectPartedAtATie(const Layout& layout, const std::string& precision, int steps) {
  const TrainingRun a = Launch({layout.recipe, OverridesOf(layout, precision), steps, ""});
  const TrainingRun b = Launch({layout.recipe, ReferenceOf(layout, precision), steps, ""});
  ASSERT_EQ(a.exit_code, 0) << a.output;
  ASSERT_EQ(b.exit_code, 0) << b.output;
  for (int layer = 0; layer < 100; ++layer) {
    const std::string name = "outputs/language.layer" + std::to_string(layer);
    if (!a.values_last.contains(name + ".expert_ids")) continue;
    const Flips flips = FlipsOf(name, a.values_last, b.values_last);
    if (flips.tokens == 0) continue;
    std::printf("routing parts at step %d, layer %d: %zu tokens, scores there differ by %.1e, elsewhere by %.1e\n",
                steps, layer, flips.tokens, flips.noise_there, flips.noise_elsewhere);
    EXPECT_LE(flips.noise_there, flips.noise_elsewhere) << "a flip that is no tie";
    EXPECT_LT(flips.noise_elsewhere, 1e-3) << "more than rounding";
    return;
  }
  ADD_FAILURE() << "the fingerprints part, but no layer flips";
}

// The k experts of a token that have the highest scores, without the bias that the choice adds.
std::set<int64_t> HighestScores(const WholeTensor& logits, size_t token, int64_t k) {
  const int64_t experts = logits.shape.back();
  std::vector<std::pair<double, int64_t>> scores;
  for (int64_t e = 0; e < experts; ++e) scores.emplace_back(-logits.values[token * experts + e], e);
  std::sort(scores.begin(), scores.end());
  std::set<int64_t> highest;
  for (int64_t j = 0; j < k; ++j) highest.insert(scores[j].second);
  return highest;
}

// The auxiliary loss counts experts by scores without bias, so it has ties of its own, which the routing does not show.
// Where two runs part at one in the last step, the gradients of that layer's router differ for a reason: drops them.
void DropRoutersAtTies(TrainingRun& a, TrainingRun& b) {
  for (int layer = 0; layer < 100; ++layer) {
    const std::string name = "outputs/language.layer" + std::to_string(layer);
    const auto in_a = a.values_last.find(name + ".router_logits"), in_b = b.values_last.find(name + ".router_logits");
    if (in_a == a.values_last.end() || in_b == b.values_last.end()) continue;
    const int64_t k = a.values_last.at(name + ".expert_ids").shape.back();
    size_t parted = 0, tokens = in_a->second.values.size() / in_a->second.shape.back();
    for (size_t token = 0; token < tokens; ++token)
      parted += HighestScores(in_a->second, token, k) != HighestScores(in_b->second, token, k);
    if (parted == 0) continue;
    std::printf("the auxiliary loss of layer %d parts at %zu of %zu tokens\n", layer, parted, tokens);
    const std::string router = "language_model.backbone.layers." + std::to_string(layer) + ".mixer.gate.weight";
    EXPECT_EQ(a.gradients_last.erase(router), 1U);
    b.gradients_last.erase(router);
  }
}

// fp32 rounds 2^29 times as coarsely as fp64. Gradients after twenty steps of twenty layers may be off by more than
// kFp32, if they are off by no more than this makes of what they are off by in fp64; four times, as rounding is random.
void ExpectRounding(const Layout& layout, int steps, double off) {
  const TrainingRun run = Launch({layout.recipe, OverridesOf(layout, "fp64"), steps, ""});
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const Comparison wide = Compare(run, OneRank(layout, "fp64", steps), kFp64);
  for (const std::string& difference : wide.differences) ADD_FAILURE() << "in fp64 " << difference;
  std::printf("in fp64 the gradient at the last step is off by %.1e\n", wide.worst_gradient_last);
  EXPECT_FALSE(wide.parted_at);
  EXPECT_LE(off, 4 * std::ldexp(wide.worst_gradient_last, 29)) << "gradient at the last step, more than rounding";
}

void ExpectSameCurve(const Layout& layout, const std::string& precision, int steps) {
  const double tolerance = precision == "fp64" ? kFp64 : kFp32;
  const bool rounds = precision == "fp32" && steps > kFewSteps;
  TrainingRun reference = OneRank(layout, precision, steps);
  ASSERT_EQ(reference.exit_code, 0) << reference.output;
  TrainingRun run = Launch({layout.recipe, OverridesOf(layout, precision), steps, ""});
  ASSERT_EQ(run.exit_code, 0) << run.output;
  ASSERT_EQ(run.steps.size(), static_cast<size_t>(steps));
  if (rounds && run.steps.back().routing == reference.steps.back().routing) DropRoutersAtTies(run, reference);
  const Comparison comparison =
      Compare(run, reference, tolerance, rounds ? std::numeric_limits<double>::infinity() : tolerance);
  for (const std::string& difference : comparison.differences) ADD_FAILURE() << difference;
  for (const std::string& difference : CompareEvaluations(run, reference, tolerance)) ADD_FAILURE() << difference;
  std::printf("worst: loss %.1e, module norm %.1e, bridge %.1e, gradient at the first step %.1e, at the last %.1e\n",
              comparison.worst_loss, comparison.worst_norm, comparison.worst_bridge, comparison.worst_gradient_first,
              comparison.worst_gradient_last);
  if (rounds && comparison.worst_gradient_last > tolerance)
    ExpectRounding(layout, steps, comparison.worst_gradient_last);
  if (!comparison.parted_at) return;
  EXPECT_EQ(precision, "fp32") << "routing parts at step " << *comparison.parted_at + 1;
  ExpectPartedAtATie(layout, precision, static_cast<int>(*comparison.parted_at) + 1);
}

struct Case {
  Layout layout;
  const char* precision;
  int steps;
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.precision << "_" << c.layout.name; }
};

std::vector<Case> Cases(const std::vector<Layout>& layouts, const char* precision, int steps) {
  std::vector<Case> cases;
  for (const Layout& layout : layouts) cases.push_back({layout, precision, steps});
  return cases;
}

std::string NameOf(const ::testing::TestParamInfo<Case>& info) {
  return std::string(info.param.precision) + "_" + info.param.layout.name;
}

class Layouts : public ::testing::TestWithParam<Case> {};
TEST_P(Layouts, TrainTheCurveOfOneRank) { ExpectSameCurve(GetParam().layout, GetParam().precision, GetParam().steps); }
INSTANTIATE_TEST_SUITE_P(Tiny, Layouts,
                         ::testing::ValuesIn(Cases(CoveringLayouts(AllLayouts(), Cover::kPairs), "fp64", kFewSteps)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(TinyInFp32, Layouts,
                         ::testing::ValuesIn(Cases(CoveringLayouts(AllLayouts(), Cover::kEach), "fp32", kFewSteps)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Toy, Layouts,
                         ::testing::ValuesIn(Cases(CoveringLayouts(ToyLayouts(), Cover::kEach), "fp64", kFewSteps)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Decoders, Layouts,
                         ::testing::ValuesIn(Cases(CoveringLayouts(DecoderLayouts(), Cover::kPairs), "fp64",
                                                   kFewSteps)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Adapters, Layouts,
                         ::testing::ValuesIn(Cases(CoveringLayouts(AdapterLayouts(), Cover::kEach), "fp64", kFewSteps)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(SoakAdapters, Layouts, ::testing::ValuesIn(Cases(AdapterLayouts(), "fp64", kAllSteps)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(SoakTiny, Layouts, ::testing::ValuesIn(Cases(AllLayouts(), "fp64", kAllSteps)), NameOf);
INSTANTIATE_TEST_SUITE_P(SoakTinyInFp32, Layouts, ::testing::ValuesIn(Cases(AllLayouts(), "fp32", kAllSteps)), NameOf);
INSTANTIATE_TEST_SUITE_P(SoakDecoders, Layouts, ::testing::ValuesIn(Cases(DecoderLayouts(), "fp64", kAllSteps)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(SoakDecodersInFp32, Layouts, ::testing::ValuesIn(Cases(DecoderLayouts(), "fp32", kAllSteps)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(SoakToy, Layouts, ::testing::ValuesIn(Cases(ToyLayouts(), "fp64", kAllSteps)), NameOf);
INSTANTIATE_TEST_SUITE_P(SoakToyInFp32, Layouts, ::testing::ValuesIn(Cases(ToyLayouts(), "fp32", kAllSteps)), NameOf);

using Pairs = std::set<std::pair<std::string, std::string>>;

Pairs PairsOfAxes(const std::vector<Layout>& layouts) {
  Pairs pairs;
  for (const Layout& layout : layouts) {
    for (const std::string& a : AxesOf(layout)) {
      for (const std::string& b : AxesOf(layout)) pairs.emplace(a, b);
    }
  }
  return pairs;
}

void ExpectEveryAxis(const Pairs& pairs) {
  for (const char* axis : {"tp", "cp", "pp", "dp", "ep", "expert_tp", "expert_dp"}) {
    const std::string name = std::string("language.") + axis;
    EXPECT_TRUE(pairs.contains({name, name})) << name;
  }
  for (const char* axis : {"tp", "cp", "pp", "dp"}) {
    const std::string name = std::string("radio_encoder.") + axis;
    EXPECT_TRUE(pairs.contains({name, name})) << name;
  }
  EXPECT_TRUE(pairs.contains({"colocated", "language.tp"}));
  EXPECT_TRUE(pairs.contains({"language.cp", "language.pp"}));
  for (const char* rest : {"shared_keys", "padded_vocabulary"}) {
    EXPECT_TRUE(pairs.contains({rest, "language.cp"})) << rest;
    EXPECT_TRUE(pairs.contains({rest, "language.pp"})) << rest;
  }
}

// What `./dev test` trains has every two axes together that any layout has, and every axis of every module.
TEST(Covering, LosesNoPairOfAxes) {
  const std::vector<Layout> all = AllLayouts(), chosen = CoveringLayouts(all, Cover::kPairs);
  std::printf("%zu of %zu layouts, %zu in fp32, have the same\n", chosen.size(), all.size(),
              CoveringLayouts(all, Cover::kEach).size());
  const Pairs pairs = PairsOfAxes(all);
  EXPECT_EQ(PairsOfAxes(chosen), pairs);
  ExpectEveryAxis(pairs);
  EXPECT_TRUE(pairs.contains({"radio_encoder.cp", "radio_encoder.tp"}));
  EXPECT_FALSE(pairs.contains({"language.tp", "radio_encoder.ep"}));
}

// One set of runs for Llama, Qwen3, Qwen3-MoE and Qwen3 behind an encoder, with the runs on one rank.
TEST(Covering, OfDecodersIsOneSmallSet) {
  const std::vector<Layout> all = DecoderLayouts(), chosen = CoveringLayouts(all, Cover::kPairs);
  const Pairs pairs = PairsOfAxes(all);
  EXPECT_EQ(PairsOfAxes(chosen), pairs);
  ExpectEveryAxis(pairs);
  std::set<std::string> one_rank, features, recipes;
  for (const Layout& layout : chosen) {
    one_rank.insert(layout.recipe + " " + absl::StrJoin(layout.training, " "));
    recipes.insert(layout.recipe);
    features.merge(FeaturesOf(layout));
  }
  std::printf("%zu of %zu layouts of decoders, %zu runs on one rank\n", chosen.size(), all.size(), one_rank.size());
  EXPECT_LE(chosen.size() + one_rank.size(), 25u);
  EXPECT_EQ(recipes.size(), 4u);
  for (const Layout& layout : all) {
    for (const std::string& feature : FeaturesOf(layout)) EXPECT_TRUE(features.contains(feature)) << feature;
  }
}

TEST(Learning, TheTinyModelsLossFalls) {
  const TrainingRun& run = OneRank({"one_rank", {}}, "fp64", kAllSteps);
  ASSERT_EQ(run.steps.size(), 20u);
  EXPECT_LT(run.steps.back().loss, 0.8 * run.steps.front().loss);
}

}  // namespace
}  // namespace planwright::testing
