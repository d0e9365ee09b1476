// The longest recipes that are accepted, counted: each compiles to a plan that can be read again, with room to spare. How long that takes is
// measured by ./dev bench.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "planner/plan/limits.h"
#include "planner/plan/plan_json.h"
#include "planner/verify/verify.h"
#include "tests/support/compiled.h"
#include "tests/support/longest_recipes.h"

namespace planwright {
namespace {

using nlohmann::json;
using testing::LongShape;

const std::string kTiny = PLANWRIGHT_SOURCE_DIR "/recipes/nemotron_moe_vlm_tiny.yaml";

int64_t ValuesIn(const json& value) {
  int64_t values = 1;
  for (const json& inner : value) values += inner.is_structured() ? ValuesIn(inner) : 1;
  return values;
}

// What programs come to with the blocks that they call.
struct Work {
  int64_t instructions = 0, calls = 0;
};
class Unrolled {
 public:
  explicit Unrolled(const Plan& plan) {
    for (const Block& block : plan.blocks) blocks_[block.name] = &block;
  }
  Work Of(const std::vector<Instruction>& list) {
    Work all = {.instructions = static_cast<int64_t>(list.size())};
    for (const Instruction& op : list) {
      if (op.kind != OpKind::kCall) continue;
      const Work inner = Of(op.block);
      all.instructions += inner.instructions;
      all.calls += 1 + inner.calls;
    }
    return all;
  }

 private:
  Work Of(const std::string& block) {
    if (auto known = known_.find(block); known != known_.end()) return known->second;
    return known_[block] = Of(blocks_.at(block)->body);
  }
  std::map<std::string, const Block*> blocks_;
  std::map<std::string, Work> known_;
};

Work WorkOf(const Plan& plan) {
  Work all;
  Unrolled unrolled(plan);
  const auto add = [&](const std::vector<Instruction>& list) {
    const Work work = unrolled.Of(list);
    all.instructions += work.instructions;
    all.calls += work.calls;
  };
  for (const Block& block : plan.blocks) add(block.body);
  for (const Role& role : plan.roles) {
    for (const auto* list : {&role.setup, &role.step, &role.teardown}) add(*list);
  }
  return all;
}

class Limits : public ::testing::TestWithParam<LongShape> {};

TEST_P(Limits, TheLongestPlanCanBeRead) {
  const testing::LongRecipe recipe = testing::MakeLong(GetParam());
  const Plan plan = testing::CompiledFile(kTiny, recipe.overrides);
  ASSERT_EQ(plan.budget.microbatches, GetParam().microbatches());
  const std::string text = WritePlan(plan);
  const Work work = WorkOf(plan);
  const int64_t values = ValuesIn(json::parse(text));
  std::cout << recipe.name << ": " << plan.budget.microbatches << " microbatches, " << text.size() << " bytes, " << values << " values, "
            << work.instructions << " instructions, " << work.calls << " calls\n";
  EXPECT_LT(text.size(), kLargestPlan * 9 / 10);
  EXPECT_LT(values, static_cast<int64_t>(kMostPlanValues) * 9 / 10);
  EXPECT_LT(work.instructions, kMostInstructions * 9 / 10);
  EXPECT_LT(work.calls, kMostCalls);
  const auto again = ReadPlan(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(VerifyPlan(*again).empty());
}

TEST_P(Limits, OneMicrobatchMoreIsRefused) {
  LongShape longer = GetParam();
  longer.more_microbatches = 1;
  Diagnostics problems;
  const auto recipe = ReadRecipe(kTiny, testing::MakeLong(longer).overrides, problems);
  ASSERT_TRUE(recipe);
  EXPECT_FALSE(CompileRecipe(*recipe, problems));
  std::string errors;
  for (const Diagnostic& problem : problems.sorted()) {
    if (problem.severity == Severity::kError) errors += problem.message + "\n";
  }
  EXPECT_NE(errors.find("is too long to plan"), std::string::npos) << errors;
}

std::string NameOf(const ::testing::TestParamInfo<LongShape>& info) {
  std::string name = info.param.name;
  std::erase(name, ',');
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Longest, Limits, ::testing::ValuesIn(testing::LongestShapes()), NameOf);

// What is trained has room: the 33-node layout may take more than 500 microbatches a step.
TEST(Limits, ShippedRecipesHaveRoom) {
  const Plan plan = testing::CompiledFile(PLANWRIGHT_SOURCE_DIR "/recipes/nemotron_moe_vlm_54l_33n.yaml",
                                          {"batch.global_samples=65536", "budget.learning_rate.warmup_samples=0"});
  EXPECT_EQ(plan.budget.microbatches, 512);
}

}  // namespace
}  // namespace planwright
