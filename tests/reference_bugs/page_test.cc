// docs/reference_bugs.md has an entry for every bug, once, and every kind and test that it names exists.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = InSource();

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

// One bug of the page, as
//   ### 12. Title
//   - **Wrong:** ...
//   - **Here (plan, data):** ...
//   - **Shown by:** `Suite.Test`, ...
struct Entry {
  std::string number;
  std::string concerns;  // "plan, data"
  std::string here, shown_by;
};

std::vector<Entry> Entries() {
  std::string page = ReadAll(kRoot / "docs/reference_bugs.md");
  absl::StrReplaceAll({{"\n  ", " "}}, &page);  // a bullet may go on in the next lines
  constexpr std::string_view kTitle = "### ", kHere = "- **Here (", kHereEnd = "):** ", kShownBy = "- **Shown by:** ";
  std::vector<Entry> entries;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(page, '\n'))) {
    if (line.starts_with(kTitle)) {
      entries.push_back({.number = line.substr(kTitle.size(), line.find('.') - kTitle.size())});
    } else if (line.starts_with(kHere)) {
      const size_t end = line.find(kHereEnd);
      entries.back().concerns = line.substr(kHere.size(), end - kHere.size());
      entries.back().here = line.substr(end + kHereEnd.size());
    } else if (line.starts_with(kShownBy)) {
      entries.back().shown_by = line.substr(kShownBy.size());
    }
  }
  return entries;
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
  for (const Entry& entry : Entries()) {
    ++seen[entry.number];
    EXPECT_FALSE(entry.here.empty()) << entry.number;
    EXPECT_FALSE(Matches(entry.shown_by, "`([^`]+)`").empty()) << entry.number << " names no test";
  }
  for (int number = 1; number <= 36; ++number) EXPECT_EQ(seen[std::to_string(number)], 1) << number;
  for (const auto& [number, times] : seen) EXPECT_EQ(times, 1) << number;
}

TEST(ReferenceBugs, WhatEachConcernsIsSaid) {
  const std::set<std::string> words = {"plan", "data", "running", "checkpoints", "process"};
  for (const Entry& entry : Entries()) {
    for (const std::string& word : std::vector<std::string>(absl::StrSplit(entry.concerns, ", ")))
      EXPECT_TRUE(words.contains(word)) << entry.number << ": " << word;
  }
}

TEST(ReferenceBugs, KindsExist) {
  int named = 0;
  for (const Entry& entry : Entries()) {
    for (const std::string& said : Matches(entry.here, "(PW[0-9]+ ?[A-Za-z]*)")) {
      ++named;
      const auto kind = FindKind(said.substr(0, 6));
      ASSERT_TRUE(kind.has_value()) << entry.number << ": " << said;
      EXPECT_EQ(said, std::string(KindNumber(*kind)) + " " + std::string(KindName(*kind))) << entry.number;
    }
  }
  EXPECT_GE(named, 15);  // else the page has another form than Entries() reads
}

// A name is "Suite.Test", or "Cases/Suite.Test/case" of a test with parameters.
TEST(ReferenceBugs, TestsExist) {
  std::string all;
  for (const auto& [path, text] : Sources("tests")) all += text;
  std::set<std::string> tests, with_cases, instances;
  for (const std::string& test : Matches(all, "TEST(?:_F)?\\((\\w+, \\w+)\\)")) tests.insert(test);
  for (const std::string& test : Matches(all, "TEST_P\\((\\w+, \\w+)\\)")) with_cases.insert(test);
  for (const std::string& instance : Matches(all, "INSTANTIATE_TEST_SUITE_P\\(\\s*(\\w+, \\w+)"))
    instances.insert(instance);
  for (const Entry& entry : Entries()) {
    for (const std::string& name : Matches(entry.shown_by, "`([^`]+)`")) {
      const std::vector<std::string> parts = absl::StrSplit(name, '/');
      const std::vector<std::string> words = absl::StrSplit(parts.size() == 3 ? parts[1] : name, '.');
      ASSERT_EQ(words.size(), 2u) << entry.number << ": " << name;
      const std::string test = words[0] + ", " + words[1];
      if (parts.size() != 3) {
        EXPECT_TRUE(tests.contains(test)) << entry.number << ": no test " << name;
        continue;
      }
      EXPECT_TRUE(with_cases.contains(test) && instances.contains(parts[0] + ", " + words[0]))
          << entry.number << ": no test " << name;
      const bool golden = words[0] == "GoldenRecipe" || words[0] == "GoldenLint";
      const bool exists = golden ? fs::exists(kRoot / "tests/golden" / (parts[0] == "Broken" ? "broken" : "lints") /
                                              parts[2] / "expected.txt")
                                 : all.find('"' + parts[2] + '"') != std::string::npos;
      EXPECT_TRUE(exists) << entry.number << ": no case " << name;
    }
  }
}

// Bug 32: a guard around imports hid why they failed. Here every catch names what it catches, except the last handler
// of a rank that ends.
TEST(Sources, CatchNothingUnnamed) {
  std::set<std::string> found;
  for (const char* folder : {"planner", "executor"}) {
    for (const auto& [path, text] : Sources(folder)) {
      if (std::regex_search(text, std::regex("catch *\\(\\.\\.\\.\\)"))) found.insert(path);
    }
  }
  EXPECT_EQ(found, std::set<std::string>{"executor/rank/process.cc"});
}

}  // namespace
}  // namespace planwright
