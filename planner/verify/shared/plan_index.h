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

// What a slot name stands for in one frame, and how the storage is cut over the module's ranks.
struct Slot {
  const Storage* storage = nullptr;  // null: the frame has no such slot
  Axis axis = Axis::kTp;             // cuts the storage, where `dim` says so
  int dim = -1;                      // cut dim of the storage; -1: whole on every rank
  bool trained = false;
};

// Keeps references: the plan must outlive it. Expects what VerifyCalls promises, since it follows calls. A name that a
// damaged plan uses twice stands for the first that has it.
class PlanIndex {
 public:
  PlanIndex(const Plan& plan);  // NOLINT: a rule may be given the plan itself

  const Plan& plan() const { return plan_; }
  // Null: the plan has none of this name.
  const Block* block(std::string_view name) const { return Find(blocks_, name); }
  const Group* group(std::string_view name) const { return Find(groups_, name); }
  const Module* module(std::string_view name) const { return Find(modules_, name); }

  // Frames that a block is called with, in order of first call. A block is written once for all layers of a kind, so
  // what a rule reads of a slot must hold in each of them.
  const std::vector<std::string_view>& FramesOf(const Block& block) const;
  // Whether a round of an evaluation calls the block, directly or inside others.
  bool Evaluates(const Block& block) const { return evaluated_.contains(&block); }
  // Those of the frame itself, and those that it shares with another (Storage::shared).
  const std::vector<const Storage*>& StoragesOf(std::string_view frame) const;
  // `module`: of the frame.
  Slot SlotOf(const Module& module, std::string_view frame, std::string_view slot) const;

  // The group's axes of size above 1: those along which its members differ. Empty for the world and for bridges.
  std::vector<Axis> WideAxes(const Group& group) const;
  // The first of these that is an origin: of the instruction, of the block or role around it, of the module, of any
  // module. -1: none.
  int OriginOf(int instruction, int enclosing, const Module* module) const;

 private:
  template <typename T>
  using ByName = std::unordered_map<std::string_view, const T*>;
  template <typename T>
  static const T* Find(const ByName<T>& names, std::string_view name) {
    auto it = names.find(name);
    return it == names.end() ? nullptr : it->second;
  }
  using BlockInFrame = std::pair<const Block*, std::string_view>;
  void CollectEvaluated(const std::vector<Instruction>& body);
  void CollectFrames(const std::vector<Instruction>& body, std::string_view frame, std::set<BlockInFrame>& visited);

  const Plan& plan_;
  ByName<Block> blocks_;
  ByName<Group> groups_;
  ByName<Module> modules_;
  std::unordered_map<const Block*, std::vector<std::string_view>> frames_;
  std::set<const Block*> evaluated_;
  // By frame alone: the name of a frame starts with that of its module.
  std::unordered_map<std::string_view, std::vector<const Storage*>> storages_;
};

// Pipeline coordinate of the role's ranks in the module: the same for all of them (V1). -1: the role has no rank there.
int StageOf(const Role& role, const Module& module);
// Whether the role's ranks run the module.
bool Runs(const Role& role, const Module& module);

}  // namespace planwright
