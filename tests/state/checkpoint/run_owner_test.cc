// Of which run a folder and its checkpoints are, in real folders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/state/checkpoint/run_folder.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;
using std::string;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RunOwner : public testing::RunFolder {};

TEST_F(RunOwner, AreOfOneRun) {
  EXPECT_FALSE(ReadRunId(run_)->has_value());
  const absl::StatusOr<string> id = TakeRunId(run_);
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_TRUE(IsRunId(*id)) << *id;
  EXPECT_EQ(*TakeRunId(run_), *id);
  EXPECT_EQ(**ReadRunId(run_), *id);
  fs::create_directories(run_ + "/other");
  EXPECT_NE(*TakeRunId(run_ + "/other"), *id);
  // Where the file is gone, a life remembers it.
  fs::remove(run_ + "/run.json");
  Begin();
  EXPECT_EQ(*TakeRunId(run_), kRunId);
  EXPECT_TRUE(fs::exists(run_ + "/run.json"));
  for (const char* text : {"", "{", "[]", "{}", R"({"run_id": 7})", R"({"run_id": "aaaa"})"}) {
    Write(run_ + "/run.json", text);
    EXPECT_EQ(TakeRunId(run_).status().code(), absl::StatusCode::kDataLoss) << text;
    EXPECT_THAT(string(ReadRunId(run_).status().message()), HasSubstr("/run.json is damaged")) << text;
  }
}

TEST_F(RunOwner, ThatBeginAtOnceAreOfOneRun) {
  constexpr int kProcesses = 16;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const absl::StatusOr<string> id = TakeRunId(run_);
      _exit(id.ok() && write(ends[1], id->data(), 32) == 32 ? 0 : 1);
    }
    children.push_back(child);
  }
  close(ends[1]);
  for (pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  std::set<string> ids;
  char id[32];
  while (read(ends[0], id, 32) == 32) ids.insert(string(id, 32));
  close(ends[0]);
  EXPECT_THAT(ids, ElementsAre(**ReadRunId(run_)));
  int files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(run_)) ++files;
  EXPECT_EQ(files, 1) << "run.json, and nothing beside it";
}

TEST_F(RunOwner, DoNotLoadACheckpointOfAnotherRun) {
  Begin();
  Publish(2, 1);
  Publish(4, 1, string(32, 'b'));
  Publish(6, 1);
  EXPECT_THAT(Found(2), ElementsAre("step-00000006.life-1", "step-00000002.life-1"));
  EXPECT_THAT(WhyNot(2, FolderOf(4, 1), Kind::kOtherRun),
              AllOf(HasSubstr("it is of run " + string(32, 'b')), HasSubstr("life 1 of run " + kRunId)));
  // Newer ones of the run itself may be loaded; where it would be the newest, a person must decide.
  EXPECT_TRUE(CheckNoneOfAnotherRun(List(2), &List(2).found[0]).ok());
  EXPECT_TRUE(FindCheckpoint(run_).ok());
  fs::remove_all(FolderOf(6, 1));
  const absl::Status refused = CheckNoneOfAnotherRun(List(2), &List(2).found[0]);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(string(refused.message()), AllOf(HasSubstr("checkpoint " + FolderOf(4, 1) + " is not one of this run"),
                                               HasSubstr("move this one away"), HasSubstr("initialize.from")));
  EXPECT_EQ(FindCheckpoint(run_).status(), refused);
  EXPECT_EQ(CheckNoneOfAnotherRun(List(2), nullptr), refused);
  // By itself it is a checkpoint like others.
  EXPECT_TRUE(FindCheckpoint(FolderOf(4, 1)).ok());
}

// A copy of a run has its identity. What the two then do is told apart by their plans.
TEST_F(RunOwner, OfACopyOfTheRunAreToldApartByThePlan) {
  Begin();
  Publish(2, 1);
  const string copy = run_ + "/copy";
  fs::create_directories(copy);
  for (const char* name : {"lives", "checkpoints"})
    fs::copy(run_ + "/" + name, copy + "/" + name, fs::copy_options::recursive);
  EXPECT_EQ(ListCheckpoints(copy, 2)->found.size(), 1U);
  Publish(4, 1, kRunId, "another plan");
  EXPECT_THAT(WhyNot(2, FolderOf(4, 1), Kind::kOtherRun), AllOf(HasSubstr("a run of plan " + Sha256Hex("another plan")),
                                                                HasSubstr("had plan " + Sha256Hex("plan"))));
}

// The files of lives and of checkpoints of releases whose runs had no identity.
TEST_F(RunOwner, OfAnOlderReleaseGoOn) {
  const auto plan_of = [](const string& plan) { return "{\"digest\": \"" + Sha256Hex(plan) + "\"}"; };
  ASSERT_EQ(*TakeLife(run_), 1);
  Write(run_ + "/lives/1/start.json", R"({"from_life": 0, "from_step": 0})");
  Publish(2, 1, "");
  Publish(4, 1, "", "another plan");
  EXPECT_THAT(WhyNot(2, FolderOf(2, 1), Kind::kOtherRun), HasSubstr("the plan of life 1 is gone"));
  // Where no later release has taken up a run, the plan of its newest life lies in the run directory.
  Write(run_ + "/plan.json", plan_of("plan"));
  EXPECT_THAT(Found(2), ElementsAre("step-00000002.life-1"));
  EXPECT_THAT(WhyNot(2, FolderOf(4, 1), Kind::kOtherRun), HasSubstr("a run of plan " + Sha256Hex("another plan")));
  fs::remove_all(FolderOf(4, 1));
  // The next launch gives the run an identity. One before it has died before it had moved the plan.
  ASSERT_EQ(*TakeLife(run_), 2);
  ASSERT_EQ(*TakeLife(run_), 3);
  Write(run_ + "/lives/2/plan.json", plan_of("plan"));
  Write(run_ + "/plan.json", plan_of("plan of life 3"));
  Write(run_ + "/run.json", R"({"run_id": ")" + kRunId + R"("})");
  EXPECT_THAT(Found(3), ElementsAre("step-00000002.life-1"));
  ASSERT_TRUE(WriteLifeStart(run_, 3, StartOf(1, 2)).ok());
  Publish(6, 3);
  EXPECT_THAT(Found(4), ElementsAre("step-00000006.life-3", "step-00000002.life-1"));
  // From here on a checkpoint must say of which run it is; an old one of an old life need not.
  Publish(8, 3, "");
  EXPECT_THAT(WhyNot(4, FolderOf(8, 3), Kind::kOtherRun), HasSubstr("it is of a run without a run_id"));
  Publish(2, 1, kRunId);
  EXPECT_THAT(WhyNot(4, FolderOf(2, 1), Kind::kOtherRun), HasSubstr("life 1 of this run, which had no run_id then"));
}

TEST_F(RunOwner, OfTwoRunsInOneFolderAreDamage) {
  Begin();
  Publish(2, 1);
  Write(run_ + "/run.json", R"({"run_id": ")" + string(32, 'b') + R"("})");
  EXPECT_EQ(ListCheckpoints(run_, 2).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(string(ListCheckpoints(run_, 2).status().message()),
              HasSubstr("/lives/1/start.json is of run " + kRunId + ", and " + run_ + " is run " + string(32, 'b')));
  fs::remove(run_ + "/run.json");
  fs::create_directories(run_ + "/lives/2");
  fs::copy(run_ + "/lives/1/start.json", run_ + "/lives/2/start.json");
  EXPECT_THAT(string(ReadLifeStart(run_, 2).status().message()), HasSubstr("it is not that of life 2"));
}

}  // namespace
}  // namespace planwright
