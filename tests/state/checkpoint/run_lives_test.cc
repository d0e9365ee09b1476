// Lives and the path of a run, in real folders with real checkpoints of a few bytes.
#include "planner/state/checkpoint/run_lives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "planner/state/checkpoint/remove_checkpoint.h"
#include "tests/state/checkpoint/run_folder.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;
using std::string;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RunLives : public testing::RunFolder {};

TEST_F(RunLives, AreNumberedFromOne) {
  EXPECT_EQ(*NewestLife(run_), 0);
  EXPECT_EQ(*TakeLife(run_ + "/deep/run"), 1);
  EXPECT_EQ(*TakeLife(run_), 1);
  EXPECT_EQ(*TakeLife(run_), 2);
  EXPECT_EQ(*NewestLife(run_), 2);
  EXPECT_TRUE(fs::is_directory(run_ + "/lives/2"));
}

// Above all that exist, also where numbers are missing or are taken by files. Other names do not count.
TEST_F(RunLives, TakeANumberAboveAllOthers) {
  for (const char* name : {"2", "9", "011", "12.old", "x", "-13", "99999999999999999999", "+20"})
    fs::create_directories(run_ + "/lives/" + name);
  EXPECT_EQ(*TakeLife(run_), 10);
  Write(run_ + "/lives/11", "a file");
  EXPECT_EQ(*TakeLife(run_), 12);
  fs::create_directories(run_ + "/lives/999999999");
  EXPECT_EQ(TakeLife(run_).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(RunLives, NoTwoProcessesTakeTheSame) {
  constexpr int kProcesses = 24, kEach = 8;
  int start[2], taken[2];
  ASSERT_EQ(pipe(start), 0);
  ASSERT_EQ(pipe(taken), 0);
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      close(start[1]);
      char byte = 0;
      (void)!read(start[0], &byte, 1);  // returns in all children when the parent closes its end
      for (int k = 0; k < kEach; ++k) {
        const absl::StatusOr<int> life = TakeLife(run_);
        const int number = life.ok() ? *life : -1;
        if (write(taken[1], &number, sizeof number) != sizeof number) _exit(2);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  close(taken[1]);
  close(start[0]);
  close(start[1]);
  std::multiset<int> numbers;
  int number = 0;
  while (read(taken[0], &number, sizeof number) == sizeof number) numbers.insert(number);
  close(taken[0]);
  for (pid_t child : children) {
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  std::multiset<int> all;
  for (int i = 1; i <= kProcesses * kEach; ++i) all.insert(i);
  EXPECT_EQ(numbers, all);
}

TEST_F(RunLives, KnowWhenTheyAreReplaced) {
  EXPECT_EQ(IsReplaced(run_, 1).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(*TakeLife(run_), 1);
  EXPECT_FALSE(*IsReplaced(run_, 1));
  EXPECT_EQ(*TakeLife(run_), 2);
  EXPECT_TRUE(*IsReplaced(run_, 1));
  EXPECT_FALSE(*IsReplaced(run_, 2));
  fs::remove_all(run_ + "/lives");
  EXPECT_EQ(IsReplaced(run_, 2).status().code(), absl::StatusCode::kUnavailable);
  Write(run_ + "/lives", "a file");
  EXPECT_EQ(IsReplaced(run_, 2).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(TakeLife(run_).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(RunLives, RememberHowTheyBegan) {
  Begin();
  EXPECT_EQ(Begin(1, 4), 2);
  EXPECT_EQ((*ReadLifeStart(run_, 1))->from_life, 0);
  EXPECT_EQ((*ReadLifeStart(run_, 2))->from_life, 1);
  EXPECT_EQ((*ReadLifeStart(run_, 2))->from_step, 4);
  EXPECT_FALSE(ReadLifeStart(run_, 3)->has_value());
  for (const char* text :
       {"", "{", "[]", "null", "{}", R"({"from_life": 1})", R"({"from_life": 2, "from_step": 4})",
        R"({"from_life": -1, "from_step": 4})", R"({"from_life": 1, "from_step": -4})",
        R"({"from_life": 1, "from_step": 4.0})", R"({"from_life": "1", "from_step": 4})",
        R"({"from_life": 1, "from_step": 18446744073709551615})", R"({"from_life": 4294967297, "from_step": 1})"}) {
    Write(run_ + "/lives/2/start.json", text);
    EXPECT_EQ(ReadLifeStart(run_, 2).status().code(), absl::StatusCode::kDataLoss) << text;
    EXPECT_THAT(string(ReadLifeStart(run_, 2).status().message()), HasSubstr("lives/2/start.json")) << text;
    // Without it nobody knows what a next life may load.
    Publish(2, 1);
    EXPECT_EQ(ListCheckpoints(run_, 3).status().code(), absl::StatusCode::kDataLoss) << text;
  }
}

TEST_F(RunLives, HaveNoCheckpointsAtFirst) {
  EXPECT_THAT(List(1).found, IsEmpty());
  Write(run_ + "/checkpoints", "a file");
  EXPECT_EQ(ListCheckpoints(run_, 1).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(RunLives, LoadWhatEarlierLivesPublished) {
  Begin();
  for (int64_t step : {2, 4, 6, 10, 100}) Publish(step, 1);
  EXPECT_THAT(Found(2), ElementsAre("step-00000100.life-1", "step-00000010.life-1", "step-00000006.life-1",
                                    "step-00000004.life-1", "step-00000002.life-1"));
  EXPECT_THAT(List(2).unusable, IsEmpty());
  EXPECT_EQ(List(2).found[0].manifest.counters.consumed_samples, 800);
  EXPECT_THAT(Found(1), IsEmpty());  // life 1 itself began with none
}

// Life 1 was cut off after step 6 and goes on; life 2 begins from step 4.
TEST_F(RunLives, DoNotLoadWhatAReplacedLifePublished) {
  Begin();
  for (int64_t step : {2, 4, 6}) Publish(step, 1);
  Begin(1, 4);
  for (int64_t step : {5, 7}) Publish(step, 2);
  Publish(8, 1);
  EXPECT_THAT(Found(3), ElementsAre("step-00000007.life-2", "step-00000005.life-2", "step-00000004.life-1",
                                    "step-00000002.life-1"));
  EXPECT_EQ(List(3).unusable.size(), 2U);
  EXPECT_THAT(WhyNot(3, FolderOf(8, 1), Kind::kOffPath), HasSubstr("life 2 began from step 4 of life 1"));
  EXPECT_THAT(WhyNot(3, FolderOf(6, 1), Kind::kOffPath), HasSubstr("life 2 began from step 4 of life 1"));
  // Life 2 itself may load all that life 1 had, and nothing of its own.
  EXPECT_THAT(Found(2), ElementsAre("step-00000008.life-1", "step-00000006.life-1", "step-00000004.life-1",
                                    "step-00000002.life-1"));
  EXPECT_THAT(WhyNot(2, FolderOf(7, 2), Kind::kOffPath), HasSubstr("life 2 is not before life 2"));
}

TEST_F(RunLives, PassOverABranch) {
  Begin();
  for (int64_t step : {2, 4, 6}) Publish(step, 1);
  Begin(1, 6);
  for (int64_t step : {8, 10}) Publish(step, 2);
  Begin(1, 4);  // those of life 2 were damaged
  Publish(7, 3);
  Begin(3, 7);
  Publish(9, 4);
  EXPECT_THAT(Found(5), ElementsAre("step-00000009.life-4", "step-00000007.life-3", "step-00000004.life-1",
                                    "step-00000002.life-1"));
  EXPECT_THAT(WhyNot(5, FolderOf(10, 2), Kind::kOffPath), HasSubstr("life 3 began from step 4 of life 1"));
  Begin();  // afresh
  EXPECT_THAT(Found(6), IsEmpty());
  EXPECT_THAT(WhyNot(6, FolderOf(9, 4), Kind::kOffPath), HasSubstr("life 5 began afresh"));
  Publish(1, 5);
  EXPECT_THAT(Found(6), ElementsAre("step-00000001.life-5"));
}

// Life 2 takes twice the samples in a step, so its step 3 is after the step 4 of life 1.
TEST_F(RunLives, CountStepsOfTheirOwn) {
  Begin();
  for (int64_t step : {2, 4}) Publish(step, 1);
  Begin(1, 4);
  Publish(3, 2);
  EXPECT_THAT(Found(3), ElementsAre("step-00000003.life-2", "step-00000004.life-1", "step-00000002.life-1"));
  const std::vector<FoundCheckpoint> old = CheckpointsToRemove(List(3).found, 1, 0, "", -1);
  ASSERT_EQ(old.size(), 2U);
  EXPECT_EQ(old[0].folder, FolderOf(2, 1));
  EXPECT_EQ(old[1].folder, FolderOf(4, 1));
}

// A launch that failed before its first step, or that has not come so far.
TEST_F(RunLives, WithoutAStartChangeNothing) {
  Begin();
  for (int64_t step : {2, 4}) Publish(step, 1);
  EXPECT_EQ(*TakeLife(run_), 2);
  EXPECT_EQ(*TakeLife(run_), 3);
  EXPECT_THAT(Found(4), ElementsAre("step-00000004.life-1", "step-00000002.life-1"));
  Publish(6, 2);
  EXPECT_THAT(WhyNot(4, FolderOf(6, 2), Kind::kOffPath), HasSubstr("life 2 has not said how it began"));
  // Life 3 begins after all. Then life 4 is there already, so it cannot publish.
  ASSERT_TRUE(WriteLifeStart(run_, 3, StartOf(1, 2)).ok());
  EXPECT_THAT(Found(4), ElementsAre("step-00000002.life-1"));
}

TEST_F(RunLives, DoNotLoadWhatIsNoCheckpoint) {
  Begin();
  for (int64_t step : {1, 2, 3, 4, 5, 6, 7, 8}) Publish(step, 1);
  fs::remove(FolderOf(2, 1) + "/" + kManifestFile);
  fs::remove(FolderOf(3, 1) + "/" + ShardFile(3));
  fs::resize_file(FolderOf(4, 1) + "/" + ShardFile(3), 99);
  fs::resize_file(FolderOf(5, 1) + "/" + IndexFile(3), 6);
  fs::resize_file(FolderOf(6, 1) + "/" + kCheckpointPlanFile, 0);
  {
    std::fstream file(FolderOf(7, 1) + "/" + kManifestFile, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(40).put('\x7f');
  }
  fs::rename(FolderOf(8, 1), FolderOf(9, 1));
  fs::create_directories(FolderOf(10, 1));
  for (const char* name : {"step-12.life-1", "step-00000012.life-01", "step-00000012.life-0", "step-00000012", "tmp",
                           "step-00000012.life-1.old", "step--0000012.life-1", "step-00000012.life-99999999999"})
    fs::create_directories(run_ + "/checkpoints/" + name);
  Write(run_ + "/checkpoints/notes.txt", "a file is no folder");
  EXPECT_THAT(Found(2), ElementsAre("step-00000001.life-1"));
  EXPECT_EQ(List(2).unusable.size(), 8 + 8U);
  EXPECT_THAT(WhyNot(2, FolderOf(2, 1), Kind::kNotPublished), HasSubstr("no manifest.json"));
  EXPECT_THAT(WhyNot(2, FolderOf(10, 1), Kind::kNotPublished), HasSubstr("no manifest.json"));
  EXPECT_THAT(WhyNot(2, FolderOf(3, 1), Kind::kDamaged), HasSubstr("rank-00003.safetensors"));
  EXPECT_THAT(WhyNot(2, FolderOf(4, 1), Kind::kDamaged), AllOf(HasSubstr("rank-00003.safetensors"), HasSubstr("99")));
  EXPECT_THAT(WhyNot(2, FolderOf(5, 1), Kind::kDamaged), HasSubstr("rank-00003.json"));
  EXPECT_THAT(WhyNot(2, FolderOf(6, 1), Kind::kDamaged), HasSubstr("plan.json"));
  EXPECT_THAT(WhyNot(2, FolderOf(7, 1), Kind::kDamaged), HasSubstr("manifest.json"));
  EXPECT_THAT(WhyNot(2, FolderOf(9, 1), Kind::kDamaged), HasSubstr("step-00000008.life-1"));
  EXPECT_THAT(WhyNot(2, run_ + "/checkpoints/step-12.life-1", Kind::kForeign), HasSubstr("its name"));
  EXPECT_EQ(List(2).unusable.front().step, 10);
}

// A life that was killed while it wrote: its folder was never a checkpoint, whatever came after it.
TEST_F(RunLives, KnowWhatWasNeverPublished) {
  Begin();
  for (const int64_t step : {2, 4, 6}) Publish(step, 1);
  fs::remove(FolderOf(6, 1) + "/" + kManifestFile);
  EXPECT_THAT(WhyNot(2, FolderOf(6, 1), Kind::kNotPublished), HasSubstr("being written or removed"));
  Begin(1, 2);
  EXPECT_THAT(WhyNot(3, FolderOf(6, 1), Kind::kNotPublished), HasSubstr("its life ended before"));
  EXPECT_THAT(WhyNot(3, FolderOf(4, 1), Kind::kOffPath), HasSubstr("life 2 began from step 2"));
  fs::remove_all(LifeFolder(run_, 1));
  EXPECT_THAT(WhyNot(3, FolderOf(6, 1), Kind::kNotPublished), HasSubstr("its life ended before"));
}

// The kernel says in which order names go.
TEST_F(RunLives, RemoveTheManifestFirst) {
  Begin();
  Publish(4, 1);
  const int watch = inotify_init1(IN_NONBLOCK);
  ASSERT_GE(watch, 0);
  ASSERT_GE(inotify_add_watch(watch, FolderOf(4, 1).c_str(), IN_DELETE), 0);
  EXPECT_TRUE(RemoveCheckpoint(FolderOf(4, 1) + "/").ok());
  alignas(inotify_event) char events[4096];
  const ssize_t count = read(watch, events, sizeof events);
  close(watch);
  ASSERT_GT(count, 0);
  EXPECT_STREQ(reinterpret_cast<const inotify_event*>(events)->name, kManifestFile);
  EXPECT_FALSE(fs::exists(FolderOf(4, 1)));
  EXPECT_TRUE(RemoveCheckpoint(FolderOf(4, 1)).ok());  // again: it is gone already
}

TEST_F(RunLives, RemoveWhatAnotherRemovalLeft) {
  Publish(4, 1);
  fs::remove(FolderOf(4, 1) + "/" + kManifestFile);
  EXPECT_TRUE(RemoveCheckpoint(FolderOf(4, 1)).ok());
  EXPECT_FALSE(fs::exists(FolderOf(4, 1)));
}

TEST_F(RunLives, RemoveNothingElse) {
  Publish(4, 1);
  for (const string& folder : {run_, run_ + "/checkpoints", run_ + "/checkpoints/", FolderOf(4, 1) + "/.."}) {
    EXPECT_EQ(RemoveCheckpoint(folder).status().code(), absl::StatusCode::kInvalidArgument) << folder;
  }
  EXPECT_TRUE(fs::exists(FolderOf(4, 1) + "/" + kManifestFile));
}

// What a person has put there is not a run's to remove, wherever it lies.
TEST_F(RunLives, LeaveWhatNoRunHasWritten) {
  Begin();
  Publish(4, 1);
  const string folder = FolderOf(4, 1);
  for (const char* name : {"/hf/config.json", "/notes.txt", "/rank-3.safetensors", "/rank-00001.json/x"})
    Write(folder + name, "mine");
  Write(folder + "/rank-00003.json.writing.17.0badcafe", "half");
  const absl::StatusOr<std::vector<string>> left = RemoveCheckpoint(folder);
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_THAT(*left, ElementsAre("hf", "notes.txt", "rank-00001.json", "rank-3.safetensors"));
  EXPECT_TRUE(fs::exists(folder + "/hf/config.json"));
  for (const string& name : {string(kManifestFile), string(kCheckpointPlanFile), ShardFile(3), IndexFile(3),
                             string("rank-00003.json.writing.17.0badcafe")})
    EXPECT_FALSE(fs::exists(folder + "/" + name)) << name;
  Begin();
  EXPECT_THAT(WhyNot(3, folder, Kind::kNotPublished), HasSubstr("only what no run has written: hf, notes.txt"));
  EXPECT_THAT(*LeftByEndedLives(run_, 3), IsEmpty()) << "there is nothing more to do";
}

// A person has moved the checkpoint to another disk.
TEST_F(RunLives, LeaveALinkAndWhatItLeadsTo) {
  Begin();
  Publish(4, 1);
  const string elsewhere = run_ + "/elsewhere";
  fs::rename(FolderOf(4, 1), elsewhere);
  fs::create_directory_symlink(elsewhere, FolderOf(4, 1));
  EXPECT_EQ(Found(2).size(), 1U) << "it counts";
  EXPECT_THAT(*RemoveCheckpoint(FolderOf(4, 1)), ElementsAre(FolderOf(4, 1)));
  EXPECT_TRUE(fs::exists(elsewhere + "/" + kManifestFile));
  EXPECT_TRUE(fs::is_symlink(FolderOf(4, 1)));
}

TEST_F(RunLives, KnowWhatEndedLivesHaveLeft) {
  Begin();
  Publish(2, 1);
  Publish(4, 1);
  fs::remove(FolderOf(4, 1) + "/" + kManifestFile);
  fs::create_directories(FolderOf(6, 1));
  fs::create_directories(run_ + "/checkpoints/mine");
  Begin(1, 2);
  Publish(8, 2);
  fs::remove(FolderOf(8, 2) + "/" + kManifestFile);
  EXPECT_THAT(*LeftByEndedLives(run_, 2), ElementsAre(FolderOf(4, 1), FolderOf(6, 1))) << "life 2 still writes";
  EXPECT_THAT(*LeftByEndedLives(run_, 3), ElementsAre(FolderOf(4, 1), FolderOf(6, 1), FolderOf(8, 2)));
  for (const string& folder : {FolderOf(4, 1), FolderOf(6, 1), FolderOf(8, 2)})
    EXPECT_THAT(*RemoveCheckpoint(folder), IsEmpty());
  EXPECT_FALSE(fs::exists(FolderOf(8, 2)));
  EXPECT_TRUE(fs::exists(FolderOf(2, 1)));
  EXPECT_TRUE(fs::exists(run_ + "/checkpoints/mine"));
}

// What a person names is itself if it is a checkpoint, and the newest usable one of a run.
TEST_F(RunLives, TheCheckpointThatAFolderMeans) {
  const auto error = [](const string& folder) { return string(FindCheckpoint(folder).status().message()); };
  EXPECT_THAT(error(run_ + "/nothing"), HasSubstr("there is no folder " + run_ + "/nothing"));
  EXPECT_THAT(error(run_), HasSubstr("is no checkpoint, as it has no manifest.json, and no run directory"));
  fs::create_directories(run_ + "/logs");
  Write(run_ + "/plan.json", "{}");
  EXPECT_THAT(error(run_), HasSubstr(run_ + " has no checkpoints: the run keeps none (checkpoint.every_steps"));
  Begin();
  fs::create_directories(run_ + "/checkpoints");
  EXPECT_THAT(error(run_), HasSubstr("has no checkpoint that counts"));
  for (const int64_t step : {2, 4, 6}) Publish(step, 1);
  const auto found = FindCheckpoint(run_);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->checkpoint.folder, FolderOf(6, 1));
  EXPECT_THAT(found->passed, IsEmpty());
  EXPECT_EQ(FindCheckpoint(FolderOf(2, 1))->checkpoint.manifest.counters.step, 2);
  fs::resize_file(FolderOf(6, 1) + "/" + ShardFile(3), 99);
  fs::resize_file(FolderOf(2, 1) + "/" + ShardFile(3), 99);
  const auto older = FindCheckpoint(run_);
  ASSERT_TRUE(older.ok()) << older.status();
  EXPECT_EQ(older->checkpoint.folder, FolderOf(4, 1));
  ASSERT_EQ(older->passed.size(), 1U);
  EXPECT_EQ(older->passed[0].folder, FolderOf(6, 1));
  Write(FolderOf(4, 1) + "/" + kManifestFile, "{");
  EXPECT_EQ(FindCheckpoint(run_).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(error(run_), AllOf(HasSubstr("no checkpoint of " + run_ + " is whole"), HasSubstr(FolderOf(6, 1))));
  EXPECT_EQ(FindCheckpoint(FolderOf(4, 1)).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(error(FolderOf(6, 1) + "/" + ShardFile(3)), HasSubstr("is not a folder"));
}

}  // namespace
}  // namespace planwright
