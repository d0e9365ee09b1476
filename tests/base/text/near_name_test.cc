#include "planner/base/text/near_name.h"

#include "gtest/gtest.h"

namespace planwright {
namespace {

TEST(NearName, CountsEditsAndSwapsIgnoringCase) {
  EXPECT_EQ(EditDistance("kv_groups", "kv_groups"), 0);
  EXPECT_EQ(EditDistance("kv_group", "kv_groups"), 1);
  EXPECT_EQ(EditDistance("pacth", "patch"), 1);  // a swap is one slip
  EXPECT_EQ(EditDistance("WSD", "wsd"), 0);
  EXPECT_EQ(EditDistance("", "abc"), 3);
}

TEST(NearName, FindsTheClosestOrNothing) {
  const std::vector<std::string> known = {"tp", "pp", "ep", "expert_tp", "placement"};
  EXPECT_EQ(NearName("expert_pt", known), "expert_tp");
  EXPECT_EQ(NearName("placment", known), "placement");
  EXPECT_EQ(NearName("pt", known), "tp");
  EXPECT_EQ(NearName("sequence", known), std::nullopt);
  EXPECT_EQ(NearName(std::string(1000, 'x'), known), std::nullopt);
  EXPECT_EQ(NearNameHelp("sequence", known, "otherwise"), "otherwise");
  EXPECT_EQ(NearName("none", {"none\xFF", "nine"}), "nine");
}

}  // namespace
}  // namespace planwright
