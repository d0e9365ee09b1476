// Options as rows: what they fill, what they refuse, and that all rows of all commands are whole.
#include "planner/cli/option.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_split.h"
#include "planner/cli/arguments.h"
#include "planner/cli/command.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Inner {
  int count = 1;
  std::optional<double> share;
};

struct Shared : CommandOptions {
  bool fast = false;
  std::string name = "none";
};

struct Options : Shared {
  std::optional<std::string> file;
  std::optional<int64_t> most;
  Inner inner;
};

absl::StatusOr<double> ReadShare(const std::string& name, const std::string& text) {
  if (text == "half") return 0.5;
  return absl::InvalidArgumentError("option `" + name + "` is no share: " + text);
}

std::vector<Option> Rows() {
  return {Option("--fast", &Shared::fast, ""),
          Option("-n, --name NAME", &Shared::name, "", NameOf{"a thing"}),
          Option("--file FILE", &Options::file, "").Writes(),
          Option("--most N", &Options::most, "", WholeNumbers{-5, 10}),
          Option("--count N", At(&Options::inner, &Inner::count), "", WholeNumbers{0, 100}),
          Option("--share S", At(&Options::inner, &Inner::share), "", ReadShare),
          JsonOption("")};
}

absl::StatusOr<Options> Filled(const std::vector<std::string>& words) {
  const absl::StatusOr<Arguments> arguments = ParseArguments(words, Rows());
  if (!arguments.ok()) return arguments.status();
  Options options;
  const absl::Status status = FillOptions(*arguments, Rows(), options);
  if (!status.ok()) return status;
  return options;
}

TEST(Options, AFormHasItsNamesAndItsValue) {
  const Option both("-o, --output FILE", ""), models("--model a|b", ""), plain("--json", "");
  EXPECT_EQ(both.name + " " + both.short_name + " " + both.value, "--output -o FILE");
  EXPECT_EQ(models.name + models.short_name + " " + models.value, "--model a|b");
  EXPECT_EQ(plain.name + plain.short_name + plain.value, "--json");
  for (const char* form : {"-o, --output FILE", "--model a|b", "--json", "-h, --help"})
    EXPECT_EQ(Option(form, "").text(), form);
}

TEST(Options, RowsFillMembersOfTheirTypes) {
  const absl::StatusOr<Options> none = Filled({"a", "b=c"});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_THAT(none->words, ElementsAre("a", "b=c"));
  EXPECT_FALSE(none->json || none->fast || none->file || none->most || none->inner.share);
  EXPECT_EQ(none->name, "none");
  const absl::StatusOr<Options> all = Filled(
      {"--fast", "--json", "-n", "x", "--file=", "--most", "-5", "--count=100", "--share", "half", "--", "--fast"});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_TRUE(all->json && all->fast);
  EXPECT_EQ(all->name, "x");
  EXPECT_EQ(all->file, "");
  EXPECT_EQ(all->most, -5);
  EXPECT_EQ(all->inner.count, 100);
  EXPECT_EQ(all->inner.share, 0.5);
  EXPECT_THAT(all->words, ElementsAre("--fast"));
  EXPECT_EQ(all->given.at("--most"), "-5");
}

TEST(Options, RowsRefuseWhatIsNoValueOfTheirs) {
  const std::pair<std::vector<std::string>, std::string> kMistakes[] = {
      {{"--most", "11"}, "option `--most` needs a whole number of at most 10; found `11`"},
      {{"--most=-6"}, "option `--most` needs a whole number of at least -5; found `-6`"},
      {{"--most", "99999999999999999999"}, "option `--most` needs a whole number of at most 10; found `9"},
      {{"--most", "-99999999999999999999"}, "option `--most` needs a whole number of at least -5; found `-9"},
      {{"--count", "1.0"}, "option `--count` needs a whole number of at least 0; found `1.0`"},
      {{"--count", " 1"}, "option `--count` needs a whole number of at least 0; found ` 1`"},
      {{"--name", ""}, "option `-n` needs the name of a thing; found an empty one"},
      {{"--share", "third"}, "option `--share` is no share: third"},
      {{"--fast=1"}, "option `--fast` takes no value"},
      {{"--fast", "--fast"}, "option `--fast` is given twice"},
      {{"-n", "a", "--name", "b"}, "option `--name` is given twice"},
      {{"--file"}, "option `--file` needs a value: FILE"},
      {{"-nx"}, "no option `-nx`"},
      {{"--fats"}, "no option `--fats`; did you mean `--fast`?"}};
  for (const auto& [words, message] : kMistakes)
    EXPECT_THAT(std::string(Filled(words).status().message()), HasSubstr(message));
}

TEST(Options, EveryRowOfACommandIsWhole) {
  for (const CliCommand& command : Commands()) {
    std::set<std::string> names;
    for (const Option& row : command.options) {
      EXPECT_TRUE(row.name.starts_with("--") && row.fill) << command.name << " " << row.name;
      EXPECT_TRUE(names.insert(row.name).second) << command.name << " has " << row.name << " twice";
      EXPECT_FALSE(row.help.empty()) << command.name << " " << row.name;
      if (!row.example) continue;
      const std::vector<std::string> words = absl::StrSplit(row.example->command, ' ');
      EXPECT_TRUE(std::count(words.begin(), words.end(), row.name) +
                  (row.short_name.empty() ? 0 : std::count(words.begin(), words.end(), row.short_name)))
          << row.example->command << " is no example of " << row.name;
    }
    EXPECT_TRUE(names.contains("--json")) << command.name;
    for (const std::string& word :
         std::vector<std::string>(absl::StrSplit(command.usage, absl::ByAnyChar(" []|"), absl::SkipEmpty()))) {
      EXPECT_TRUE(!word.starts_with("--") || names.contains(word)) << "usage of " << command.name << ": " << word;
    }
    EXPECT_FALSE(command.all_examples().empty() || command.see_also.empty() || command.pages.empty()) << command.name;
  }
}

}  // namespace
}  // namespace planwright
