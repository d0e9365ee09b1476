// Blocks with numbers for names: each is read once, however many layers, microbatches and roles call it. Values are
// numbered within their block, frames, state, groups, streams and modules over the whole plan. linked_program.h makes a
// role's flat list of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// An operand is a value of its block (0 and up), state (StateOfOperand), or, in a plan that verify refuses, nothing.
inline constexpr int kNoOperand = -1;
inline int OperandOfState(int state) { return -2 - state; }
// index of LinkedBlocks::state; negative: it is a value, or nothing
inline int StateOfOperand(int operand) { return -2 - operand; }

// One half-transfer of an exchange.
struct LinkedPart {
  int value = kNoOperand, sample_rows = kNoOperand;
  int bridge = -1;  // index in Plan::bridges
  int group = -1;   // between stages: index in Plan::groups
};

struct LinkedInstruction {
  const Instruction* source = nullptr;
  OpClass op_class{};
  int number = 0;  // of all instructions: those of the plan's blocks, then those of the role's lists
  int place = 0;   // in its list
  // index in Plan::groups, of LinkedBlocks::stream, in Plan::modules (attribute `module`)
  int group = -1, stream = 0, module = -1;
  int called = -1;                             // call: index in Plan::blocks
  int frame = -1;                              // call: index of LinkedBlocks::frame; -1: that of the caller
  int slots = -1;                              // call with a frame: where its storages start (LinkedBlocks::storage)
  std::span<const int> inputs, outputs;        // operands
  std::span<const int> frees;                  // values that lose their name in the list
  std::span<const int> parameters, gradients;  // of the block's slots
  std::span<const LinkedPart> parts;
};

// A value that a frame keeps from a forward for its backward.
struct KeptValue {
  int name = -1, value = kNoOperand;  // the name's number over all blocks
};

// A block, or one of a role's own lists.
struct LinkedBlock {
  const Block* block = nullptr;  // null: a role's list
  int module = -1;
  std::vector<const ValueType*> types;  // by value; their number is that of the values
  std::vector<int> inputs, outputs;     // operands
  std::vector<KeptValue> takes, saved;
  std::vector<int> left;                       // values that still have a name at the end
  std::vector<std::string_view> slots;         // of the frame, that instructions read or add to
  const LinkedInstruction* unbound = nullptr;  // the first with an operand that nothing defines
  std::vector<LinkedInstruction> body;

  LinkedBlock() = default;
  LinkedBlock(LinkedBlock&&) = default;

 private:
  friend class BlockLinker;
  std::vector<int> numbers_;  // what the spans of the body show
  std::vector<LinkedPart> parts_;
};

// All blocks of a plan. Called on plans that have passed VerifyCalls and the rules of values: in others names may stand
// for nothing. Keeps references: the plan must outlive it.
class LinkedBlocks {
 public:
  explicit LinkedBlocks(const Plan& plan);
  LinkedBlocks(const LinkedBlocks&) = delete;

  const Plan& plan() const { return plan_; }
  const LinkedBlock& block(int index) const { return blocks_[index]; }
  int instructions() const { return instructions_; }  // of all blocks
  std::string_view frame(int index) const { return frames_.names[index]; }
  int frames() const { return static_cast<int>(frames_.names.size()); }
  std::string_view state(int index) const { return states_.names[index]; }  // "%language.gradients.0", "$reals"
  int states() const { return static_cast<int>(states_.names.size()); }
  std::string_view stream(int index) const { return streams_.names[index]; }
  std::string_view kept(int name) const { return kept_.names[name]; }

  // One of a role's own lists, whose instructions are numbered from `first` on. Frames and state that no block or list
  // named before get numbers.
  LinkedBlock Link(const std::vector<Instruction>& list, int first);
  // Where the storages of a block's slots start, in the order of LinkedBlock::slots, when it is called with `frame`.
  int SlotsOf(int block, int frame);
  // Index in Module::storages of the block's module; -1: the frame has no such slot.
  int storage(int place) const { return storages_[place]; }

 private:
  friend class BlockLinker;
  struct Names {
    std::unordered_map<std::string_view, int> numbers;
    std::vector<std::string_view> names;
    int Number(std::string_view name);      // a new one if need be
    int Find(std::string_view name) const;  // -1: none
  };

  const Plan& plan_;
  Names block_names_, modules_, groups_, bridges_;
  Names frames_, states_, streams_, kept_;
  std::vector<std::vector<std::vector<int>>> storages_of_;  // by module and frame
  std::unordered_map<int64_t, int> slots_;                  // block and frame -> place in storages_
  std::vector<int> storages_;
  std::vector<LinkedBlock> blocks_;
  int instructions_ = 0;
};

}  // namespace planwright
