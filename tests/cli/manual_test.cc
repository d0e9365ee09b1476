// `plan help` and the man pages: nothing of the table of commands is missing, examples are commands that work, and man
// renders every page without a warning.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "tests/cli/plan_program.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::Installed;
using ::testing::IsEmpty;
using testing::ProgramResult;

class Manual : public testing::PlanProgram {
 protected:
  void SetUp() override {
    PlanProgram::SetUp();
    commands_ = json::parse(Plan("help --json").out)["commands"];
    ASSERT_GT(commands_.size(), 15u);
  }
  // As a page has it, without its marks of roff.
  static std::string Plain(const std::string& page) {
    return absl::StrReplaceAll(page, {{"\\-", "-"},
                                      {"\\fB", ""},
                                      {"\\fR", ""},
                                      {"\\&", ""},
                                      {"\\:", ""},
                                      {"\\(aq", "'"},
                                      {"\\(ga", "`"},
                                      {"\\(ha", "^"},
                                      {"\\(ti", "~"},
                                      {"\\e", "\\"}});
  }
  json commands_;
};

TEST_F(Manual, DescribesACommandAsTheCommandDoes) {
  for (const json& command : commands_) {
    const std::string name = command["name"];
    const ProgramResult help = Plan("help " + name);
    EXPECT_EQ(help.status, 0) << help.err;
    EXPECT_EQ(help.out, Plan(name + " --help").out);
    for (const char* part : {"\nusage: plan ", "\noptions:\n", "\nexamples:\n", "\nexit status:\n", "\nsee also: "})
      EXPECT_THAT(help.out, HasSubstr(part)) << name;
    std::istringstream lines(help.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 160u) << name << ": " << line;
  }
  EXPECT_EQ(Plan("help").out, Plan("--help").out);
  EXPECT_THAT(Plan("help lauch").err, HasSubstr("did you mean `launch`"));
  EXPECT_EQ(Plan("help lauch").status, 2);
  EXPECT_THAT(Plan("help micro_samples").err, HasSubstr("`plan explain micro_samples`"));
}

TEST_F(Manual, PagesHaveEveryOptionOfEveryCommand) {
  const ProgramResult written = Plan("help --man " + folder_ + "/man/man1");
  EXPECT_EQ(written.status, 0) << written.err;
  const std::string overview = Read("man/man1/plan.1");
  EXPECT_EQ(overview, Read("man/man1/planwright.1"));
  for (const json& command : commands_) {
    const std::string name = command["name"], page = Plain(Read("man/man1/plan-" + name + ".1"));
    EXPECT_THAT(Plain(overview), HasSubstr(".TP\n" + name + "\n" + command["summary"].get<std::string>() + "\n"));
    ASSERT_FALSE(command["options"].empty());
    for (const json& option : command["options"]) {
      const std::string value = option["value"], shown = option["name"];
      EXPECT_THAT(page,
                  HasSubstr(shown + (value.empty() ? "" : " " + value) + "\n" + option["help"].get<std::string>()))
          << name;
    }
    // Items and what is said of them are columns there, and paragraphs here.
    for (const std::string& line :
         std::vector<std::string>(absl::StrSplit(command["details"].get<std::string>(), '\n'))) {
      for (const std::string& part : std::vector<std::string>(absl::StrSplit(line, "  ", absl::SkipWhitespace())))
        EXPECT_THAT(page, HasSubstr(std::string(absl::StripAsciiWhitespace(part)) + "\n")) << name;
    }
    EXPECT_THAT(page, HasSubstr(command["usage"].get<std::string>()));
    EXPECT_FALSE(command["examples"].empty()) << name;
    for (const json& example : command["examples"])
      EXPECT_THAT(page, HasSubstr(example["command"].get<std::string>() + "\n" + example["does"].get<std::string>()));
  }
  EXPECT_EQ(Plan("help --man /dev/null/man").status, 2);
  EXPECT_EQ(Plan("help launch --man " + folder_).status, 2);
}

TEST_F(Manual, ManRendersEveryPageWithoutAWarning) {
  if (!Installed("groff")) GTEST_SKIP() << "groff is not installed: no page was rendered";
  ASSERT_EQ(Plan("help --man " + folder_ + "/man1").status, 0);
  size_t pages = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/man1")) {
    ++pages;
    const ProgramResult shown = Shell("groff -mandoc -Tutf8 -ww -P-cbou " + entry.path().string());
    EXPECT_EQ(shown.status, 0);
    EXPECT_THAT(shown.err, IsEmpty()) << entry.path();
    for (const char* heading : {"NAME", "SYNOPSIS", "SEE ALSO"}) EXPECT_THAT(shown.out, HasSubstr(heading));
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(shown.out, '\n'))) {
      const auto width = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
      EXPECT_LE(width, 80) << entry.path() << ": " << line;
    }
  }
  EXPECT_EQ(pages, commands_.size() + 2);
}

// A page that man would warn of: the test above can fail.
TEST_F(Manual, ABrokenPageIsSeen) {
  if (!Installed("groff")) GTEST_SKIP() << "groff is not installed: no page was rendered";
  EXPECT_NE(Shell("groff -mandoc -Tutf8 -ww -z " + Write("broken.1", ".TH A 1\n.nosuchmacro\n\\*[gone]\n")).err, "");
}

// What is quick and needs no run is done; of the others the options are read.
TEST_F(Manual, ExamplesAreCommandsThatWork) {
  const std::set<std::string> kQuick = {"validate", "fmt", "compile", "show", "diff", "data", "explain", "help"};
  std::map<std::string, std::set<std::string>> options;
  for (const json& command : commands_) {
    for (const json& option : command["options"]) options[command["name"]].insert(option["name"].get<std::string>());
    for (const json& option : command["options"]) options[command["name"]].insert(option["short"].get<std::string>());
  }
  for (const json& command : commands_) {
    const std::string name = command["name"];
    for (const json& example : command["examples"]) {
      const std::string line = example["command"];
      if (!line.starts_with("plan ")) continue;
      const std::vector<std::string> words = absl::StrSplit(line, ' ');
      EXPECT_EQ(words[1], name) << line;
      for (const std::string& word : words) {
        if (word.starts_with("recipes/")) EXPECT_TRUE(std::filesystem::exists(InSource(word))) << line;
        if (word.starts_with("-") && name != "explain") EXPECT_TRUE(options[name].contains(word)) << line;
      }
      if (!kQuick.contains(name)) continue;
      const std::string here = absl::StrReplaceAll(
          line.substr(5),
          {{"recipes/", InSource("recipes/")}, {" plan.json", " " + folder_ + "/p.json"}, {"~/.local", folder_}});
      const ProgramResult done = Plan(here);
      EXPECT_EQ(done.status, name == "diff" ? 1 : 0) << line << "\n" << done.err;
    }
  }
}

}  // namespace
}  // namespace planwright
