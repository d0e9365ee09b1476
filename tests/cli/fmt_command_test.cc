// `plan fmt` on files: what is written, and what stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"
#include "tests/cli/plan_program.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ProgramResult;
using ::testing::StartsWith;

constexpr char kMessy[] = "batch: {micro_samples: 1,global_samples: 8}   # eight\nname:   r\n";
constexpr char kTidy[] = "name: r\nbatch: {global_samples: 8, micro_samples: 1}  # eight\n";

class Fmt : public testing::PlanProgram {
 protected:
  std::string digest(const std::string& recipe) {
    return json::parse(Plan("validate " + recipe + " --json").out)["summary"]["digest"];
  }
};

TEST_F(Fmt, ChecksPrintsAndWrites) {
  const std::string file = Write("r.yaml", kMessy);
  const ProgramResult check = Plan("fmt --check " + file);
  EXPECT_EQ(check.status, 1);
  EXPECT_THAT(check.out, HasSubstr("\n+name: r\n"));
  EXPECT_EQ(Read("r.yaml"), kMessy);
  EXPECT_EQ(json::parse(Plan("fmt --check --json " + file).out)["files"][0]["changed"], true);
  const ProgramResult printed = Plan("fmt --stdout " + file);
  EXPECT_EQ(printed.status, 0);
  EXPECT_EQ(printed.out, kTidy);
  EXPECT_EQ(Read("r.yaml"), kMessy);
  EXPECT_EQ(Shell("sh -c '" + InBuild("bin/plan") + " fmt - < " + file + "'").out, kTidy);
  const ProgramResult written = Plan("fmt " + file);
  EXPECT_EQ(written.status, 0) << written.err;
  EXPECT_EQ(written.out, "formatted " + file + "\n");
  EXPECT_EQ(Read("r.yaml"), kTidy);
  EXPECT_EQ(Plan("fmt --check " + file).status, 0);
  EXPECT_THAT(Plan("fmt " + file).out, IsEmpty()) << "nothing changed";
}

TEST_F(Fmt, KeepsLineEndsOfWindows) {
  const std::string tidy = absl::StrReplaceAll(kTidy, {{"\n", "\r\n"}});
  const std::string file = Write("r.yaml", tidy);
  EXPECT_EQ(Plan("fmt --check " + file).status, 0);
  Write("r.yaml", absl::StrReplaceAll(kMessy, {{"\n", "\r\n"}}));
  EXPECT_THAT(Plan("fmt --check " + file).out, HasSubstr("\n+name: r\n")) << "a diff to read";
  EXPECT_EQ(Plan("fmt --stdout " + file).out, tidy);
  EXPECT_EQ(Plan("fmt " + file).status, 0);
  EXPECT_EQ(Read("r.yaml"), tidy);
  Write("r.yaml", tidy + "seed: 1\n");
  const ProgramResult mixed = Plan("fmt --check " + file);
  EXPECT_EQ(mixed.status, 1);
  EXPECT_THAT(mixed.out, HasSubstr("-seed: 1\n+seed: 1\\x0d\n"));
}

TEST_F(Fmt, KeepsPermissionsAndLinks) {
  const std::string file = Write("r.yaml", kMessy);
  ASSERT_EQ(chmod(file.c_str(), 0666), 0);
  std::filesystem::create_symlink("r.yaml", folder_ + "/link.yaml");
  EXPECT_EQ(Plan("fmt " + folder_ + "/link.yaml").status, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ + "/link.yaml"));
  EXPECT_EQ(Read("r.yaml"), kTidy);
  struct stat status = {};
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0666u);
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) files += entry.path().extension() == ".yaml";
  EXPECT_EQ(files, 2u) << "a temporary file is left";
}

TEST_F(Fmt, WritesThroughHardLinks) {
  const std::string file = Write("r.yaml", kMessy), other = folder_ + "/other.yaml";
  std::filesystem::create_hard_link(file, other);
  EXPECT_EQ(Plan("fmt " + file).status, 0);
  EXPECT_EQ(Read("r.yaml"), kTidy);
  EXPECT_EQ(Read("other.yaml"), kTidy);
  EXPECT_EQ(std::filesystem::hard_link_count(other), 2u);
}

TEST_F(Fmt, KeepsTheOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may give a file away";
  const std::string file = Write("r.yaml", kMessy);
  ASSERT_EQ(chown(file.c_str(), 12345, 23456), 0);
  EXPECT_EQ(Plan("fmt " + file).status, 0);
  EXPECT_EQ(Read("r.yaml"), kTidy);
  struct stat status = {};
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 12345u);
  EXPECT_EQ(status.st_gid, 23456u);
}

TEST_F(Fmt, OfStdinTheJsonHasTheText) {
  const std::string file = Write("r.yaml", kMessy);
  const std::string plan = InBuild("bin/plan");
  const json files = json::parse(Shell("sh -c '" + plan + " fmt - --json < " + file + "'").out)["files"];
  EXPECT_EQ(files.at(0)["changed"], true);
  EXPECT_EQ(files.at(0)["text"], kTidy);
  EXPECT_THAT(Shell("sh -c '" + plan + " fmt - --check < " + file + "'").out,
              StartsWith("<stdin> is not in its form; `plan fmt -` prints it:\n"));
}

TEST_F(Fmt, ThePlanStaysTheSame) {
  const std::string recipe =
      Write("r.yaml",
            "modules: {language: {recompute: full}}\n\n# the batch\nbatch: {global_samples: 16}\n"
            "extends: ['" +
                InSource("recipes/nemotron_moe_vlm_20l_mock_8r_toy.yaml") + "']\nname: r\n");
  const std::string before = digest(recipe);
  EXPECT_EQ(Plan("fmt " + recipe).status, 0);
  EXPECT_THAT(Read("r.yaml"), StartsWith("name: r\nextends: [\""));
  EXPECT_THAT(Read("r.yaml"), HasSubstr("\n# the batch\nbatch:"));
  EXPECT_EQ(digest(recipe), before);
}

TEST_F(Fmt, LooksAtAllFilesAndTellsAllProblems) {
  const std::string a = Write("a.yaml", kMessy), form = Write("form.yaml", "? name\n: r\n"),
                    broken = Write("broken.yaml", "a: [1\n"), c = Write("c.yaml", kMessy);
  const ProgramResult result = Plan("fmt " + a + " none.yaml " + form + " " + broken + " " + c);
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.out, "formatted " + a + "\nformatted " + c + "\n");
  for (const char* problem : {"none.yaml", "form.yaml:1: ", "PW0002"}) EXPECT_THAT(result.err, HasSubstr(problem));
  EXPECT_EQ(Read("a.yaml"), kTidy);
  EXPECT_EQ(Read("c.yaml"), kTidy);
}

TEST_F(Fmt, AStdinThatCannotBeReadIsAnError) {
  for (const std::string& from : {std::string("<&-"), "<" + folder_}) {
    const ProgramResult result = Shell("sh -c '" + InBuild("bin/plan") + " fmt - " + from + "'");
    EXPECT_EQ(result.status, 2) << from;
    EXPECT_THAT(result.err, StartsWith("error: cannot read stdin: ")) << from;
    EXPECT_THAT(result.out, IsEmpty()) << from;
  }
}

TEST_F(Fmt, LeavesWhatItCannotFormat) {
  const std::string broken = Write("broken.yaml", "a: [1\n"), form = Write("form.yaml", "? name\n: r\n");
  EXPECT_EQ(Plan("fmt " + broken).status, 1);
  EXPECT_THAT(Plan("fmt " + broken).err, HasSubstr("PW0002"));
  EXPECT_EQ(Plan("fmt " + form).status, 2);
  EXPECT_THAT(Plan("fmt " + form).err, HasSubstr("form.yaml:1: "));
  EXPECT_EQ(Read("form.yaml"), "? name\n: r\n");
  for (const char* wrong : {"fmt", "fmt none.yaml", "fmt --check --stdout x.yaml", "fmt --stdout --json x.yaml"}) {
    EXPECT_EQ(Plan(wrong).status, 2) << wrong;
    EXPECT_THAT(Plan(wrong).err, StartsWith("error: ")) << wrong;
  }
}

}  // namespace
}  // namespace planwright
