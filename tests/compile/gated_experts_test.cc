// A language model whose experts are those of decoders: a softmax router, which has no bias, and gated experts. What
// the planner, the rules and the estimates make of them. The program of these tests has it in place of hybrid_lm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "planner/plan/statement/built_in_kinds.h"
#include "planner/plan/statement/parse_statement.h"
#include "planner/plan/statement/statement_problems.h"
#include "planner/predict/estimate/expert_rows.h"
#include "planner/predict/estimate/memory.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/verify/verify.h"
#include "tests/plan/statement/toy_kind.h"
#include "tests/predict/estimate/made_up_rates.h"
#include "tests/support/compiled.h"

namespace planwright {

std::span<const KindText> BuiltInKinds() {
  static const std::string encoder = testing::StatementText("radio_vit"), language = testing::GatedExpertsKind();
  static const KindText kinds[] = {{"radio_vit.model", encoder}, {"gated.model", language}};
  return kinds;
}

namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int64_t kHidden = 24, kExperts = 8, kTopK = 2, kSequence = 48;

constexpr char kRecipe[] = R"(
name: gated
cluster: {nodes: 1, gpus_per_node: RANKS, gpu: none}
models:
  lm:
    kind: hybrid_lm
    pattern: "E*E"
    hidden: 24
    vocabulary: 100
    attention: {heads: 4, head_dim: 6, kv_groups: 2}
    moe: {experts: 8, top_k: 2, ffn: FFN, shared_ffn: 12, imbalance: 1.0, aux_loss: 1.0e-3}
modules:
  language: {model: lm, placement: {first_rank: 0, ranks: RANKS}, parallel: {AXES}}
batch: {global_samples: 8, micro_samples: 2, sequence_length: 48}
budget: {train_samples: 32, learning_rate: {peak: 1.0e-3, min: 0.0, style: constant}}
data: {kind: mock, seed: 1, classes: 4, text_tokens: 4}
)";

Plan PlanOn(int ranks, const std::string& axes, int64_t ffn = 36) {
  Diagnostics problems;
  const std::optional<Recipe> read = ReadRecipeText(
      absl::StrReplaceAll(kRecipe, {{"RANKS", absl::StrCat(ranks)}, {"AXES", axes}, {"FFN", absl::StrCat(ffn)}}),
      "gated.yaml", problems);
  return testing::Compiled(read, problems);
}

std::vector<std::string> NamesOf(const Plan& plan) {
  std::vector<std::string> names;
  for (const Block& block : plan.blocks) {
    for (const Instruction& op : block.body) names.emplace_back(OpName(op.kind));
  }
  for (const Role& role : plan.roles) {
    for (const Instruction& op : role.step) names.emplace_back(OpName(op.kind));
  }
  return names;
}

std::vector<std::string> Rules(const Plan& plan) {
  std::vector<std::string> messages;
  for (const Violation& violation : VerifyPlan(plan))
    messages.push_back(absl::StrCat(violation.rule, ": ", violation.message));
  return messages;
}

TEST(GatedExperts, TheirStatementHasNoProblem) {
  const ParsedStatement parsed = ParseStatement("gated.model", testing::GatedExpertsKind());
  EXPECT_EQ(ProblemsText(parsed.problems), "");
  EXPECT_EQ(ProblemsText(StatementProblems(parsed.statement)), "");
}

// verify runs on every plan that is compiled. Without a bias nothing counts tokens, and nothing sums counts.
TEST(GatedExperts, ArePlannedOnEveryAxisAndCountNothing) {
  for (const auto& [ranks, axes] :
       std::vector<std::pair<int, std::string>>{{1, "tp: 1"},
                                                {2, "tp: 2, ep: 2"},
                                                {4, "tp: 2, ep: 2, expert_tp: 2"},
                                                {4, "tp: 2, ep: 2, dispatch: all_gather"},
                                                {4, "tp: 2, ep: 2, overlap_dispatch: true"},
                                                {6, "pp: 3, tp: 2, ep: 2, dispatch: all_gather"},
                                                {4, "cp: 2, ep: 4"},
                                                {8, "tp: 2, ep: 2, expert_tp: 4"}}) {
    SCOPED_TRACE(axes);
    const Plan plan = PlanOn(ranks, axes);
    const std::vector<std::string> names = NamesOf(plan);
    for (const char* op : {"route_softmax", "route_softmax_grad", "gated_experts", "gated_experts_grad"})
      EXPECT_THAT(names, Contains(op));
    EXPECT_THAT(names, Not(Contains("accumulate_counts")));
    EXPECT_THAT(names, Not(Contains("update_expert_bias")));
    for (const Accumulator& sum : plan.accumulators) EXPECT_NE(sum.name, "$expert_counts");
    for (const Role& role : plan.roles) {
      for (const Instruction& op : role.step) EXPECT_THAT(op.inputs, Not(Contains("$expert_counts")));
    }
  }
}

TEST(GatedExperts, CountsThatNothingReadsAreRefused) {
  const Plan sound = PlanOn(2, "tp: 2");
  EXPECT_THAT(Rules(sound), IsEmpty());
  const auto refused = [&](const std::function<void(Plan&)>& damage, const char* message) {
    Plan plan = sound;
    damage(plan);
    EXPECT_THAT(Rules(plan), Contains(HasSubstr(message)));
  };
  refused(
      [](Plan& plan) {
        plan.accumulators.push_back({"$expert_counts", DType::kInt64, 2 * kExperts, {}});
      },
      "V11: the plan has sums of a step: 3, not 2");
  refused(
      [](Plan& plan) {
        std::vector<Instruction>& step = plan.roles.at(0).step;
        Instruction update{.kind = OpKind::kUpdateExpertBias};
        update.attributes["module"] = std::string("language");
        step.insert(step.end() - 1, update);
      },
      "V7: role language.s0 runs update_expert_bias");
  refused(
      [](Plan& plan) {
        for (Block& block : plan.blocks) {
          if (block.name != "language.moe.forward") continue;
          const auto aux = std::find_if(block.body.begin(), block.body.end(),
                                        [](const Instruction& op) { return op.kind == OpKind::kAccumulate; });
          block.body.insert(aux, Instruction{.kind = OpKind::kAccumulateCounts, .inputs = {"counts"}});
        }
      },
      "V5: language.layers.0 adds to $expert_counts 1 times a microbatch, not never");
}

// Six products of a row with a matrix of hidden x ffn: three, each of a multiplication and an addition.
TEST(GatedExperts, HaveThreeProducts) {
  const Plan narrow = PlanOn(1, "tp: 1", 36), wide = PlanOn(1, "tp: 1", 48);
  for (size_t layer : {0, 2}) {
    EXPECT_EQ(wide.modules[0].layers[layer].forward_flops - narrow.modules[0].layers[layer].forward_flops,
              6 * kTopK * kHidden * (48 - 36));
  }
}

// At the fullest moment, the first backward of experts, both layers keep what the gate and up made, twice as wide as an
// expert. Rows are as even as the recipe says.
TEST(GatedExperts, MemoryHasWhatGateAndUpMade) {
  for (const char* dispatch : {"all_to_all", "all_gather"}) {
    SCOPED_TRACE(dispatch);
    const std::string axes = absl::StrCat("ep: 2, dispatch: ", dispatch);
    const Plan narrow = PlanOn(2, axes, 3600), wide = PlanOn(2, axes, 4800);
    const RoleEstimate before = EstimateMemory(narrow).at(0), after = EstimateMemory(wide).at(0);
    EXPECT_EQ(before.fullest, "gated_experts_grad in language.layers.2");
    EXPECT_EQ(after.fullest, before.fullest);
    constexpr int64_t kRows = 2 * kSequence * kTopK, kLayers = 2, kBytes = 2;  // bf16
    EXPECT_EQ(after.planned.activations - before.planned.activations, kLayers * kRows * 2 * (4800 - 3600) * kBytes);
    EXPECT_EQ(after.planned.parameters - before.planned.parameters,
              kLayers * kExperts / 2 * 3 * kHidden * (4800 - 3600) * kBytes);
  }
}

// Experts that take twice the mean of their rank, with a factor that was measured; other rows than the mean.
TEST(GatedExperts, TheirTimeIsThatOfTheFullestRankAndOfUnequalExperts) {
  const Plan plan = PlanOn(2, "ep: 2");
  const std::vector<OpKind> kinds = {OpKind::kGatedExperts, OpKind::kGatedExpertsGrad};
  ExpertRows rows;
  for (const char* frame : {"language.layers.0", "language.layers.2"})
    rows.layers.push_back({.frame = frame, .fullest = 1.5, .fullest_expert = 2, .ranks = {1.5, 0.5}});
  const Rates even(testing::OnlyKinds(kinds, 1));
  EXPECT_NEAR(TimeStep(plan, even, &rows).length / TimeStep(plan, even).length, 1.5, 1e-9);
  const MeasuredTime factor{1.25, 1.25, 1.25, 1};
  const DeviceProfile profile{.gpu = "none", .skew = {{kinds[0], 2, factor}, {kinds[1], 2, factor}}};
  const Rates measured(testing::OnlyKinds(kinds, 1), profile, 2);
  EXPECT_NEAR(TimeStep(plan, measured, &rows).length / TimeStep(plan, measured).length, 1.5 * 1.25, 1e-9);
}

}  // namespace
}  // namespace planwright
