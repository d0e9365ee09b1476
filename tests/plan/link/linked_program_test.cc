// Linked programs against a slow interpreter of the plan (tests/support/naive_program.h): programs of the shipped
// recipes and random ones.
#include "planner/plan/link/linked_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "planner/plan/link/host_waits.h"
#include "planner/plan/link/program_accesses.h"
#include "tests/numerics/layouts.h"
#include "tests/plan/link/random_programs.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"
#include "tests/support/naive_program.h"
#include "tests/support/recipes.h"

namespace planwright {
namespace {

using testing::NaiveProgram;
using Visit = NaiveProgram::Visit;

// Walks one list in both forms at once. Every entry must be the same instruction in the same call, with the same values
// as operands; values must die at the same entry; and no number may be given out while its value is alive.
class Comparison {
 public:
  Comparison(const LinkedProgram& program, LinkedProgram::Range range)
      : program_(program), range_(range), at_(range.first),
        naive_(program.blocks().plan(), [this](const Visit& visit) { Check(visit); }) {}

  void Run(const std::vector<Instruction>& list) {
    naive_.Run(list);
    EXPECT_EQ(at_, range_.end);
    if (range_.end > range_.first) Age(range_.end - 1);
    EXPECT_TRUE(alive_.empty()) << alive_.size() << " values outlive the list";
  }

 private:
  // Applies the events after an entry.
  void Age(size_t entry) {
    for (int event : program_.after(entry)) {
      const int value = event < 0 ? ~event : event;
      const auto held = alive_.find(value);
      ASSERT_NE(held, alive_.end()) << "value " << value << " dies twice or is kept dead";
      if (event < 0) {
        kept_.insert(held->second);
      } else {
        alive_.erase(held);
      }
    }
  }

  void Check(const Visit& visit) {
    ASSERT_LT(at_, range_.end);
    if (at_ > range_.first) Age(at_ - 1);
    const LinkedEntry& entry = program_.entries()[at_++];
    const LinkedCall& call = program_.calls()[entry.call];
    const LinkedInstruction& linked = *entry.instruction;
    ASSERT_EQ(linked.source, visit.instruction);
    EXPECT_EQ(call.block->block, visit.block);
    EXPECT_EQ(call.frame < 0 ? "" : std::string(program_.blocks().frame(call.frame)), visit.frame);
    EXPECT_EQ(call.microbatch, visit.microbatch);
    ASSERT_EQ(linked.inputs.size(), visit.instruction->inputs.size());
    ASSERT_EQ(linked.outputs.size(), visit.instruction->outputs.size());
    // Inputs were there before; a name may be both read and made, so they are compared by what they were.
    for (size_t i = 0; i < linked.inputs.size(); ++i) {
      const std::string& name = visit.instruction->inputs[i];
      if (IsStateName(name)) {
        EXPECT_EQ(program_.blocks().state(StateOfOperand(linked.inputs[i])), name);
        continue;
      }
      EXPECT_EQ(Held(entry, linked.inputs[i]), visit.names->at(name)->number) << name;
    }
    for (size_t i = 0; i < linked.outputs.size(); ++i) {
      const std::string& name = visit.instruction->outputs[i].name;
      if (IsStateName(name)) {
        EXPECT_EQ(program_.blocks().state(StateOfOperand(linked.outputs[i])), name);
        continue;
      }
      const int value = program_.ValueOf(entry, linked.outputs[i]);
      ASSERT_GE(value, 0);
      ASSERT_LT(value, program_.values());
      EXPECT_TRUE(alive_.emplace(value, visit.names->at(name)->number).second)
          << "value " << value << " is given out while it is alive";
    }
    for (size_t i = 0; i < linked.parts.size(); ++i) {
      const ExchangePart& part = visit.instruction->parts[i];
      EXPECT_EQ(Held(entry, linked.parts[i].value), visit.names->at(part.value)->number);
      if (part.shift != 0) continue;
      EXPECT_EQ(Held(entry, linked.parts[i].sizes), visit.names->at(part.sizes)->number);
    }
    CheckSlots(visit, call, linked.parameters, visit.instruction->parameters);
    CheckSlots(visit, call, linked.gradients, visit.instruction->gradients);
    if (visit.instruction->group.empty()) {
      EXPECT_EQ(linked.group, -1);
    } else {
      EXPECT_EQ(program_.blocks().plan().groups[linked.group].name, visit.instruction->group);
    }
    EXPECT_EQ(program_.blocks().stream(linked.stream), visit.instruction->stream);
    ASSERT_EQ(naive_.alive().size(), alive_.size());
    most_ = std::max(most_, alive_.size());
    if (range_.end - range_.first > 1000 && at_ % 61 != 0) return;  // long lists: only some entries
    for (const auto& [value, number] : alive_) {
      ASSERT_TRUE(naive_.alive().contains(number)) << "value " << value << " should be dead";
      EXPECT_EQ(naive_.alive().at(number)->kept, kept_.contains(number));
    }
  }

  int Held(const LinkedEntry& entry, int operand) const {
    if (operand < 0) return -1;
    const auto held = alive_.find(program_.ValueOf(entry, operand));
    return held == alive_.end() ? -1 : held->second;
  }

  void CheckSlots(const Visit& visit, const LinkedCall& call, std::span<const int> slots,
                  const std::vector<std::string>& names) {
    ASSERT_EQ(slots.size(), names.size());
    for (size_t i = 0; i < slots.size(); ++i) {
      const Module& module = program_.blocks().plan().modules[call.block->module];
      const Storage& storage = module.storages.at(program_.blocks().storage(call.slots + slots[i]));
      EXPECT_EQ(module.name, visit.block->module);
      EXPECT_TRUE(Fills(storage, visit.frame, names[i]))
          << storage.frame << " " << storage.slot << " for " << visit.frame << " " << names[i];
    }
  }

  // Whether a storage is that of a slot, its own or one that shares it, as a tied head shares the embedding's.
  static bool Fills(const Storage& storage, const std::string& frame, const std::string& slot) {
    return (storage.frame == frame && storage.slot == slot) ||
           std::any_of(storage.shared.begin(), storage.shared.end(),
                       [&](const SharedSlot& other) { return other.frame == frame && other.slot == slot; });
  }

 public:
  size_t most() const { return most_; }

 private:
  const LinkedProgram& program_;
  const LinkedProgram::Range range_;
  size_t at_;
  NaiveProgram naive_;
  std::map<int, int> alive_;  // linked value -> the naive one's number
  std::set<int> kept_;
  size_t most_ = 0;
};

void Compare(const Plan& plan) {
  LinkedBlocks blocks(plan);
  for (const Role& role : plan.roles) {
    SCOPED_TRACE(plan.name + " " + role.name);
    const LinkedProgram program(blocks, role);
    EXPECT_EQ(program.problem(), "");
    const LinkedProgram::Range ranges[] = {program.setup(), program.resume(), program.step(),    program.evaluate(),
                                           program.score(), program.save(),   program.teardown()};
    size_t most = 0;
    for (size_t i = 0; i < std::size(kRoleLists); ++i) {
      Comparison comparison(program, ranges[i]);
      comparison.Run(role.*kRoleLists[i].list);
      most = std::max(most, comparison.most());
    }
    EXPECT_EQ(static_cast<size_t>(program.values()), most) << "more numbers than values alive";
  }
}

TEST(LinkedProgram, EqualsTheInterpreterOnShippedPlans) {
  int plans = 0;
  for (const auto& file : std::filesystem::directory_iterator(InSource("recipes"))) {
    if (file.path().extension() != ".yaml") continue;
    Compare(testing::CompiledFile(file.path().string()));
    ++plans;
  }
  EXPECT_GE(plans, 10);
}

TEST(LinkedProgram, EqualsTheInterpreterOnRandomPrograms) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Compare(testing::RandomProgram(seed).Make());
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(LinkedProgram, TellsPathsAndOrigins) {
  const Plan plan = testing::Compiled(testing::TinyRecipe({}));
  LinkedBlocks blocks(plan);
  const LinkedProgram program(blocks, plan.roles[0]);
  bool layer = false;
  for (size_t i = 0; i < program.entries().size(); ++i) {
    const LinkedEntry& entry = program.entries()[i];
    std::string path;
    program.AppendPath(entry.call, path);
    layer = layer || path == " > language.s0 language.s0.forward > language.layers.1 language.moe.forward";
    const LinkedCall& call = program.calls()[entry.call];
    EXPECT_TRUE(call.first <= i && i < call.end);
    EXPECT_EQ(program.OriginOf(entry) >= 0, true) << path;
  }
  EXPECT_TRUE(layer);
}

// With ep above 1, one wait for each layer with experts and each microbatch: the counts that all_to_all brings. No
// others.
TEST(CountHostWaits, CountsThoseForExpertRowCounts) {
  for (const testing::Layout& layout : testing::TinyLayouts()) {
    const Plan plan = testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"), layout.overrides);
    LinkedBlocks blocks(plan);
    for (const Role& role : plan.roles) {
      int64_t expected = 0;
      for (const std::string& name : role.modules) {
        const Module& module = *plan.FindModule(name);
        if (module.grid.ep > 1) expected += module.expert_layers() * plan.budget.microbatches;
      }
      EXPECT_EQ(CountHostWaits(LinkedProgram(blocks, role)), expected) << layout.name << " " << role.name;
    }
  }
}

Instruction Op(std::vector<std::string> inputs, std::vector<std::string> outputs, std::vector<std::string> frees = {}) {
  Instruction op{.kind = OpKind::kAdd, .inputs = std::move(inputs)};
  for (std::string& name : outputs) op.outputs.push_back({std::move(name), {DType::kFp32, {int64_t{1}}}});
  op.frees = std::move(frees);
  return op;
}

std::string ProblemOf(const Plan& plan) {
  LinkedBlocks blocks(plan);
  return LinkedProgram(blocks, plan.roles[0]).problem();
}

// Plans that verify refuses can still be linked; the program then names the problem.
TEST(LinkedProgram, NamesWhatDoesNotLink) {
  const auto plan = [](std::vector<Instruction> step) {
    Plan made;
    Block block{.name = "b", .inputs = {{"x", {}}}, .outputs = {"y"}, .saved = {"y"}, .body = {Op({"x"}, {"y"})}};
    made.blocks = {block};
    made.roles = {{.name = "r", .step = std::move(step)}};
    return made;
  };
  const auto call = [](const std::string& block, std::vector<std::string> inputs, std::vector<std::string> outputs) {
    Instruction made = Op(std::move(inputs), std::move(outputs));
    made.kind = OpKind::kCall, made.block = block, made.frame = "f", made.microbatch = 0;
    return made;
  };
  EXPECT_NE(ProblemOf(plan({Op({}, {"a"}), Op({"z"}, {})})).find("r 1: add"), std::string::npos);
  EXPECT_NE(ProblemOf(plan({Op({}, {"a"}, {"a"}), Op({"a"}, {})})).find("r 1: add"), std::string::npos);  // freed
  EXPECT_NE(ProblemOf(plan({call("nothing", {}, {})})).find("no such block"), std::string::npos);
  EXPECT_NE(ProblemOf(plan({call("b", {}, {})})).find("other inputs or outputs"), std::string::npos);
  EXPECT_EQ(ProblemOf(plan({Op({}, {"a"}), call("b", {"a"}, {"c"})})), "saved but never taken: f microbatch 0 y");
  EXPECT_NE(ProblemOf(plan({Op({}, {"a"}), call("b", {"a"}, {"c"}), call("b", {"a"}, {"d"})})).find("or twice"),
            std::string::npos);
  Plan takes = plan({call("b", {}, {})});
  takes.blocks[0] = {.name = "b", .takes = {{"t", {}}}};
  EXPECT_NE(ProblemOf(takes).find("does not keep"), std::string::npos);
  Plan circle = plan({call("b", {}, {})});
  circle.blocks[0] = {.name = "b", .body = {call("b", {}, {})}};
  EXPECT_NE(ProblemOf(circle).find("no end"), std::string::npos);
}

// However a plan is damaged, what is linked of it is consistent: numbers are in range, and every value dies at most
// once, after it was made.
TEST(LinkedProgram, DamagedPlansStayConsistent) {
  int refused = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    Plan plan = testing::RandomProgram(seed).Make();
    std::mt19937 random(seed);
    const auto pick = [&](size_t size) { return std::uniform_int_distribution<size_t>(0, size - 1)(random); };
    const auto name = [&] { return "v" + std::to_string(pick(31)); };
    for (size_t damages = 1 + pick(3); damages > 0; --damages) {
      Block& block = plan.blocks[pick(plan.blocks.size())];
      std::vector<Instruction>& list = pick(2) ? block.body : plan.roles[0].step;
      Instruction& op = list[pick(list.size())];
      switch (pick(9)) {
        case 0: op.inputs.push_back(name()); break;
        case 1: op.outputs.push_back({name(), {DType::kFp32, {int64_t{1}}}}); break;
        case 2: op.frees.insert(op.frees.end(), 2, name()); break;
        case 3: op.kind = OpKind::kCall, op.block = plan.blocks[pick(plan.blocks.size())].name; break;
        case 4: op.block = name(), op.frame.clear(); break;
        case 5: block.inputs.push_back({name(), {}}), block.inputs.push_back(block.inputs.back()); break;
        case 6: block.saved.insert(block.saved.end(), 2, name()); break;
        case 7: block.takes.push_back({name(), {}}); break;
        case 8: block.outputs.push_back(name()); break;
      }
    }
    LinkedBlocks blocks(plan);
    const LinkedProgram program(blocks, plan.roles[0]);
    refused += !program.problem().empty();
    EXPECT_GE(CountHostWaits(program), 0);
    std::vector<int> alive(program.values(), 0);
    for (size_t i = 0; i < program.entries().size(); ++i) {
      const LinkedEntry& entry = program.entries()[i];
      for (int output : entry.instruction->outputs) {
        if (output < 0) continue;
        const int value = program.ValueOf(entry, output);
        ASSERT_TRUE(value >= 0 && value < program.values());
        ASSERT_EQ(alive[value]++, 0);
      }
      for (int event : program.after(i)) {
        const int value = event < 0 ? ~event : event;
        ASSERT_TRUE(value < program.values());
        ASSERT_EQ(alive[value], 1);
        if (event >= 0) alive[value] = 0;
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

// An instruction that overwrites a value waits for all that read it, on every stream.
TEST(ProgramAccesses, WhatIsOverwrittenIsWritten) {
  const ValueType type = {DType::kFp32, {int64_t{8}}, {}, std::nullopt, false};
  for (const bool dies : {true, false}) {
    Plan plan;
    Role role{.name = "r", .ranks = {{0, 1, 1}}};
    role.step = {{.kind = OpKind::kReadTokens, .outputs = {{"logits", type}, {"m", type}}},
                 {.kind = OpKind::kAllReduce, .inputs = {"logits"}, .outputs = {{"sum", type}}, .stream = "side"},
                 {.kind = OpKind::kCrossEntropyGrad, .inputs = {"logits", "m"}, .outputs = {{"dlogits", type}}},
                 {.kind = OpKind::kAdd, .inputs = {"dlogits"}}};
    role.step[dies ? 2 : 3].frees = {"logits"};
    LinkedBlocks blocks(plan);
    const LinkedProgram program(blocks, role);
    ASSERT_EQ(program.problem(), "");
    EXPECT_EQ(program.Overwritten(2) >= 0, dies);
    for (size_t other : {0, 1, 3}) EXPECT_EQ(program.Overwritten(other), -1);
    ProgramAccesses accesses(program);
    ASSERT_EQ(accesses.streams(), 2);
    StreamDependencies order(accesses.resources(), accesses.streams());
    for (size_t i = 0; i < 2; ++i) order.Next(accesses.of(i));
    EXPECT_EQ(order.Next(accesses.of(2)), (std::vector<int64_t>{-1, dies ? 1 : -1}));
  }
}

// Two that are done as one read, until both are done, what dies with the first. Whoever takes memory then waits for
// them, on every stream, even where the second makes a value with the number of one that died.
TEST(ProgramAccesses, OfTwoAsOneHoldWhatDiesWithTheFirst) {
  const ValueType type = {DType::kFp32, {int64_t{8}}, {}, std::nullopt, false};
  Plan plan;
  Role role{.name = "r", .ranks = {{0, 1, 1}}};
  role.step = {
      {.kind = OpKind::kReadTokens, .outputs = {{"x", type}, {"scale", type}, {"other", type}}},
      {.kind = OpKind::kAllReduce, .inputs = {"other"}, .outputs = {{"dy", type}}, .stream = "side"},
      {.kind = OpKind::kRmsNormGrad, .inputs = {"dy", "x", "scale"}, .outputs = {{"own", type}}, .frees = {"dy"}},
      {.kind = OpKind::kAdd, .inputs = {"own", "other"}, .outputs = {{"dx", type}}, .frees = {"own"}},
      {.kind = OpKind::kAllReduce, .inputs = {"other"}, .outputs = {{"more", type}}, .stream = "side"}};
  LinkedBlocks blocks(plan);
  const LinkedProgram program(blocks, role);
  ASSERT_EQ(program.problem(), "");
  const auto made_by = [&](size_t entry) {
    return program.ValueOf(program.entries()[entry], program.entries()[entry].instruction->outputs[0]);
  };
  ASSERT_EQ(made_by(3), made_by(1));
  ProgramAccesses accesses(program);
  StreamDependencies order(accesses.resources(), accesses.streams());
  for (size_t i = 0; i < 3; ++i) order.Next(accesses.of(i));
  order.Next(accesses.OfBoth(3));
  EXPECT_EQ(order.Next(accesses.of(4)), (std::vector<int64_t>{3, -1}));
}

}  // namespace
}  // namespace planwright
