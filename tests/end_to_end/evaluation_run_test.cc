// Runs that evaluate beside training: what a kill leaves, what is kept for an evaluation, and what ends a run whose
// loss grows (docs/training/evaluation.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "planner/base/files/exit_status.h"
#include "tests/data/samples/shard_files.h"
#include "tests/end_to_end/checkpoint_run.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// 8 samples a step, so after every second step.
const std::string kSets = "evaluation={every_samples: 16, sets: [{name: held_out, samples: 11, seed: 4711}]}";
const std::string kOtherSamples = "evaluation={every_samples: 16, sets: [{name: held_out, samples: 9, seed: 4711}]}";
// The weights move so far in a step that the loss grows.
const std::vector<std::string> kGrows = {"budget.learning_rate={peak: 0.5, min: 0.5, style: constant}"};

class EvaluationRun : public CheckpointRun {
 protected:
  // Kills rank 1 in an instruction of a list, behind so many steps.
  // Steps of the evaluations in RUN/metrics.jsonl, and the loss of each.
  std::map<int, double> Losses() const {
    std::map<int, double> losses;
    for (const std::string& line : Curve()) {
      const auto json = nlohmann::json::parse(line);
      if (!json.contains("evaluation")) continue;
      EXPECT_FALSE(losses.contains(json.at("step"))) << "an evaluation is done twice";
      losses[json.at("step")] = json.at("evaluation").at("held_out").at("loss");
    }
    return losses;
  }
};

TEST_F(EvaluationRun, AResumeRepeatsNone) {
  constexpr int kSome = 5;
  const Ended whole = Run(kSome, {kSets});
  ASSERT_EQ(whole.status, 0) << whole.output;
  const std::vector<std::string> curve = Curve();
  ASSERT_EQ(Losses().size(), 3U) << "before the first step, and after steps 2 and 4";
  fs::remove_all(RunDir());

  const Ended killed = RunUntilKilled(
      kSome, {.rank = 1, .list = "evaluate", .step = 4, .number = 3, .waits = FirstManifest(2)}, {kSets});
  ASSERT_EQ(killed.status, kExitPeerLost) << killed.output;
  EXPECT_THAT(Outcome().at("instruction"), HasSubstr("evaluation after step 4, held_out 1/"));
  EXPECT_EQ(Losses().size(), 2U);
  const Ended resumed = Run(4, {kSets});
  ASSERT_EQ(resumed.status, 0) << resumed.output;
  EXPECT_THAT(resumed.output, HasSubstr("resuming after step 2"));
  // The checkpoint of step 4 was taken beside an evaluation, which a resume from it does not do again.
  const Ended last = Run(kSome, {kSets});
  ASSERT_EQ(last.status, 0) << last.output;
  EXPECT_THAT(last.output, AllOf(HasSubstr("resuming after step 4"), Not(HasSubstr("evaluation of step"))));
  EXPECT_EQ(Curve(), curve) << "every number is that of the run that was not killed";

  // A life that ends before its first checkpoint leaves nothing: the next one begins, and evaluates as it does.
  fs::remove_all(RunDir());
  ASSERT_EQ(RunUntilKilled(kSome, {.rank = 1, .list = "step", .step = 1, .number = 3}, {kSets}).status, kExitPeerLost);
  EXPECT_EQ(Losses().size(), 1U);
  ASSERT_EQ(Run(kSome, {kSets}).status, 0);
  EXPECT_EQ(Curve(), curve);
}

// Nothing of an evaluation is lost when it is ended, and a set may take longer than a job is given to save.
TEST_F(EvaluationRun, ARequestToStopIsHeardBetweenRounds) {
  constexpr int kSome = 5;
  const Ended whole = Run(kSome, {kSets});
  ASSERT_EQ(whole.status, 0) << whole.output;
  const std::vector<std::string> curve = Curve();
  fs::remove_all(RunDir());

  // Rank 0 is in the first of 6 rounds. Rank 1 may be on its way there.
  const Ended first = InterruptAt(kSome, {.rank = 0, .list = "evaluate", .step = 1, .number = 0}, {kSets});
  EXPECT_EQ(first.status, kExitPreempted) << first.output;
  EXPECT_THAT(Outcome().at("cause"), HasSubstr(": there was nothing to save"));
  EXPECT_TRUE(Curve().empty());
  EXPECT_TRUE(CheckpointNames().empty());

  const Ended second = InterruptAt(kSome, {.rank = 0, .list = "evaluate", .step = 4, .number = 0}, {kSets});
  EXPECT_EQ(second.status, kExitPreempted) << second.output;
  EXPECT_THAT(Outcome().at("cause"), HasSubstr("with a checkpoint written"));
  EXPECT_EQ(Curve().size(), 4U + 2) << "no step more, and no evaluation of step 4";
  EXPECT_THAT(second.output, HasSubstr("checkpoint of step 4:"));
  // A life that goes on evaluates first, and can be asked to stop there, too.
  const Ended third = InterruptAt(kSome, {.rank = 0, .list = "evaluate", .step = 5, .number = 0}, {kSets});
  EXPECT_EQ(third.status, kExitPreempted) << third.output;
  EXPECT_EQ(Curve().size(), 4U + 2);
  const Ended last = Run(kSome, {kSets});
  ASSERT_EQ(last.status, 0) << last.output;
  EXPECT_THAT(last.output, AllOf(HasSubstr("resuming after step 4"), HasSubstr("evaluation of step 4/")));
  EXPECT_EQ(Curve(), curve) << "every number is that of the run that was not asked to stop";
}

// The last evaluation belongs to a run: it is not done without it.
TEST_F(EvaluationRun, ARunThatStopsInItsLastEvaluationIsNotDone) {
  const std::vector<std::string> words = {kSets, "budget.train_samples=32", "budget.learning_rate.decay_samples=32"};
  const Ended ended = InterruptAt(4, {.rank = 0, .list = "evaluate", .step = 4, .number = 0}, words);
  EXPECT_EQ(ended.status, kExitPreempted) << ended.output;
  EXPECT_EQ(Losses().size(), 2U);
  const Ended last = Run(4, words);
  EXPECT_EQ(last.status, 0) << last.output;
  EXPECT_EQ(Losses().size(), 3U);
  EXPECT_THAT(Run(4, words).output, HasSubstr("is done at step 4 of 4"));
}

TEST_F(EvaluationRun, TheBestCheckpointStays) {
  std::vector<std::string> words = kGrows;
  words.insert(words.end(), {kSets, "checkpoint.keep_last=1", "checkpoint.keep_best=held_out"});
  const Ended ended = Run(6, words);
  ASSERT_EQ(ended.status, 0) << ended.output;
  const std::map<int, double> losses = Losses();
  ASSERT_LT(losses.at(2), losses.at(4)) << "the loss of this run grows";
  ASSERT_LT(losses.at(2), losses.at(6));
  EXPECT_THAT(CheckpointNames(), ElementsAre("step-00000002.life-1", "step-00000006.life-1"));
  const Ended list = Plan({"checkpoint", "ls", RunDir(), "--json"});
  const auto json = nlohmann::json::parse(list.output).at("checkpoints");
  EXPECT_EQ(json[1].at("step"), 2);
  EXPECT_EQ(json[1].at("evaluation").at("held_out"), losses.at(2));
  EXPECT_EQ(json[1].at("best_of"), nlohmann::json::array({"held_out"}));
  EXPECT_EQ(json[0].at("best_of"), nlohmann::json::array());
  EXPECT_THAT(Plan({"checkpoint", "ls", RunDir()}).output, HasSubstr(" (best)"));
  const Ended report = Plan({"report", RunDir()});
  EXPECT_THAT(report.output, AllOf(HasSubstr("evaluation of step 6: held_out "), HasSubstr(", least ")));
}

// The least loss is that of the first life, but it is of other samples.
TEST_F(EvaluationRun, TheBestCheckpointIsThatOfTheSamplesOfToday) {
  std::vector<std::string> words = kGrows;
  words.insert(words.end(), {"checkpoint.keep_last=1", "checkpoint.keep_best=held_out", kSets});
  ASSERT_EQ(Run(4, words).status, 0);
  ASSERT_THAT(CheckpointNames(), ElementsAre("step-00000002.life-1", "step-00000004.life-1"));
  words.back() = kOtherSamples;
  const Ended ended = Run(6, words);
  ASSERT_EQ(ended.status, 0) << ended.output;
  const std::map<int, double> losses = Losses();
  ASSERT_LT(losses.at(2), losses.at(6));
  EXPECT_THAT(CheckpointNames(), ElementsAre("step-00000004.life-1", "step-00000006.life-2"))
      << "the one that was loaded, and the newest";
  EXPECT_THAT(Plan({"status", RunDir()}).output, AllOf(HasSubstr("held_out "), Not(HasSubstr("least"))));
}

TEST_F(EvaluationRun, ALossThatGrowsEndsTheRun) {
  std::vector<std::string> words = kGrows;
  words.emplace_back("divergence={window: 30, factor: 2.5}");
  const Ended ended = Run(20, words);
  ASSERT_EQ(ended.status, kExitDiverged) << ended.output;
  const nlohmann::json outcome = Outcome();
  EXPECT_EQ(outcome.at("exit_code"), kExitDiverged);
  EXPECT_THAT(outcome.at("cause"), HasSubstr("stopped because the loss diverged"));
  // All ranks decide alike, and any of them may be the first to say so.
  const auto decision = [](const std::string& message) {
    const size_t at = message.find("log_step: ");
    return at == std::string::npos ? message : message.substr(at, message.find('\n', at) - at);
  };
  const std::string first = decision(outcome.at("message"));
  EXPECT_THAT(first, HasSubstr("is more than divergence.factor 2.5 times "));
  // The window is in the checkpoint: the smallest loss in it is of a step before.
  const Ended again = Run(20, words);
  EXPECT_EQ(again.status, kExitDiverged) << again.output;
  EXPECT_THAT(again.output, HasSubstr("resuming after step "));
  EXPECT_EQ(decision(Outcome().at("message")), first);
}

// The loss of a set with damaged documents is that of the others, which nobody would guess from the numbers.
TEST_F(EvaluationRun, SaysWhatOfASetIsLostToDamage) {
  std::ifstream file(InSource("tests/golden/pictures/444.jpg"), std::ios::binary);
  const std::string whole(std::istreambuf_iterator<char>(file), {});
  std::string broken = whole;
  broken.replace(broken.size() - 300, 100, std::string(100, '\xfe'));
  std::ofstream(Folder() + "/held.tar", std::ios::binary)
      << TarMemberOf("a.jpg", whole) << TarMemberOf("a.txt", "whole") << TarMemberOf("b.jpg", broken)
      << TarMemberOf("b.txt", "broken") << TarMemberOf("c.txt", "text") << kTarEnd;
  const std::vector<std::string> words = {
      "models.hybrid_moe_tiny.vocabulary=260", "batch.sequence_length=96",
      "data={kind: sources, damaged: skip, most_damaged: 3, max_patches: 64, index: " + Folder() +
          "/index, sources: [{name: a, kind: webdataset, shards: " +
          InSource("tests/golden/data_fixtures/webdataset/shard-000000.tar") + "}]}",
      "evaluation={every_samples: 8, sets: [{name: held_out, samples: 4, sources: [{kind: webdataset, shards: " +
          Folder() + "/held.tar}]}]}"};
  const Ended ended = Run(2, words);
  ASSERT_EQ(ended.status, 0) << ended.output;
  const std::string lost =
      "evaluation set held_out: 1 of 3 documents is damaged and does not count in the loss: 1 padding\n";
  EXPECT_THAT(ended.output, HasSubstr(lost));
  EXPECT_EQ(ended.output.find(lost), ended.output.rfind(lost)) << "three evaluations on two ranks: " << ended.output;
  EXPECT_LT(ended.output.find(lost), ended.output.find("evaluation of step "));
}

}  // namespace
}  // namespace planwright::testing
