// Each rule refuses plans that break it: a compiled plan passes, and each damaged plan is refused by the rule that is
// named beside the damage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "planner/base/text/limits.h"
#include "planner/compile/compile.h"
#include "planner/verify/rules.h"
#include "tests/support/recipes.h"

namespace planwright {
namespace {

using testing::TinyLayout;
using testing::TinyRecipe;

// Encoder with tp2 dp1 on ranks 0 and 1, language model with tp2 dp2 ep4 on ranks 2 to 5. It has a bridge with leaders
// and siblings.
const Plan& Sound() {
  static const Plan plan = [] {
    Diagnostics diagnostics;
    return *CompileRecipe(TinyRecipe({2, 2, 4, 2, 4, false}), diagnostics);
  }();
  return plan;
}

Block& BlockNamed(Plan& plan, const std::string& name) {
  for (Block& block : plan.blocks) {
    if (block.name == name) return block;
  }
  throw std::runtime_error("no block " + name);
}

Instruction& First(std::vector<Instruction>& body, OpKind kind) {
  for (Instruction& instruction : body) {
    if (instruction.kind == kind) return instruction;
  }
  throw std::runtime_error("no " + std::string(OpName(kind)));
}

auto Is(OpKind kind) {
  return [kind](const Instruction& instruction) { return instruction.kind == kind; };
}

// `input`: of the instruction; "": any.
void Drop(std::vector<Instruction>& body, OpKind kind, const std::string& input = "") {
  for (auto it = body.begin(); it != body.end(); ++it) {
    if (it->kind == kind && (input.empty() || it->inputs.at(0) == input)) {
      body.erase(it);
      return;
    }
  }
  throw std::runtime_error("no " + std::string(OpName(kind)));
}

// Makes the values of an instruction twice, under names that nothing reads.
void Repeat(std::vector<Instruction>& body, OpKind kind) {
  Instruction again = First(body, kind);
  again.frees.clear();
  for (Output& output : again.outputs) again.frees.push_back(output.name += "_again");
  body.insert(std::find_if(body.begin(), body.end(), Is(kind)), again);
}

Symbol& SymbolNamed(Plan& plan, const std::string& name) {
  for (Symbol& symbol : plan.symbols) {
    if (symbol.name == name) return symbol;
  }
  throw std::runtime_error("no size " + name);
}

struct Damage {
  const char* name;
  const char* rule;
  std::function<void(Plan&)> inflict;
  friend void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }
};

std::vector<Damage> Damages() {
  return {
      // Placement.
      {"rank_in_two_roles", "V1",
       [](Plan& p) {
         p.roles[0].ranks.push_back({5, 1, 1});
       }},
      {"rank_in_no_role", "V1", [](Plan& p) { p.roles.back().ranks.pop_back(); }},
      {"role_on_anothers_rank", "V1", [](Plan& p) { std::swap(p.roles[0].ranks, p.roles[2].ranks); }},
      {"world_with_a_gap", "V1", [](Plan& p) { p.modules[1].grid.first_rank = 3; }},
      {"views_of_two_sizes", "V1", [](Plan& p) { p.modules[1].grid.ep = 2; }},
      {"overlapping_modules", "V1", [](Plan& p) { p.modules[1].grid.first_rank = 1; }},
      {"axis_of_no_size", "V1", [](Plan& p) { p.modules[0].grid.tp = 0; }},
      // Groups.
      {"group_twice", "V2", [](Plan& p) { p.groups.push_back(p.groups.back()); }},
      {"group_out_of_order", "V2", [](Plan& p) { std::swap(p.groups.front(), p.groups.back()); }},
      {"group_of_no_module", "V2", [](Plan& p) { p.groups[1].module = "nobody"; }},
      {"bridge_members_unordered", "V2",
       [](Plan& p) { std::swap(p.groups.back().ranks[0], p.groups.back().ranks[1]); }},
      {"bridge_member_twice", "V2", [](Plan& p) { p.groups.back().ranks[1] = p.groups.back().ranks[0]; }},
      {"world_with_a_rank_list", "V2", [](Plan& p) { p.groups.front().ranks.push_back(0); }},
      {"axis_of_another_view", "V2", [](Plan& p) { p.groups[1].axes = {Axis::kEp}; }},
      // Progress: what one role leaves out, changes or reorders.
      {"dropped_world_reduce", "V3", [](Plan& p) { Drop(p.roles[0].step, OpKind::kAllReduce); }},
      {"dropped_exchange", "V3",
       [](Plan& p) {
         // Drops the last exchange that only sends. No value is missing then, so V3 and not V4 must notice. The
         // instruction before it frees its values.
         for (auto it = p.roles[2].step.rbegin(); it != p.roles[2].step.rend(); ++it) {
           if (it->kind == OpKind::kExchange && it->outputs.empty()) {
             for (const std::string& name : it->frees) std::next(it)->frees.push_back(name);
             p.roles[2].step.erase(std::next(it).base());
             return;
           }
         }
       }},
      {"another_shape", "V3",
       [](Plan& p) { First(p.roles[1].step, OpKind::kAllReduce).outputs[0].type.dims[0] = int64_t{77}; }},
      {"another_dtype", "V3",
       [](Plan& p) { First(p.roles[1].step, OpKind::kAllReduce).outputs[0].type.dtype = DType::kFp32; }},
      {"swapped_collectives", "V3",
       [](Plan& p) {
         std::vector<size_t> reduces;
         for (size_t i = 0; i < p.roles[0].step.size(); ++i) {
           if (p.roles[0].step[i].group == "world") reduces.push_back(i);
         }
         std::swap(p.roles[0].step[reduces.at(0)], p.roles[0].step[reduces.at(1)]);
       }},
      {"group_of_others", "V3", [](Plan& p) { First(p.roles[0].step, OpKind::kAllReduce).group = "language.tp"; }},
      {"unknown_group", "V3", [](Plan& p) { First(p.roles[0].step, OpKind::kAllReduce).group = "nowhere"; }},
      {"transfer_nobody_receives", "V3", [](Plan& p) { p.bridges[0].forward[0].to_rank = 3; }},
      {"sent_the_wrong_way", "V3",
       [](Plan& p) {
         for (Instruction& op : p.roles[0].step) {
           if (op.kind == OpKind::kExchange) op.parts[0].backward = true;
         }
       }},
      // Values: lifetimes, names, layouts, sizes, calls, memory and types.
      {"freed_early", "V4",
       [](Plan& p) {
         std::vector<Instruction>& body = BlockNamed(p, "language.mamba.forward").body;
         body[2].frees.push_back("zxbcdt");
       }},
      {"freed_twice", "V4",
       [](Plan& p) {
         for (Instruction& op : BlockNamed(p, "language.mamba.backward").body) {
           if (!op.frees.empty()) return op.frees.push_back(op.frees.front());
         }
       }},
      {"never_freed", "V4",
       [](Plan& p) {
         for (Instruction& op : BlockNamed(p, "language.mamba.backward").body) op.frees.clear();
       }},
      {"undefined_value", "V4", [](Plan& p) { BlockNamed(p, "language.moe.forward").body[1].inputs[0] = "ghost"; }},
      {"defined_twice", "V4", [](Plan& p) { BlockNamed(p, "language.moe.forward").body[1].outputs[0].name = "n"; }},
      {"missing_tp_gather", "V4",
       [](Plan& p) {
         std::vector<Instruction>& body = BlockNamed(p, "language.attention.forward").body;
         const std::string output = First(body, OpKind::kAllGather).outputs[0].name,
                           input = First(body, OpKind::kAllGather).inputs[0];
         Drop(body, OpKind::kAllGather);
         for (Instruction& op : body) std::replace(op.inputs.begin(), op.inputs.end(), output, input);
       }},
      {"gather_along_another_dim", "V4",
       [](Plan& p) {
         First(BlockNamed(p, "language.attention.forward").body, OpKind::kAllGather).attributes["dim"] = int64_t{2};
       }},
      {"gather_without_a_dim", "V4",
       [](Plan& p) {
         First(BlockNamed(p, "language.attention.forward").body, OpKind::kAllGather).attributes.erase("dim");
       }},
      {"partial_sum_left", "V4",
       [](Plan& p) {
         std::vector<Instruction>& body = BlockNamed(p, "language.mamba.forward").body;
         First(body, OpKind::kReduceScatter).kind = OpKind::kLocalSlice;
       }},
      {"size_without_a_maximum", "V4", [](Plan& p) { p.symbols.clear(); }},
      {"saved_value_never_taken", "V4", [](Plan& p) { BlockNamed(p, "language.attention.backward").takes.pop_back(); }},
      {"backward_without_forward", "V4",
       [](Plan& p) {
         for (Instruction& op : BlockNamed(p, "language.s0.backward").body) {
           if (op.frame == "language.layers.0") op.frame = "language.layers.9";
         }
       }},
      {"unknown_block", "V4", [](Plan& p) { First(p.roles[0].step, OpKind::kCall).block = "nothing.forward"; }},
      {"broadcast_of_another_shape", "V4",
       [](Plan& p) {
         for (Role& role : p.roles) {
           for (Instruction& op : role.step) {
             if (op.kind == OpKind::kExchange && !op.outputs.empty()) op.outputs[0].type.dims[0] = int64_t{77};
           }
         }
       }},
      {"row_counts_on_the_device", "V4",
       [](Plan& p) { First(p.roles.back().step, OpKind::kReadTokens).outputs[4].type.host = false; }},
      {"loss_tokens_as_reals", "V4",
       [](Plan& p) { First(p.roles.back().step, OpKind::kReadTokens).outputs[3].type.dtype = DType::kFp32; }},
      {"shift_for_scale", "V4",
       [](Plan& p) {
         auto& parameters = First(BlockNamed(p, "radio_encoder.layer.forward").body, OpKind::kLayerNorm).parameters;
         std::swap(parameters[0], parameters[1]);
       }},
      {"shift_for_scale_backward", "V4",
       [](Plan& p) {
         First(BlockNamed(p, "radio_encoder.layer.backward").body, OpKind::kLayerNormGrad).parameters[0] = "norm2_bias";
       }},
      // Slots, streams and meanings that fit by type and are still wrong.
      {"another_norm", "V5",
       [](Plan& p) {
         First(BlockNamed(p, "radio_encoder.layer.forward").body, OpKind::kLayerNorm).parameters = {"norm2_weight",
                                                                                                    "norm2_bias"};
       }},
      {"stream_of_no_communicator", "V3",
       [](Plan& p) { First(BlockNamed(p, "language.attention.forward").body, OpKind::kAllGather).stream = "beside"; }},
      {"call_on_a_stream", "V4", [](Plan& p) { First(p.roles.back().step, OpKind::kCall).stream = "beside"; }},
      {"labels_for_tokens", "V5",
       [](Plan& p) {
         for (Instruction& op : p.roles.back().step) {
           if (op.kind != OpKind::kReadTokens) continue;
           std::swap(op.outputs[0].name, op.outputs[1].name);
         }
       }},
      {"image_sizes_for_numbers", "V5",
       [](Plan& p) {
         auto& inputs = First(BlockNamed(p, "radio_encoder.embed.forward").body, OpKind::kPositionAndClass).inputs;
         std::swap(inputs[1], inputs[2]);
       }},
      {"activations_for_gradients", "V5",
       [](Plan& p) {
         for (Role& role : p.roles) {
           for (Instruction& op : role.step) {
             if (op.kind == OpKind::kExchange && op.parts[0].send && op.parts[0].backward) op.parts[0].backward = false;
           }
         }
       }},
      // Of a gradient, and of counts: neither declares a gradient.
      {"a_gradient_that_nothing_reads", "V4",
       [](Plan& p) { Repeat(BlockNamed(p, "language.moe.backward").body, OpKind::kSquaredReluGrad); }},
      {"counts_that_nothing_reads", "V4",
       [](Plan& p) { Repeat(BlockNamed(p, "language.moe.forward").body, OpKind::kRoutingFingerprint); }},
      // Statistics of the softmax. Apart from what is damaged, each of these plans fits together.
      {"parts_of_two_maxima_summed", "V6",
       [](Plan& p) {
         std::vector<Instruction>& body = BlockNamed(p, "language.head.forward").body;
         Instruction sum = First(body, OpKind::kAllReduce);
         sum.attributes["reduce"] = std::string("sum");
         sum.inputs = sum.frees = {"parts"};
         sum.outputs = {{"whole", First(body, OpKind::kCrossEntropyParts).outputs[1].type}};
         sum.outputs[0].type.layout.erase(Axis::kTp);
         Drop(body, OpKind::kAllReduce, "sums_part");
         auto made = std::find_if(body.begin(), body.end(), Is(OpKind::kCrossEntropySums));
         made->inputs[0] = "whole", made->frees = {"whole"};
         made->outputs[0].name = "sums", made->outputs[0].type.layout.erase(Axis::kTp);
         body.insert(made, sum);
       }},
      {"maxima_summed", "V6",
       [](Plan& p) {
         std::vector<Instruction>& body = BlockNamed(p, "language.head.forward").body;
         auto reduce = std::find_if(body.begin(), body.end(), Is(OpKind::kAllReduce));
         Instruction join = *reduce;
         Output part = join.outputs[0];
         part.name = "m_piece";
         std::get<int64_t>(part.type.dims[0]) /= 2;
         part.type.layout[Axis::kTp] = {AxisLayout::State::kSharded, 0};
         join.kind = OpKind::kAllGather, reduce->kind = OpKind::kReduceScatter;
         join.attributes = reduce->attributes = {{"dim", int64_t{0}}};
         join.inputs = join.frees = {part.name};
         reduce->outputs = {part};
         body.insert(reduce + 1, join);
       }},
      {"losses_for_maxima", "V5",
       [](Plan& p) {
         Block &forward = BlockNamed(p, "language.head.forward"), &backward = BlockNamed(p, "language.head.backward");
         for (Instruction& op : forward.body) {
           std::erase(op.frees, "token_loss");
           if (op.kind == OpKind::kCrossEntropySums) op.frees.push_back("m");
         }
         std::replace(forward.saved.begin(), forward.saved.end(), std::string("m"), std::string("token_loss"));
         for (Output& take : backward.takes) {
           if (take.name == "m") take.name = "token_loss";
         }
         for (Instruction& op : backward.body) {
           for (auto* names : {&op.inputs, &op.frees})
             std::replace(names->begin(), names->end(), std::string("m"), std::string("token_loss"));
         }
       }},
      // Run-time sizes.
      {"room_for_too_few_rows", "V10", [](Plan& p) { SymbolNamed(p, "language.expert_rows").maximum = 8; }},
      {"memory_for_too_few_rows", "V10", [](Plan& p) { SymbolNamed(p, "language.expert_rows").expected = 8; }},
      {"memory_for_too_few_images", "V10", [](Plan& p) { SymbolNamed(p, "radio_encoder.patches").expected = 1; }},
      // Budget and schedule.
      {"samples_do_not_add_up", "V8", [](Plan& p) { p.budget.microbatches += 1; }},
      {"a_step_too_few", "V8", [](Plan& p) { p.budget.steps -= 1; }},
      {"segments_apart", "V8", [](Plan& p) { p.budget.segments.front().first_sample += 1; }},
      {"samples_past_the_budget_miscounted", "V8", [](Plan& p) { p.budget.samples_past_budget += 1; }},
      {"unknown_rate_style", "V8", [](Plan& p) { p.budget.learning_rate.style = "sideways"; }},
      {"unknown_wsd_style", "V8",
       [](Plan& p) {
         p.budget.learning_rate.style = "wsd", p.budget.learning_rate.wsd_decay_samples = 1,
         p.budget.learning_rate.wsd_style = "up";
       }},
      {"unknown_weight_decay_style", "V8", [](Plan& p) { p.budget.weight_decay.style = "sideways"; }},
      {"a_part_of_a_schedule_without_rates", "V8",
       [](Plan& p) {
         p.budget.learning_rate.peak = p.budget.learning_rate.min = p.budget.learning_rate.init = 0;
         p.optimizer.parts = {{"nothing.of.this.name", 1e-3, 0.1}};
       }},
      {"a_microbatch_unscheduled", "V8", [](Plan& p) { p.schedule[0].order.pop_back(); }},
  };
}

class DamagedPlan : public ::testing::TestWithParam<Damage> {};

TEST_P(DamagedPlan, IsRefusedByItsRule) {
  Plan plan = Sound();
  GetParam().inflict(plan);
  const std::vector<Violation> violations = VerifyPlan(plan);
  ASSERT_FALSE(violations.empty());
  std::vector<std::string> rules;
  for (const Violation& violation : violations) rules.push_back(violation.rule);
  EXPECT_THAT(rules, ::testing::Contains(GetParam().rule)) << violations.front().message;
}

INSTANTIATE_TEST_SUITE_P(All, DamagedPlan, ::testing::ValuesIn(Damages()),
                         [](const auto& info) { return std::string(info.param.name); });

// The message of V4 for blocks b0, b1, ... where each calls the next one `calls` times. In a `circle` the last block
// calls the first.
std::string CallsProblem(int blocks, int calls, bool circle) {
  Plan plan;
  for (int i = 0; i < blocks; ++i) {
    const std::string next = absl::StrCat("b", circle ? (i + 1) % blocks : i + 1);
    plan.blocks.push_back({.name = absl::StrCat("b", i),
                           .body = std::vector<Instruction>(calls, {.kind = OpKind::kCall, .block = next})});
  }
  const std::vector<Violation> violations = VerifyCalls(plan);
  return violations.empty() ? "" : violations.front().message;
}

TEST(VerifyCalls, RefusesCirclesAndProgramsThatUnrollTooFar) {
  EXPECT_EQ(CallsProblem(kDeepestCalls, 1, false), "");
  EXPECT_EQ(CallsProblem(1, 1, true), "block b0 calls itself");
  EXPECT_EQ(CallsProblem(3, 2, true), "block b0 calls itself");
  EXPECT_EQ(CallsProblem(kDeepestCalls + 1, 1, false),
            absl::StrCat("calls of block b", kDeepestCalls, " go more than ", kDeepestCalls, " deep"));
  EXPECT_EQ(CallsProblem(kDeepestCalls, 100, false),
            absl::StrCat("the programs unroll to more than ", kMostInstructions, " instructions"));
}

TEST(VerifyCalls, RefusesTwoBlocksOfOneName) {
  Plan plan = Sound();
  plan.blocks.push_back(plan.blocks.front());
  EXPECT_THAT(VerifyCalls(plan).at(0).message, ::testing::HasSubstr("two blocks are named"));
}

TEST(Verify, ASoundPlanBreaksNothing) {
  for (const Violation& violation : VerifyPlan(Sound())) ADD_FAILURE() << violation.rule << ": " << violation.message;
}

std::vector<std::string> RulesBrokenBy(const Plan& plan) {
  std::vector<std::string> rules;
  for (const Violation& violation : VerifyPlan(plan)) rules.push_back(violation.rule);
  return rules;
}

// The next step waits for what a step gathers, on any stream. So nothing is left to gather in the teardown.
TEST(Verify, NothingMovesStateInTheTeardown) {
  Recipe recipe = TinyRecipe({2, 2, 4, 2, 4, false});
  recipe.gradients.overlap_gather = Located<bool>(true);
  Diagnostics diagnostics;
  Plan plan = *CompileRecipe(recipe, diagnostics);
  ASSERT_THAT(RulesBrokenBy(plan), ::testing::IsEmpty());
  for (Role& role : plan.roles) {
    for (const Instruction& op : role.step) {
      if (op.kind == OpKind::kAllGather && op.inputs[0].starts_with("%")) role.teardown = {op};
    }
  }
  EXPECT_THAT(RulesBrokenBy(plan), ::testing::Contains("V7"));
}

// A forward must use each tensor in its place, also if there is no backward to compare with.
TEST(Verify, AFrozenForwardUsesItsOwnTensors) {
  Recipe recipe = TinyRecipe({2, 2, 4, 2, 4, false});
  recipe.modules[0].train_backbone = std::string("frozen");
  Diagnostics diagnostics;
  Plan plan = *CompileRecipe(recipe, diagnostics);
  ASSERT_THAT(RulesBrokenBy(plan), ::testing::IsEmpty());
  ASSERT_EQ(plan.FindBlock("radio_encoder.layer.backward"), nullptr);
  First(BlockNamed(plan, "radio_encoder.layer.forward").body, OpKind::kLayerNorm).parameters = {"norm2_weight",
                                                                                                "norm2_bias"};
  EXPECT_THAT(RulesBrokenBy(plan), ::testing::Contains("V5"));
}

TEST(Verify, AViolationPointsAtItsModule) {
  Plan plan = Sound();
  BlockNamed(plan, "language.moe.forward").body[1].inputs[0] = "ghost";
  const std::vector<Violation> violations = VerifyPlan(plan);
  ASSERT_FALSE(violations.empty());
  EXPECT_EQ(plan.origins.at(violations.front().origin).what, "module language");
}

}  // namespace
}  // namespace planwright
