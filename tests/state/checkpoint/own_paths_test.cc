// Where commands may not write.
#include "planner/state/checkpoint/own_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/state/checkpoint/run_folder.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class OwnPaths : public RunFolder {
 protected:
  void SetUp() override {
    RunFolder::SetUp();
    Begin();
    Publish(4, 1);
    Write(run_ + "/run.json", "{}");
  }
  static std::string Problem(const std::string& path) { return std::string(CheckOutsideOfRuns(path).message()); }
};

TEST_F(OwnPaths, AreRefused) {
  for (const std::string inner :
       {"/checkpoints/step-00000004.life-1/hf", "/checkpoints/step-00000004.life-1", "/checkpoints/hf", "/checkpoints",
        "/lives/1/x.yaml", "/lives/new", "/logs/page.html", "/recorder/x", "/plan.json", "/metrics.jsonl", "/lock",
        "/tensorboard/new/deep/x", "/logs/../plan.json", "/checkpoints/", "/hf/../lives/x"}) {
    EXPECT_THAT(Problem(run_ + inner), HasSubstr("name another place")) << inner;
  }
  const std::string checkpoint = "/checkpoints/step-00000004.life-1";
  EXPECT_THAT(Problem(run_ + checkpoint + "/hf"),
              AllOf(HasSubstr("/hf lies in /"), HasSubstr(checkpoint + ", the folder of a checkpoint")));
  EXPECT_THAT(Problem(run_ + "/plan.json"), HasSubstr("/plan.json, which belongs to the run in "));
}

TEST_F(OwnPaths, AreFoundBehindLinks) {
  fs::create_directory_symlink(run_ + "/checkpoints", run_ + "/link");
  EXPECT_THAT(Problem(run_ + "/link/hf"), HasSubstr("belongs to the run"));
  Write(run_ + "/plan.json", "{}");
  fs::create_symlink(run_ + "/plan.json", run_ + "/out.json");
  EXPECT_THAT(Problem(run_ + "/out.json"), HasSubstr("belongs to the run"));
}

// A checkpoint that was copied away is one there, too.
TEST_F(OwnPaths, AreThoseOfACopiedCheckpoint) {
  fs::create_directories(run_ + "/models");
  fs::rename(FolderOf(4, 1), run_ + "/models/step-00000004.life-1");
  EXPECT_THAT(Problem(run_ + "/models/step-00000004.life-1/hf"), HasSubstr("the folder of a checkpoint"));
}

TEST_F(OwnPaths, AllElseIsFree) {
  for (const std::string inner : {"", "/", "/hf", "/eval/run", "/page.html", "/eval/plan.json", "/array-0",
                                  "/checkpoints.html", "/mine/checkpoints/hf"})
    EXPECT_EQ(Problem(run_ + inner), "") << inner;
  // A folder of that name that no run has made.
  fs::create_directories(run_ + "/project/checkpoints");
  EXPECT_EQ(Problem(run_ + "/project/checkpoints/hf"), "");
  EXPECT_EQ(Problem("checkpoints/hf"), "");
  EXPECT_EQ(Problem("x"), "");
  // Runs of a release before runs had an identity.
  fs::remove(run_ + "/run.json");
  EXPECT_EQ(Problem(run_ + "/logs/x"), "");
  Write(run_ + "/plan.json", "{}");
  EXPECT_THAT(Problem(run_ + "/logs/x"), HasSubstr("belongs to the run"));
}

class NoOtherFolder : public RunFolder {
 protected:
  // What is said of a folder with these files alone; empty files where a name ends with '!'.
  std::string Of(const std::vector<std::string>& names) {
    const std::string folder = run_ + "/new";
    fs::remove_all(folder);
    fs::create_directories(folder);
    for (std::string name : names) {
      const bool empty = name.ends_with('!');
      if (empty) name.pop_back();
      fs::create_directories(fs::path(folder + "/" + name).parent_path());
      if (!name.ends_with('/')) Write(folder + "/" + name, empty ? "" : "mine");
    }
    return std::string(CheckNoOtherFolder(folder).message());
  }
};

TEST_F(NoOtherFolder, IsTakenForARun) {
  const std::vector<std::vector<std::string>> others = {{"config.json", "model.safetensors"},
                                                        {"s-000000.tar", "pieces.json", "prepared.json"},
                                                        {"notes.txt"},
                                                        {"job/data.txt", "model.bin"},
                                                        {"photos/a.png"},
                                                        {"lock", "weights.bin"}};
  for (const std::vector<std::string>& names : others)
    EXPECT_THAT(Of(names), HasSubstr("/new is no run directory, and it is not empty: it has ")) << names[0];
  EXPECT_THAT(Of({"e", "d", "c", "b", "a"}), HasSubstr("it has a, b, c and 2 more; a run begins in a new or an empty"));
}

TEST_F(NoOtherFolder, IsWhatAPersonOrALaunchHasMadeForARun) {
  const std::vector<std::vector<std::string>> fine = {
      {},
      {"recipe.yaml", "base.yml"},  // which the run is of
      {"slurm-7.out", "train.log", "train.err"},
      {"output.txt!", "probe/"},
      {".gitignore", "lost+found/x"},  // a folder of git, the root of a disk
      {"checkpoints/step-00000004.life-1/manifest.json"},
      {"logs/slurm-7.out", "lives/", "lock!"},  // of a launch that ended at once
      {"plan.json.1234.tmp"},
      {"trial/files.json"},
      // What else is there is of a run that has begun.
      {"run.json", "notes.txt"},
      {"plan.json", "hf/model.safetensors"},
      {"lives/1/", "notes.txt"},
      {"lock!", "notes.txt"},
      {"job/head.json", "notes.txt"},
      {"job/launch.json", "index/a"}};
  for (const std::vector<std::string>& names : fine) EXPECT_EQ(Of(names), "") << (names.empty() ? "none" : names[0]);
  EXPECT_EQ(std::string(CheckNoOtherFolder(run_ + "/not there").message()), "");
  Write(run_ + "/file", "mine");
  EXPECT_EQ(std::string(CheckNoOtherFolder(run_ + "/file").message()), "") << "whoever makes the folder tells";
}

TEST_F(NoOtherFolder, IsTheEndOfALinkToNothing) {
  fs::create_symlink("nowhere", run_ + "/link");
  EXPECT_THAT(std::string(CheckNoOtherFolder(run_ + "/link").message()),
              HasSubstr("/link is a link to nowhere, which is not there"));
  fs::create_directory(run_ + "/nowhere");
  EXPECT_EQ(std::string(CheckNoOtherFolder(run_ + "/link").message()), "");
}

}  // namespace
}  // namespace planwright::testing
