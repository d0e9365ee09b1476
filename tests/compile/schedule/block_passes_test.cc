// Passes over blocks: on a small pair of blocks written by hand, and on every layer of a compiled plan, which must
// still pass its proof afterwards.
#include "planner/compile/schedule/blocks/block_passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planner/compile/compile.h"
#include "planner/compile/schedule/blocks/block_builder.h"
#include "planner/predict/estimate/memory.h"
#include "planner/verify/verify.h"
#include "tests/support/compiled.h"
#include "tests/support/recipes.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Kinds(const Block& block) {
  std::vector<std::string> kinds;
  for (const Instruction& instruction : block.body) kinds.emplace_back(OpName(instruction.kind));
  return kinds;
}

std::vector<std::string> Names(const std::vector<Output>& outputs) {
  std::vector<std::string> names;
  for (const Output& output : outputs) names.push_back(output.name);
  return names;
}

// Forward: x -> n = x^2 -> u = linear n, which an accumulator adds up -> r = u^2. The backward needs only u; it also
// reads x for a value that nobody reads.
struct Pair {
  Block forward, backward;
};

const ValueType kSmall = {DType::kFp32, {int64_t{4}, int64_t{8}}, {}, Layout{}, false};

Pair SmallPair() {
  BlockBuilder f("language", "language.small.forward", 0);
  f.Input("x", kSmall);
  f.Emit(OpKind::kSquaredRelu, {.inputs = {"x"}}, {{"n", kSmall}});
  f.Emit(OpKind::kLinear, {.inputs = {"n"}, .parameters = {"up"}}, {{"u", kSmall}});
  f.Emit(OpKind::kAccumulate, {.inputs = {"u"}, .attributes = {{"into", std::string("$reals.loss")}}});
  f.Emit(OpKind::kSquaredRelu, {.inputs = {"u"}}, {{"r", kSmall}});
  f.ProbeValue("n", "small.n");
  Block forward = f.Finish({"r"}, {"x", "n", "u"});
  BlockBuilder b("language", "language.small.backward", 0);
  b.TakeSaved(forward);
  b.Input("dr", kSmall);
  b.Emit(OpKind::kSquaredReluGrad, {.inputs = {"dr", "x"}}, {{"unread", kSmall}});
  b.Emit(OpKind::kSquaredReluGrad, {.inputs = {"dr", "u"}}, {{"du", kSmall}});
  b.Emit(OpKind::kLinearInputGrad, {.inputs = {"du"}, .parameters = {"up"}}, {{"dx", kSmall}});
  return {std::move(forward), b.Finish({"dx"}, {})};
}

TEST(BlockPasses, APrunedPairSavesWhatIsRead) {
  Pair pair = SmallPair();
  PruneSaved(pair.forward, pair.backward);
  EXPECT_THAT(pair.forward.saved, ElementsAre("u"));
  EXPECT_THAT(Names(pair.backward.takes), ElementsAre("u"));
  EXPECT_THAT(Kinds(pair.backward), ElementsAre("squared_relu_grad", "linear_input_grad"));
  EXPECT_THAT(Kinds(pair.forward), ElementsAre("squared_relu", "linear", "accumulate", "squared_relu"));
  EXPECT_THAT(pair.backward.body[0].frees, ElementsAre("u"));
  EXPECT_THAT(pair.forward.body[1].frees, ElementsAre("n"));
}

// Forward: x -> n = x^2 -> u = linear n -> r = u^2. The backward reads x, n and u: n is made again of x.
TEST(BlockPasses, ElementwiseRecomputeMakesAgainWhatIsCheap) {
  Pair pair = SmallPair();
  BlockBuilder b("language", "language.small.backward", 0);
  b.TakeSaved(pair.forward);
  b.Input("dr", kSmall);
  b.Emit(OpKind::kSquaredReluGrad, {.inputs = {"dr", "u"}}, {{"du", kSmall}});
  b.Emit(OpKind::kLinearInputGrad, {.inputs = {"du"}, .parameters = {"up"}}, {{"dn", kSmall}});
  b.Emit(OpKind::kSquaredReluGrad, {.inputs = {"dn", "x"}}, {{"dx", kSmall}});
  b.Emit(OpKind::kAdd, {.inputs = {"dx", "n"}}, {{"sum", kSmall}});
  pair.backward = b.Finish({"sum"}, {});
  PruneSaved(pair.forward, pair.backward);
  ASSERT_THAT(pair.forward.saved, ElementsAre("x", "n", "u"));
  const std::optional<Block> again = MakeElementwiseRecompute(pair.forward, pair.backward);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->name, "language.small.recompute");
  EXPECT_THAT(Kinds(*again), ElementsAre("squared_relu"));
  EXPECT_THAT(Names(again->takes), ElementsAre("x", "u"));
  EXPECT_THAT(again->saved, ElementsAre("x", "n", "u"));
  EXPECT_THAT(pair.forward.saved, ElementsAre("x", "u"));
  EXPECT_THAT(pair.forward.body[1].frees, ElementsAre("n"));
}

// n cannot be made again: x is not kept. u is no elementwise value.
TEST(BlockPasses, ElementwiseRecomputeNeedsWhatGoesIn) {
  Pair pair = SmallPair();
  PruneSaved(pair.forward, pair.backward);
  ASSERT_THAT(pair.forward.saved, ElementsAre("u"));
  EXPECT_FALSE(MakeElementwiseRecompute(pair.forward, pair.backward));
  EXPECT_THAT(pair.forward.saved, ElementsAre("u"));
}

TEST(BlockPasses, ARecomputedForwardSavesItsInputAndCountsOnce) {
  Pair pair = SmallPair();
  PruneSaved(pair.forward, pair.backward);
  const std::optional<Block> again = MakeRecompute(pair.forward);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->name, "language.small.recompute");
  EXPECT_THAT(Names(again->takes), ElementsAre("x"));
  EXPECT_THAT(again->saved, ElementsAre("u"));
  EXPECT_THAT(again->outputs, IsEmpty());
  EXPECT_THAT(again->inputs, IsEmpty());
  EXPECT_THAT(again->probes, IsEmpty());
  EXPECT_THAT(Kinds(*again), ElementsAre("squared_relu", "linear"));  // neither the sum nor what comes after u
  EXPECT_THAT(again->body[0].frees, ElementsAre("x"));
  EXPECT_THAT(pair.forward.saved, ElementsAre("x"));
  EXPECT_THAT(Kinds(pair.forward), ElementsAre("squared_relu", "linear", "accumulate", "squared_relu"));
  EXPECT_THAT(pair.forward.body.back().frees, ElementsAre("u"));
}

TEST(BlockPasses, NothingIsRecomputedForABackwardThatReadsInputs) {
  Pair pair = SmallPair();
  pair.forward.saved = {"x"};
  EXPECT_FALSE(MakeRecompute(pair.forward));
  EXPECT_THAT(pair.forward.saved, ElementsAre("x"));
}

TEST(BlockPasses, WhatAProbeReadsIsComputed) {
  Pair pair = SmallPair();
  pair.forward.body.erase(pair.forward.body.begin() + 1, pair.forward.body.end());
  pair.forward.outputs.clear();
  pair.forward.saved.clear();
  DropDeadInstructions(pair.forward);
  EXPECT_THAT(Kinds(pair.forward), ElementsAre("squared_relu"));
  pair.forward.probes.clear();
  DropDeadInstructions(pair.forward);
  EXPECT_THAT(Kinds(pair.forward), IsEmpty());
}

// What an exchange on another stream reads is freed where the main stream waits for it anyway, and what a product reads
// not before an exchange that need not wait for the product.
TEST(Frees, NoStreamWaitsForMemoryAlone) {
  BlockBuilder f("language", "language.small.forward", 0);
  f.Input("x", kSmall);
  const auto make = [&](const char* from, const char* to) {
    f.Emit(OpKind::kSquaredRelu, {.inputs = {from}}, {{to, kSmall}});
  };
  const auto exchange = [&](const char* from, const char* to) {
    f.Emit(OpKind::kGatherTokens, {.inputs = {from}}, {{to, kSmall}}).stream = "beside";
  };
  const auto add = [&](const char* one, const char* other, const char* sum) {
    f.Emit(OpKind::kAdd, {.inputs = {one, other}}, {{sum, kSmall}});
  };
  make("x", "n");          // 0
  exchange("n", "n_all");  // 1
  make("n", "a");          // 2, the last to read n
  make("a", "b");          // 3, the last to read a
  exchange("n", "late");   // 4 need not wait for a and b, and is now the last to read n
  make("b", "c");          // 5
  add("n_all", "c", "d");  // 6 waits for 1
  add("late", "d", "r");   // 7 waits for 4
  const Block block = f.Finish({"r"}, {});
  std::vector<std::vector<std::string>> frees;
  for (const Instruction& instruction : block.body) frees.push_back(instruction.frees);
  using Names = std::vector<std::string>;
  EXPECT_THAT(frees, ElementsAre(Names{}, Names{}, Names{}, Names{}, Names{}, Names{"a", "b"}, Names{"c", "n_all"},
                                 Names{"d", "late", "n"}));
}

Block* Find(Plan& plan, const std::string& name) {
  for (Block& block : plan.blocks) {
    if (block.name == name) return &block;
  }
  return nullptr;
}

// Every layer of both modules recomputed, in a plan with tensor, data and expert parallel ranks.
TEST(BlockPasses, ACompiledPlanPassesItsProofWithEveryLayerRecomputed) {
  Plan plan = testing::Compiled(testing::TinyRecipe({4, 2, 4, 2, 4, false}));
  std::vector<std::string> again;
  for (const char* layer : {"radio_encoder.layer", "language.mamba", "language.attention", "language.moe"}) {
    Block& forward = *Find(plan, std::string(layer) + ".forward");
    PruneSaved(forward, *Find(plan, std::string(layer) + ".backward"));
    std::optional<Block> recompute = MakeRecompute(forward);
    ASSERT_TRUE(recompute) << layer;
    EXPECT_TRUE(std::none_of(recompute->body.begin(), recompute->body.end(),
                             [](const Instruction& i) { return OpClassOf(i.kind) == OpClass::kState; }));
    EXPECT_LE(forward.saved.size(), 2u) << layer;
    EXPECT_EQ(forward.saved.front(), "x");
    plan.blocks.push_back(*std::move(recompute));
  }
  ASSERT_FALSE(VerifyPlan(plan).empty());  // nothing calls the recompute yet
  for (Block& block : plan.blocks) {
    std::vector<Instruction> body;
    for (Instruction& instruction : block.body) {
      const size_t at = instruction.block.rfind(".backward");
      const std::string recompute = at == std::string::npos ? "" : instruction.block.substr(0, at) + ".recompute";
      if (instruction.kind == OpKind::kCall && Find(plan, recompute)) {
        Instruction call{.kind = OpKind::kCall};
        call.block = recompute;
        call.frame = instruction.frame;
        body.push_back(std::move(call));
      }
      body.push_back(std::move(instruction));
    }
    block.body = std::move(body);
  }
  for (Module& module : plan.modules) {
    module.recompute =
        module.has_images ? std::vector<std::string>{"block"} : std::vector<std::string>{"mamba", "attention", "moe"};
  }
  for (const Violation& violation : VerifyPlan(plan)) ADD_FAILURE() << violation.rule << ": " << violation.message;
}

}  // namespace
}  // namespace planwright
