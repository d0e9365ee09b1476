// What an instruction costs each time it runs: bytes of its outputs, FLOPs, and bytes of temporary tensors. Each block
// is looked at once, however many layers, microbatches and ranks use it.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "planner/plan/link/linked_block.h"

namespace planwright {

// Which numbers stand for sizes that are known only at run time (Symbol).
enum class SizeCase {
  kPlanned,  // Symbol::expected: what memory is planned for
  kWorst,    // Symbol::maximum: the most that can happen
};
using BytesBySizeCase = std::array<int64_t, 2>;  // indexed by SizeCase

// Byte and element counts are cut off here, so that sums of damaged plans do not overflow. Far above every device.
inline constexpr int64_t kMostBytes = int64_t{1} << 50;

class InstructionCosts {
 public:
  // Adds the instructions of all blocks.
  explicit InstructionCosts(const LinkedBlocks& blocks);

  // Adds the instructions of a role's list. Costs of instructions with the same or higher numbers are forgotten, so
  // that one object serves role after role.
  void Add(const LinkedBlock& list);

  // Bytes on the device, by output; 0: the output is in host memory, or is state.
  std::span<const BytesBySizeCase> outputs(const LinkedInstruction& instruction) const {
    return {bytes_.data() + costs_[instruction.number].first_output, instruction.outputs.size()};
  }
  // Floating-point operations that are executed, at mean sizes; 0 for instructions that do not compute.
  double flops(const LinkedInstruction& instruction) const { return costs_[instruction.number].flops; }
  // Bytes of temporary tensors on the device while it runs (docs/memory.md#workspace); 0 for instructions that do not
  // compute.
  const BytesBySizeCase& workspace(const LinkedInstruction& instruction) const {
    return costs_[instruction.number].workspace;
  }

 private:
  struct Cost {
    size_t first_output = 0;  // where its outputs start in bytes_
    double flops = 0;
    BytesBySizeCase workspace = {};
  };

  // `size`: which number of a Symbol to take (maximum, expected, mean).
  int64_t SizeOf(const Dim& dim, int64_t Symbol::*size) const;
  int64_t Elements(const ValueType& type, int64_t Symbol::*size) const;
  // Returns those of its inputs, then of its outputs; an unknown shape is empty.
  std::vector<std::vector<double>> ShapesOf(const LinkedBlock& list, const LinkedInstruction& instruction,
                                            int64_t Symbol::*size) const;
  BytesBySizeCase WorkspaceOf(const LinkedBlock& list, const LinkedInstruction& instruction) const;

  const Plan& plan_;
  const double document_share_;  // see OpFlops (plan/op_costs.h)
  std::unordered_map<std::string, const Symbol*> symbols_;
  std::vector<Cost> costs_;  // by LinkedInstruction::number
  std::vector<BytesBySizeCase> bytes_;
  std::map<std::string, double, std::less<>> image_rows_;  // by encoder: see OpFlops (plan/op_costs.h)
};

}  // namespace planwright
