#include "planner/compile/batches/plan_evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/compile/batches/plan_data.h"
#include "tests/recipe/temp_recipes.h"
#include "tests/support/problems.h"

namespace planwright {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kSources[] = R"(name: sources
models:
  lm: {kind: hybrid_lm, pattern: "*", hidden: 32, vocabulary: 300, attention: {heads: 4, head_dim: 8, kv_groups: 2}}
modules:
  language: {model: lm, placement: {first_rank: 0, ranks: 1}}
batch: {global_samples: 4, sequence_length: 16}
budget: {train_samples: 40, learning_rate: {peak: 1.0e-3}}
data:
  kind: sources
  shuffle: 7
  packing: none
  balance: images
  index: indexes
  sources:
    - {name: a, kind: webdataset, shards: "/gone/{0..3}.tar"}
evaluation:
  every_samples: 8
  sets:
    - {name: held, samples: 5, sources: [{name: a, kind: webdataset, shards: /gone/b.tar},
                                         {kind: webdataset, shards: /gone/c.tar, weight: 3}]}
    - {name: other, samples: 2, sources: [{kind: webdataset, shards: /gone/d.tar}]}
)";

struct Planned {
  EvaluationPlan plan;
  Diagnostics problems;
};

Planned PlanOf(const std::string& text, const std::vector<std::string>& overrides = {}) {
  TempRecipes files;
  Diagnostics reading;
  const std::optional<Recipe> recipe = ReadRecipe(files.Write("r.yaml", text), overrides, reading);
  Planned planned;
  if (recipe) planned.plan = PlanEvaluation(*recipe, planned.problems);
  EXPECT_TRUE(recipe.has_value());
  return planned;
}

TEST(PlanEvaluation, GivesASetAllKeysOfTheData) {
  const Planned planned = PlanOf(kSources);
  EXPECT_TRUE(planned.problems.empty());
  ASSERT_EQ(planned.plan.sets.size(), 2U);
  EXPECT_EQ(planned.plan.every_samples, 8);
  const EvaluationSet& held = planned.plan.sets[0];
  EXPECT_EQ(held.name, "held");
  EXPECT_EQ(held.samples, 5);
  EXPECT_EQ(held.data.kind, DataKind::kSources);
  EXPECT_EQ(held.data.shuffle, "7");
  EXPECT_EQ(held.data.packing, "none");
  EXPECT_EQ(held.data.vocabulary, 300);
  EXPECT_EQ(held.data.pad_token, kBytesPadToken);
  ASSERT_EQ(held.data.sources.size(), 2U);
  EXPECT_EQ(held.data.sources[0].name, "a");
  EXPECT_EQ(held.data.sources[1].name, "source_1");
  EXPECT_EQ(held.data.sources[1].weight, 3);
  EXPECT_THAT(held.data.sources[0].shards, ElementsAre("/gone/b.tar"));
  // No step has these samples, and indexes of equal names are apart.
  EXPECT_EQ(held.data.balance, "none");
  EXPECT_EQ(held.data.index, "indexes/evaluation/held");
  EXPECT_EQ(planned.plan.sets[1].data.index, "indexes/evaluation/other");
}

TEST(PlanEvaluation, IsEmptyWithoutSets) {
  const Planned planned = PlanOf(kSmallRecipe);
  EXPECT_TRUE(planned.plan.empty());
  EXPECT_TRUE(planned.problems.empty());
}

// What is wrong with the data is said once; what is wrong with a set, at the set.
TEST(PlanEvaluation, TellsWhatIsWrongWithTheSet) {
  EXPECT_THAT(KindsAndLines(PlanOf(kSources, {"data.tokenizer=ids", "data.pad_token=1", "data.end_token=2"}).problems),
              ElementsAre());
  EXPECT_THAT(KindsAndLines(PlanOf(kSources, {"data.window=3"}).problems), ElementsAre());
  const std::string twice =
      "evaluation.sets=[{name: x, samples: 1, sources: [{name: a, kind: webdataset, shards: b}, "
      "{name: a, kind: tokens, path: c}]}]";
  EXPECT_THAT(KindsAndLines(PlanOf(kSources, {twice}).problems),
              ElementsAre("ConflictingKeys:1", "ConflictingKeys:1"));  // two of one name; ids in data of bytes
}

// By the weights of a mixture, whatever the order of the sources.
TEST(PlanEvaluation, WarnsOfSourcesThatNoSampleIsOf) {
  const auto said = [](int samples, const std::string& weight) {
    const Planned planned =
        PlanOf(kSources, {"evaluation.sets=[{name: x, samples: " + std::to_string(samples) +
                          ", sources: [{name: red, kind: webdataset, shards: /gone/r.tar}, {name: blue, kind: "
                          "webdataset, weight: " +
                          weight + ", shards: /gone/b.tar}, {name: green, kind: webdataset, shards: /gone/g.tar}]}]"});
    EXPECT_FALSE(planned.problems.has_errors());
    return planned.problems.as_found().empty()
               ? ""
               : planned.problems.as_found()[0].message + ": " + planned.problems.as_found()[0].help;
  };
  EXPECT_THAT(said(2, "1"), AllOf(HasSubstr("of the 2 samples of evaluation set x none is of source green: there is "
                                            "no loss of it: write `samples: all`"),
                                  HasSubstr("or samples: 3 or more")));
  EXPECT_EQ(said(3, "1"), "");
  EXPECT_THAT(said(2, "98"), HasSubstr("none is of source red, green: there is no loss of them"));
  const std::string many = said(50, "98");
  EXPECT_THAT(many, HasSubstr("none is of source green: "));
  const int enough = std::stoi(many.substr(many.find("or samples: ") + 12));
  EXPECT_EQ(said(enough, "98"), "");
  EXPECT_NE(said(enough - 1, "98"), "");
}

}  // namespace
}  // namespace planwright
