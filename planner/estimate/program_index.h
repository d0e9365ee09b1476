// A plan's programs with numbers for names, so that a step can be walked call by call at no cost worth naming: every block is read once, however
// many layers, microbatches and ranks use it.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// At which run-time sizes a plan is looked at: what memory is planned for, and the most that can happen.
enum class Sizes { kPlanned, kWorst };

// Any byte count is cut here: far beyond every device, and sums of many stay numbers.
inline constexpr int64_t kMostBytes = int64_t{1} << 50;

struct ValueCode {
  int slot = -1;                   // of the block's values
  std::array<int64_t, 2> bytes{};  // at Sizes; 0: lives in host memory
};

struct StepCode {
  const Instruction* instruction = nullptr;
  OpClass op_class{};
  double flops = 0;                  // at mean sizes
  int64_t largest = 0;               // elements of the largest operand, at planned sizes
  int block = -1, frame = -1;        // call only; frame -1: that of the caller
  std::vector<int> inputs;           // call only: slots
  std::vector<ValueCode> outputs;
  std::vector<int> frees;
};

// A value that a frame keeps from a forward for its backward.
struct KeptCode {
  int name = -1, slot = -1;
};

struct BlockCode {
  const Block* block = nullptr;      // null: a role's step
  int slots = 0;
  std::vector<int> inputs, outputs;  // slots
  std::vector<KeptCode> takes, saved;
  std::vector<StepCode> body;
};

class ProgramIndex {
 public:
  explicit ProgramIndex(const Plan& plan);

  const BlockCode& block(int index) const { return blocks_[index]; }
  BlockCode IndexStep(const Role& role);
  const std::string& frame(int index) const { return frames_[index]; }

 private:
  BlockCode IndexBody(const Block* block, const std::vector<Instruction>& body);
  int64_t Resolve(const Dim& dim, int64_t Symbol::* size) const;
  int64_t Elements(const ValueType& type, int64_t Symbol::* size) const;

  const Plan& plan_;
  std::unordered_map<std::string, const Symbol*> symbols_;
  std::unordered_map<std::string, int> block_index_, frame_index_, kept_index_;
  std::vector<std::string> frames_;
  std::vector<BlockCode> blocks_;
  double image_rows_ = 0;  // rows of an image, each row weighing the same: what attention within images costs a row
};

}  // namespace planwright
