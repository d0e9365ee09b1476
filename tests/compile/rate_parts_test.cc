// Rates by part: which parameters each part has, on every layout, and what is told of parts that have none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "planner/plan/lr_schedule.h"
#include "planner/plan/plan_json.h"
#include "tests/numerics/layouts.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using testing::CompiledFile;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::EncoderOn;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Join;
using testing::LanguageOn;

const std::string kRatedRecipe = InSource(testing::kTinyRecipe);

std::string Parts(const std::string& items) { return "optimizer.parts=[" + items + "]"; }

// The part of each parameter by its name, of those that are in one.
std::map<std::string, int> PartsOf(const Plan& plan) {
  std::map<std::string, int> parts;
  for (const Module& module : plan.modules) {
    for (const Parameter& parameter : module.parameters) {
      if (parameter.part >= 0) parts[parameter.file_name] = parameter.part;
    }
  }
  return parts;
}

std::vector<std::string> ProblemsOf(const std::vector<std::string>& overrides, const std::string& path = kRatedRecipe) {
  Diagnostics problems;
  const std::optional<Recipe> recipe = ReadRecipe(path, overrides, problems);
  if (recipe) CompileRecipe(*recipe, problems);
  std::vector<std::string> texts;
  for (const Diagnostic& problem : problems.sorted())
    texts.push_back(std::string(KindName(problem.kind)) + ": " + problem.message + " | " + problem.help);
  return texts;
}

constexpr char kFrozen[] = "modules.language.train.backbone=frozen";
std::string Adapter(const std::string& targets) {
  return "modules.language.adapter={rank: 2, alpha: 4, targets: [" + targets + "]}";
}

TEST(RateParts, AdaptersAreAPart) {
  const Plan plan = CompiledFile(
      InSource("recipes/llama_tiny.yaml"),
      {kFrozen, Adapter("q_proj, v_proj"),
       Parts("{match: \"*.v_proj.lora_B.*\", learning_rate: 1.0e-2}, {match: language.adapter, weight_decay: 0.0}")});
  std::map<int, size_t> tensors;
  for (const auto& [name, part] : PartsOf(plan)) ++tensors[part];
  EXPECT_EQ(tensors[0], 2u);  // of two layers
  EXPECT_EQ(tensors[1], 6u);
  EXPECT_EQ(tensors.size(), 2u);  // what is frozen is in none
}

// The names that a part would match are not known where an adapter is wrong.
TEST(RateParts, AWrongAdapterIsToldAlone) {
  const std::vector<std::string> wrong = {kFrozen, Adapter("kproj"),
                                          Parts("{match: \"*lora_A*\", learning_rate: 1.0e-2}")};
  Diagnostics problems;
  const std::optional<Recipe> recipe = ReadRecipe(InSource("recipes/llama_tiny.yaml"), wrong, problems);
  ASSERT_TRUE(recipe);
  CompileRecipe(*recipe, problems);
  ASSERT_EQ(problems.sorted().size(), 1u);
  EXPECT_THAT(problems.sorted()[0].help, HasSubstr("did you mean `k_proj`?"));
}

TEST(RateParts, ModulesPartsAndNamesMatch) {
  const Plan plan = CompiledFile(
      kRatedRecipe,
      {Parts("{match: radio_encoder.projection, learning_rate: 1.0e-2}, {match: \"*.norm1.*\", weight_decay: 0.0}, "
             "{match: radio_encoder, learning_rate: 1.0e-4}, {match: \"*.experts.*.up_proj.weight\", "
             "learning_rate: 2.0e-3}")});
  std::map<int, std::set<std::string>> names;
  size_t encoder = 0;
  for (const auto& [name, part] : PartsOf(plan)) names[part].insert(name);
  for (const Parameter& parameter : plan.modules[0].parameters) encoder += parameter.buffer ? 0 : 1;
  EXPECT_THAT(names[0], ElementsAre("mlp1.0.weight", "mlp1.1.weight", "mlp1.3.weight"));
  EXPECT_EQ(names[1].size(), 4u);  // weights and biases of two blocks
  EXPECT_EQ(names[0].size() + names[1].size() + names[2].size(), encoder);
  EXPECT_THAT(names[3], ElementsAre(HasSubstr("layers.1.mixer.experts.{expert}.up_proj.weight"),
                                    HasSubstr("layers.3.mixer.experts.{expert}.up_proj.weight")));
  // What a part leaves out is the schedule's.
  EXPECT_EQ(plan.optimizer.parts[0].weight_decay, 0.05);
  EXPECT_EQ(plan.optimizer.parts[1].learning_rate, 3.0e-3);
  EXPECT_EQ(plan.optimizer.parts[1].weight_decay, 0);
}

TEST(RateParts, AStarIsAnyText) {
  const auto count = [](const std::string& match) {
    return PartsOf(CompiledFile(kRatedRecipe, {Parts("{match: \"" + match + "\", learning_rate: 1.0e-4}")})).size();
  };
  const size_t all = count("*");
  EXPECT_EQ(count("**"), all);
  EXPECT_EQ(count("*.*"), all);
  EXPECT_EQ(count("mlp1.1.weight"), 1u);
  EXPECT_EQ(count("mlp1.*.weight"), 3u);
  EXPECT_EQ(count("*.layers.2.*proj.weight"), 4u);
  EXPECT_EQ(count("*norm_f*weight*"), 1u);
}

TEST(RateParts, AreTheSameOnEveryLayout) {
  const std::string parts = Parts(
      "{match: \"*norm*\", learning_rate: 1.0e-4}, {match: \"*.q_proj.weight\", weight_decay: 0.0}, "
      "{match: radio_encoder, learning_rate: 2.0e-5}");
  const auto one = PartsOf(CompiledFile(kRatedRecipe, {parts}));
  for (const testing::Layout& layout : testing::TinyLayouts())
    EXPECT_EQ(PartsOf(CompiledFile(kRatedRecipe, Join(layout.overrides, layout.training, {parts}))), one)
        << layout.name;
}

TEST(RateParts, OfNoneThePlanIsAsBefore) {
  const std::string text = WritePlan(CompiledFile(kRatedRecipe));
  EXPECT_EQ(text.find("\"part\""), std::string::npos);
  EXPECT_EQ(text.find("\"parts\": []"), std::string::npos);
}

TEST(RateParts, ARateFollowsTheScheduleByAFactor) {
  const Plan plan =
      CompiledFile(kRatedRecipe, {"budget.weight_decay={start: 0.1, end: 0.2, style: linear}",
                                  Parts("{match: radio_encoder, learning_rate: 3.0e-4, weight_decay: 0.05}, "
                                        "{match: language, learning_rate: 6.0e-3}")});
  for (const double sample : {0.0, 5.0, 16.0, 80.0, 160.0}) {
    const StepRates schedule = RatesAt(plan, -1, sample);
    EXPECT_EQ(schedule.learning_rate, LearningRateAt(plan.budget.learning_rate, sample));
    EXPECT_DOUBLE_EQ(RatesAt(plan, 0, sample).learning_rate, schedule.learning_rate / 10);
    EXPECT_DOUBLE_EQ(RatesAt(plan, 0, sample).weight_decay, schedule.weight_decay / 4);
    EXPECT_DOUBLE_EQ(RatesAt(plan, 1, sample).learning_rate, schedule.learning_rate * 2);
    EXPECT_EQ(RatesAt(plan, 1, sample).weight_decay, schedule.weight_decay);
  }
  // Without a decay of the schedule there is no shape to follow.
  const Plan flat = CompiledFile(
      kRatedRecipe, {"budget.weight_decay={start: 0.0, end: 0.0}", Parts("{match: language, weight_decay: 0.3}")});
  for (const double sample : {0.0, 160.0}) {
    EXPECT_EQ(RatesAt(flat, 0, sample).weight_decay, 0.3);
    EXPECT_EQ(RatesAt(flat, -1, sample).weight_decay, 0);
  }
}

TEST(RateParts, EveryMistakeIsToldAtOnceAndWithWhatIsMeant) {
  EXPECT_THAT(
      ProblemsOf(
          {Parts("{match: radio_encodr, learning_rate: 1.0e-3}, {match: \"*.nrom.weight\", learning_rate: 1.0e-3}, "
                 "{match: norm_f.weight, learning_rate: 1.0e-3}, "
                 "{match: \"*.experts.3.*\", learning_rate: 1.0e-3}, {match: nothing, learning_rate: 1.0e-3}, "
                 "{match: language, learning_rate: 1.0e-3}, {match: \"*.in_proj.weight\", weight_decay: 0.0}"),
           "budget.train_samples=0"}),
      ElementsAre(AllOf(HasSubstr("\"radio_encodr\" matches no parameter"), HasSubstr("did you mean `radio_encoder`?")),
                  AllOf(HasSubstr("\"*.nrom.weight\" matches no"), HasSubstr("did you mean `\"*.norm.weight\"`?")),
                  AllOf(HasSubstr("\"norm_f.weight\" matches no"), HasSubstr("did you mean `\"*norm_f.weight\"`?")),
                  AllOf(HasSubstr("\"*.experts.3.*\" matches no"), HasSubstr("write \"*.experts.*.*\"")),
                  AllOf(HasSubstr("\"nothing\" matches no"), HasSubstr("radio_encoder.projection")),
                  AllOf(HasSubstr("nothing is left for \"*.in_proj.weight\""), HasSubstr("\"language\"")),
                  HasSubstr("OutOfRange: `budget.train_samples`")));
}

// Experts are stacked, and their number may stand behind or before a star.
TEST(RateParts, OfOneExpertNamesThoseOfTheLayer) {
  for (const auto& [match, meant] :
       {std::pair("*experts.0.*", "*experts.*.*"), std::pair("*.experts.12*", "*.experts.*"),
        std::pair("*.mixer.experts.0.up_proj.weight", "*.mixer.experts.*.up_proj.weight"),
        std::pair("*layers.1.*experts.7.up*", "*layers.1.*experts.*.up*")}) {
    EXPECT_THAT(ProblemsOf({Parts(std::string("{match: \"") + match + "\", learning_rate: 1.0e-3}")}),
                ElementsAre(HasSubstr(std::string("have one rate: write \"") + meant + "\"")));
    EXPECT_THAT(ProblemsOf({Parts(std::string("{match: \"") + meant + "\", learning_rate: 1.0e-3}")}), IsEmpty());
  }
}

TEST(RateParts, OfATiedHeadIsTheEmbedding) {
  const std::string recipe = InSource("recipes/llama_tiny.yaml"), tied = "models.decoder_tiny.tied=true";
  const auto part = [](const std::string& match) { return Parts("{match: \"" + match + "\", learning_rate: 1.0e-3}"); };
  const std::string embedding = "language_model.model.embed_tokens.weight";
  for (const char* match : {"lm_head*", "*lm_head*", "lm_head.weight", "lm_head", "language_model.lm_head.weight"}) {
    EXPECT_THAT(ProblemsOf({tied, part(match)}, recipe),
                ElementsAre(HasSubstr("its weight is that of the embedding, and has one rate: write " + embedding)))
        << match;
  }
  EXPECT_THAT(ProblemsOf({tied, part(embedding)}, recipe), IsEmpty());
  EXPECT_THAT(ProblemsOf({part("lm_head*")}, recipe), ElementsAre(HasSubstr("did you mean `\"*lm_head*\"`?")));
  EXPECT_THAT(ProblemsOf({tied, part("languag")}, recipe), ElementsAre(HasSubstr("did you mean `language`?")));
}

TEST(RateParts, AModelWithMistakesOfItsOwnHidesWhatIsNotKnown) {
  const std::vector<std::string> problems =
      ProblemsOf({Parts("{match: \"*.mixer.*\", learning_rate: 1.0e-3}, {match: radio_encoder, learning_rate: 1.0e-3}, "
                        "{match: radio_encoder.projection, learning_rate: 1.0e-3}"),
                  "models.hybrid_moe_tiny.moe.top_k=64"});
  EXPECT_THAT(problems, ElementsAre(HasSubstr("nothing is left for"), HasSubstr("ModelShape")));
}

TEST(RateParts, SettingsWithoutEffectAreTold) {
  EXPECT_THAT(ProblemsOf({Parts("{match: \"*norm*\", weight_decay: 0.1}")}),
              ElementsAre(HasSubstr("no weight that \"*norm*\" matches decays")));
  EXPECT_THAT(ProblemsOf({Parts("{match: \"*norm*\", weight_decay: 0.0}")}), IsEmpty());
  EXPECT_THAT(ProblemsOf({Parts("{match: language}")}), ElementsAre(HasSubstr("a part without rates")));
  EXPECT_THAT(ProblemsOf({Parts("{match: radio_encoder.backbone, learning_rate: 1.0e-4}"),
                          "modules.radio_encoder.train.backbone=frozen", "lints={PW0507: off, PW0605: off}"}),
              ElementsAre(HasSubstr("KeyWithoutEffect")));
  EXPECT_THAT(ProblemsOf({Parts("{match: language, learning_rate: 1.0e-4}"),
                          "budget.learning_rate={peak: 0.0, min: 0.0, warmup_samples: 16}"}),
              Contains(HasSubstr("whose peak is 0")));
  EXPECT_THAT(ProblemsOf({Parts("{match: language, learning_rate: 3}")}), ElementsAre(HasSubstr("ImplausibleValue")));
  std::string many;
  for (int i = 0; i < 65; ++i) many += "{match: language, learning_rate: 1.0e-4}, ";
  EXPECT_THAT(ProblemsOf({Parts(many)}), Contains(HasSubstr("the limit is 64")));
}

}  // namespace
}  // namespace planwright
