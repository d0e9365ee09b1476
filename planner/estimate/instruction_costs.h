// What an instruction costs each time it runs: bytes of what it makes, FLOPs, its largest operand. Every block is
// looked at once, however many layers, microbatches and ranks use it.
#pragma once

#include <array>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "planner/link/linked_block.h"

namespace planwright {

// At which run-time sizes a plan is looked at: what memory is planned for, and the most that can happen.
enum class Sizes { kPlanned, kWorst };
using BytesAtSizes = std::array<int64_t, 2>;  // by Sizes

// Any byte count is cut here: far beyond every device, and sums of many stay numbers.
inline constexpr int64_t kMostBytes = int64_t{1} << 50;

class InstructionCosts {
 public:
  explicit InstructionCosts(const LinkedBlocks& blocks);

  // Looks at a role's list. What was known of instructions with the same or higher numbers is forgotten.
  void Add(const LinkedBlock& list);

  // By output; 0: it lives in host memory, or is state.
  std::span<const BytesAtSizes> outputs(const LinkedInstruction& instruction) const {
    return {bytes_.data() + costs_[instruction.number].outputs, instruction.outputs.size()};
  }
  // at mean sizes
  double flops(const LinkedInstruction& instruction) const { return costs_[instruction.number].flops; }
  // elements, at planned sizes
  int64_t largest(const LinkedInstruction& instruction) const { return costs_[instruction.number].largest; }

 private:
  struct Cost {
    size_t outputs = 0;  // where they start in bytes_
    double flops = 0;
    int64_t largest = 0;  // compute only
  };

  int64_t Resolve(const Dim& dim, int64_t Symbol::*size) const;
  int64_t Elements(const ValueType& type, int64_t Symbol::*size) const;

  std::unordered_map<std::string, const Symbol*> symbols_;
  std::vector<Cost> costs_;  // by LinkedInstruction::number
  std::vector<BytesAtSizes> bytes_;
  double image_rows_ = 0;  // rows of an image, each row weighing the same: what attention within images costs a row
};

}  // namespace planwright
