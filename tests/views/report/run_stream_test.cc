// The stream of a run: what a follower is told, call after call, as lives come and go, and that whoever begins late is
// told the same.
#include "planner/views/report/run_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "planner/plan/plan_json.h"
#include "planner/run/launch/run_directory.h"
#include "planner/state/checkpoint/checkpoint_log.h"
#include "planner/state/checkpoint/life_start.h"
#include "planner/wire/records/evaluation_record.h"
#include "planner/wire/records/outcome.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kRun(32, 'a');

// A run directory that is written as launches and ranks do.
class StreamTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "streamXXXXXX";
    run_ = mkdtemp(pattern.data());
    plan_ = testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"), {"checkpoint.every_steps=2"});
    std::ofstream(run_ + "/run.json") << "{\"run_id\": \"" << kRun << "\"}";
    std::ofstream(run_ + "/plan.json") << WritePlan(plan_);
    fs::create_directories(run_ + "/logs");
  }
  void TearDown() override { fs::remove_all(run_); }

  static std::string Line(int step, int life) {
    return StepJson({.step = step,
                     .consumed_samples = 8 * step,
                     .loss = 1.0 / step,
                     .step_seconds = step + 0.1 * life,
                     .run_id = kRun,
                     .life = life}) +
           "\n";
  }
  static std::string Lines(int first, int last, int life) {
    std::string text;
    for (int step = first; step <= last; ++step) text += Line(step, life);
    return text;
  }
  static std::string Evaluation(int step, int life) {
    EvaluationRecord record{.step = step, .consumed_samples = 8 * step, .seconds = 0.5, .run_id = kRun, .life = life};
    record.sets.push_back({.name = "held_out", .all = {.loss = 3.0, .tokens = 10}, .sources = {}});
    return EvaluationJson(record) + "\n";
  }
  void Add(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(run_ + "/" + name).parent_path());
    std::ofstream(run_ + "/" + name, std::ios::app) << text;
  }
  // As a life that begins does: by a new file.
  void Replace(const std::string& text) {
    std::ofstream(run_ + "/new") << text;
    fs::rename(run_ + "/new", run_ + "/metrics.jsonl");
  }
  void Start(int life, int from_life, int from_step) {
    fs::create_directories(LifeFolder(run_, life));
    ASSERT_TRUE(WriteLifeStart(run_, life, {from_life, from_step, kRun, plan_.digest}).ok());
  }
  void EndLife(const std::string& folder, int exit_code, const std::string& cause) {
    fs::create_directories(folder);
    std::ofstream(OutcomePath(folder)) << OutcomeFile({.exit_code = exit_code, .cause = cause, .run_id = kRun});
  }

  // "step 3 of 1", "again 3 of 2", ...: the events of one call.
  std::vector<std::string> Next(RunStream& stream, bool over = false) {
    std::vector<std::string> events;
    const absl::StatusOr<bool> ended = stream.Next([&](const Json& event) {
      events.push_back(Text(event));
      return true;
    });
    EXPECT_TRUE(ended.ok()) << ended.status();
    EXPECT_EQ(ended.ok() && *ended, over);
    return events;
  }
  static std::string Text(const Json& event) {
    const std::string what = event.at("event");
    if (what == "run") return "run " + event.at("name").get<std::string>();
    std::string text = what == "step" && event.at("again") ? "again" : what;
    if (event.contains("step")) text += " " + event.at("step").dump();
    if (event.contains("life")) text += " of " + event.at("life").dump();
    if (what == "life") text += " from " + event.at("from_step").dump();
    if (event.contains("exit_code")) text += ": " + event.at("exit_code").dump();
    return text;
  }

  std::string run_;
  Plan plan_;
};

TEST_F(StreamTest, GivesEachEventOnceAndEndsWithTheOutcome) {
  RunStream stream(run_);
  std::optional<RunDirectory> held;
  {
    // The lock of a launch says that the run goes on.
    const std::string other = run_ + "/other";
    fs::create_directories(LifeFolder(run_, 1));
    absl::StatusOr<RunDirectory> directory = RunDirectory::Open(plan_, other);
    ASSERT_TRUE(directory.ok()) << directory.status();
    held.emplace(*std::move(directory));
    fs::create_hard_link(other + "/lock", run_ + "/lock");
  }
  EXPECT_THAT(Next(stream), ElementsAre("run nemotron_moe_vlm_tiny")) << "life 1 has not chosen where to begin";
  Start(1, 0, 0);
  EXPECT_THAT(Next(stream), ElementsAre("life of 1 from 0"));
  Add("metrics.jsonl", Evaluation(0, 1) + Lines(1, 2, 1) + Evaluation(2, 1));
  ASSERT_TRUE(LogCheckpoint(run_, 1, {.step = 2, .bytes = 100, .run_id = kRun}).ok());
  EXPECT_THAT(Next(stream),
              ElementsAre("evaluation 0 of 1", "step 1 of 1", "step 2 of 1", "evaluation 2 of 1", "checkpoint 2 of 1"));
  EXPECT_THAT(Next(stream), IsEmpty());
  const std::string third = Line(3, 1);
  Add("metrics.jsonl", third.substr(0, 20));
  EXPECT_THAT(Next(stream), IsEmpty()) << "half a line";
  Add("metrics.jsonl", third.substr(20) + Lines(4, 5, 1));

  // Life 2 begins from step 2. Of life 1 nobody has seen steps 3 to 5 yet.
  EndLife(LifeFolder(run_, 1), 10, "rank 1 was killed by SIGKILL");
  fs::create_directories(LifeFolder(run_, 2));
  EXPECT_THAT(Next(stream), ElementsAre("step 3 of 1", "step 4 of 1", "step 5 of 1")) << "its files may still be moved";
  Start(2, 1, 2);
  EXPECT_THAT(Next(stream), ElementsAre("end of 1: 10", "life of 2 from 2")) << "and it has dropped nothing yet";
  Add("lives/2/dropped.jsonl", Lines(3, 5, 1));
  Replace(Evaluation(0, 1) + Lines(1, 2, 1) + Evaluation(2, 1));
  EXPECT_THAT(Next(stream), IsEmpty());
  Add("metrics.jsonl", Lines(3, 6, 2));
  EXPECT_THAT(Next(stream), ElementsAre("again 3 of 2", "again 4 of 2", "again 5 of 2", "step 6 of 2"));

  // Life 3 ends before it begins, and life 4 goes on from life 1's checkpoint, as that of life 2 is damaged.
  EndLife(LifeFolder(run_, 2), 15, "full");
  EndLife(LifeFolder(run_, 3), 22, "no store");
  Add("lives/4/dropped.jsonl", Lines(3, 7, 2));
  Start(4, 1, 2);
  Replace(Evaluation(0, 1) + Lines(1, 2, 1) + Evaluation(2, 1) + Lines(3, 8, 4));
  EXPECT_THAT(Next(stream), ElementsAre("step 7 of 2", "end of 2: 15", "life of 3 from null", "end of 3: 22",
                                        "life of 4 from 2", "again 3 of 4", "again 4 of 4", "again 5 of 4",
                                        "again 6 of 4", "again 7 of 4", "step 8 of 4"));
  EndLife(run_, 0, "done");
  EXPECT_THAT(Next(stream), IsEmpty()) << "its launch still holds it, and may begin another life";
  held.reset();
  EXPECT_THAT(Next(stream, true), ElementsAre("outcome of 4: 0"));
  EXPECT_EQ(stream.exit_status(), 0);

  RunStream late(run_);
  EXPECT_THAT(
      Next(late, true),
      ElementsAre("run nemotron_moe_vlm_tiny", "life of 1 from 0", "evaluation 0 of 1", "step 1 of 1", "step 2 of 1",
                  "evaluation 2 of 1", "step 3 of 1", "step 4 of 1", "step 5 of 1", "checkpoint 2 of 1", "end of 1: 10",
                  "life of 2 from 2", "again 3 of 2", "again 4 of 2", "again 5 of 2", "step 6 of 2", "step 7 of 2",
                  "end of 2: 15", "life of 3 from null", "end of 3: 22", "life of 4 from 2", "again 3 of 4",
                  "again 4 of 4", "again 5 of 4", "again 6 of 4", "again 7 of 4", "step 8 of 4", "outcome of 4: 0"));
}

// A rank that ended while it dropped records has left some in its own file, and all for the life after it.
TEST_F(StreamTest, RecordsThatTwoLivesDroppedComeOnce) {
  Start(1, 0, 0);
  Add("metrics.jsonl", Lines(1, 2, 1) + Lines(3, 3, 3));
  Start(2, 1, 2);
  Add("lives/2/dropped.jsonl", Lines(3, 4, 1));
  Start(3, 1, 2);
  Add("lives/3/dropped.jsonl", Lines(3, 5, 1));
  EndLife(run_, 25, "the loss diverged");
  RunStream stream(run_);
  EXPECT_THAT(Next(stream, true),
              ElementsAre("run nemotron_moe_vlm_tiny", "life of 1 from 0", "step 1 of 1", "step 2 of 1", "step 3 of 1",
                          "step 4 of 1", "step 5 of 1", "end of 1", "life of 2 from 2", "end of 2", "life of 3 from 2",
                          "again 3 of 3", "outcome of 3: 25"));
  EXPECT_EQ(stream.exit_status(), 25);
}

// Records of other runs, of releases before records said their life, and what is no record.
TEST_F(StreamTest, PassesOverWhatIsNotOfTheRun) {
  Start(1, 0, 0);
  std::string other = Line(3, 1);
  other.replace(other.find(kRun), kRun.size(), std::string(32, 'b'));
  Add("metrics.jsonl",
      StepJson({.step = 1, .consumed_samples = 8}) + "\n" + Line(2, 1) + other + "no record\n" + Line(3, 1));
  EndLife(run_, 0, "done");
  RunStream stream(run_);
  EXPECT_THAT(Next(stream, true), ElementsAre("run nemotron_moe_vlm_tiny", "life of 1 from 0", "step 1 of 1",
                                              "step 2 of 1", "step 3 of 1", "outcome of 1: 0"));
}

TEST_F(StreamTest, StopsWhereNobodyTakesMore) {
  Start(1, 0, 0);
  Add("metrics.jsonl", Lines(1, 5, 1));
  EndLife(run_, 0, "done");
  RunStream stream(run_);
  int taken = 0;
  const absl::StatusOr<bool> over = stream.Next([&](const Json&) { return ++taken < 4; });
  EXPECT_TRUE(over.ok() && *over);
  EXPECT_EQ(taken, 4);
}

TEST_F(StreamTest, ARecordIsGivenAsItStandsInTheFile) {
  Start(1, 0, 0);
  Add("metrics.jsonl", Line(3, 1));
  EndLife(run_, 0, "done");
  RunStream stream(run_);
  Json step;
  ASSERT_TRUE(stream
                  .Next([&](const Json& event) {
                    if (event.at("event") == "step") step = event;
                    return true;
                  })
                  .ok());
  Json wanted = Json::parse(Line(3, 1));
  for (const auto& [key, value] : wanted.items()) EXPECT_EQ(step.at(key), value) << key;
}

}  // namespace
}  // namespace planwright
