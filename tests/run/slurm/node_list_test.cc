#include "planner/run/slurm/node_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace planwright {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Expand(const std::string& list) {
  const absl::StatusOr<std::vector<std::string>> nodes = ExpandNodeList(list);
  EXPECT_TRUE(nodes.ok()) << nodes.status();
  return nodes.ok() ? *nodes : std::vector<std::string>();
}

TEST(NodeList, Forms) {
  EXPECT_THAT(Expand("n0"), ElementsAre("n0"));
  EXPECT_THAT(Expand("n[0-2,7],gpu4-ib"), ElementsAre("n0", "n1", "n2", "n7", "gpu4-ib"));
  EXPECT_THAT(Expand("n[08-11]"), ElementsAre("n08", "n09", "n10", "n11"));
  EXPECT_THAT(Expand("n[098-101]x"), ElementsAre("n098x", "n099x", "n100x", "n101x"));
  EXPECT_THAT(Expand("r[1-2]n[3,5]"), ElementsAre("r1n3", "r1n5", "r2n3", "r2n5"));
  EXPECT_THAT(Expand("a,b,a"), ElementsAre("a", "b", "a"));
  EXPECT_EQ(Expand("n[0-99999]").size(), 100000u);
}

TEST(NodeList, WhatIsNone) {
  for (const char* list : {"", ",", "a,", ",a", "a,,b", "n[", "n[]", "n[1", "n[2-1]", "n[a-b]", "n[1-]", "n[-1]",
                           "n[1,]", "n[0-99999999999999999999]", "n[0-99999999]", "a[1-9999]b[1-9999]"})
    EXPECT_FALSE(ExpandNodeList(list).ok()) << list;
}

}  // namespace
}  // namespace planwright
