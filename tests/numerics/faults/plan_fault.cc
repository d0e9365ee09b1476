#include "tests/numerics/faults/plan_fault.h"

#include <algorithm>

#include "planner/diagnostics/bug.h"
#include "planner/schedule/blocks/block_builder.h"

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

Instruction& CallOf(Role& role, const std::string& block, int microbatch) {
  const auto found = std::find_if(role.step.begin(), role.step.end(), [&](const Instruction& op) {
    return op.block == block && op.microbatch == microbatch;
  });
  Require(found != role.step.end(), "no call of " + block);
  return *found;
}

void ReadInstead(std::vector<Instruction>& list, Instruction& reader, const std::string& from, const std::string& to) {
  const auto place = std::find(reader.inputs.begin(), reader.inputs.end(), from);
  Require(place != reader.inputs.end(), "nothing reads " + from);
  *place = to;
  for (Instruction& op : list) op.frees.clear();
  FillFrees(list, {}, {});
}

}  // namespace planwright::testing
