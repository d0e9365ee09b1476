// The peak of programs that are small enough to count by hand.
#include "planner/predict/estimate/step_peak.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "planner/plan/op_table.h"
#include "tests/plan/link/random_programs.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"
#include "tests/support/naive_program.h"

namespace planwright {
namespace {

ValueType Bytes(int64_t bytes) { return {DType::kFp32, {bytes / 4}, {}, std::nullopt, false}; }
Instruction Makes(OpKind kind, std::vector<std::string> inputs, std::vector<Output> outputs,
                  std::vector<std::string> frees) {
  Instruction instruction{.kind = kind, .inputs = std::move(inputs), .outputs = std::move(outputs)};
  instruction.frees = std::move(frees);
  return instruction;
}
Instruction Call(const std::string& block, int microbatch, std::vector<std::string> inputs, std::vector<Output> outputs,
                 std::vector<std::string> frees) {
  Instruction call = Makes(OpKind::kCall, std::move(inputs), std::move(outputs), std::move(frees));
  call.block = block;
  call.frame = "m.layers.0";
  call.microbatch = microbatch;
  return call;
}

// forward: x 400 -> gathered 800 (communication) -> y 400, scratch 1200; keeps x and gathered. backward: takes them,
// makes dx 400.
Plan TwoBlocks() {
  Plan plan;
  Block forward;
  forward.name = "m.forward";
  forward.inputs = {{"x", Bytes(400)}};
  forward.body = {Makes(OpKind::kAllGather, {"x"}, {{"gathered", Bytes(800)}}, {}),
                  Makes(OpKind::kSquaredRelu, {"gathered"}, {{"scratch", Bytes(1200)}}, {}),
                  Makes(OpKind::kAdd, {"scratch"}, {{"y", Bytes(400)}}, {"scratch"})};
  forward.outputs = {"y"};
  forward.saved = {"x", "gathered"};
  Block backward;
  backward.name = "m.backward";
  backward.takes = {{"x", Bytes(400)}, {"gathered", Bytes(800)}};
  backward.body = {Makes(OpKind::kAdd, {"gathered"}, {{"dg", Bytes(800)}}, {"gathered"}),
                   Makes(OpKind::kAdd, {"dg", "x"}, {{"dx", Bytes(400)}}, {"dg", "x"})};
  backward.outputs = {"dx"};
  plan.blocks = {forward, backward};
  return plan;
}

StepPeak PeakAt(const Plan& plan, const Role& role, SizeCase sizes) {
  LinkedBlocks blocks(plan);
  InstructionCosts costs(blocks);
  const LinkedProgram program(blocks, role);
  costs.Add(program.step_list());
  return FindPeak(program, program.step(), costs, sizes);
}

// StepPeak points into the plan, so plans and roles live until the test program ends.
StepPeak PeakOf(Plan given, std::vector<Instruction> step) {
  static std::deque<Plan> plans;
  static std::deque<Role> roles;
  const Plan& plan = plans.emplace_back(std::move(given));
  Role& role = roles.emplace_back();
  role.step = std::move(step);
  return PeakAt(plan, role, SizeCase::kPlanned);
}

TEST(StepPeak, CountsAForward) {
  const StepPeak peak = PeakOf(TwoBlocks(), {Makes(OpKind::kReadTokens, {}, {{"x", Bytes(400)}}, {}),
                                             Call("m.forward", 0, {"x"}, {{"y", Bytes(400)}}, {"x", "y"})});
  EXPECT_EQ(peak.communication, 800);             // gathered, before it is kept
  EXPECT_EQ(peak.activations, 400 + 1200 + 400);  // x, scratch, y
  EXPECT_EQ(peak.workspace, 1200);                // a copy of scratch
  EXPECT_EQ(peak.frame, "m.layers.0");
  EXPECT_EQ(peak.block->name, "m.forward");
  EXPECT_EQ(peak.instruction->kind, OpKind::kAdd);
}

TEST(StepPeak, KeepsFramesUntilTheyAreTaken) {
  const auto read = [](int m) { return Makes(OpKind::kReadTokens, {}, {{"x" + std::to_string(m), Bytes(400)}}, {}); };
  const auto forward = [](int m) {
    const std::string x = "x" + std::to_string(m), y = "y" + std::to_string(m);
    return Call("m.forward", m, {x}, {{y, Bytes(400)}}, {x, y});
  };
  const auto backward = [](int m) {
    return Call("m.backward", m, {}, {{"dx" + std::to_string(m), Bytes(400)}}, {"dx" + std::to_string(m)});
  };
  // One at a time: the second forward starts from nothing.
  EXPECT_EQ(PeakOf(TwoBlocks(), {read(0), forward(0), backward(0), read(1), forward(1), backward(1)}).total(),
            2800 + 1200);
  // Two in flight: what the first keeps, x 400 and gathered 800, is now an activation and stays.
  const StepPeak two = PeakOf(TwoBlocks(), {read(0), forward(0), read(1), forward(1), backward(0), backward(1)});
  EXPECT_EQ(two.total(), 2800 + 1200 + 1200);
  EXPECT_EQ(two.communication, 800);
  // A block that frees what it took makes room for what it makes: 1200 kept, dg 800 and a copy of it beside it.
  Plan plan = TwoBlocks();
  plan.blocks[0].body[1].outputs[0].type = Bytes(4);
  EXPECT_EQ(PeakOf(plan, {read(0), forward(0), backward(0)}).total(), 2000 + 800);
}

// A GPU makes a product and gelu of it as one, from x, which dies with the product. x has the number that y gets.
TEST(StepPeak, TwoAsOneHoldWhatDiesWithTheFirst) {
  Plan plan;
  plan.precision = "bf16";
  Block forward;
  forward.name = "m.forward";
  forward.inputs = {{"z", Bytes(40)}};
  forward.body = {Makes(OpKind::kRmsNorm, {"z"}, {{"x", Bytes(400)}}, {}),
                  Makes(OpKind::kLinear, {"x"}, {{"pre", Bytes(800)}}, {"x"}),
                  Makes(OpKind::kGelu, {"pre"}, {{"y", Bytes(1200)}}, {"pre"}),
                  Makes(OpKind::kLinear, {"y"}, {{"out", Bytes(1600)}}, {"y"})};
  forward.outputs = {"out"};
  plan.blocks = {forward};
  const std::vector<Instruction> step = {Makes(OpKind::kReadTokens, {}, {{"z", Bytes(40)}}, {}),
                                         Call("m.forward", 0, {"z"}, {{"out", Bytes(4)}}, {"z", "out"})};
  const auto activations = [&](const std::string& gpu, const Plan& of) {
    Plan on = of;
    on.cluster.gpu = gpu;
    return PeakOf(on, step).activations;
  };
  EXPECT_EQ(activations("h100_sxm", plan), 40 + 1200 + 1600);
  plan.blocks[0].body[3].outputs[0].type = Bytes(4);
  EXPECT_EQ(activations("h100_sxm", plan), 40 + 400 + 800 + 1200);
  EXPECT_EQ(activations("none", plan), 40 + 800 + 1200);
  plan.blocks[0].body[2].attributes = {{"erf", int64_t{1}}};
  EXPECT_EQ(activations("h100_sxm", plan), 40 + 800 + 1200);
}

TEST(StepPeak, AValueWithTwoNamesIsOneValue) {
  // x stays with the frame when its maker frees it, and is counted once while both have it.
  Plan plan = TwoBlocks();
  const StepPeak kept = PeakOf(plan, {Makes(OpKind::kReadTokens, {}, {{"x", Bytes(400)}}, {}),
                                      Call("m.forward", 0, {"x"}, {{"y", Bytes(400)}}, {"y"}),
                                      Makes(OpKind::kReadTokens, {}, {{"big", Bytes(4000)}}, {"big", "x"})});
  EXPECT_EQ(kept.total(), 400 + 800 + 4000);
}

TEST(StepPeak, SizesAtRunTimeAreTakenAsAsked) {
  Plan plan;
  plan.symbols = {{"rows", 100, "", 60, 30}};
  Role role;
  role.step = {Makes(OpKind::kAllToAllV, {},
                     {{"r", {DType::kFp32, {Dim("rows"), Dim(int64_t{2})}, {}, std::nullopt, false}}}, {"r"})};
  EXPECT_EQ(PeakAt(plan, role, SizeCase::kPlanned).communication, 60 * 8);
  EXPECT_EQ(PeakAt(plan, role, SizeCase::kWorst).communication, 100 * 8);
}

TEST(StepPeak, HostValuesTakeNoDeviceMemory) {
  ValueType host = Bytes(4000);
  host.host = true;
  EXPECT_EQ(PeakOf({}, {Makes(OpKind::kReadImages, {}, {{"grid", host}}, {"grid"})}).total(), 0);
}

TEST(StepPeak, EndsOnABlockThatCallsItself) {
  Plan plan;
  Block block;
  block.name = "m.forward";
  block.body = {Call("m.forward", 0, {}, {}, {})};
  plan.blocks = {block};
  EXPECT_EQ(PeakOf(plan, {Call("m.forward", 0, {}, {}, {})}).total(), 0);
}

// What the list of an instruction says of a value: a block of its inputs, and every list of what its instructions make.
// Random programs pass values of other sizes. Null: the name is state.
const ValueType* DeclaredType(const Role& role, const Block* block, const std::string& name) {
  const ValueType* type = nullptr;
  const auto look = [&](const std::vector<Output>& outputs) {
    for (const Output& output : outputs) {
      if (output.name == name && !IsStateName(name)) type = &output.type;
    }
  };
  if (block != nullptr) look(block->inputs), look(block->takes);
  for (const Instruction& instruction : block == nullptr ? role.step : block->body) look(instruction.outputs);
  return type;
}

// Bytes of temporary tensors: in bf16 on a GPU by the table's formula, else a wide copy of the largest operand.
// `elements(type)`: of a value on the device.
template <typename Elements>
int64_t WorkspaceOf(const Plan& plan, const Role& role, const testing::NaiveProgram::Visit& visit,
                    const Elements& elements) {
  const Instruction& instruction = *visit.instruction;
  if (OpClassOf(instruction.kind) != OpClass::kCompute) return 0;
  std::map<std::string, const ValueType*> operands;  // "i0", "o1"
  for (size_t i = 0; i < instruction.inputs.size(); ++i) {
    if (const ValueType* type = DeclaredType(role, visit.block, instruction.inputs[i]))
      operands["i" + std::to_string(i)] = type;
  }
  for (size_t i = 0; i < instruction.outputs.size(); ++i)
    operands["o" + std::to_string(i)] = &instruction.outputs[i].type;
  if (plan.precision == "bf16" && plan.cluster.gpu != "none") {
    const std::optional<Expression>& formula = InfoOf(instruction.kind).workspace;
    if (!formula) return 0;
    return static_cast<int64_t>(formula->Evaluate([&](const std::string& name) -> double {
      if (name == "weights") return instruction.gradients.empty() ? 0 : 1;
      if (name == "deterministic") return plan.deterministic ? 1 : 0;
      if (const int64_t* attribute = instruction.FindInteger(name)) return static_cast<double>(*attribute);
      const size_t open = name.find('(');
      if (open == std::string::npos) return name == "cp" ? 1 : 0;
      const auto operand = operands.find(name.substr(open + 1, 2));
      if (operand == operands.end()) return 0;  // an optional input
      ValueType type = *operand->second;
      type.host = false;  // formulas count elements wherever they are
      const auto last = static_cast<double>(std::get<int64_t>(type.dims.back())),
                 all = static_cast<double>(elements(type));
      if (name.starts_with("elements")) return all;
      if (name.starts_with("last")) return last;
      if (name.starts_with("first")) return static_cast<double>(std::get<int64_t>(type.dims.front()));
      EXPECT_TRUE(name.starts_with("rows")) << name;
      return all / last;
    }));
  }
  int64_t largest = 0;
  for (const auto& [name, type] : operands) largest = std::max(largest, elements(*type));
  return largest * DTypeBytes(plan.master());
}

// Each time 4000 bytes of temporary tensors come on top: a copy of the largest operand.
TEST(StepPeak, WhatIsOverwrittenIsCountedOnce) {
  const std::vector<std::string> operands = {"logits", "m"};
  const Instruction read = Makes(OpKind::kReadTokens, {}, {{"logits", Bytes(4000)}, {"m", Bytes(40)}}, {});
  const auto grad = [&](std::vector<std::string> frees) {
    return Makes(OpKind::kCrossEntropyGrad, operands, {{"dlogits", Bytes(4000)}}, std::move(frees));
  };
  EXPECT_EQ(PeakOf({}, {read, grad({"logits", "m", "dlogits"})}).total(), 4040 + 4000);
  // Something reads the logits later: the gradient has memory of its own.
  EXPECT_EQ(PeakOf({}, {read, grad({"m"}), Makes(OpKind::kAdd, {"logits"}, {}, {"logits", "dlogits"})}).total(),
            8040 + 4000);
  // Another kind overwrites nothing.
  EXPECT_EQ(PeakOf({}, {read, Makes(OpKind::kAdd, operands, {{"y", Bytes(4000)}}, {"logits", "m", "y"})}).total(),
            8040 + 4000);
  // The gradient lives on in the memory of the logits.
  const Instruction next = Makes(OpKind::kAdd, {"dlogits"}, {{"dx", Bytes(400)}}, {"dlogits", "dx"});
  EXPECT_EQ(PeakOf({}, {read, grad({"logits", "m"}), next}).total(), 4400 + 4000);
}

// The number of the value that the instruction overwrites, if it dies before the next one; 0: none.
int Overwritten(const testing::NaiveProgram::Visit& visit) {
  const Instruction& op = *visit.instruction;
  const std::optional<size_t> input = InfoOf(op.kind).overwrites;
  if (!input || *input >= op.inputs.size() || op.outputs.empty()) return 0;
  const int number = visit.names->at(op.inputs[*input])->number;
  const auto same = [&](const std::string& name) { return visit.names->at(name)->number == number; };
  return std::count_if(op.inputs.begin(), op.inputs.end(), same) == 1 ? number : 0;
}

// The same by brute force: at every instruction, the bytes of all that something names.
void ExpectPeaksOfBruteForce(const Plan& plan) {
  const auto bytes = [&](const ValueType& type, SizeCase sizes) {
    int64_t size = type.host ? 0 : DTypeBytes(type.dtype);
    for (const Dim& dim : type.dims) {
      if (const auto* number = std::get_if<int64_t>(&dim)) {
        size *= *number;
        continue;
      }
      for (const Symbol& symbol : plan.symbols) {
        if (symbol.name != std::get<std::string>(dim)) continue;
        size *= sizes == SizeCase::kPlanned && symbol.expected > 0 ? symbol.expected : symbol.maximum;
      }
    }
    return size;
  };
  for (const Role& role : plan.roles) {
    for (SizeCase sizes : {SizeCase::kPlanned, SizeCase::kWorst}) {
      int64_t activations = 0, communication = 0, workspace = 0;
      const Instruction* fullest = nullptr;
      std::unique_ptr<testing::NaiveProgram> program;
      // The last instruction visited: what dies after it is known at the next one.
      const Instruction* last = nullptr;
      int64_t held[2] = {0, 0}, beside = 0, overwritten_bytes = 0;
      int overwritten = 0, overwritten_kind = 0;
      const auto settle = [&] {
        if (overwritten != 0 && !program->alive().contains(overwritten)) held[overwritten_kind] -= overwritten_bytes;
        if (held[0] + held[1] + beside <= activations + communication + workspace) return;
        activations = held[0], communication = held[1], workspace = beside, fullest = last;
      };
      program = std::make_unique<testing::NaiveProgram>(plan, [&](const testing::NaiveProgram::Visit& visit) {
        settle();
        last = visit.instruction, overwritten = Overwritten(visit);
        beside = WorkspaceOf(plan, role, visit,
                             [&](const ValueType& type) { return bytes(type, sizes) / DTypeBytes(type.dtype); });
        held[0] = held[1] = 0;
        for (const auto& [number, value] : program->alive()) {
          const int kind = value->communicated && !value->kept;
          held[kind] += bytes(*value->type, sizes);
          if (number == overwritten) overwritten_kind = kind, overwritten_bytes = bytes(*value->type, sizes);
        }
      });
      program->Run(role.step);
      settle();
      const StepPeak peak = PeakAt(plan, role, sizes);
      EXPECT_EQ(peak.activations, activations) << plan.name << " " << role.name;
      EXPECT_EQ(peak.communication, communication) << plan.name << " " << role.name;
      EXPECT_EQ(peak.workspace, workspace) << plan.name << " " << role.name;
      EXPECT_EQ(peak.instruction, fullest) << plan.name << " " << role.name;
    }
  }
}

TEST(StepPeak, IsWhatBruteForceFinds) {
  for (unsigned seed = 0; seed < 200; ++seed) ExpectPeaksOfBruteForce(testing::RandomProgram(seed).Make());
  for (const char* recipe :
       {"nemotron_moe_vlm_20l_mock_8r.yaml", "nemotron_moe_vlm_54l_17n.yaml", "nemotron_moe_vlm_54l_33n_stage1.yaml"}) {
    ExpectPeaksOfBruteForce(testing::CompiledFile(InSource("recipes/") + recipe));
  }
}

}  // namespace
}  // namespace planwright
