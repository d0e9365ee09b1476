// The walk on programs small enough to count by hand.
#include "planner/estimate/memory_walk.h"

#include <gtest/gtest.h>

#include <deque>

namespace planwright {
namespace {

ValueType Bytes(int64_t bytes) { return {DType::kFp32, {bytes / 4}, {}, std::nullopt, false}; }
Instruction Makes(OpKind kind, std::vector<std::string> inputs, std::vector<Output> outputs, std::vector<std::string> frees) {
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

// forward: x 400 -> gathered 800 (communication) -> y 400, scratch 1200; keeps x and gathered. backward: takes them, makes dx 400.
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

// What the peak points at lives as long as the test program.
StepPeak PeakOf(Plan given, std::vector<Instruction> step) {
  static std::deque<Plan> plans;
  static std::deque<Role> roles;
  const Plan& plan = plans.emplace_back(std::move(given));
  Role& role = roles.emplace_back();
  role.step = std::move(step);
  ProgramIndex index(plan);
  return WalkStep(index, index.IndexStep(role)).planned;
}

TEST(MemoryWalk, CountsAForward) {
  const StepPeak peak =
      PeakOf(TwoBlocks(), {Makes(OpKind::kReadTokens, {}, {{"x", Bytes(400)}}, {}), Call("m.forward", 0, {"x"}, {{"y", Bytes(400)}}, {"x", "y"})});
  EXPECT_EQ(peak.communication, 800);                // gathered, before it is kept
  EXPECT_EQ(peak.activations, 400 + 1200 + 400);     // x, scratch, y
  EXPECT_EQ(peak.frame, "m.layers.0");
  EXPECT_EQ(peak.block->name, "m.forward");
  EXPECT_EQ(peak.instruction->kind, OpKind::kAdd);
}

TEST(MemoryWalk, KeepsFramesUntilTheyAreTaken) {
  const auto read = [](int m) { return Makes(OpKind::kReadTokens, {}, {{"x" + std::to_string(m), Bytes(400)}}, {}); };
  const auto forward = [](int m) {
    const std::string x = "x" + std::to_string(m), y = "y" + std::to_string(m);
    return Call("m.forward", m, {x}, {{y, Bytes(400)}}, {x, y});
  };
  const auto backward = [](int m) { return Call("m.backward", m, {}, {{"dx" + std::to_string(m), Bytes(400)}}, {"dx" + std::to_string(m)}); };
  // One at a time: the second forward starts from nothing.
  EXPECT_EQ(PeakOf(TwoBlocks(), {read(0), forward(0), backward(0), read(1), forward(1), backward(1)}).total(), 2800);
  // Two in flight: what the first keeps, x 400 and gathered 800, is now an activation and stays.
  const StepPeak two = PeakOf(TwoBlocks(), {read(0), forward(0), read(1), forward(1), backward(0), backward(1)});
  EXPECT_EQ(two.total(), 2800 + 1200);
  EXPECT_EQ(two.communication, 800);
  // A block that frees what it took makes room for what it makes: 1200 kept, dg 800 beside it.
  Plan plan = TwoBlocks();
  plan.blocks[0].body[1].outputs[0].type = Bytes(4);
  EXPECT_EQ(PeakOf(plan, {read(0), forward(0), backward(0)}).total(), 2000);
}

TEST(MemoryWalk, AValueWithTwoNamesIsOneValue) {
  // x stays with the frame when its maker frees it, and is counted once while both have it.
  Plan plan = TwoBlocks();
  const StepPeak kept =
      PeakOf(plan, {Makes(OpKind::kReadTokens, {}, {{"x", Bytes(400)}}, {}), Call("m.forward", 0, {"x"}, {{"y", Bytes(400)}}, {"y"}),
                    Makes(OpKind::kReadTokens, {}, {{"big", Bytes(4000)}}, {"big", "x"})});
  EXPECT_EQ(kept.total(), 400 + 800 + 4000);
}

TEST(MemoryWalk, SizesAtRunTimeAreTakenAsAsked) {
  Plan plan;
  plan.symbols = {{"rows", 100, "", 60, 30}};
  Role role;
  role.step = {Makes(OpKind::kAllToAllV, {}, {{"r", {DType::kFp32, {Dim("rows"), Dim(int64_t{2})}, {}, std::nullopt, false}}}, {"r"})};
  ProgramIndex index(plan);
  const BlockCode step = index.IndexStep(role);
  EXPECT_EQ(WalkStep(index, step).planned.communication, 60 * 8);
  EXPECT_EQ(WalkStep(index, step).worst.communication, 100 * 8);
}

TEST(MemoryWalk, HostValuesTakeNoDeviceMemory) {
  ValueType host = Bytes(4000);
  host.host = true;
  EXPECT_EQ(PeakOf({}, {Makes(OpKind::kReadImages, {}, {{"grid", host}}, {"grid"})}).total(), 0);
}

TEST(MemoryWalk, EndsOnABlockThatCallsItself) {
  Plan plan;
  Block block;
  block.name = "m.forward";
  block.body = {Call("m.forward", 0, {}, {}, {})};
  plan.blocks = {block};
  EXPECT_EQ(PeakOf(plan, {Call("m.forward", 0, {}, {}, {})}).total(), 0);
}

}  // namespace
}  // namespace planwright
