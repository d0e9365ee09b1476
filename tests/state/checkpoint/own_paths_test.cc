// Where commands may not write.
#include "planner/state/checkpoint/own_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

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

}  // namespace
}  // namespace planwright::testing
