// Samples, steps and learning rates, compared with the reference system. Two intended differences: the last step is a
// full batch, while the reference rounds down; and a recipe gives its budget only in samples.
#include <cstdio>
#include <map>

#include "tests/golden/golden_program.h"

namespace planwright {
namespace {

using nlohmann::json;
using testing::CaseName;
using testing::GoldenRecipe;
using testing::Ids;

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

// A budget section with the fields of the reference system's scheduler. Its "steps" are our samples.
std::string BudgetOf(const json& c) {
  const std::map<std::string, std::string> styles = {{"WSD", "wsd"}, {"inverse-square-root", "inverse_sqrt"}};
  const auto word = [&](const std::string& style) { return styles.contains(style) ? styles.at(style) : style; };
  const double warmup = c.at("lr_warmup_steps");
  const int64_t decay = c.at("lr_decay_steps");
  std::string text = "\n  train_samples: " + std::to_string(c.at("wd_incr_steps").get<int64_t>()) +
                     "\n  learning_rate:\n    peak: " + Number(c.at("max_lr")) +
                     "\n    min: " + Number(c.at("min_lr")) + "\n    init: " + Number(c.at("init_lr")) +
                     "\n    decay_samples: " + std::to_string(decay) + "\n    style: " + word(c.at("lr_decay_style"));
  if (warmup == static_cast<double>(static_cast<int64_t>(warmup)))
    text += "\n    warmup_samples: " + std::to_string(static_cast<int64_t>(warmup));
  else
    text += "\n    warmup_fraction: " + Number(warmup / static_cast<double>(decay));
  if (c.at("lr_decay_style") == "WSD") {
    text += "\n    wsd: {";
    if (!c.at("wsd_decay_steps").is_null()) text += "decay_samples: " + c["wsd_decay_steps"].dump() + ", ";
    text += "style: " + c.at("lr_wsd_decay_style").get<std::string>() + "}";
  }
  return text + "\n  weight_decay: {start: " + Number(c.at("start_wd")) + ", end: " + Number(c.at("end_wd")) +
         ", style: " + c.at("wd_incr_style").get<std::string>() + "}";
}

GoldenRecipe OneRank(const std::string& budget) {
  GoldenRecipe recipe;
  recipe.modules = {{"language", 0, 1, 1, 1, 1, 1, 1, ""}};
  recipe.pattern = "*";
  recipe.budget = budget;
  return recipe;
}

class LearningRates : public testing::GoldenCaseProgram {};

TEST_P(LearningRates, AreTheReferencesToTheLastDigit) {
  const json& c = GoldenCase("lr_cases", GetParam());
  std::string at;
  for (const json& point : c.at("points")) at += (at.empty() ? "" : ",") + point.at("num_steps").dump();
  const json shown = Show(OneRank(BudgetOf(c.at("config"))), "budget --at " + at);
  ASSERT_EQ(shown["at"].size(), c["points"].size());
  for (size_t i = 0; i < c["points"].size(); ++i) {
    const json& point = c["points"][i];
    EXPECT_EQ(shown["at"][i]["sample"], point["num_steps"]);
    EXPECT_EQ(shown["at"][i]["learning_rate"].get<double>(), point["lr"].get<double>()) << point["num_steps"];
    EXPECT_EQ(shown["at"][i]["weight_decay"].get<double>(), point["wd"].get<double>()) << point["num_steps"];
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, LearningRates, ::testing::ValuesIn(Ids("lr_cases")), CaseName);

class Budgets : public testing::GoldenProgram {};

TEST_F(Budgets, HaveTheReferencesStepsAndAFullLastOne) {
  for (const json& c : Golden().at("lr_budget_derivation")) {
    if (!c.at("ok").get<bool>()) {
      EXPECT_EQ(c.at("id"), "neither");
      ExpectRefused(OneRank("{learning_rate: {peak: 1.0e-3}}"), "MissingKey", "no samples and no iterations");
      continue;
    }
    const json& a = c.at("args");
    GoldenRecipe recipe =
        OneRank("\n  train_samples: " + a["train_samples"].dump() +
                "\n  learning_rate: {peak: 1.2e-3, min: 1.2e-5, warmup_samples: " + a["lr_warmup_samples"].dump() +
                ", decay_samples: " + a["lr_decay_samples"].dump() +
                ", style: wsd, wsd: {decay_samples: " + a["lr_wsd_decay_samples"].dump() + ", style: minus_sqrt}}");
    recipe.microbatches = a.at("global_batch_size");
    const json budget = Show(recipe, "budget");
    const int64_t samples = a["train_samples"], batch = a["global_batch_size"];
    EXPECT_EQ(budget["steps"], (samples + batch - 1) / batch) << "the last step is a full batch";
    EXPECT_EQ(budget["steps"].get<int64_t>() - (samples % batch != 0), c.at("train_iters"))
        << "the reference system drops it";
    const json& d = c.at("derived");
    EXPECT_EQ(budget["segments"][0]["end_sample"], d.at("lr_warmup_steps"));
    EXPECT_EQ(budget["segments"][2]["end_sample"], d.at("lr_decay_steps"));
    EXPECT_EQ(budget["segments"][2]["end_sample"].get<int64_t>() - budget["segments"][2]["first_sample"].get<int64_t>(),
              d.at("wsd_decay_steps"));
    EXPECT_EQ(budget["segments"][3]["end_sample"], d.at("wd_incr_steps"));
  }
}

// The cases override the WSD schedule of lr_cases. The reference system reports some mistakes only when it evaluates
// the formula; here they are reported when the recipe is compiled.
TEST_F(Budgets, KeepTheReferencesConstraints) {
  const std::map<std::string, std::string> kinds = {{"max_lt_min", "LearningRateRange"},
                                                    {"warmup_gt_decay", "WarmupTooLong"},
                                                    {"wsd_missing", "WsdIncomplete"},
                                                    {"unknown_style_no_warmup", "UnknownChoice"},
                                                    {"wd_unknown", "UnknownChoice"}};
  for (const json& c : Golden().at("lr_ctor_validation")) {
    const std::string id = c.at("id");
    json config = GoldenCase("lr_cases", "wsd_cosine").at("config");
    config.update(c.at("override"));
    const GoldenRecipe recipe = OneRank(BudgetOf(config));
    if (c.at("ok").get<bool>()) {
      EXPECT_TRUE(Validate(recipe).valid) << id;
    } else if (id == "override_and_use_ckpt") {
      GoldenRecipe with = recipe;
      with.budget += "\n  override_opt_param_scheduler: true";
      ExpectRefused(with, "UnknownKey", "a resumed run follows its plan: there is nothing to choose");
    } else {
      ExpectRefused(recipe, kinds.at(id), id);
    }
  }
}

}  // namespace
}  // namespace planwright
