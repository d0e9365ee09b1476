// `evaluation`, and what `checkpoint` keeps because of it: all mistakes are told at once, each at its place.
#include <algorithm>

#include "gtest/gtest.h"
#include "tests/recipe/temp_recipes.h"

namespace planwright {
namespace {

// The messages about a recipe with these sections; "" if it is right.
std::string MessagesOf(const std::vector<std::string>& overrides) {
  TempRecipes files;
  return Problems(files.Write("r.yaml", kSmallRecipe), overrides);
}

std::string Evaluation(const std::string& every, const std::string& sets) {
  return "evaluation={every_samples: " + every + ", sets: [" + sets + "]}";
}

constexpr char kMock[] = "{name: held, samples: 3, seed: 7}";

TEST(EvaluationKeys, ReadWhatASetIsMadeOf) {
  TempRecipes files;
  const Recipe r = MustRead(files.Write("r.yaml", kSmallRecipe),
                            {"data={kind: sources, sources: [{kind: webdataset, shards: a.tar}]}",
                             Evaluation("16",
                                        "{name: held, samples: 3, sources: [{kind: webdataset, shards: [b.tar, "
                                        "c.tar], weight: 0.5}, {name: code, kind: webdataset, shards: d.tar}]}")});
  ASSERT_TRUE(r.evaluation);
  ASSERT_EQ(r.evaluation->sets.size(), 1U);
  const EvaluationSetRecipe& set = r.evaluation->sets[0];
  EXPECT_TRUE(set.where.known());
  ASSERT_EQ(set.sources.size(), 2U);
  EXPECT_EQ(set.sources[0].weight->text, "0.5");
  EXPECT_EQ(*set.sources[0].shards[1], "c.tar");
  EXPECT_EQ(**set.sources[1].name, "code");
  EXPECT_EQ(set.sources[1].weight->text, "1");
  EXPECT_FALSE(MustRead(files.Write("s.yaml", kSmallRecipe)).evaluation);
}

TEST(EvaluationKeys, ThatAreMissingOrWrongAreTold) {
  EXPECT_EQ(MessagesOf({"evaluation={every_samples: 16}"}), "MissingKey: `evaluation.sets` is missing\n");
  EXPECT_EQ(MessagesOf({Evaluation("16", "{samples: 3, seed: 7}")}),
            "MissingKey: `evaluation.sets[0].name` is missing\n");
  EXPECT_EQ(MessagesOf({Evaluation("16", "{name: held, samples: 0, seed: 7}")}),
            "OutOfRange: `evaluation.sets[0].samples` must be at least 1, found 0\n");
  EXPECT_EQ(MessagesOf({Evaluation("16", "{name: held, sample: 3, seed: 7}")}),
            "UnknownKey: unknown key \"sample\" in `evaluation.sets[0]`\n");
}

TEST(EvaluationKeys, TakeAllSamplesOfSourcesOnly) {
  const std::string sources = "data={kind: sources, sources: [{kind: webdataset, shards: a.tar}]}";
  const auto of = [](const char* samples, const char* what) {
    return Evaluation("16", std::string("{name: held, samples: ") + samples + ", " + what + "}");
  };
  const char* shards = "sources: [{kind: webdataset, shards: b.tar}]";
  TempRecipes files;
  const std::string recipe = files.Write("r.yaml", kSmallRecipe);
  EXPECT_EQ(MustRead(recipe, {sources, of("all", shards)}).evaluation->sets[0].samples->text, "all");
  EXPECT_EQ(MustRead(recipe, {sources, of("12", shards)}).evaluation->sets[0].samples->text, "12");
  EXPECT_EQ(MessagesOf({sources, of("every", shards)}),
            "UnknownChoice: `evaluation.sets[0].samples` must be one of all, or an integer, found \"every\"\n");
  EXPECT_EQ(MessagesOf({of("all", "seed: 7")}),
            "ConflictingKeys: `samples: all` is of data of kind sources, whose index counts the samples of a set\n");
}

// A value that is there and wrong is not also missing.
TEST(EvaluationKeys, ThatHaveAnotherShapeAreToldOnce) {
  for (const auto& [data, key] : {std::pair("{kind: sources, sources: [{kind: webdataset, shards: a.tar}]}", "sources"),
                                  std::pair("{kind: recorded, path: a.safetensors, image_token: 7}", "path"),
                                  std::pair("{kind: mock}", "seed")}) {
    for (const std::string value : {"{}", "~", "[[]]"}) {
      const std::string told =
          MessagesOf({std::string("data=") + data,
                      Evaluation("16", std::string("{name: held, samples: 3, ") + key + ": " + value + "}")});
      EXPECT_EQ(told.find("MissingKey: an evaluation set"), std::string::npos) << told;
      EXPECT_NE(told.find(std::string("`evaluation.sets[0].") + key), std::string::npos) << told;
    }
  }
}

TEST(EvaluationKeys, StandBetweenSteps) {
  EXPECT_EQ(MessagesOf({Evaluation("16", kMock), "batch.global_samples=8"}), "");
  EXPECT_EQ(MessagesOf({Evaluation("12", kMock), "batch.global_samples=8"}),
            "EvaluationBetweenSteps: `every_samples` 12 is no multiple of global_samples 8: an evaluation stands "
            "between two steps\n");
}

TEST(EvaluationKeys, NameEachSetOnce) {
  const std::string found = MessagesOf({Evaluation("16", std::string(kMock) + ", " + kMock +
                                                             ", {name: ../x, samples: "
                                                             "1, seed: 8}"),
                                        "batch.global_samples=8"});
  EXPECT_EQ(found,
            "ConflictingKeys: two evaluation sets have the name held\n"
            "BadName: \"../x\" is not a valid name of an evaluation set\n");
}

// A set is of the kind of the data.
TEST(EvaluationKeys, AreThoseOfTheDataOfTheTraining) {
  EXPECT_EQ(MessagesOf({Evaluation("16", "{name: a, samples: 1}, {name: b, samples: 1, seed: 8, path: x}"),
                        "batch.global_samples=8"}),
            "MissingKey: an evaluation set of data of kind mock needs `seed`: samples of another seed that no step is "
            "trained on\n"
            "ConflictingKeys: `path` is of data of kind recorded, but `data.kind` is mock\n");
  const std::string sources = "data={kind: sources, sources: [{kind: webdataset, shards: a.tar}]}";
  EXPECT_EQ(
      MessagesOf({Evaluation("16", "{name: a, samples: 1, seed: 1}"), "batch.global_samples=8", sources}),
      "MissingKey: an evaluation set of data of kind sources needs `sources`: documents that no step is trained on\n"
      "ConflictingKeys: `seed` is of data of kind mock, but `data.kind` is sources\n");
}

TEST(EvaluationKeys, SayWhichCheckpointIsBest) {
  const std::vector<std::string> sound = {Evaluation("16", kMock), "batch.global_samples=8",
                                          "checkpoint={every_steps: 1, keep_last: 2, keep_best: held}"};
  EXPECT_EQ(MessagesOf(sound), "");
  const auto with = [&](const std::string& more) {
    std::vector<std::string> overrides = sound;
    overrides.push_back(more);
    return MessagesOf(overrides);
  };
  EXPECT_EQ(with("checkpoint.keep_best=hold"), "UnknownReference: there is no evaluation set \"hold\"\n");
  EXPECT_EQ(
      with("checkpoint.every_steps=3"),
      "ConflictingKeys: `checkpoint.keep_best` needs a checkpoint at each evaluation: there is an evaluation every "
      "2 steps, but a checkpoint every 3\n");
  EXPECT_EQ(MessagesOf({"checkpoint={every_steps: 1, keep_last: 1, keep_best: held}"}),
            "ConflictingKeys: `checkpoint.keep_best` has no effect without `evaluation`: no loss says which one is "
            "best\n");
  EXPECT_EQ(MessagesOf({Evaluation("16", kMock), "batch.global_samples=8",
                        "checkpoint={every_steps: 1, keep_best: "
                        "held}"}),
            "ConflictingKeys: `keep_best` without `keep_last` has no effect: all checkpoints stay\n");
  EXPECT_EQ(MessagesOf({Evaluation("16", kMock), "batch.global_samples=8", "checkpoint={keep_best: held}"}),
            "ConflictingKeys: `checkpoint.keep_best` has no effect without `checkpoint.every_steps`: no checkpoint is "
            "written\n");
}

TEST(EvaluationKeys, OfDivergenceHaveARange) {
  EXPECT_EQ(MessagesOf({"divergence={window: 10, factor: 3.0}"}), "");
  EXPECT_EQ(MessagesOf({"divergence={window: 10}"}), "MissingKey: `divergence.factor` is missing\n");
  EXPECT_EQ(MessagesOf({"divergence={window: 10, factor: 1.0}"}),
            "OutOfRange: `divergence.factor` must be above 1, found 1.0\n");
}

}  // namespace
}  // namespace planwright
