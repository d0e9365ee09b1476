#include "tests/numerics/faults/plan_fault.h"

#include <algorithm>

#include "planner/base/text/bug.h"
#include "planner/compile/schedule/blocks/block_builder.h"

namespace planwright::testing {
namespace {

template <typename List>
auto& Named(List& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
  Require(found != all.end(), "there is no " + name);
  return *found;
}

}  // namespace

Block& BlockNamed(Plan& plan, const std::string& name) { return Named(plan.blocks, name); }
Role& RoleNamed(Plan& plan, const std::string& name) { return Named(plan.roles, name); }

const Layout& LayoutNamed(const std::vector<Layout>& layouts, const std::string& name) { return Named(layouts, name); }

std::vector<Instruction>::iterator FirstOf(Block& block, OpKind kind) {
  const auto first = std::find_if(block.body.begin(), block.body.end(),
                                  [&](const Instruction& instruction) { return instruction.kind == kind; });
  Require(first != block.body.end(), "no such instruction in " + block.name);
  return first;
}

std::vector<Instruction>::iterator MakerOf(Block& block, const std::string& value) {
  for (auto op = block.body.begin(); op != block.body.end(); ++op) {
    for (const Output& output : op->outputs) {
      if (output.name == value) return op;
    }
  }
  Bug("nothing makes " + value);
}

void KeepOwnTerm(Plan& plan, const std::string& block, const std::string& sum) {
  Instruction& op = *MakerOf(BlockNamed(plan, block), sum);
  Require(op.kind == OpKind::kReduceScatter || op.kind == OpKind::kReduceScatterV || op.kind == OpKind::kScatterTokens,
          sum + " is not summed");
  op.kind = OpKind::kLocalSlice;
  op.group.clear();
  op.inputs.resize(1);
  op.attributes = {{"dim", int64_t{0}}};
}

void SwapMembers(Plan& plan, const std::string& block_name, const std::string& value, OpKind reader) {
  Block& block = BlockNamed(plan, block_name);
  const auto maker = MakerOf(block, value);
  const Output whole = *std::find_if(maker->outputs.begin(), maker->outputs.end(),
                                     [&](const Output& output) { return output.name == value; });
  Output first = whole, second = whole, swapped = whole;
  first.name += "_first", second.name += "_second", swapped.name += "_swapped";
  first.type.dims[0] = second.type.dims[0] = std::get<int64_t>(whole.type.dims[0]) / 2;
  Instruction split, join;
  split.kind = OpKind::kSplit, join.kind = OpKind::kConcat;
  split.attributes = join.attributes = {{"dim", int64_t{0}}};
  split.inputs = {value}, join.inputs = {second.name, first.name};
  split.outputs = {first, second}, join.outputs = {swapped};
  const auto reading =
      std::find_if(block.body.begin(), block.body.end(), [&](const Instruction& op) { return op.kind == reader; });
  Require(reading != block.body.end(), "nothing reads " + value);
  std::replace(reading->inputs.begin(), reading->inputs.end(), value, swapped.name);
  block.body.insert(reading, {split, join});
}

Instruction& CallOf(Role& role, const std::string& block, int microbatch) {
  const auto found = std::find_if(role.step.begin(), role.step.end(), [&](const Instruction& op) {
    return op.block == block && op.microbatch == microbatch;
  });
  Require(found != role.step.end(), "no call of " + block);
  return *found;
}

void ReadInstead(std::vector<Instruction>& list, Instruction& reader, const std::string& from, const std::string& to) {
  const auto input = std::find(reader.inputs.begin(), reader.inputs.end(), from);
  Require(input != reader.inputs.end(), "nothing reads " + from);
  *input = to;
  for (Instruction& op : list) op.frees.clear();
  FillFrees(list, {}, {});
}

}  // namespace planwright::testing
