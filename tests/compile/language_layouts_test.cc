// Whole compiles of language models with cp, expert_tp and pp, with packed documents, frozen and recomputed. Each plan
// passes its proof, also after it was written and read. What the executor lacks for a plan is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "planner/compile/compile.h"
#include "planner/plan/plan_json.h"
#include "planner/verify/verify.h"
#include "tests/support/compiled.h"
#include "tests/support/recipes.h"

namespace planwright {
namespace {

struct Case {
  std::string name;
  int ranks = 1, tp = 1, cp = 1, pp = 1, ep = 1, expert_tp = 1;
  bool documents = false, frozen = false;
  std::string dispatch = "auto";
  std::vector<std::string> recompute = {};
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

// The tiny model with four groups of Mamba, so that tp x cp may be 4, fed by one encoder rank.
Recipe RecipeOf(const Case& c) {
  Recipe recipe = testing::TinyRecipe({1, 1, c.ranks, c.tp, c.ep, false});
  ModuleRecipe& language = recipe.modules[1];
  language.cp = int64_t{c.cp};
  language.pp = int64_t{c.pp};
  language.expert_tp = int64_t{c.expert_tp};
  language.dispatch = c.dispatch;
  if (c.frozen) language.train_backbone = std::string("frozen");
  for (const std::string& kind : c.recompute) language.recompute.push_back(kind);
  Give(language.model, {{"mamba.groups", 4}});
  recipe.data.packed_documents = c.documents;
  return recipe;
}

Plan Compile(const Case& c) { return testing::Compiled(RecipeOf(c)); }

class LanguageLayouts : public ::testing::TestWithParam<Case> {};

TEST_P(LanguageLayouts, ProvesAndSurvivesTheFile) {
  const Plan plan = Compile(GetParam());
  ASSERT_FALSE(plan.roles.empty());
  const std::string text = WritePlan(plan);
  const auto again = ReadPlan(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(WritePlan(*again), text);
  for (const Violation& violation : VerifyPlan(*again)) ADD_FAILURE() << violation.rule << ": " << violation.message;
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, LanguageLayouts,
    ::testing::Values(Case{.name = "cp2", .ranks = 2, .cp = 2}, Case{.name = "cp4", .ranks = 4, .cp = 4},
                      Case{.name = "tp2_cp2", .ranks = 4, .tp = 2, .cp = 2},
                      Case{.name = "tp2_cp2_dp2_ep4", .ranks = 8, .tp = 2, .cp = 2, .ep = 4},
                      Case{.name = "expert_tp2", .ranks = 2, .expert_tp = 2},
                      Case{.name = "ep2_expert_tp2", .ranks = 4, .ep = 2, .expert_tp = 2},
                      Case{.name = "gathered", .ranks = 4, .tp = 2, .ep = 4, .dispatch = "all_gather"},
                      Case{.name = "gathered_everything",
                           .ranks = 8,
                           .tp = 2,
                           .cp = 2,
                           .ep = 4,
                           .expert_tp = 2,
                           .documents = true,
                           .dispatch = "all_gather",
                           .recompute = {"moe"}},
                      Case{.name = "gathered_frozen", .ranks = 2, .ep = 2, .frozen = true, .dispatch = "all_gather"},
                      Case{.name = "tp2_ep2_expert_tp2", .ranks = 8, .tp = 2, .ep = 2, .expert_tp = 2},
                      Case{.name = "everything_cut", .ranks = 16, .tp = 2, .cp = 2, .pp = 2, .ep = 2, .expert_tp = 2},
                      Case{.name = "pp2_cp2_documents", .ranks = 4, .cp = 2, .pp = 2, .documents = true},
                      Case{.name = "pp4_documents", .ranks = 4, .pp = 4, .documents = true},
                      Case{.name = "frozen", .frozen = true},
                      Case{.name = "frozen_tp2_pp2", .ranks = 4, .tp = 2, .pp = 2, .frozen = true},
                      Case{.name = "recomputed", .recompute = {"full"}},
                      Case{.name = "recomputed_moe_tp2_ep2", .ranks = 4, .tp = 2, .ep = 2, .recompute = {"moe"}},
                      Case{.name = "recomputed_everything_cut",
                           .ranks = 16,
                           .tp = 2,
                           .cp = 2,
                           .pp = 2,
                           .ep = 2,
                           .expert_tp = 2,
                           .documents = true,
                           .recompute = {"full"}},
                      Case{.name = "frozen_recomputed", .frozen = true, .recompute = {"mamba", "attention"}}),
    [](const auto& info) { return info.param.name; });

int Count(const Block& block, const std::function<bool(const Instruction&)>& wanted) {
  return static_cast<int>(std::count_if(block.body.begin(), block.body.end(), wanted));
}

TEST(Recompute, IsCalledOnTheFrameBeforeItsBackward) {
  const Plan plan = Compile({.name = "", .recompute = {"mamba", "moe"}});
  const Block& backward = *plan.FindBlock("language.s0.backward");
  for (const char* kind : {"mamba", "moe", "attention"}) {
    const std::string layer = std::string("language.") + kind;
    const bool again = std::string(kind) != "attention";
    EXPECT_EQ(plan.FindBlock(layer + ".recompute") != nullptr, again) << layer;
    for (size_t i = 0; i < backward.body.size(); ++i) {
      if (backward.body[i].block != layer + ".backward") continue;
      ASSERT_GT(i, 0u);
      EXPECT_EQ(backward.body[i - 1].block == layer + ".recompute", again) << layer;
      EXPECT_EQ(backward.body[i - 1].frame == backward.body[i].frame, again) << layer;
    }
    const Block& forward = *plan.FindBlock(layer + ".forward");
    EXPECT_EQ(forward.saved == std::vector<std::string>{"x"}, again) << layer;
  }
  // Counts and sums see a token once.
  const auto counts = [](const Instruction& i) { return OpClassOf(i.kind) == OpClass::kState; };
  EXPECT_EQ(Count(*plan.FindBlock("language.moe.forward"), counts), 3);
  EXPECT_EQ(Count(*plan.FindBlock("language.moe.recompute"), counts), 0);
}

TEST(Frozen, ALanguageModelHandsGradientsOnAndStepsNothing) {
  const Plan plan = Compile({.name = "", .frozen = true});
  EXPECT_NE(plan.FindBlock("language.s0.backward"), nullptr);
  EXPECT_TRUE(plan.FindModule("language")->buckets.empty());
  const auto role =
      std::find_if(plan.roles.begin(), plan.roles.end(), [](const Role& r) { return r.name == "language.s0"; });
  ASSERT_NE(role, plan.roles.end());
  for (const Instruction& i : role->step) {
    EXPECT_NE(i.kind, OpKind::kAdamW);
    EXPECT_NE(i.kind, OpKind::kUpdateExpertBias);
  }
}

}  // namespace
}  // namespace planwright
