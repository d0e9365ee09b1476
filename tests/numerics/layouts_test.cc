// Numbers must not depend on the layout: the same recipe on any layout trains the same curve as on one rank
// (docs/training/layout_independence.md). Real processes over Gloo.
#include "tests/numerics/layouts.h"

#include <absl/strings/str_join.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "tests/numerics/run.h"

namespace planwright::testing {
namespace {

// Rounding grows over twenty steps of AdamW. A wrong weight, sample or factor shows at 1e-3 and above (faults_test.cc).
constexpr double kFp64 = 1e-9, kFp32 = 1e-5;

// The overrides of the one rank that a layout is compared with. Only the layout's own recipe and training count.
std::vector<std::string> ReferenceOf(const Layout& layout, const std::string& precision) {
  return Join({"precision.params=" + precision}, layout.one_rank, layout.training);
}
std::vector<std::string> OverridesOf(const Layout& layout, const std::string& precision) {
  return Join({"precision.params=" + precision}, layout.training, layout.overrides);
}

const TrainingRun& OneRank(const Layout& layout, const std::string& precision) {
  static std::map<std::string, TrainingRun> runs;
  auto [it, fresh] =
      runs.try_emplace(absl::StrJoin({layout.recipe, absl::StrJoin(layout.training, " "), precision}, " "));
  if (fresh) it->second = Launch({layout.recipe, ReferenceOf(layout, precision), 20, ""});
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

void ExpectSameCurve(const Layout& layout, const std::string& precision) {
  const double tolerance = precision == "fp64" ? kFp64 : kFp32;
  const TrainingRun& reference = OneRank(layout, precision);
  ASSERT_EQ(reference.exit_code, 0) << reference.output;
  const TrainingRun run = Launch({layout.recipe, OverridesOf(layout, precision), 20, ""});
  ASSERT_EQ(run.exit_code, 0) << run.output;
  ASSERT_EQ(run.steps.size(), 20u);
  const Comparison comparison = Compare(run, reference, tolerance);
  for (const std::string& difference : comparison.differences) ADD_FAILURE() << difference;
  std::printf("worst: loss %.1e, module norm %.1e, bridge %.1e, gradient at the first step %.1e, at the last %.1e\n",
              comparison.worst_loss, comparison.worst_norm, comparison.worst_bridge, comparison.worst_gradient_first,
              comparison.worst_gradient_last);
  if (!comparison.parted_at) return;
  EXPECT_EQ(precision, "fp32") << "routing parts at step " << *comparison.parted_at + 1;
  ExpectPartedAtATie(layout, precision, static_cast<int>(*comparison.parted_at) + 1);
}

// Every `n`-th layout, or all others. The others are for ./dev soak: each run starts a process for each rank.
std::vector<Layout> EveryNth(std::vector<Layout> all, size_t n, bool others = false) {
  std::vector<Layout> chosen;
  for (size_t i = 0; i < all.size(); ++i) {
    if ((i % n == 0) != others) chosen.push_back(std::move(all[i]));
  }
  return chosen;
}

std::string NameOf(const ::testing::TestParamInfo<Layout>& info) { return info.param.name; }

class TinyFp64 : public ::testing::TestWithParam<Layout> {};
TEST_P(TinyFp64, TrainsTheCurveOfOneRank) { ExpectSameCurve(GetParam(), "fp64"); }
INSTANTIATE_TEST_SUITE_P(Some, TinyFp64, ::testing::ValuesIn(EveryNth(AllLayouts(), 3)), NameOf);
INSTANTIATE_TEST_SUITE_P(Soak, TinyFp64, ::testing::ValuesIn(EveryNth(AllLayouts(), 3, /*others=*/true)), NameOf);

class TinyFp32 : public ::testing::TestWithParam<Layout> {};
TEST_P(TinyFp32, TrainsTheCurveOfOneRank) { ExpectSameCurve(GetParam(), "fp32"); }
INSTANTIATE_TEST_SUITE_P(Some, TinyFp32, ::testing::ValuesIn(EveryNth(AllLayouts(), 4)), NameOf);
INSTANTIATE_TEST_SUITE_P(Soak, TinyFp32, ::testing::ValuesIn(EveryNth(AllLayouts(), 4, /*others=*/true)), NameOf);

class ToyFp64 : public ::testing::TestWithParam<Layout> {};
TEST_P(ToyFp64, TrainsTheCurveOfOneRank) { ExpectSameCurve(GetParam(), "fp64"); }
INSTANTIATE_TEST_SUITE_P(Some, ToyFp64, ::testing::ValuesIn(EveryNth(ToyLayouts(), 2)), NameOf);
INSTANTIATE_TEST_SUITE_P(Soak, ToyFp64, ::testing::ValuesIn(EveryNth(ToyLayouts(), 2, /*others=*/true)), NameOf);

class ToyFp32 : public ::testing::TestWithParam<Layout> {};
TEST_P(ToyFp32, TrainsTheCurveOfOneRank) { ExpectSameCurve(GetParam(), "fp32"); }
INSTANTIATE_TEST_SUITE_P(Soak, ToyFp32, ::testing::ValuesIn(ToyLayouts()), NameOf);

TEST(Learning, TheTinyModelsLossFalls) {
  const TrainingRun& run = OneRank({"one_rank", {}}, "fp64");
  ASSERT_EQ(run.steps.size(), 20u);
  EXPECT_LT(run.steps.back().loss, 0.8 * run.steps.front().loss);
}

}  // namespace
}  // namespace planwright::testing
