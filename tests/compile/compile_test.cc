// Whole compiles of the tiny model in its basic layouts. Each plan passes its proof, also after it was written and
// read.
#include "planner/compile.h"

#include <gtest/gtest.h>

#include "planner/plan/plan_json.h"
#include "planner/verify/verify.h"
#include "tests/support/compiled.h"
#include "tests/support/recipes.h"

namespace planwright {
namespace {

using testing::Compiled;
using testing::TinyLayout;
using testing::TinyRecipe;

struct NamedLayout {
  const char* name;
  TinyLayout layout;
  friend void PrintTo(const NamedLayout& layout, std::ostream* out) { *out << layout.name; }
};

class CompileLayouts : public ::testing::TestWithParam<NamedLayout> {};

TEST_P(CompileLayouts, ProvesAndSurvivesTheFile) {
  const Plan plan = Compiled(TinyRecipe(GetParam().layout));
  ASSERT_FALSE(plan.roles.empty());
  const std::string text = WritePlan(plan);
  const auto again = ReadPlan(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(WritePlan(*again), text);
  for (const Violation& violation : VerifyPlan(*again)) ADD_FAILURE() << violation.rule << ": " << violation.message;
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, CompileLayouts,
    ::testing::Values(NamedLayout{"one_rank", {}}, NamedLayout{"one_and_one", {1, 1, 1, 1, 1, false}},
                      NamedLayout{"tp2_tp2", {2, 2, 2, 2, 1, false}}, NamedLayout{"dp2_dp2", {2, 1, 2, 1, 1, false}},
                      NamedLayout{"ep2", {1, 1, 2, 1, 2, false}}, NamedLayout{"ep4", {1, 1, 4, 2, 4, false}},
                      NamedLayout{"fan_in", {4, 1, 2, 2, 1, false, 4}}, NamedLayout{"fan_out", {1, 1, 4, 1, 1, false}},
                      NamedLayout{"uneven", {3, 1, 4, 1, 1, false}}, NamedLayout{"colocated_4", {4, 2, 4, 1, 2, true}},
                      NamedLayout{"mock_8r_layout", {4, 2, 4, 2, 4, false}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace planwright
