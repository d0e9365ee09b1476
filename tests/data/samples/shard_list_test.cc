// Which files the patterns of a recipe name.
#include "planner/data/samples/shard_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A folder of its own with these files.
std::string ShardFolder(const std::string& name, const std::vector<std::string>& files) {
  std::string folder = testing::TempDir() + name;
  std::filesystem::remove_all(folder);
  for (const std::string& file : files) {
    const std::filesystem::path path = std::filesystem::path(folder) / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "x";
  }
  return folder;
}

std::string Repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(ExpandShards, CountsWithTheZerosOfItsEnds) {
  EXPECT_THAT(*ExpandShards("", "a-{008..011}.tar"), ElementsAre("a-008.tar", "a-009.tar", "a-010.tar", "a-011.tar"));
  EXPECT_THAT(*ExpandShards("", "{8..10}"), ElementsAre("10", "8", "9"));
  EXPECT_THAT(*ExpandShards("", "{0..0}"), ElementsAre("0"));
  EXPECT_THAT(*ExpandShards("", "{00..1}"), ElementsAre("00", "01"));
}

TEST(ExpandShards, ListsMayHaveBraces) {
  EXPECT_THAT(*ExpandShards("", "{b,a{1..2},}.tar"), ElementsAre(".tar", "a1.tar", "a2.tar", "b.tar"));
  EXPECT_THAT(*ExpandShards("", "{a,b}{1,2}"), ElementsAre("a1", "a2", "b1", "b2"));
  EXPECT_THAT(*ExpandShards("", "plain.tar"), ElementsAre("plain.tar"));
}

TEST(ExpandShards, GlobsMatchFilesOfTheRecipesFolder) {
  const std::string folder =
      ShardFolder("[glob]*", {"a-1.tar", "a-2.tar", "b-1.tar", "sub/a-1.tar", ".a-3.tar", "a-1.json"});
  EXPECT_THAT(*ExpandShards(folder, "a-*.tar"), ElementsAre("a-1.tar", "a-2.tar"));
  EXPECT_THAT(*ExpandShards(folder, "*/a-?.tar"), ElementsAre("sub/a-1.tar"));
  EXPECT_THAT(*ExpandShards(folder, "[!a]-[1-2].tar"), ElementsAre("b-1.tar"));
  EXPECT_THAT(*ExpandShards(folder, "{a,b,c}-*.tar"), ElementsAre("a-1.tar", "a-2.tar", "b-1.tar"));
  EXPECT_THAT(*ExpandShards("/nowhere", ShardFolder("absolute", {"x.tar"}) + "/*"),
              ElementsAre(testing::TempDir() + "absolute/x.tar"));
}

TEST(ExpandShards, AFolderThatIsNotThereHasNoFiles) {
  const std::string folder = ShardFolder("here", {"a.tar"});
  EXPECT_TRUE(absl::IsNotFound(ExpandShards(folder, "gone/*.tar").status()));
  EXPECT_THAT(*ExpandShards(folder, "{gone/,}*.tar"), ElementsAre("a.tar"));
}

TEST(ExpandShards, SaysWhatIsWrong) {
  const std::string folder = ShardFolder("wrong", {"a.tar"});
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "shards: an empty name"},
      {"a{1..2", "shards a{1..2: a { without its }"},
      {"a}b", "shards a}b: a } without its {"},
      {"a}{1..2}", "shards a}{1..2}: a } without its {"},
      {"{x}", "shards {x}: {x} is neither a range of whole numbers that ascends, such as {000..099}, nor a list {a,b}"},
      {"{5..3}",
       "shards {5..3}: {5..3} is neither a range of whole numbers that ascends, such as {000..099}, nor a list {a,b}"},
      {"{0..99999999999}", "shards {0..99999999999}: it names more than 1000000 files"},
      {"{0..999}{0..9999}", "shards {0..999}{0..9999}: it names more than 1000000 files"},
      {"{0..999999}" + std::string(300, 'x'),
       "shards {0..999999}" + std::string(189, 'x') + "...: its names are longer than 268435456 bytes together"},
      {std::string(4096, 'x'),
       "shards " + std::string(200, 'x') + "...: it names a file whose path is longer than 4095 bytes"},
      {Repeated("*/", 65), "shards " + Repeated("*/", 65) + ": more than 64 folders behind its first * ? or ["},
      {"a[1", "shards a[1: a [ without its ]"},
      {"b*.tar", "shards b*.tar: no file matches " + folder + "/b*.tar"}};
  for (const auto& [pattern, message] : cases) {
    const absl::Status status = ExpandShards(folder, pattern).status();
    EXPECT_EQ(std::string(status.message()), message);
    EXPECT_EQ(absl::IsNotFound(status), pattern == "b*.tar");
  }
}

// What is made and read is counted, so that validation of any recipe has a bound.
TEST(FirstShardsOf, LooksAtNoMoreThanItMay) {
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back("a" + std::to_string(i) + ".tar");
  const std::string folder = ShardFolder("first", names);
  ShardLimit left = {.names = 3, .entries = 1000};
  absl::StatusOr<FirstShards> first = FirstShardsOf(folder, "s{0..9}{0..9}{0..9}{0..9}{0..9}{0..9}", left);
  EXPECT_THAT(first->files, ElementsAre("s000000", "s000001", "s000002"));
  EXPECT_FALSE(first->all);
  EXPECT_EQ(left.names, 0);
  EXPECT_EQ(left.entries, 1000);
  // The folder has 102 entries with `.` and `..`: a third reading of it is cut.
  left = {.names = 100, .entries = 250};
  first = FirstShardsOf(folder, "{b,c,d,e,f}*.tar", left);
  EXPECT_TRUE(first.ok() && first->files.empty() && !first->all) << "not known, so not without a match";
  EXPECT_EQ(left.names, 97);
  EXPECT_EQ(left.entries, 0);
  left = {.names = 100, .entries = 250};
  EXPECT_TRUE(absl::IsNotFound(FirstShardsOf(folder, "{b,c}*.tar", left).status()));
  EXPECT_EQ(left.entries, 250 - 2 * 102) << "counted also where nothing matches";
  EXPECT_EQ(FirstShardsOf(folder, "a*.tar", left = {.names = 200, .entries = 200})->files.size(), 100U);
}

TEST(ExpandAllShards, CountsAllNamesBeforeItMakesOne) {
  const std::vector<std::string> patterns(1000, "{0..9}{0..9}{0..9}{0..9}{0..9}{0..8}");
  EXPECT_EQ(std::string(ExpandAllShards("", patterns).status().message()), "shards: they name more than 1000000 files");
}

TEST(ExpandAllShards, KeepsTheOrderOfPatternsAndRefusesTheSameFileTwice) {
  const std::string folder = ShardFolder("all", {"b-1.tar", "a-1.tar"});
  EXPECT_THAT(*ExpandAllShards(folder, {"b-*.tar", "a-{1..2}.tar"}), ElementsAre("b-1.tar", "a-1.tar", "a-2.tar"));
  EXPECT_EQ(std::string(ExpandAllShards(folder, {"b-*.tar", "./b-1.tar"}).status().message()),
            "shards: ./b-1.tar is named twice: by b-*.tar and by ./b-1.tar");
  EXPECT_THAT(std::string(ExpandAllShards(folder, {folder + "/a-1.tar", "*.tar"}).status().message()),
              HasSubstr("a-1.tar is named twice"));
}

}  // namespace
}  // namespace planwright
