// docs/reference_bugs.md speaks of every bug once, and of kinds and tests that there are.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "planner/diagnostics/diagnostic.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = PLANWRIGHT_SOURCE_DIR;

std::string ReadAll(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// Sources of a folder, by path.
std::map<std::string, std::string> Sources(const char* folder) {
  std::map<std::string, std::string> sources;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
    const fs::path& path = entry.path();
    if (path.extension() == ".cc" || path.extension() == ".h")
      sources[fs::relative(path, kRoot).string()] = ReadAll(path);
  }
  return sources;
}

struct Row {
  std::string number;
  std::vector<std::string> cells;
};

// Rows of the tables: "| 12 | what | here | `Suite.Test` |".
std::vector<Row> Rows() {
  std::vector<Row> rows;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(ReadAll(kRoot / "docs/reference_bugs.md"), '\n'))) {
    std::vector<std::string> cells = absl::StrSplit(line, " | ");
    if (!line.starts_with("| ") || line.starts_with("| #") || cells.size() < 2) continue;
    rows.push_back({cells.front().substr(2), cells});
  }
  return rows;
}

std::vector<std::string> Matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), regex); it != std::sregex_iterator(); ++it)
    found.push_back((*it)[1]);
  return found;
}

TEST(ReferenceBugs, AllThirtySixAreThereOnce) {
  std::map<std::string, int> seen;
  for (const Row& row : Rows()) {
    ++seen[row.number];
    EXPECT_EQ(row.cells.size(), 4u) << row.number;
    EXPECT_FALSE(Matches(row.cells.back(), "`([^`]+)`").empty()) << row.number << " names no test";
  }
  for (int number = 1; number <= 36; ++number) EXPECT_EQ(seen[std::to_string(number)], 1) << number;
  for (const auto& [number, times] : seen) EXPECT_EQ(times, 1) << number;
}

TEST(ReferenceBugs, WhatEachConcernsIsSaid) {
  const std::set<std::string> kinds = {"plan", "data", "running", "checkpoints", "process"};
  for (const Row& row : Rows()) {
    const std::string& here = row.cells.at(2);
    ASSERT_TRUE(here.starts_with("**")) << row.number;
    const std::vector<std::string> said = absl::StrSplit(here.substr(2, here.find("**", 2) - 2), ", ");
    for (const std::string& kind : said) EXPECT_TRUE(kinds.contains(kind)) << row.number << ": " << kind;
  }
}

TEST(ReferenceBugs, KindsExist) {
  for (const Row& row : Rows()) {
    for (const std::string& cell : row.cells) {
      for (const std::string& said : Matches(cell, "(PW[0-9]+ ?[A-Za-z]*)")) {
        const auto kind = FindKind(said.substr(0, 6));
        ASSERT_TRUE(kind.has_value()) << row.number << ": " << said;
        EXPECT_EQ(said, std::string(KindNumber(*kind)) + " " + std::string(KindName(*kind))) << row.number;
      }
    }
  }
}

// "Suite.Test", or of a test with parameters "Cases/Suite.Test/case".
TEST(ReferenceBugs, TestsExist) {
  std::string all;
  for (const auto& [path, text] : Sources("tests")) all += text;
  std::set<std::string> tests, with_cases, instances;
  for (const std::string& test : Matches(all, "TEST(?:_F)?\\((\\w+, \\w+)\\)")) tests.insert(test);
  for (const std::string& test : Matches(all, "TEST_P\\((\\w+, \\w+)\\)")) with_cases.insert(test);
  for (const std::string& instance : Matches(all, "INSTANTIATE_TEST_SUITE_P\\(\\s*(\\w+, \\w+)"))
    instances.insert(instance);
  for (const Row& row : Rows()) {
    for (const std::string& name : Matches(row.cells.back(), "`([^`]+)`")) {
      const std::vector<std::string> parts = absl::StrSplit(name, '/');
      const std::vector<std::string> words = absl::StrSplit(parts.size() == 3 ? parts[1] : name, '.');
      ASSERT_EQ(words.size(), 2u) << row.number << ": " << name;
      const std::string test = words[0] + ", " + words[1];
      if (parts.size() != 3) {
        EXPECT_TRUE(tests.contains(test)) << row.number << ": no test " << name;
        continue;
      }
      EXPECT_TRUE(with_cases.contains(test) && instances.contains(parts[0] + ", " + words[0]))
          << row.number << ": no test " << name;
      const bool golden = words[0] == "GoldenRecipe" || words[0] == "GoldenLint";
      const bool exists = golden ? fs::exists(kRoot / "tests/golden" / (parts[0] == "Broken" ? "broken" : "lints") /
                                              parts[2] / "expected.txt")
                                 : all.find('"' + parts[2] + '"') != std::string::npos;
      EXPECT_TRUE(exists) << row.number << ": no case " << name;
    }
  }
}

// Bug 32: a guard around imports hid why they failed. Nothing here catches what it cannot name, but for the last words
// of a rank that ends.
TEST(Sources, CatchNothingUnnamed) {
  std::set<std::string> found;
  for (const char* folder : {"planner", "executor"}) {
    for (const auto& [path, text] : Sources(folder)) {
      if (std::regex_search(text, std::regex("catch *\\(\\.\\.\\.\\)"))) found.insert(path);
    }
  }
  EXPECT_EQ(found, std::set<std::string>{"executor/rank/rank_main.cc"});
}

}  // namespace
}  // namespace planwright
