// A checkpoint that a run removes while it is read has no damage.
#include "planner/cli/check_checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace planwright {
namespace {

TEST(RemovedCheckpoint, IsNotDamaged) {
  const std::string folder = ::testing::TempDir() + "step-00000004.life-1";
  std::filesystem::create_directories(folder);
  // Its manifest goes first, and its shards are still there.
  std::ofstream(folder + "/rank-00000.safetensors") << "x";
  const CheckedCheckpoint gone = CheckCheckpoint(folder);
  EXPECT_TRUE(gone.removed);
  EXPECT_EQ(CheckedText(gone),
            "step-00000004.life-1: was removed while it was read; a run keeps only some (checkpoint.keep_last)\n");
  std::ofstream(folder + "/manifest.json") << "x";
  const CheckedCheckpoint damaged = CheckCheckpoint(folder);
  EXPECT_FALSE(damaged.removed);
  EXPECT_EQ(CheckedText(damaged).find("step-00000004.life-1: damaged\n"), 0U) << CheckedText(damaged);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace planwright
