// Files that are replaced, while others have left theirs beside them.
#include "planner/base/files/file_io.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace planwright {
namespace {

// Processes of two containers may have one id, and one that is killed leaves its file for ever.
TEST(FileIo, WhatAKilledProcessLeftBlocksNobody) {
  std::string folder = ::testing::TempDir() + "filesXXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/metrics.jsonl", left = path + ".writing." + std::to_string(getpid());
  std::ofstream(left) << "half";
  EXPECT_TRUE(WriteFileAtomically(path, "whole").ok());
  EXPECT_EQ(*ReadWholeFile(path, 100), "whole");
  EXPECT_TRUE(CutFileAtomically(path, 2, "").ok());
  EXPECT_EQ(*ReadWholeFile(path, 100), "wh");
  EXPECT_TRUE(CheckNamedFile(path).ok());
  EXPECT_TRUE(std::filesystem::exists(left));
  EXPECT_NE(NameBeside(path), NameBeside(path));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace planwright
