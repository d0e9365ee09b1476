// How the memory of a node is divided among the copies of its ranks (docs/memory.md#host-memory).
#include "planner/predict/estimate/host_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/compile/compile.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/verify/rules.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using ::testing::HasSubstr;

// The language model of 20 layers with 64 experts on two GPUs of a node, 38 GB of state each.
std::optional<Plan> Two(const std::string& host_memory, Diagnostics& diagnostics,
                        std::vector<std::string> overrides = {"checkpoint.every_steps=100"}) {
  overrides.insert(overrides.end(),
                   {"cluster.gpus_per_node=2", "modules.language.placement.ranks=2", "modules.language.parallel.ep=2"});
  if (!host_memory.empty()) overrides.push_back("cluster.host_memory=" + host_memory);
  const auto recipe = ReadRecipe(InSource("recipes/nemotron_moe_lm_20l_1g.yaml"), overrides, diagnostics);
  return recipe ? CompileRecipe(*recipe, diagnostics) : std::nullopt;
}

Plan Two(const std::string& host_memory) {
  Diagnostics diagnostics;
  std::optional<Plan> plan = Two(host_memory, diagnostics);
  EXPECT_TRUE(plan.has_value()) << (diagnostics.sorted().empty() ? "" : diagnostics.sorted().front().message);
  return plan ? *std::move(plan) : Plan();
}

TEST(HostMemory, CopiesAreWholeWhereTheyFit) {
  for (const char* given : {"", "200", "90"}) EXPECT_EQ(Two(given).checkpoint.copy_bytes, 0) << given;
  const HostMemory host = EstimateHostMemory(Two("")).front();
  // 76.9 GB of masters and moments on two ranks, and the expert bias.
  EXPECT_NEAR(static_cast<double>(host.checkpoint), 38.5e9, 0.3e9);
  EXPECT_EQ(host.copies(0), host.checkpoint);
  EXPECT_EQ(host.copies(1'000'000'000), 1'000'000'000);
  EXPECT_EQ(host.copies(1'000'000'000'000), host.checkpoint);
}

TEST(HostMemory, IsSharedWhereTheyDoNotFit) {
  const Plan plan = Two("48");
  const HostMemory host = EstimateHostMemory(plan).front();
  EXPECT_EQ(plan.checkpoint.copy_bytes, (48'000'000'000 - 2 * host.besides) / 2);
  EXPECT_TRUE(VerifyHostMemory(plan).empty());
}

TEST(HostMemory, IsNotPlannedWithoutCheckpoints) {
  Diagnostics diagnostics;
  const std::optional<Plan> plan = Two("48", diagnostics, {});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->checkpoint.copy_bytes, 0);
  EXPECT_EQ(EstimateHostMemory(*plan).front().checkpoint, 0);
}

// Ranks that write little get what they need, and the others share the rest: encoder and language model of one node.
TEST(HostMemory, GoesToThoseThatNeedIt) {
  Diagnostics diagnostics;
  const auto recipe =
      ReadRecipe(InSource("recipes/nemotron_moe_vlm_20l_mock_8r.yaml"),
                 {"cluster.gpu=h200_sxm", "cluster.host_memory=80", "checkpoint.every_steps=100"}, diagnostics);
  const auto plan = CompileRecipe(*recipe, diagnostics);
  ASSERT_TRUE(plan.has_value());
  int64_t used = 0;
  bool whole = false;
  for (const HostMemory& host : EstimateHostMemory(*plan)) {
    const auto ranks = static_cast<int64_t>(Expand(host.role->ranks).size());
    used += ranks * (host.besides + host.copies(plan->checkpoint.copy_bytes));
    whole = whole || host.checkpoint < plan->checkpoint.copy_bytes;
  }
  EXPECT_TRUE(whole) << "the encoder's ranks write less than the share";
  EXPECT_LE(used, 80'000'000'000);
  EXPECT_GT(used, 79'990'000'000);
}

TEST(HostMemory, TooLittleIsRefusedAtItsLine) {
  Diagnostics diagnostics;
  EXPECT_FALSE(Two("8.001", diagnostics).has_value());
  ASSERT_EQ(diagnostics.sorted().size(), 1u);
  const Diagnostic problem = diagnostics.sorted().front();
  EXPECT_EQ(problem.kind, DiagnosticKind::kHostTooSmall);
  EXPECT_EQ(*problem.where.file, "<command line>");
  EXPECT_THAT(problem.message, HasSubstr("cluster.host_memory gives 8.001 GB"));
  const size_t at = problem.help.find("at least ");
  ASSERT_NE(at, std::string::npos);
  // What the help says is enough.
  Diagnostics mended;
  const std::string enough = problem.help.substr(at + 9, problem.help.find(" GB") - at - 9);
  EXPECT_TRUE(Two(enough, mended).has_value()) << enough;
}

TEST(HostMemory, V10RefusesAPlanThatNeedsMore) {
  Plan plan = Two("48");
  plan.checkpoint.copy_bytes += 1'000'000;
  ASSERT_EQ(VerifyHostMemory(plan).size(), 1u);
  EXPECT_EQ(VerifyHostMemory(plan).front().rule, "V10");
  plan.checkpoint.copy_bytes = 0;
  EXPECT_EQ(VerifyHostMemory(plan).size(), 1u) << "whole copies do not fit";
  plan = Two("");
  plan.checkpoint.copy_bytes = 1;
  ASSERT_EQ(VerifyHostMemory(plan).size(), 1u);
  EXPECT_THAT(VerifyHostMemory(plan).front().message, HasSubstr("go through 1 bytes"));
}

}  // namespace
}  // namespace planwright
