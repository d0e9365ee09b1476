// `plan data index` as people and scripts use it, and the index that `plan launch` makes before it starts ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "planner/run_files/exit_status.h"
#include "tests/cli/plan_program.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class DataCommand : public PlanProgram {
 protected:
  // The words for a recipe whose data are these shards.
  std::string Recipe(const std::string& shards, const std::string& more = "") {
    return InSource("recipes/icons_8r_toy.yaml") + " 'data={kind: sources, sources: [{name: waves, kind: webdataset, " +
           "shards: [" + shards + "]}], index: " + folder_ + "/index" + more + "}'";
  }

  const std::string shards_ = InSource("tests/golden/data_fixtures/webdataset") + "/*.tar";
};

TEST_F(DataCommand, SaysWhatIsInTheSources) {
  const ProgramResult first = Plan("data index " + Recipe(shards_) + " --jobs 2");
  EXPECT_EQ(first.status, kExitSuccess) << first.err;
  EXPECT_THAT(first.out, HasSubstr("source  kind        shards  read  documents  tokens  images  left out  digest"));
  EXPECT_THAT(first.out, HasSubstr("waves   webdataset       2     2          5     107       5         0  "));
  EXPECT_THAT(first.err, HasSubstr("index of the data: reading 2 shards, "));
  const ProgramResult again = Plan("data index " + Recipe(shards_) + " --json");
  EXPECT_EQ(again.status, kExitSuccess) << again.err;
  EXPECT_THAT(again.err, Not(HasSubstr("reading")));
  const nlohmann::json json = nlohmann::json::parse(again.out);
  ASSERT_EQ(json["sources"].size(), 1u);
  EXPECT_EQ(json["sources"][0]["name"], "waves");
  EXPECT_EQ(json["sources"][0]["shards_read"], 0);
  EXPECT_EQ(json["sources"][0]["documents"], 5);
  EXPECT_EQ(json["sources"][0]["file"], folder_ + "/index/waves.index");
  EXPECT_EQ(json["sources"][0]["digest"].get<std::string>().size(), 64u);
}

TEST_F(DataCommand, NamesWhatIsDamaged) {
  Write("bad.tar", std::string(600, 'x'));
  const ProgramResult damaged = Plan("data index " + Recipe(folder_ + "/bad.tar"));
  EXPECT_EQ(damaged.status, kExitInvalid);
  EXPECT_THAT(damaged.err, HasSubstr("error: the data cannot be indexed:\n" + folder_ +
                                     "/bad.tar: at byte 0: not a ustar header\n"));
  EXPECT_THAT(damaged.out, IsEmpty());
  // A folder where the index is to be that is none.
  std::filesystem::remove_all(folder_ + "/index");
  Write("index", "");
  EXPECT_EQ(Plan("data index " + Recipe(shards_)).status, kExitUsage);
}

TEST_F(DataCommand, SaysWhatItCannotDo) {
  EXPECT_THAT(Plan("data").err, HasSubstr("say what to do: `plan data index`, and a recipe"));
  EXPECT_THAT(Plan("data indx x.yaml").err, HasSubstr("`plan data` cannot `indx`; did you mean `index`?"));
  EXPECT_EQ(Plan("data index").status, kExitUsage);
  EXPECT_THAT(Plan("data index " + Recipe(shards_) + " --jobs 0").err, HasSubstr("--jobs"));
  const ProgramResult mock = Plan("data index " + InSource("recipes/nemotron_moe_vlm_tiny.yaml"));
  EXPECT_EQ(mock.status, kExitSuccess);
  EXPECT_EQ(mock.out, "data of kind mock has no index\n");
}

TEST_F(DataCommand, ALaunchMakesTheIndexBeforeRanksStart) {
  const std::string rest = " --local --executor " + InBuild("bin/fake_rank") + " --run-dir " + folder_ + "/run",
                    made = "index of the data: ";
  const ProgramResult first = Plan("launch " + Recipe(shards_) + rest);
  EXPECT_EQ(first.status, kExitSuccess) << first.err;
  EXPECT_THAT(first.err, AllOf(HasSubstr(made + "reading 2 shards"),
                               HasSubstr(made + "waves: 5 documents, 107 tokens, 5 images\n")));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/index/waves.index"));
  const ProgramResult again = Plan("launch " + Recipe(shards_) + rest + "2");
  EXPECT_EQ(again.status, kExitSuccess) << again.err;
  EXPECT_THAT(again.err, Not(HasSubstr(made)));

  Write("bad.tar", "");
  std::filesystem::remove_all(folder_ + "/run");
  const ProgramResult damaged = Plan("launch " + Recipe(folder_ + "/bad.tar") + rest);
  EXPECT_EQ(damaged.status, kExitInvalid);
  EXPECT_THAT(damaged.err, HasSubstr(folder_ + "/bad.tar: at byte 0: the archive ends without its end mark\n"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/run"));

  std::filesystem::remove_all(folder_ + "/index");
  Plan("launch " + Recipe(shards_) + " --slurm --dry-run");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/index"));
}

}  // namespace
}  // namespace planwright::testing
