#include "tests/support/canonical_plan.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "planner/plan/op_table.h"
#include "planner/plan/plan_json.h"

namespace planwright::testing {
namespace {

using std::string;
using std::string_view;

// Calls of all blocks and roles: visit(list, block), block null for a list of a role.
void ForEachList(const Plan& plan, const std::function<void(const std::vector<Instruction>&, const Block*)>& visit) {
  for (const Block& block : plan.blocks) visit(block.body, &block);
  for (const Role& role : plan.roles) {
    for (const RoleList& list : kRoleLists) visit(role.*list.list, nullptr);
  }
}

// Which values are gradients. What a block is given depends on its callers, and what it returns on what it is given.
// So every input and output of a block counts as a gradient at first, and one round after the other takes away those
// that are none, until nothing changes.
class Gradients {
 public:
  explicit Gradients(const Plan& plan) {
    for (const Block& block : plan.blocks)
      blocks_[block.name] = {std::vector<bool>(block.inputs.size(), false),
                             std::vector<bool>(block.outputs.size(), true)};
    ForEachList(plan, [&](const std::vector<Instruction>& list, const Block*) {
      for (const Instruction& instruction : list) {
        if (const auto called = blocks_.find(instruction.block); called != blocks_.end())
          called->second.inputs.assign(called->second.inputs.size(), true);
      }
    });
    do {
      changed_ = false;
      ForEachList(plan, [&](const std::vector<Instruction>& list, const Block* block) { Round(list, block); });
    } while (changed_);
  }

  // Drops the layouts of gradients' gradients.
  void DropIn(Block& block) const {
    std::unordered_set<string_view> gradients = GivenTo(block);
    for (Output& input : block.inputs) {
      if (gradients.contains(input.name)) input.type.gradient = std::nullopt;
    }
    DropIn(block.body, std::move(gradients));
  }
  void DropIn(std::vector<Instruction>& list) const { DropIn(list, {}); }

 private:
  // By index: whether the value is a gradient in every call.
  struct Ends {
    std::vector<bool> inputs, outputs;
  };
  using Names = std::unordered_set<string_view>;

  Names GivenTo(const Block& block) const {
    Names given;
    const std::vector<bool>& inputs = blocks_.at(block.name).inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i]) given.insert(block.inputs[i].name);
    }
    return given;
  }

  // Adds the instruction's outputs that are gradients to those of the list.
  void Pass(const std::vector<Instruction>& list, size_t at, Names& gradients) const {
    const Instruction& instruction = list[at];
    const auto reads = [&](const string& name) { return gradients.contains(name); };
    const bool all =
        instruction.kind != OpKind::kCall && (!InfoOf(instruction.kind).transposes.empty() ||
                                              std::any_of(instruction.inputs.begin(), instruction.inputs.end(), reads));
    for (size_t i = 0; i < instruction.outputs.size(); ++i) {
      const string& name = instruction.outputs[i].name;
      bool made = all;
      if (instruction.kind == OpKind::kCall) {
        const auto called = blocks_.find(instruction.block);
        made = called != blocks_.end() && i < called->second.outputs.size() && called->second.outputs[i];
      } else if (instruction.kind == OpKind::kExchange) {
        made = std::any_of(instruction.parts.begin(), instruction.parts.end(),
                           [&](const ExchangePart& part) { return !part.send && part.backward && part.value == name; });
      } else if (instruction.kind == OpKind::kBroadcast && instruction.inputs.size() == 1) {
        made = IsArgumentForGradient(list, at, name);  // only the root reads what is sent
      }
      if (made) gradients.insert(name);
    }
  }

  // Whether a call behind `at` passes the value where all other callers pass a gradient.
  bool IsArgumentForGradient(const std::vector<Instruction>& list, size_t at, string_view name) const {
    for (size_t next = at + 1; next < list.size(); ++next) {
      const auto called = blocks_.find(list[next].block);
      if (called == blocks_.end()) continue;
      const std::vector<bool>& inputs = called->second.inputs;
      for (size_t i = 0; i < std::min(inputs.size(), list[next].inputs.size()); ++i) {
        if (list[next].inputs[i] == name) return inputs[i];
      }
    }
    return false;
  }

  void Round(const std::vector<Instruction>& list, const Block* block) {
    Names gradients = block ? GivenTo(*block) : Names();
    for (size_t at = 0; at < list.size(); ++at) {
      if (const auto called = blocks_.find(list[at].block); called != blocks_.end())
        KeepOnly(list[at].inputs, gradients, called->second.inputs);
      Pass(list, at, gradients);
    }
    if (block) KeepOnly(block->outputs, gradients, blocks_.at(block->name).outputs);
  }

  void KeepOnly(const std::vector<string>& names, const Names& gradients, std::vector<bool>& known) {
    for (size_t i = 0; i < std::min(names.size(), known.size()); ++i) {
      if (!known[i] || gradients.contains(names[i])) continue;
      known[i] = false;
      changed_ = true;
    }
  }

  void DropIn(std::vector<Instruction>& list, Names gradients) const {
    for (size_t at = 0; at < list.size(); ++at) {
      Pass(list, at, gradients);
      for (Output& output : list[at].outputs) {
        if (gradients.contains(output.name)) output.type.gradient = std::nullopt;
      }
    }
  }

  std::unordered_map<string_view, Ends> blocks_;  // by name
  bool changed_ = false;
};

// For each block: the blocks that are called with a frame of it. Values pass from those that save to those that take.
std::map<string_view, std::set<const Block*>> BlocksOfSameFrame(const Plan& plan) {
  std::unordered_map<string_view, std::set<const Block*>> by_frame;
  ForEachList(plan, [&](const std::vector<Instruction>& list, const Block*) {
    for (const Instruction& instruction : list) {
      if (const Block* called = plan.FindBlock(instruction.block); called && !instruction.frame.empty())
        by_frame[instruction.frame].insert(called);
    }
  });
  std::map<string_view, std::set<const Block*>> same;
  for (const auto& [frame, blocks] : by_frame) {
    for (const Block* block : blocks) same[block->name].insert(blocks.begin(), blocks.end());
  }
  return same;
}

// The new names of a list's values, as of the instruction that is renamed.
class Names {
 public:
  const string& Define(const string& name) {
    char number[24];
    std::snprintf(number, sizeof(number), "v%03d", next_++);
    return Define(name, number);
  }
  const string& Define(const string& name, string made) { return now_[name] = std::move(made); }

  // A name that nothing defines keeps itself, marked: no value has such a name.
  string Of(const string& name) const {
    if (IsStateName(name)) return name;
    const auto found = now_.find(name);
    return found == now_.end() ? "?" + name : found->second;
  }
  void Replace(std::vector<string>& names) const {
    for (string& name : names) name = Of(name);
  }

 private:
  std::unordered_map<string, string> now_;
  int next_ = 0;
};

void Rename(std::vector<Instruction>& list, Names& names) {
  for (Instruction& instruction : list) {
    instruction.origin = -1;
    names.Replace(instruction.inputs);
    for (ExchangePart& part : instruction.parts) {
      if (!part.sizes.empty()) part.sizes = names.Of(part.sizes);
      if (part.send) part.value = names.Of(part.value);
    }
    for (Output& output : instruction.outputs) {
      if (!IsStateName(output.name)) output.name = names.Define(output.name);
    }
    for (ExchangePart& part : instruction.parts) {
      if (!part.send) part.value = names.Of(part.value);
    }
    names.Replace(instruction.frees);
    std::sort(instruction.frees.begin(), instruction.frees.end());
  }
}

// Renames what the block defines but what it takes, which has its names already.
void Rename(Block& block, Names names) {
  block.origin = -1;
  for (Output& input : block.inputs) input.name = names.Define(input.name);
  Rename(block.body, names);
  names.Replace(block.outputs);
  names.Replace(block.saved);
  std::sort(block.saved.begin(), block.saved.end());
  for (Probe& probe : block.probes) probe.value = names.Of(probe.value);
}

// Names the values that blocks take, by the blocks that save them.
class Takes {
 public:
  explicit Takes(const Plan& plan) : same_frame_(BlocksOfSameFrame(plan)) {}

  string NameOf(const Block& block, const string& name) const {
    std::set<string> savers;
    if (const auto others = same_frame_.find(block.name); others != same_frame_.end()) {
      for (const Block* other : others->second) {
        const bool saves = std::find(other->saved.begin(), other->saved.end(), name) != other->saved.end();
        if (saves && other != &block) savers.insert(other->name + ":" + NameWithin(*other, name));
      }
    }
    string made;
    for (const string& saver : savers) made += (made.empty() ? "" : "|") + saver;
    return made.empty() ? "?" + name : made;
  }

 private:
  // What makes the value in the block that saves it: "input 1", or kind, slots and output of an instruction, with a
  // number if there are several of these: "linear(shared_up) 0". Not its number in the block, so that what comes and
  // goes elsewhere in a forward does not change its backward.
  static string NameWithin(const Block& block, const string& name) {
    for (const Output& take : block.takes) {
      if (take.name == name) return "taken";  // handed on; the block that it was taken from saves it too
    }
    for (size_t i = 0; i < block.inputs.size(); ++i) {
      if (block.inputs[i].name == name) return "input " + std::to_string(i);
    }
    std::map<string, int> count;
    for (const Instruction& instruction : block.body) {
      string what = string(OpName(instruction.kind)) + "(";
      for (const string& slot : instruction.parameters) what += (what.back() == '(' ? "" : " ") + slot;
      what += ")";
      const int same = ++count[what];
      for (size_t i = 0; i < instruction.outputs.size(); ++i) {
        if (instruction.outputs[i].name != name) continue;
        return what + " " + std::to_string(i) + (same > 1 ? " #" + std::to_string(same) : "");
      }
    }
    return "?" + name;
  }

  std::map<string_view, std::set<const Block*>> same_frame_;
};

}  // namespace

Plan CanonicalPlan(Plan plan) {
  const Gradients gradients(plan);
  std::vector<Names> names(plan.blocks.size());
  const Takes takes(plan);
  std::vector<std::vector<Output>> taken(plan.blocks.size());
  // All takes first: they are named by names of other blocks as they are now.
  for (size_t i = 0; i < plan.blocks.size(); ++i) {
    for (const Output& take : plan.blocks[i].takes)
      taken[i].push_back({names[i].Define(take.name, takes.NameOf(plan.blocks[i], take.name)), take.type});
    std::sort(taken[i].begin(), taken[i].end(), [](const Output& a, const Output& b) { return a.name < b.name; });
  }
  for (Block& block : plan.blocks) gradients.DropIn(block);
  for (Role& role : plan.roles) {
    role.origin = -1;
    for (const RoleList& list : kRoleLists) gradients.DropIn(role.*list.list);
  }
  for (size_t i = 0; i < plan.blocks.size(); ++i) {
    plan.blocks[i].takes = std::move(taken[i]);
    Rename(plan.blocks[i], std::move(names[i]));
  }
  for (Role& role : plan.roles) {
    for (const RoleList& list : kRoleLists) {
      Names own;
      Rename(role.*list.list, own);
    }
  }
  return plan;
}

string CanonicalDigest(const Plan& plan) { return PlanDigest(CanonicalPlan(plan)); }

}  // namespace planwright::testing
