#include "planner/compile/schedule/programs/program_length.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/text/limits.h"

namespace planwright {
namespace {

struct Length {
  int64_t instructions = 0, calls = 0;
  void Add(const Length& more) { instructions += more.instructions, calls += more.calls; }
};

// Measures lists of instructions with all blocks that they call. Each block is measured once. Lowered blocks do not
// call themselves, so this ends.
class OpenedLengths {
 public:
  explicit OpenedLengths(const std::vector<Block>& blocks) {
    for (const Block& block : blocks) blocks_.emplace(block.name, &block);
  }

  Length Of(const std::vector<Instruction>& list) {
    Length length = {.instructions = static_cast<int64_t>(list.size())};
    for (const Instruction& instruction : list) {
      if (instruction.kind != OpKind::kCall) continue;
      ++length.calls;
      length.Add(OfBlock(instruction.block));
    }
    return length;
  }

 private:
  // Most blocks are called many times, by stages and microbatches.
  Length OfBlock(std::string_view name) {
    if (const auto known = known_.find(name); known != known_.end()) return known->second;
    return known_[name] = Of(blocks_.at(name)->body);
  }

  std::map<std::string_view, const Block*> blocks_;
  std::map<std::string_view, Length> known_;
};

// Blocks count by themselves too: rules of verify open each of them.
Length LengthOf(const std::vector<Block>& blocks, const std::vector<Role>& roles) {
  OpenedLengths lengths(blocks);
  Length all;
  for (const Block& block : blocks) all.Add(lengths.Of(block.body));
  for (const Role& role : roles) {
    for (const RoleList& part : kRoleLists) all.Add(lengths.Of(role.*part.list));
  }
  return all;
}

}  // namespace

double PartOfLongest(const Plan& plan) {
  const Length all = LengthOf(plan.blocks, plan.roles);
  auto passed = static_cast<int64_t>(plan.bridges.size());
  for (const Module& module : plan.modules) passed += module.grid.pp;
  const auto part = [](int64_t of, int64_t most) { return static_cast<double>(of) / static_cast<double>(most); };
  return std::max({part(all.instructions, kMostInstructions), part(all.calls, kMostCalls),
                   part(plan.budget.microbatches * passed, kMostPassages)});
}

bool CheckLength(const Recipe& recipe, const Budget& budget, const std::vector<Block>& blocks,
                 const std::vector<Role>& roles, Diagnostics& diagnostics) {
  const Length all = LengthOf(blocks, roles);
  if (all.instructions <= kMostInstructions && all.calls <= kMostCalls) return true;
  diagnostics.Error(
      DiagnosticKind::kOutOfRange, recipe.batch.global_samples.where,
      absl::StrCat("a step of ", budget.microbatches,
                   " microbatches is too long to plan: the programs of all roles are ", all.instructions,
                   " instructions in ", all.calls, " calls"),
      absl::StrCat("a plan has at most ", kMostInstructions, " in ", kMostCalls,
                   ": use fewer global_samples, more samples a microbatch, more lanes, or less recompute"));
  return false;
}

}  // namespace planwright
