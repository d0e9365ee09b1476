// Blocks with numbers in place of names. Each block is read once, however many layers, microbatches and roles call it.
// Values are numbered within their block; frames, state, groups, streams and modules over the whole plan.
// linked_program.h makes the flat list of a role from linked blocks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// An operand is an int: a value of its block (0 and up), state (-2 and down), or kNoOperand, which only plans that
// verify refuses have.
inline constexpr int kNoOperand = -1;
inline int OperandOfState(int state) { return -2 - state; }
// The index of LinkedBlocks::state; negative if the operand is a value or kNoOperand.
inline int StateOfOperand(int operand) { return -2 - operand; }

// An ExchangePart.
struct LinkedExchangePart {
  int value = kNoOperand, sizes = kNoOperand;
  int bridge = -1;  // index in Plan::bridges; -1: between stages
  int group = -1;   // index in Plan::groups; -1: over a bridge
};

// An Instruction of a block or of a role's list. The spans lie in the LinkedBlock.
struct LinkedInstruction {
  const Instruction* source = nullptr;
  OpClass op_class{};
  int number = 0;   // counts the instructions of all blocks of the plan, then those of the role's lists
  int index = 0;    // index in its own list
  int group = -1;   // index in Plan::groups; -1: none
  int stream = 0;   // index of LinkedBlocks::stream
  int module = -1;  // the attribute `module`: index in Plan::modules; -1: none
  int called = -1;  // call: index in Plan::blocks; -1: no call
  int frame = -1;   // call: index of LinkedBlocks::frame; -1: the frame of the caller
  int slots = -1;   // call with a frame: where its storages start (LinkedBlocks::storage)
  // Index of the input whose memory the first output takes over, if it dies there (OpInfo::overwrites); -1: none.
  int overwrites = -1;
  // Whether it can be done as one with the next instruction of its block, or with the one before (joins.def).
  bool joins_next = false, joins_last = false;
  std::span<const int> inputs, outputs;        // operands
  std::span<const int> frees;                  // values that lose their name in the list
  std::span<const int> parameters, gradients;  // indices in LinkedBlock::slots
  std::span<const LinkedExchangePart> parts;
};

// A value that a block saves in its frame, or takes from it.
struct SavedValue {
  int name = -1;  // index of LinkedBlocks::saved_name: forward and backward block use the same name
  int value = kNoOperand;
};

// A block, or one of a role's own lists.
struct LinkedBlock {
  const Block* block = nullptr;         // null: a role's list
  int module = -1;                      // index in Plan::modules; -1: none
  std::vector<const ValueType*> types;  // by value; its size is the number of values
  std::vector<int> inputs, outputs;     // operands
  std::vector<SavedValue> takes, saved;
  std::vector<int> left;                       // values that still have a name at the end
  std::vector<std::string_view> slots;         // of the frame: those that some instruction reads or adds to
  const LinkedInstruction* unbound = nullptr;  // the first that reads a name which nothing defines; null: none
  std::vector<LinkedInstruction> body;

  LinkedBlock() = default;
  LinkedBlock(LinkedBlock&&) = default;  // no copies: spans of the body would point into the original

 private:
  friend class BlockLinker;
  std::vector<int> numbers_;  // what the spans of the body show
  std::vector<LinkedExchangePart> parts_;
};

// All blocks of a plan. The plan should have passed VerifyCalls and the rules of values (V4); in others, names may have
// no number. Keeps a reference: the plan must outlive it.
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
  std::string_view stream(int index) const { return streams_.names[index]; }  // 0 is the main stream, ""
  std::string_view saved_name(int index) const { return saved_names_.names[index]; }

  // Links one of a role's own lists. Its instructions are numbered from `first`. Frames and state that it is the first
  // to name get numbers.
  LinkedBlock Link(const std::vector<Instruction>& list, int first);
  // Where the storages start that `block` uses when it is called with `frame`, in the order of LinkedBlock::slots.
  int SlotsOf(int block, int frame);
  // The storage of a slot: index in Module::storages of the block's module; -1: the frame has no such slot. `index` is
  // what SlotsOf gives, plus the index of the slot.
  int storage(int index) const { return storages_[index]; }

 private:
  friend class BlockLinker;
  // Names and their numbers. Each struct is used in one of two ways: names are numbered as they come (Intern), or they
  // have the numbers of a list of the plan (Find only).
  struct NameTable {
    std::unordered_map<std::string_view, int> numbers;
    std::vector<std::string_view> names;
    int Intern(std::string_view name);      // the number of a name; a new name gets the next number
    int Find(std::string_view name) const;  // -1: unknown
  };

  const Plan& plan_;
  NameTable block_names_, modules_, groups_, bridges_;  // numbers are indices in the plan
  NameTable frames_, states_, streams_, saved_names_;   // numbered as they come
  struct FrameSlot {
    std::string_view slot;
    int storage = -1;  // index in Module::storages
  };
  std::vector<std::vector<std::vector<FrameSlot>>> slots_of_;  // by module and frame
  std::unordered_map<int64_t, int> slots_;                     // block and frame -> index in storages_
  std::vector<int> storages_;
  std::vector<LinkedBlock> blocks_;
  int instructions_ = 0;
};

}  // namespace planwright
