// The results of another implementation of the whole model (tests/golden/vlm_oracle) are reproduced in the ordinary
// way: a recipe, published weights, a recorded batch, --probe. Its gradients are of the summed loss; ours are divided
// by the number of loss tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

constexpr char kOracle[] = "tests/golden/vlm_oracle/oracle.yaml";
constexpr double kTokensInLoss = 78;  // case.json
constexpr double kOutputs = 1e-10, kGradients = 1e-9;

const Tensors& Expected() {
  static const Tensors expected = ReadTensors(InSource("tests/golden/vlm_oracle/expected.safetensors"));
  return expected;
}

// The order of a token's chosen experts is not defined; the weights are in the order of the experts.
void SortChoices(const std::string& layer, Tensors& values) {
  WholeTensor &ids = values.at(layer + ".expert_ids"), &weights = values.at(layer + ".expert_weights");
  const int64_t k = ids.shape.back();
  for (size_t row = 0; row < ids.values.size() / k; ++row) {
    std::vector<std::pair<double, double>> choices;
    for (int64_t j = 0; j < k; ++j) choices.emplace_back(ids.values[row * k + j], weights.values[row * k + j]);
    std::sort(choices.begin(), choices.end());
    for (int64_t j = 0; j < k; ++j) std::tie(ids.values[row * k + j], weights.values[row * k + j]) = choices[j];
  }
}

void ExpectOutputs(Tensors values) {
  Tensors expected = Expected();
  for (const char* layer : {"outputs/language.layer1", "outputs/language.layer3"}) {
    SortChoices(layer, values);
    SortChoices(layer, expected);
  }
  size_t compared = 0;
  double worst = 0;
  for (const auto& [name, tensor] : expected) {
    if (name.rfind("outputs/", 0) != 0) continue;
    const auto it = values.find(name);
    ASSERT_NE(it, values.end()) << "no probe of " << name;
    const double distance = Distance(it->second, tensor);
    EXPECT_LE(distance, kOutputs) << name;
    worst = std::max(worst, distance);
    ++compared;
  }
  EXPECT_EQ(compared, 19u);
  std::printf("worst output %.1e\n", worst);
}

void ExpectGradients(const Tensors& gradients) {
  size_t compared = 0;
  double worst = 0;
  for (const auto& [name, tensor] : Expected()) {
    if (name.rfind("gradients/", 0) != 0) continue;
    WholeTensor expected = tensor;
    for (double& value : expected.values) value /= kTokensInLoss;
    const auto it = gradients.find(name.substr(10));
    ASSERT_NE(it, gradients.end()) << "no gradient of " << name;
    const double distance = Distance(it->second, expected);
    EXPECT_LE(distance, kGradients) << name;
    worst = std::max(worst, distance);
    ++compared;
  }
  EXPECT_EQ(compared, gradients.size());
  std::printf("worst gradient %.1e of %zu\n", worst, compared);
}

void ExpectOracle(const std::vector<std::string>& layout) {
  const TrainingRun run = Launch({kOracle, layout, 0, ""});
  ASSERT_EQ(run.exit_code, 0) << run.output;
  ExpectOutputs(run.values_first);
  ExpectGradients(run.gradients_first);
  ASSERT_EQ(run.steps.size(), 1u);
  EXPECT_NEAR(run.steps[0].loss, Expected().at("outputs/loss_sum").values[0] / kTokensInLoss, 1e-12);
}

TEST(Oracle, OneRank) { ExpectOracle({}); }
TEST(Oracle, OneRankBothSamplesAtOnce) { ExpectOracle({"batch.micro_samples=2"}); }
TEST(Oracle, Tp2Tp2WithEp2) { ExpectOracle(Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2))); }
TEST(Oracle, Cp2WithEp2) {
  ExpectOracle(Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 2), Parallel("language", {{"cp", 2}})));
}
TEST(Oracle, ExpertTp2WithEp2) {
  ExpectOracle(Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 2), Parallel("language", {{"expert_tp", 2}})));
}
TEST(Oracle, EncoderCp2) {
  ExpectOracle(Join(EncoderOn(2, 1), Parallel("radio_encoder", {{"cp", 2}}), LanguageOn(2, 1, 1, 1)));
}
TEST(Oracle, Dp2Dp2) { ExpectOracle(Join(EncoderOn(2, 1), LanguageOn(2, 2, 1, 1))); }
TEST(Oracle, Pp2) { ExpectOracle(Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 1), Parallel("language", {{"pp", 2}}))); }
TEST(Oracle, EncoderPp3AndPp4) {
  ExpectOracle(Join(Join(EncoderOn(3, 1), Parallel("radio_encoder", {{"pp", 3}})), LanguageOn(3, 4, 1, 1),
                    Parallel("language", {{"pp", 4}})));
}
TEST(Oracle, PpCpAndExpertTpTogether) {
  ExpectOracle(
      Join(EncoderOn(1, 1), LanguageOn(1, 4, 1, 1), Parallel("language", {{"pp", 2}, {"cp", 2}, {"expert_tp", 2}})));
}

}  // namespace
}  // namespace planwright::testing
