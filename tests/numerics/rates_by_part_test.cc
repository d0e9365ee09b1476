// Rates by part, beside a loop that anybody would write: real runs give the gradients of each step, tensor by tensor,
// and the loop steps the published tensors with them, each with the rates of its part.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"

namespace planwright::testing {
namespace {

constexpr int kSteps = 4;

struct Rates {
  double learning_rate = 0, weight_decay = 0;  // at the peak, and at the end
};

// What the budget and the optimizer of every case say: a warmup of two steps, and a decay that rises.
constexpr double kPeak = 4.0e-3, kMin = 4.0e-4, kInit = 1.0e-3, kDecayStart = 0.1, kDecayEnd = 0.4;
const std::vector<std::string> kBudget = {"precision.params=fp64", "budget.train_samples=80",
                                          "budget.learning_rate={peak: 4.0e-3, min: 4.0e-4, init: 1.0e-3, "
                                          "warmup_samples: 16, decay_samples: 80, style: linear}",
                                          "budget.weight_decay={start: 0.1, end: 0.4, style: linear}"};

// The part of the rate that the schedule has of its peak, and of the weight decay that it has of its end, before step t
// from 0, of 8 samples each.
double RatePart(int t) {
  const double n = 8.0 * t;
  if (n <= 16) return (kInit + (kPeak - kInit) * n / 16) / kPeak;
  return (kMin + (1 - (n - 16) / (80 - 16)) * (kPeak - kMin)) / kPeak;
}
double DecayPart(int t) { return (kDecayStart + 8.0 * t / 80 * (kDecayEnd - kDecayStart)) / kDecayEnd; }

struct Case {
  std::string name, recipe, parts;
  Rates (*rates_of)(const std::string& name);
  std::vector<std::string> one_rank, layout;
  std::string clip = "0.25";  // the largest norm, below that of every step
  friend void PrintTo(const Case& of, std::ostream* out) { *out << of.name; }
};

bool Has(const std::string& name, const std::string& text) { return name.find(text) != std::string::npos; }

// Whether weight decay is for the tensor: the rule of docs/training/step.md#weight-decay-rule.
bool Decays(const std::string& name, const WholeTensor& tensor) {
  return tensor.shape.size() > 1 && !name.ends_with(".bias");
}

std::vector<TrainingRun> RunsOf(const Case& of, const std::vector<std::string>& layout) {
  std::vector<TrainingRun> runs;
  for (int steps = 1; steps <= kSteps; ++steps) {
    runs.push_back(Launch(
        {of.recipe, Join(Join(kBudget, {"optimizer.parts=" + of.parts, "optimizer.clip_grad_norm=" + of.clip}), layout),
         steps, ""}));
    EXPECT_EQ(runs.back().exit_code, 0) << runs.back().output;
  }
  return runs;
}

// Steps every tensor of `parameters` by the gradients of all steps.
Tensors Loop(const Case& of, const std::vector<TrainingRun>& runs) {
  Tensors weights = runs[0].parameters;
  std::map<std::string, std::vector<double>> first, second;  // the moments
  for (int t = 0; t < kSteps; ++t) {
    const Tensors& gradients = runs[static_cast<size_t>(t)].gradients_last;
    double squares = 0;
    for (const auto& [name, gradient] : gradients) {
      for (const double g : gradient.values) squares += g * g;
    }
    const double norm = std::sqrt(squares), clip = std::min(1.0, std::stod(of.clip) / (norm + 1e-6));
    EXPECT_LT(clip, 1) << "step " << t + 1 << " is not clipped, with the norm " << norm;
    for (const auto& [name, gradient] : gradients) {
      WholeTensor& tensor = weights.at(name);
      std::vector<double>&m = first[name], &v = second[name];
      m.resize(tensor.values.size()), v.resize(tensor.values.size());
      const Rates peak = of.rates_of(name);
      const double lr = peak.learning_rate * RatePart(t),
                   wd = Decays(name, tensor) ? peak.weight_decay * DecayPart(t) : 0;
      for (size_t i = 0; i < tensor.values.size(); ++i) {
        const double g = gradient.values[i] * clip;
        m[i] = 0.9 * m[i] + 0.1 * g;
        v[i] = 0.95 * v[i] + 0.05 * g * g;
        const double m_hat = m[i] / (1 - std::pow(0.9, t + 1)), v_hat = v[i] / (1 - std::pow(0.95, t + 1));
        tensor.values[i] -= lr * (m_hat / (std::sqrt(v_hat) + 1e-8) + wd * tensor.values[i]);
      }
    }
  }
  return weights;
}

class RatesByPart : public ::testing::TestWithParam<Case> {};

TEST_P(RatesByPart, AreThoseOfAPlainLoop) {
  const Case& of = GetParam();
  for (const auto& layout : {of.one_rank, of.layout}) {
    const std::vector<TrainingRun> runs = RunsOf(of, layout);
    if (HasFailure()) return;
    const Tensors expected = Loop(of, runs);
    const TrainingRun& last = runs.back();
    size_t compared = 0;
    for (const auto& [name, gradient] : last.gradients_last) {
      const WholeTensor &found = last.parameters_last.at(name), &before = last.parameters.at(name);
      EXPECT_LT(Distance(found, expected.at(name)), 1e-13) << name;
      // A part whose rate is 0 stands still, and no other does.
      const bool stands = of.rates_of(name).learning_rate == 0;
      EXPECT_EQ(Distance(found, before) == 0, stands) << name;
      ++compared;
    }
    EXPECT_GT(compared, 20u);
    // The log has the rate of the schedule, which parts do not change.
    for (int t = 0; t < kSteps; ++t)
      EXPECT_NEAR(last.steps.at(static_cast<size_t>(t)).learning_rate, kPeak * RatePart(t), 1e-15);
  }
}

// Query, key and value are one storage. The projector has a rate of its own, the tower a small one, in which norms are
// as all norms; embedding and head have no weight decay; one layer stands still.
Rates OfHybrid(const std::string& name) {
  if (Has(name, "q_proj")) return {8.0e-3, kDecayEnd};
  if (Has(name, "norm")) return {1.0e-3, kDecayEnd};
  if (Has(name, ".layers.3.")) return {0, kDecayEnd};
  if (Has(name, "embeddings") || Has(name, "lm_head")) return {kPeak, 0};
  if (Has(name, "mlp1")) return {2.0e-2, 0.3};
  if (Has(name, "vision_model")) return {4.0e-5, kDecayEnd};
  return {kPeak, kDecayEnd};
}

// Gate and up of each expert are one storage, stacked over experts.
Rates OfDecoder(const std::string& name) {
  if (Has(name, ".experts.") && Has(name, "gate_proj")) return {1.0e-3, 0.1};
  if (Has(name, "v_proj")) return {8.0e-3, kDecayEnd};
  if (Has(name, "layers.0.")) return {2.0e-3, kDecayEnd};
  return {kPeak, kDecayEnd};
}

const std::vector<std::string> kAdapted = {
    "modules.language.train.backbone=frozen",
    "modules.language.adapter={rank: 3, alpha: 6.0, targets: [q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, "
    "down_proj]}"};

// The second of the two products of each adapter learns faster, as LoRA+ has it, and those of one layer stand still.
Rates OfAdapters(const std::string& name) {
  if (Has(name, ".layers.1.")) return {0, kDecayEnd};
  return Has(name, "lora_B") ? Rates{6.4e-2, 0} : Rates{2.0e-3, kDecayEnd};
}

const Case kCases[] = {
    {"hybrid", kTinyRecipe,
     "[{match: \"*.q_proj.*\", learning_rate: 8.0e-3}, {match: \"*norm*\", learning_rate: 1.0e-3}, "
     "{match: \"*.layers.3.*\", learning_rate: 0.0}, {match: \"*embeddings*\", weight_decay: 0.0}, "
     "{match: \"*lm_head.weight\", weight_decay: 0.0}, "
     "{match: radio_encoder.projection, learning_rate: 2.0e-2, weight_decay: 0.3}, "
     "{match: radio_encoder, learning_rate: 4.0e-5}]",
     OfHybrid, OneRankOnly(), Join(EncoderOn(2, 2), LanguageOn(2, 4, 2, 2))},
    {"experts",
     "recipes/qwen3_moe_tiny.yaml",
     "[{match: \"*.experts.*.gate_proj.weight\", learning_rate: 1.0e-3, weight_decay: 0.1}, "
     "{match: \"*.v_proj.weight\", learning_rate: 8.0e-3}, {match: \"*layers.0.*\", learning_rate: 2.0e-3}]",
     OfDecoder,
     {},
     LanguageOn(0, 4, 2, 2)},
    {"adapters", "recipes/llama_tiny.yaml",
     "[{match: \"*.layers.1.*\", learning_rate: 0.0}, "
     "{match: \"*.lora_B.*\", learning_rate: 6.4e-2, weight_decay: 0.0}, "
     "{match: language.adapter, learning_rate: 2.0e-3}]",
     OfAdapters, kAdapted, Join(LanguageOn(0, 2, 2, 1), kAdapted), "0.0001"}};

INSTANTIATE_TEST_SUITE_P(Parts, RatesByPart, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace planwright::testing
