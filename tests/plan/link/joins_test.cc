// Neighbours that can be done as one, and additions that are the first of their gradient.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/plan/link/first_additions.h"
#include "planner/plan/stream_dependencies.h"
#include "tests/numerics/layouts.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

const ValueType kType = {DType::kFp32, {int64_t{8}}, {}, std::nullopt, false};

// A block with a norm's backward and the sum behind it.
Block NormAndSum() {
  Block block{.name = "m.layer.backward", .module = "m", .inputs = {{"dy", kType}, {"x", kType}, {"scale", kType}}};
  block.outputs = {"dx"};
  block.body = {{.kind = OpKind::kRmsNormGrad,
                 .inputs = {"dy", "x", "scale"},
                 .outputs = {{"own", kType}},
                 .frees = {"x", "scale"}},
                {.kind = OpKind::kAdd, .inputs = {"dy", "own"}, .outputs = {{"dx", kType}}, .frees = {"dy", "own"}}};
  return block;
}

bool Joins(const Block& block) {
  Plan plan;
  plan.modules = {{.name = "m"}};
  plan.blocks = {block};
  const LinkedBlocks blocks(plan);
  const std::vector<LinkedInstruction>& body = blocks.block(0).body;
  for (size_t i = 0; i < body.size(); ++i) {
    EXPECT_EQ(body[i].joins_last, i > 0 && body[i - 1].joins_next);
    EXPECT_FALSE(body[i].joins_last && body[i].joins_next);
  }
  return std::any_of(body.begin(), body.end(), [](const LinkedInstruction& each) { return each.joins_next; });
}

TEST(Joins, TakesNeighboursWhoseValueDiesBetweenThem) {
  EXPECT_TRUE(Joins(NormAndSum()));
  Block block = NormAndSum();
  std::swap(block.body[1].inputs[0], block.body[1].inputs[1]);
  EXPECT_TRUE(Joins(block));
  block.body[0].kind = OpKind::kLayerNormGrad;
  EXPECT_TRUE(Joins(block));
}

// What gelu is taken of may live on: its backward reads it.
TEST(Joins, KeepsWhatLivesOn) {
  Block block{.name = "m.layer.forward", .module = "m", .inputs = {{"x", kType}}};
  block.outputs = {"y"}, block.saved = {"pre"};
  block.body = {{.kind = OpKind::kLinear, .inputs = {"x"}, .outputs = {{"pre", kType}}},
                {.kind = OpKind::kGelu, .inputs = {"pre"}, .outputs = {{"y", kType}}}};
  EXPECT_TRUE(Joins(block));
  block.body[1].frees = {"pre"};
  EXPECT_TRUE(Joins(block));
  block.body[1].attributes = {{"erf", int64_t{1}}};
  EXPECT_FALSE(Joins(block)) << "in its exact form";
  block.body[1].kind = OpKind::kAdd, block.body[1].attributes = {};
  EXPECT_FALSE(Joins(block));
}

TEST(Joins, TakesNoOthers) {
  const auto without = [](const char* why, auto change) {
    Block block = NormAndSum();
    change(block.body);
    EXPECT_FALSE(Joins(block)) << why;
  };
  using Body = std::vector<Instruction>;
  without("the value lives on", [](Body& body) { body[1].frees = {"dy"}; });
  without("it is read twice", [](Body& body) { body[1].inputs = {"own", "own"}; });
  without("a sum of three", [](Body& body) { body[1].inputs.push_back("dy"); });
  without("another stream", [](Body& body) { body[1].stream = "side"; });
  without("another kind", [](Body& body) { body[1].kind = OpKind::kConcat; });
  without("something between them", [](Body& body) {
    body.insert(body.begin() + 1, {.kind = OpKind::kGelu, .inputs = {"dy"}, .outputs = {{"more", kType}}});
  });
  without("the sum reads another value", [](Body& body) {
    body[1].inputs = {"dy", "dy"};
    body[1].frees = {"dy"};
  });
}

// Pairs of each block, by its name.
std::map<std::string, std::vector<std::string>> PairsOf(const Plan& plan) {
  std::map<std::string, std::vector<std::string>> pairs;
  const LinkedBlocks blocks(plan);
  for (size_t b = 0; b < plan.blocks.size(); ++b) {
    for (const LinkedInstruction& first : blocks.block(static_cast<int>(b)).body) {
      if (first.joins_next)
        pairs[plan.blocks[b].name].push_back(std::string(OpName(first.source->kind)) + " " +
                                             std::string(OpName((&first + 1)->source->kind)));
    }
  }
  return pairs;
}

TEST(Joins, OfTheLayersOfShippedModels) {
  using Pairs = std::vector<std::string>;
  const auto of = PairsOf(testing::CompiledFile(InSource("recipes/qwen3_vl_2b_1g.yaml")));
  EXPECT_EQ(of.at("language.attention.forward"), (Pairs{"head_norm rope", "linear add"}));
  EXPECT_EQ(of.at("language.attention.backward"), (Pairs{"rope_grad head_norm_grad", "rms_norm_grad add"}));
  EXPECT_EQ(of.at("language.mlp.forward"), (Pairs{"linear add"}));
  EXPECT_EQ(of.at("language.mlp.backward"), (Pairs{"rms_norm_grad add"}));
  EXPECT_EQ(of.at("vision_encoder.layer.forward"),
            (Pairs{"linear add_residual_bias", "linear gelu", "linear add_residual_bias"}));
  EXPECT_EQ(of.at("vision_encoder.layer.backward"),
            (Pairs{"linear_input_grad gelu_grad", "layer_norm_grad add", "layer_norm_grad add"}));
}

// By names, as the plan states them: the storage of a slot in a frame.
size_t StorageOf(const Module& module, std::string_view frame, const std::string& slot) {
  for (size_t i = 0; i < module.storages.size(); ++i) {
    const Storage& storage = module.storages[i];
    const bool shared = std::any_of(storage.shared.begin(), storage.shared.end(), [&](const SharedSlot& other) {
      return other.frame == frame && other.slot == slot;
    });
    if (shared || (storage.frame == frame && storage.slot == slot)) return i;
  }
  ADD_FAILURE() << frame << " has no " << slot;
  return 0;
}

using Storages = std::set<std::pair<size_t, size_t>>;  // by module and in it

// What reads a whole bucket of gradients comes behind the first addition to each gradient in it that nothing clears.
// Returns whether the instruction is one.
bool ExpectAdded(const Plan& plan, const Role& role, const Instruction& op, const FirstAdditions& additions,
                 const Storages& added) {
  bool reads = false;
  for (const StateAccess& access : StateAccessesOf(op, role.modules)) {
    for (size_t m = 0; m < plan.modules.size(); ++m) {
      const Module& module = plan.modules[m];
      for (size_t i = 0; i < module.storages.size(); ++i) {
        const std::string gradients = GradientsResource(module, module.storages[i].bucket);
        if (access.resource != gradients && !gradients.starts_with(access.resource + ".")) continue;
        reads = true;
        EXPECT_TRUE(!additions.IsWritten(m, i) || added.contains({m, i}))
            << role.name << " " << OpName(op.kind) << " of " << gradients << " before " << module.storages[i].slot;
      }
    }
  }
  return reads;
}

// Each gradient is cleared by begin_step, or written by its first addition, and by no later one.
TEST(FirstAdditions, WriteEachGradientOnceAndFirst) {
  size_t written = 0, tied = 0, experts = 0, reads = 0;
  const std::vector<std::string> stages = {"gradients.overlap_reduce=true", "gradients.buckets=3",
                                           "modules.language.placement.ranks=4", "modules.language.parallel.pp=2",
                                           "modules.language.parallel.ep=2"};
  const std::pair<const char*, std::vector<std::string>> plans[] = {
      {"recipes/nemotron_moe_vlm_tiny.yaml", {}}, {"recipes/qwen3_vlm_tiny.yaml", {}},
      {"recipes/qwen3_vl_2b_1g.yaml", {}},        {"recipes/nemotron_moe_two_encoders_tiny.yaml", {}},
      {"recipes/qwen3_moe_tiny.yaml", {}},        {"recipes/qwen3_moe_tiny.yaml", stages}};
  for (const auto& [recipe, overrides] : plans) {
    const Plan plan = testing::CompiledFile(InSource(recipe), overrides);
    LinkedBlocks blocks(plan);
    for (const Role& role : plan.roles) {
      const LinkedProgram program(blocks, role);
      const FirstAdditions additions(program);
      Storages added;
      for (size_t i = 0; i < program.entries().size(); ++i) {
        const LinkedEntry& entry = program.entries()[i];
        const LinkedCall& call = program.calls()[entry.call];
        const Instruction& source = *entry.instruction->source;
        const std::vector<std::string>& gradients = source.gradients;
        // What is done as one with a neighbour is not told that it writes.
        EXPECT_FALSE(additions.Writes(i) && (entry.instruction->joins_next || entry.instruction->joins_last));
        if (i > program.step().first && i < program.step().end)
          reads += ExpectAdded(plan, role, source, additions, added);
        if (gradients.empty()) {
          EXPECT_FALSE(additions.Writes(i));
          continue;
        }
        const auto module = static_cast<size_t>(call.block->module);
        const OpKind kind = source.kind;
        const bool of_experts = kind == OpKind::kExpertsGrad || kind == OpKind::kGatedExpertsGrad;
        const bool product = of_experts || (kind == OpKind::kLinearWeightGrad && gradients.size() == 1);
        for (const std::string& slot : gradients) {
          const size_t storage = StorageOf(plan.modules[module], blocks.frame(call.frame), slot);
          const bool first = added.insert({module, storage}).second;
          EXPECT_EQ(additions.Writes(i), first && product) << role.name << " " << slot;
          experts += of_experts && additions.Writes(i);
          if (first) {
            EXPECT_EQ(additions.IsWritten(module, storage), product) << role.name << " " << slot;
          }
          written += additions.Writes(i);
          tied += additions.Writes(i) && !plan.modules[module].storages[storage].shared.empty();
        }
      }
      for (size_t m = 0; m < plan.modules.size(); ++m) {
        for (size_t i = 0; i < plan.modules[m].storages.size(); ++i)
          EXPECT_TRUE(!additions.IsWritten(m, i) || added.contains({m, i}));
      }
    }
  }
  EXPECT_GT(written, 50);
  EXPECT_GT(experts, 3);
  EXPECT_GT(reads, 50);
  EXPECT_GT(tied, 0);  // a head that has the weight of the embedding comes first in the backward
}

}  // namespace
}  // namespace planwright
