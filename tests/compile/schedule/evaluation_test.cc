// The lists of an evaluation on every layout: a round is the forwards of a step without what a step needs them for, and
// the training of a plan is the same with an evaluation and without. That such plans are sound, the rules have proved
// when they were compiled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/plan/plan_json.h"
#include "planner/views/diff/diff.h"
#include "tests/numerics/layouts.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using testing::CompiledFile;
using testing::EncoderOn;
using testing::Join;
using testing::LanguageOn;
using testing::Parallel;

struct Case {
  const char* name;
  std::vector<std::string> overrides;
  const char* recipe = testing::kTinyRecipe;
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

std::vector<Case> Cases() {
  const std::vector<std::string> nodes = {"cluster.nodes=2", "cluster.gpus_per_node=8"},
                                 wide = {"models.hybrid_moe_tiny.mamba.groups=4",
                                         "models.hybrid_moe_tiny.attention.kv_groups=4"};
  return {
      {"one_rank", {}},
      {"text_alone", {}, testing::kTextRecipe},
      {"data_parallel", Join(nodes, EncoderOn(2, 1), LanguageOn(2, 4, 1, 1))},
      {"tensor_and_expert_parallel", Join(nodes, EncoderOn(2, 2), LanguageOn(2, 4, 2, 4))},
      {"pipeline", Join(nodes, Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 1)), Parallel("language", {{"pp", 2}}))},
      {"pipelines_of_both", Join(Join(nodes, EncoderOn(4, 2), LanguageOn(4, 4, 1, 2)),
                                 Parallel("radio_encoder", {{"pp", 2}}), Parallel("language", {{"pp", 2}}))},
      {"context_parallel",
       Join(Join(nodes, wide), Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 4)), Parallel("language", {{"cp", 2}}))},
      {"colocated", Join(nodes, EncoderOn(4, 1), LanguageOn(0, 4, 2, 4))},
      {"uneven", Join(nodes, EncoderOn(3, 1), LanguageOn(3, 2, 1, 1))},
      {"frozen_encoder", Join(nodes, Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 1)),
                              {"modules.radio_encoder.train={backbone: frozen, projection: frozen}"})},
      {"recomputed", {"modules.language.recompute=[full]", "modules.radio_encoder.recompute=[block]"}},
      {"two_encoders", {}, "recipes/nemotron_moe_two_encoders_tiny.yaml"},
  };
}

const std::string kSets =
    "evaluation={every_samples: 16, sets: [{name: held_out, samples: 21, seed: 99}, {name: other, samples: 8, seed: "
    "98}]}";

class Evaluation : public ::testing::TestWithParam<Case> {
 protected:
  static Plan Make(std::vector<std::string> more = {}) {
    return CompiledFile(InSource(GetParam().recipe), Join(GetParam().overrides, more));
  }
};

std::set<OpKind> KindsIn(const std::vector<Instruction>& list) {
  std::set<OpKind> kinds;
  for (const Instruction& op : list) kinds.insert(op.kind);
  return kinds;
}

TEST_P(Evaluation, ChangesNothingOfTheTraining) {
  const Plan without = Make();
  Plan with = Make({kSets});
  ASSERT_FALSE(with.roles.empty());
  EXPECT_TRUE(with.roles[0].evaluate.size() > 1);
  // What a plan with an evaluation has more is all there is.
  with.evaluation = {};
  std::erase_if(with.blocks, [](const Block& block) { return absl::EndsWith(block.name, ".evaluate"); });
  std::erase_if(with.accumulators, [](const Accumulator& sum) { return absl::StartsWith(sum.name, "$evaluated_"); });
  for (Role& role : with.roles) role.evaluate.clear(), role.score.clear();
  EXPECT_EQ(PlanDigest(with), PlanDigest(without));
}

TEST_P(Evaluation, WritesNothingThatTrainingReads) {
  const Plan plan = Make({kSets});
  int blocks = 0;
  for (const Block& block : plan.blocks) {
    if (!absl::EndsWith(block.name, ".evaluate")) continue;
    ++blocks;
    EXPECT_TRUE(block.saved.empty() && block.takes.empty() && block.probes.empty()) << block.name;
    for (const Instruction& op : block.body) {
      EXPECT_TRUE(op.gradients.empty()) << block.name;
      EXPECT_NE(OpClassOf(op.kind), OpClass::kState) << block.name << " " << OpName(op.kind);
    }
  }
  EXPECT_GT(blocks, 3);
  for (const Role& role : plan.roles) {
    const std::set<OpKind> kinds = KindsIn(role.evaluate);
    EXPECT_FALSE(kinds.contains(OpKind::kAccumulate) || kinds.contains(OpKind::kBeginStep)) << role.name;
    EXPECT_TRUE(KindsIn(role.score).contains(OpKind::kLogEvaluation)) << role.name;
    EXPECT_EQ(KindsIn(role.score).contains(OpKind::kAllReduce), plan.world_size > 1) << role.name;
  }
}

// What passes in a round over bridges and between stages is what passes forward in microbatch 0 of a step.
TEST_P(Evaluation, PassesWhatAForwardPasses) {
  const Plan plan = Make({kSets});
  const auto passed = [](const std::vector<Instruction>& list, const std::string& of) {
    std::multiset<std::string> parts;
    for (const Instruction& op : list) {
      for (const ExchangePart& part : op.parts) {
        if (part.backward || !absl::StrContains(part.value, of)) continue;
        parts.insert(absl::StrCat(part.bridge, part.group, part.shift, part.send, part.value, part.sizes));
      }
      if (op.kind == OpKind::kBroadcast && absl::StrContains(op.outputs[0].name, ".m0.") &&
          !absl::StrContains(op.outputs[0].name, "drows"))
        parts.insert(absl::StrCat("broadcast ", op.outputs[0].name));
    }
    return parts;
  };
  for (const Role& role : plan.roles) EXPECT_EQ(passed(role.evaluate, ""), passed(role.step, ".m0.")) << role.name;
}

TEST_P(Evaluation, HasRoundsForAllSamples) {
  const Plan plan = Make({kSets});
  ASSERT_EQ(plan.evaluation.sets.size(), 2U);
  const int64_t block = plan.budget.block_samples;
  EXPECT_EQ(plan.evaluation.sets[0].rounds, (21 + block - 1) / block);
  EXPECT_EQ(plan.evaluation.sets[1].rounds, (8 + block - 1) / block);
  EXPECT_EQ(plan.evaluation.parts(), 2);
  EXPECT_EQ(plan.evaluation.sets[1].data.seed, 98);
  EXPECT_EQ(plan.FindAccumulator("$evaluated_losses")->elements, 2);
}

TEST_P(Evaluation, KeepsTheCurve) {
  const PlanDiff diff = DiffPlans(Make(), Make({kSets}));
  EXPECT_FALSE(diff.changes.empty());
  EXPECT_FALSE(diff.may_change_loss());
  for (const PlanChange& change : diff.changes) EXPECT_FALSE(change.may_change_loss) << change.path;
}

INSTANTIATE_TEST_SUITE_P(Layouts, Evaluation, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return std::string(info.param.name); });

// Losses by source: of the parts of a set, and of the steps.
TEST(EvaluationBySource, AddsUpStepsToo) {
  const std::vector<std::string> overrides = {
      "data={kind: sources, max_patches: 16, sources: [{kind: webdataset, shards: /gone/a.tar}, {kind: webdataset, "
      "shards: /gone/b.tar}, {kind: webdataset, shards: /gone/c.tar}]}",
      "models.hybrid_moe_tiny.vocabulary=264"};
  const std::string sets =
      "evaluation={every_samples: 16, sets: [{name: held_out, samples: 7, sources: [{name: x, kind: webdataset, "
      "shards: "
      "/gone/d.tar}, {name: y, kind: webdataset, weight: 3, shards: /gone/e.tar}]}, {name: other, samples: 1, sources: "
      "[{kind: webdataset, shards: /gone/f.tar}]}]}";
  const std::string recipe = InSource(testing::kTinyRecipe);
  const Plan without = CompiledFile(recipe, overrides), with = CompiledFile(recipe, Join(overrides, {sets}));
  EXPECT_FALSE(without.sums_by_source());
  ASSERT_TRUE(with.sums_by_source());
  EXPECT_EQ(with.FindAccumulator("$source_losses")->elements, 3);
  EXPECT_EQ(with.FindAccumulator("$evaluated_tokens")->elements, 3);  // x and y of one set, one of the other
  EXPECT_EQ(with.evaluation.sets[0].parts(), 2);
  EXPECT_EQ(with.evaluation.sets[0].data.sources[1].weight, 3);
  EXPECT_EQ(with.evaluation.sets[0].data.index, "data_index/evaluation/held_out");
  const auto adds = [](const std::vector<Instruction>& list, const std::string& into) {
    return std::count_if(list.begin(), list.end(), [&](const Instruction& op) {
      return op.kind == OpKind::kAccumulateRows && op.text("into") == into;
    });
  };
  EXPECT_EQ(adds(with.roles[0].step, "$source_losses"), with.budget.microbatches);
  EXPECT_EQ(adds(with.roles[0].step, "$source_tokens"), with.budget.microbatches);
  EXPECT_EQ(adds(with.roles[0].evaluate, "$evaluated_losses"), 1);
  const PlanDiff diff = DiffPlans(without, with);
  EXPECT_FALSE(diff.may_change_loss());
}

}  // namespace
}  // namespace planwright
