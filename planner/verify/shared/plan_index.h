// Look-ups that several rules need, made once per plan: names to blocks, groups and modules; frames to the storages
// that they hold; blocks to the frames that they run for.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// A parameter slot of a block, as every rank of the module holds it.
struct Slot {
  const Storage* storage = nullptr;
  Axis axis = Axis::kTp;  // that cuts it
  int dim = -1;           // of the storage; -1: whole on every rank of every axis
  bool trained = false;
};

// Keeps references: the plan must outlive it. Calls go no deeper than kDeepestCalls (VerifyCalls).
class PlanIndex {
 public:
  PlanIndex(const Plan& plan);  // NOLINT: a rule may be handed the plan itself

  const Plan& plan() const { return plan_; }
  const Block* block(std::string_view name) const { return Find(blocks_, name); }
  const Group* group(std::string_view name) const { return Find(groups_, name); }
  const Module* module(std::string_view name) const { return Find(modules_, name); }

  // Frames that a block is called with, in order of first call.
  const std::vector<std::string_view>& FramesOf(const Block& block) const;
  // The slot of a frame, or nothing in `storage`.
  Slot SlotOf(const Module& module, std::string_view frame, std::string_view slot) const;
  const std::vector<const Storage*>& StoragesOf(const Module& module, std::string_view frame) const;

  // Sizes of a group's axes above 1, over which its members differ. The world and bridges have none.
  std::vector<Axis> WideAxes(const Group& group) const;
  // The first origin that has a line, of those given, then that of the module, then any.
  int OriginOf(int instruction, int enclosing, const Module* module) const;

 private:
  template <typename T>
  using Names = std::unordered_map<std::string_view, const T*>;
  template <typename T>
  static const T* Find(const Names<T>& names, std::string_view name) {
    auto it = names.find(name);
    return it == names.end() ? nullptr : it->second;
  }
  using Visited = std::pair<const Block*, std::string_view>;  // block, frame
  void Visit(const std::vector<Instruction>& body, std::string_view frame, std::set<Visited>& visited);

  const Plan& plan_;
  Names<Block> blocks_;
  Names<Group> groups_;
  Names<Module> modules_;
  std::unordered_map<const Block*, std::vector<std::string_view>> frames_;
  // by frame; frames start with their module's name
  std::unordered_map<std::string_view, std::vector<const Storage*>> storages_;
};

// Pipeline coordinate of the role's ranks in the module: the same for all of them (V1). -1: the role has no rank there.
int StageOf(const Role& role, const Module& module);
// Whether the role runs the module.
bool Runs(const Role& role, const Module& module);

}  // namespace planwright
