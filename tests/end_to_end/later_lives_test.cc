// A launch whose run begins again by itself (launch.restarts): its later lives go on with what its options ask for, and
// only with the data on which the run was trained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "planner/base/files/exit_status.h"
#include "planner/wire/records/trace.h"
#include "tests/end_to_end/checkpoint_run.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class LaterLives : public CheckpointRun {
 protected:
  static constexpr int kAll = 8;

  // A launch that may begin again, whose language model is paused before this step until KillPaused. By then the last
  // even step before it has a checkpoint of this life.
  Started BeginToKill(int step, std::vector<std::string> words, int life = 1) {
    words.insert(words.begin(), "launch.restarts=2");
    std::string waits = FirstManifest((step - 1) / 2 * 2);
    waits.replace(waits.find("life-1"), 6, "life-" + std::to_string(life));
    const Started launch =
        BeginPaused(kAll, {.rank = 1, .list = "step", .step = step, .waits = waits}, std::move(words));
    WaitForPause(1);
    return launch;
  }
  Ended RunThroughAKill(int step, std::vector<std::string> words) {
    const Started launch = BeginToKill(step, std::move(words));
    KillPaused(launch);
    return GoOn(launch);
  }
  static size_t Count(const std::string& text, const std::string& part) {
    size_t count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
  }

  // The words for one source, whose shard can be replaced.
  std::vector<std::string> OneShard() const {
    return {"models.hybrid_moe_tiny.vocabulary=260", "batch.sequence_length=96",
            "data={kind: sources, max_patches: 64, index: " + Folder() +
                "/index, sources: [{name: a, kind: webdataset, shards: " + Folder() + "/a.tar}]}"};
  }
  void PutShard(const std::string& number) const {
    fs::copy_file(InSource("tests/golden/data_fixtures/webdataset/shard-00000" + number + ".tar"), Folder() + "/a.tar",
                  fs::copy_options::overwrite_existing);
  }
  // As somebody who changes the data and makes its index anew while a run goes on.
  void ReplaceShard() {
    PutShard("1");
    std::vector<std::string> words = {"data", "index", Recipe()};
    for (const std::string& word : OneShard()) words.push_back(word);
    const Ended made = Plan(words);
    ASSERT_EQ(made.status, 0) << made.output;
  }
};

TEST_F(LaterLives, StepsThatAreTracedAndDoneAreNotTracedAgain) {
  const Ended ended = RunThroughAKill(5, {"--trace", "2-3"});
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("restart 1 of 2"), Not(HasSubstr("restart 2 of 2"))));
  EXPECT_EQ(Count(ended.output, "--trace asks for steps 2-3, and the run goes on after step 4: this life traces none "),
            1U)
      << ended.output;
  ExpectCurve(kAll);
  // Those of the first life stay valid.
  for (int rank : {0, 1}) {
    const absl::StatusOr<Trace> trace = ReadTrace(ReadAll(TracePath(RunDir() + "/lives/1", rank)));
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_EQ(trace->steps, (StepRange{2, 3}));
  }
  EXPECT_TRUE(fs::exists(RunDir() + "/lives/1/trace.json.gz"));
  EXPECT_FALSE(fs::exists(RunDir() + "/trace"));
  EXPECT_FALSE(Outcome().contains("profile"));
  EXPECT_THAT(Plan({"report", RunDir()}).output, HasSubstr("profile of steps 2-3\n"));
}

TEST_F(LaterLives, WhatIsLeftOfTheStepsIsTraced) {
  const Ended ended = RunThroughAKill(6, {"--trace", "3-7"});
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("the run goes on after step 4: this life traces steps 5-7; "),
                                  HasSubstr("profile of steps 5-7\n")));
  ExpectCurve(kAll);
  for (int rank : {0, 1}) {
    const absl::StatusOr<Trace> trace = ReadTrace(ReadAll(TracePath(RunDir(), rank)));
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_EQ(trace->steps, (StepRange{5, 7}));
    ASSERT_FALSE(trace->instructions.empty());
    EXPECT_EQ(trace->instructions.front().step, 5);
    EXPECT_EQ(trace->instructions.back().step, 7);
  }
}

// By hand it is a mistake, of which the launch tells at once.
TEST_F(LaterLives, ByHandStepsThatAreDoneAreNotTraced) {
  ASSERT_EQ(Run(4).status, 0);
  const Ended again = Run(kAll, {"--trace", "3-5"});
  EXPECT_EQ(again.status, kExitUsage);
  EXPECT_THAT(again.output, HasSubstr("--trace asks for steps 3-5, and the run in "));
  EXPECT_FALSE(fs::exists(RunDir() + "/lives/2"));
}

TEST_F(LaterLives, ARecordOfChoicesIsThatOfARunThatNeverDied) {
  const std::string whole = Folder() + "/whole", killed = Folder() + "/killed";
  const Ended once = Run(kAll, {"--record-routing", whole});
  ASSERT_EQ(once.status, 0) << once.output;
  fs::remove_all(RunDir());
  // Step 7 is done, recorded and not kept, so that the next life does it and records it again.
  const Ended twice = RunThroughAKill(8, {"--record-routing", killed});
  ASSERT_EQ(twice.status, 0) << twice.output;
  EXPECT_THAT(twice.output, AllOf(HasSubstr("restart 1 of 2"), HasSubstr("resuming after step 6 ")));
  ExpectCurve(kAll);
  std::vector<std::string> names;
  for (const fs::directory_entry& file : fs::directory_iterator(whole)) {
    names.push_back(file.path().filename());
    EXPECT_EQ(ReadAll(file.path()), ReadAll(killed + "/" + names.back())) << names.back();
  }
  EXPECT_THAT(names, ::testing::Contains("routing.json"));
  EXPECT_EQ(names.size(), 3U) << "two layers with experts";
  // And others can make the same choices.
  fs::remove_all(RunDir());
  const Ended replayed = Run(kAll, {"--replay-routing", killed});
  EXPECT_EQ(replayed.status, 0) << replayed.output;
}

// What the first life has recorded cannot be made again: the run does not go on as if it were there.
TEST_F(LaterLives, ARecordThatIsGoneEndsTheRun) {
  const std::string choices = Folder() + "/choices";
  const Started launch = BeginToKill(5, {"--record-routing", choices});
  fs::remove_all(choices);
  KillPaused(launch);
  const Ended ended = GoOn(launch);
  EXPECT_EQ(ended.status, kExitUsage) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("the choices that this run has recorded in " + choices + " are gone"),
                                  HasSubstr("restart 1 of 2"), Not(HasSubstr("restart 2 of 2"))));
  EXPECT_FALSE(fs::exists(choices));
}

TEST_F(LaterLives, OtherDocumentsThanTheRunWasTrainedOnEndIt) {
  PutShard("0");
  const Started launch = BeginToKill(5, OneShard());
  ReplaceShard();
  KillPaused(launch);
  const Ended ended = GoOn(launch);
  EXPECT_EQ(ended.status, kExitUsage) << ended.output;
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("resuming after step 4 "),
                    HasSubstr("the files of source a have other documents than the run was trained on (digest "),
                    HasSubstr("; samples are other ones from sample 32 on; going on with " + RunDir() +
                              " would change the loss curve: "),
                    HasSubstr("--accept-changes"), HasSubstr("restart 1 of 2"), Not(HasSubstr("restart 2 of 2"))));
  EXPECT_EQ(Outcome().at("exit_code"), kExitUsage);
  EXPECT_EQ(CheckpointNames(), (std::vector<std::string>{"step-00000002.life-1", "step-00000004.life-1"}));
  // With the files that it was trained on it goes on.
  PutShard("0");
  const Ended on = Run(kAll, OneShard());
  EXPECT_EQ(on.status, 0) << on.output;
  EXPECT_THAT(on.output, HasSubstr("resuming after step 4 "));
}

// A person has accepted other documents: that holds for all lives of the launch, also if none has kept anything yet.
TEST_F(LaterLives, OtherDocumentsThatAreAcceptedStayAccepted) {
  PutShard("0");
  const Ended begun = Run(4, OneShard());
  ASSERT_EQ(begun.status, 0) << begun.output;
  PutShard("1");
  std::vector<std::string> words = OneShard();
  words.push_back("--accept-changes");
  const Ended ended = RunThroughAKill(5, words);
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(Count(ended.output, "resuming after step 4 from " + RunDir()), 2U) << ended.output;
  EXPECT_EQ(Curve().size(), static_cast<size_t>(kAll));
}

// But not for documents of which the person did not know.
TEST_F(LaterLives, AcceptedDocumentsThatChangeAgainEndTheRun) {
  PutShard("1");
  const Ended begun = Run(4, OneShard());
  ASSERT_EQ(begun.status, 0) << begun.output;
  PutShard("0");
  std::vector<std::string> words = OneShard();
  words.push_back("--accept-changes");
  const Started launch = BeginToKill(7, words, /*life=*/2);
  ReplaceShard();
  KillPaused(launch);
  const Ended ended = GoOn(launch);
  EXPECT_EQ(ended.status, kExitUsage) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("resuming after step 6 "),
                                  HasSubstr("the files of source a have other documents than the run was trained on"),
                                  HasSubstr("from sample 48 on")));
}

}  // namespace
}  // namespace planwright::testing
