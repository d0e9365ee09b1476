#include "planner/plan/lr_schedule.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace planwright {
namespace {

using nlohmann::json;

// Megatron-LM's name of a style, as ours.
std::string Style(std::string upstream) {
  if (upstream == "WSD") return "wsd";
  if (upstream == "inverse-square-root") return "inverse_sqrt";
  return upstream;
}

template <typename T>
T Or(const json& config, const char* key, T otherwise) {
  return config.contains(key) && !config[key].is_null() ? config[key].get<T>() : otherwise;
}

LearningRate RateOf(const json& config) {
  return {.peak = config.at("max_lr"),
          .min = config.at("min_lr"),
          .init = config.at("init_lr"),
          .warmup_samples = config.at("lr_warmup_steps"),
          .decay_samples = config.at("lr_decay_steps"),
          .style = Style(config.at("lr_decay_style")),
          .wsd_decay_samples = Or<int64_t>(config, "wsd_decay_steps", 0),
          .wsd_style = Or<std::string>(config, "lr_wsd_decay_style", "")};
}

WeightDecay DecayOf(const json& config) {
  return {.start = config.at("start_wd"),
          .end = config.at("end_wd"),
          .style = config.at("wd_incr_style"),
          .samples = config.at("wd_incr_steps")};
}

// Recorded values of Megatron-LM's schedules (tests/golden/upstream_public.json).
TEST(LrSchedule, EqualsRecordedValuesBitForBit) {
  int points = 0;
  for (const json& c : Golden().at("lr_cases")) {
    const LearningRate rate = RateOf(c.at("config"));
    const WeightDecay decay = DecayOf(c.at("config"));
    for (const json& point : c.at("points")) {
      const double sample = point.at("num_steps");
      EXPECT_EQ(LearningRateAt(rate, sample), point.at("lr").get<double>()) << c.at("id") << " at " << sample;
      EXPECT_EQ(WeightDecayAt(decay, sample), point.at("wd").get<double>()) << c.at("id") << " at " << sample;
      ++points;
    }
  }
  EXPECT_GT(points, 100);
}

TEST(LrSchedule, EqualsRecordedValuesOfEachParameterGroup) {
  const json& golden = Golden().at("lr_param_groups");
  for (const json& point : golden.at("points")) {
    for (size_t i = 0; i < point.at("groups").size(); ++i) {
      json config = golden.at("config");
      config.update(golden.at("groups_in")[i]);
      const double sample = point.at("num_steps");
      EXPECT_EQ(LearningRateAt(RateOf(config), sample), point["groups"][i].at("lr").get<double>());
      EXPECT_EQ(WeightDecayAt(DecayOf(config), sample) * Or(config, "wd_mult", 1.0),
                point["groups"][i].at("wd").get<double>());
    }
  }
}

// docs/training/budget.md#exact-values
TEST(LrSchedule, EqualsTheExactValuesOfAProductionRun) {
  const LearningRate rate = {1.2e-3, 1.2e-5, 0.0, 1024000, 121046313, "wsd", 18310547, "minus_sqrt"};
  EXPECT_EQ(LearningRateAt(rate, 102735767), 0.0011997223703909994);
  EXPECT_EQ(LearningRateAt(rate, 121046312), 1.2000032440320179e-05);
  EXPECT_EQ(LearningRateAt(rate, 121046784), 1.2e-05);
}

}  // namespace
}  // namespace planwright
