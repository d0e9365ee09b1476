// Lines of any file, from either end, compared with a reader that holds the whole file.
#include "planner/base/files/line_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

namespace planwright {
namespace {

struct Known {
  int64_t begin = 0, end = 0;
  std::string text;
  bool whole = true;
};

std::vector<Known> LinesOf(const std::string& text) {
  std::vector<Known> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    const bool whole = end != std::string::npos;
    const size_t next = whole ? end + 1 : text.size();
    lines.push_back(
        {static_cast<int64_t>(at), static_cast<int64_t>(next), text.substr(at, next - at - (whole ? 1 : 0)), whole});
    at = next;
  }
  return lines;
}

class LineFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "linesXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  LineFile Open(const std::string& text, int64_t chunk) {
    std::ofstream(folder_ + "/file", std::ios::binary) << text;
    absl::StatusOr<LineFile> file = LineFile::Open(folder_ + "/file", chunk);
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }
  static void ExpectLine(const absl::StatusOr<std::optional<LineFile::Line>>& line, const Known& known) {
    ASSERT_TRUE(line.ok()) << line.status();
    ASSERT_TRUE(line->has_value());
    EXPECT_EQ((*line)->begin, known.begin);
    EXPECT_EQ((*line)->end, known.end);
    EXPECT_EQ((*line)->text, known.text);
    EXPECT_EQ((*line)->whole, known.whole);
    EXPECT_FALSE((*line)->too_long);
  }

  std::string folder_;
};

TEST_F(LineFileTest, GivesTheLinesOfAnyFile) {
  std::mt19937_64 random(20261123);
  const auto below = [&](int64_t end) { return std::uniform_int_distribution<int64_t>(0, end - 1)(random); };
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int64_t i = below(60); i > 0; --i)
      text +=
          std::string(static_cast<size_t>(below(3) == 0 ? 0 : below(40)), static_cast<char>('a' + below(26))) + "\n";
    if (below(2) == 0) text += "without an end";
    const std::vector<Known> lines = LinesOf(text);
    LineFile file = Open(text, 1 + below(50));
    for (const Known& line : lines) ExpectLine(file.At(line.begin), line);
    for (size_t i = lines.size(); i-- > 0;) ExpectLine(file.Before(lines[i].end), lines[i]);
    for (int i = 0; i < 20 && !lines.empty(); ++i) {
      const int64_t offset = below(static_cast<int64_t>(text.size()));
      const auto from = std::find_if(lines.begin(), lines.end(), [&](const Known& l) { return l.begin >= offset; });
      if (from == lines.end()) {
        EXPECT_FALSE(file.From(offset)->has_value());
      } else {
        ExpectLine(file.From(offset), *from);
      }
      const Known& one = lines[static_cast<size_t>(below(static_cast<int64_t>(lines.size())))];
      below(2) == 0 ? ExpectLine(file.At(one.begin), one) : ExpectLine(file.Before(one.end), one);
    }
    EXPECT_FALSE(file.At(file.bytes())->has_value());
    EXPECT_FALSE(file.Before(0)->has_value());
  }
}

TEST_F(LineFileTest, ReadsEachByteOnceAndHoldsFew) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += "line " + std::to_string(i) + "\n";
  const auto size = static_cast<int64_t>(text.size());
  LineFile forward = Open(text, 4096);
  for (int64_t at = 0; at < size;) at = (*forward.At(at))->end;
  EXPECT_EQ(forward.bytes_read(), size);
  EXPECT_LE(forward.most_held(), 3 * 4096);
  LineFile backward = Open(text, 4096);
  for (int64_t end = size; end > 0;) end = (*backward.Before(end))->begin;
  EXPECT_EQ(backward.bytes_read(), size);
  EXPECT_LE(backward.most_held(), 3 * 4096);
}

TEST_F(LineFileTest, PassesOverALineThatIsTooLong) {
  const auto length = static_cast<size_t>(3 * LineFile::kLongestLine);
  const std::string text = "before\n" + std::string(length, 'x') + "\nafter\n";
  LineFile file = Open(text, 4096);
  ExpectLine(file.At(0), {0, 7, "before"});
  const absl::StatusOr<std::optional<LineFile::Line>> line = file.At(7);
  EXPECT_TRUE((*line)->too_long);
  EXPECT_EQ((*line)->text, "");
  const auto after = static_cast<int64_t>(length) + 8;
  EXPECT_EQ((*line)->end, after);
  ExpectLine(file.At(after), {after, after + 6, "after"});
  EXPECT_TRUE((*file.Before(after))->too_long);
  EXPECT_EQ((*file.Before(after))->begin, 7);
  ExpectLine(file.Before(7), {0, 7, "before"});
  EXPECT_LE(file.most_held(), LineFile::kLongestLine + 4 * 4096);
  LineFile open = Open(std::string(length, 'x'), 1 << 16);
  EXPECT_TRUE((*open.At(0))->too_long);
  EXPECT_FALSE((*open.At(0))->whole);
  EXPECT_TRUE((*open.Before(open.bytes()))->too_long);
  EXPECT_EQ((*open.Before(open.bytes()))->begin, 0);
}

// A file of any size may have no line break: who wants a line of a bounded length does not wait for it.
TEST_F(LineFileTest, ReadsNoFurtherThanItIsAllowed) {
  const std::string path = folder_ + "/sparse";
  std::ofstream(path) << "first\n";
  std::filesystem::resize_file(path, int64_t{1} << 36);  // takes no room
  std::ofstream(path, std::ios::app) << "\nlast\n";
  absl::StatusOr<LineFile> file = LineFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  constexpr int64_t kMost = int64_t{4} << 20;
  EXPECT_EQ((*file->At(0, kMost))->text, "first");
  EXPECT_FALSE(file->At(6, kMost)->has_value());
  EXPECT_EQ((*file->Before(file->bytes(), kMost))->text, "last");
  EXPECT_FALSE(file->Before(file->bytes() - 5, kMost)->has_value());
  EXPECT_LE(file->bytes_read(), 3 * kMost);
}

TEST_F(LineFileTest, OfNoPlainFileIsRefused) {
  EXPECT_TRUE(absl::IsNotFound(LineFile::Open(folder_ + "/none").status()));
  EXPECT_TRUE(absl::IsUnavailable(LineFile::Open(folder_).status()));
}

}  // namespace
}  // namespace planwright
