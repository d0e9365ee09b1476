// A run directory that an earlier version wrote goes on. tests/end_to_end/fifteen_groups holds one: a plan had fifteen
// groups for each module then, and has nine now (docs/decisions/0014-what-the-plan-and-the-recipe-keep.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/end_to_end/checkpoint_run.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kEarlier = InSource("tests/end_to_end/fifteen_groups");

class EarlierRun : public CheckpointRun {
 protected:
  void SetUp() override {
    CheckpointRun::SetUp();
    std::filesystem::copy(kEarlier + "/run", RunDir(), std::filesystem::copy_options::recursive);
  }
  // The losses of the last two steps are those of the version that began the run, which ran it to its end.
  void ExpectGoesOn(const std::string& plan, const ::testing::Matcher<const std::string&>& says) {
    const Ended ended = Plan({"launch", plan, "--local", "--yes", "--run-dir", RunDir()});
    ASSERT_EQ(ended.status, 0) << ended.output;
    EXPECT_THAT(ended.output, AllOf(HasSubstr("resuming after step 2 "), says, Not(HasSubstr("warning"))));
    const std::vector<std::string> curve = Curve();
    ASSERT_EQ(curve.size(), 4U);
    EXPECT_THAT(nlohmann::json::parse(curve[2])["loss"].get<double>(), DoubleNear(2.9692323621138867, 1e-9));
    EXPECT_THAT(nlohmann::json::parse(curve[3])["loss"].get<double>(), DoubleNear(2.8486837584803406, 1e-9));
    EXPECT_THAT(ReadAll(RunDir() + "/plan.json"), Not(HasSubstr("language.tp_ep_pp")));
  }
};

// Only the programs of the plan that its recipe gives now are other ones.
TEST_F(EarlierRun, GoesOnWithItsRecipe) {
  ExpectGoesOn(kEarlier + "/recipe.yaml", HasSubstr("1 difference; the loss curve does not change\n\nprograms\n"));
}

// A plan that was compiled before is run without the groups that are gone.
TEST_F(EarlierRun, GoesOnWithItsPlan) {
  ASSERT_THAT(ReadAll(RunDir() + "/plan.json"), HasSubstr("language.tp_ep_pp"));
  ExpectGoesOn(kEarlier + "/run/plan.json", Not(HasSubstr("differences")));
}

}  // namespace
}  // namespace planwright::testing
