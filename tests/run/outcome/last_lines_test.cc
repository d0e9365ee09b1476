// The end of a rank's logs, as a person gets to see it.
#include "planner/run/outcome/last_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "planner/run/outcome/outcome_text.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::SizeIs;

class LastLinesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "last_linesXXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    run_ = pattern;
    fs::create_directory(run_ + "/logs");
  }
  void TearDown() override { fs::remove_all(run_); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(run_ + "/logs/" + name, std::ios::binary) << text;
  }

  std::string run_;
};

TEST_F(LastLinesTest, AreTenOfTheLogAndWhatElseWasPrinted) {
  std::string log;
  for (int i = 0; i < 30; ++i) log += "I2026 rank2] line " + std::to_string(i) + "\n";
  Write("rank0002.log", log + "E2026 rank2] ends: bad things\n  recipe: a.yaml:3:1\n");
  Write("rank0002.out", "free(): invalid pointer\nbad things\n  recipe: a.yaml:3:1\nno line break at the end");
  Write("rank0001.log", "another rank\n");
  const std::vector<LastLines> files = LastLinesOf(run_, 2);
  ASSERT_THAT(files, SizeIs(2));
  EXPECT_EQ(files[0].file, "logs/rank0002.log");
  ASSERT_THAT(files[0].lines, SizeIs(10));
  EXPECT_EQ(files[0].lines.front(), "I2026 rank2] line 22");
  EXPECT_EQ(files[0].lines.back(), "  recipe: a.yaml:3:1");
  EXPECT_EQ(files[1].file, "logs/rank0002.out");
  EXPECT_THAT(files[1].lines, ElementsAre("free(): invalid pointer", "no line break at the end"));
}

TEST_F(LastLinesTest, ReachBackIntoTheFileBefore) {
  Write("rank0000.log.1", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  Write("rank0000.log", "10\n11\n");
  EXPECT_THAT(LastLinesOf(run_, 0).at(0).lines, ElementsAre("2", "3", "4", "5", "6", "7", "8", "9", "10", "11"));
}

TEST_F(LastLinesTest, OfALargeFileBeginWithAWholeLine) {
  std::string log;
  for (int i = 0; i < 3; ++i) log += std::string(30'000, static_cast<char>('a' + i)) + "\n";
  Write("rank0000.log", log);
  EXPECT_THAT(LastLinesOf(run_, 0).at(0).lines,
              ElementsAre(std::string(1000, 'b') + "...", std::string(1000, 'c') + "..."));
}

// A library may print anything. A terminal and a JSON file must bear it.
TEST_F(LastLinesTest, ArePrintable) {
  Write("rank0000.out",
        std::string("\x1b[2Jcleared\tand\0zero\n", 21) + "\xff\xfe no UTF-8\n" + std::string(999, 'x') + "\xc3\xa9\n");
  const std::vector<LastLines> files = LastLinesOf(run_, 0);
  ASSERT_THAT(files, SizeIs(1));
  EXPECT_THAT(files[0].lines,
              ElementsAre("\\x1b[2Jcleared and\\x00zero", "\\xff\\xfe no UTF-8", std::string(999, 'x') + "\\xc3..."));
  EXPECT_NO_THROW(OutcomeJson({.failure = Failure{.last_lines = files}}).dump());
}

TEST_F(LastLinesTest, OfNoPlainFileAreNone) {
  EXPECT_THAT(LastLinesOf(run_, 0), SizeIs(0));
  ASSERT_EQ(mkfifo((run_ + "/logs/rank0000.log").c_str(), 0644), 0);
  ASSERT_EQ(symlink("/dev/zero", (run_ + "/logs/rank0000.out").c_str()), 0);
  EXPECT_THAT(LastLinesOf(run_, 0), SizeIs(0));
}

TEST(OutcomeText, HasAMessageAndItsInstructionOnce) {
  Outcome outcome{2, "rank 1 got input that cannot be used", Failure{1, "node3"}};
  const std::string words = "sample 2: s.tar: document 17: its text is another", place = "  recipe: d.yaml:49";
  outcome.failure->instruction = "step 3 1 > read_positions a, b -> c";
  outcome.failure->message = "rank 1 on node3: step 3 1: read_positions a, b -> c: " + words + "\n" + place;
  outcome.failure->last_lines = {
      {"logs/rank0001.log", {"ready", "E1 exit.cc] ends with exit status 2: " + outcome.failure->message, place}},
      {"logs/rank0001.out", {place}}};
  outcome.failure->last_lines[0].lines[1].erase(outcome.failure->last_lines[0].lines[1].find('\n'));
  EXPECT_EQ(OutcomeText(outcome),
            "error: rank 1 got input that cannot be used on node3\n"
            "  " +
                words + "\n" + place +
                "\n"
                "  at step 3 1 > read_positions a, b -> c\n"
                "  last lines of logs/rank0001.log:\n"
                "    ready\n");
  // Of another instruction it is told whole.
  outcome.failure->message = "step 3 1: read_positions d -> c: it is another";
  EXPECT_NE(OutcomeText(outcome).find("\n  step 3 1: read_positions d -> c: it is another\n"), std::string::npos);
}

TEST(OutcomeText, OfFilesThatCannotBeWrittenIsAnError) {
  EXPECT_EQ(OutcomeText({15, "cannot write run/plan.json: No space left on device"}),
            "error: cannot write run/plan.json: No space left on device\n");
  EXPECT_EQ(OutcomeText({0, "done"}), "done\n");
}

TEST_F(LastLinesTest, ComeLastInTheOutcome) {
  Outcome outcome{10, "rank 1 was killed by SIGKILL", Failure{1, "node3"}};
  outcome.failure->last_lines = {{"logs/rank0001.log", {"a", "b"}}, {"logs/rank0001.out", {"c"}}};
  EXPECT_EQ(OutcomeText(outcome),
            "error: rank 1 was killed by SIGKILL on node3\n"
            "  at start-up, before its first instruction\n"
            "  last lines of logs/rank0001.log:\n"
            "    a\n"
            "    b\n"
            "  last lines of logs/rank0001.out:\n"
            "    c\n");
  EXPECT_EQ(OutcomeJson(outcome)["last_lines"].dump(),
            R"([{"file":"logs/rank0001.log","lines":["a","b"]},{"file":"logs/rank0001.out","lines":["c"]}])");
}

}  // namespace
}  // namespace planwright
