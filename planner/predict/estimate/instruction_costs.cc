#include "planner/predict/estimate/instruction_costs.h"

#include <algorithm>

#include "planner/plan/op_costs.h"
#include "planner/plan/sample_documents.h"
#include "planner/plan/sample_images.h"

namespace planwright {
namespace {

using Sizes = std::vector<double>;

// Attention within an image of p rows costs each of its rows p.
double ImageRowsOf(const Plan& plan, const EncoderData& encoder) {
  return ImagesOfSample(plan.data, encoder, plan.budget.sequence_length).patches_around();
}

}  // namespace

InstructionCosts::InstructionCosts(const LinkedBlocks& blocks)
    : plan_(blocks.plan()),
      document_share_(DocumentsOfSample(blocks.plan().data, blocks.plan().budget.sequence_length).share) {
  const Plan& plan = plan_;
  for (const Symbol& symbol : plan.symbols) symbols_[symbol.name] = &symbol;
  for (const EncoderData& encoder : plan.data.encoders) image_rows_[encoder.module] = ImageRowsOf(plan, encoder);
  costs_.reserve(blocks.instructions());
  for (size_t i = 0; i < plan.blocks.size(); ++i) Add(blocks.block(static_cast<int>(i)));
}

int64_t InstructionCosts::SizeOf(const Dim& dim, int64_t Symbol::*size) const {
  if (const auto* number = std::get_if<int64_t>(&dim)) return std::clamp<int64_t>(*number, 0, kMostBytes);
  const auto symbol = symbols_.find(std::get<std::string>(dim));
  if (symbol == symbols_.end()) return 0;
  const int64_t value = symbol->second->*size;
  return std::clamp<int64_t>(value > 0 ? value : symbol->second->maximum, 0, kMostBytes);  // 0 stands for the maximum
}

int64_t InstructionCosts::Elements(const ValueType& type, int64_t Symbol::*size) const {
  int64_t elements = 1;
  for (const Dim& dim : type.dims) {
    if (__builtin_mul_overflow(elements, SizeOf(dim, size), &elements) || elements > kMostBytes) return kMostBytes;
  }
  return elements;
}

std::vector<Sizes> InstructionCosts::ShapesOf(const LinkedBlock& list, const LinkedInstruction& instruction,
                                              int64_t Symbol::*size) const {
  std::vector<Sizes> shapes;
  const auto note = [&](const ValueType* type) {
    Sizes& shape = shapes.emplace_back();
    if (!type) return;
    for (const Dim& dim : type->dims) shape.push_back(static_cast<double>(SizeOf(dim, size)));
  };
  for (int input : instruction.inputs) note(input < 0 ? nullptr : list.types[input]);
  for (const Output& output : instruction.source->outputs) note(&output.type);
  return shapes;
}

BytesBySizeCase InstructionCosts::WorkspaceOf(const LinkedBlock& list, const LinkedInstruction& instruction) const {
  const bool fast = plan_.dtype() == DType::kBf16 && plan_.cluster.gpu != "none";
  const auto bytes = [&](int64_t Symbol::*size) -> int64_t {
    if (fast) {
      const double value = OpWorkspace(*instruction.source, ShapesOf(list, instruction, size), plan_.deterministic);
      return static_cast<int64_t>(std::clamp(value, 0.0, static_cast<double>(kMostBytes)));
    }
    int64_t largest = 0;
    const auto note = [&](const ValueType* type) {
      if (type && !type->host) largest = std::max(largest, Elements(*type, size));
    };
    for (int input : instruction.inputs) note(input < 0 ? nullptr : list.types[input]);
    for (const Output& output : instruction.source->outputs) note(&output.type);
    return std::min(kMostBytes, largest) * DTypeBytes(plan_.master());
  };
  return {bytes(&Symbol::expected), bytes(&Symbol::maximum)};
}

void InstructionCosts::Add(const LinkedBlock& list) {
  if (list.body.empty()) return;
  // The lists of another role had the same numbers: they are forgotten from the first number of this list on.
  const size_t first = static_cast<size_t>(list.body.front().number);
  if (first < costs_.size()) {
    bytes_.resize(costs_[first].first_output);
    costs_.resize(first);
  }
  const auto images = image_rows_.find(list.block ? list.block->module : "");
  const double image_rows = images == image_rows_.end() ? 0 : images->second;
  for (const LinkedInstruction& instruction : list.body) {
    costs_.resize(static_cast<size_t>(instruction.number) + 1);
    Cost& cost = costs_.back();
    cost.first_output = bytes_.size();
    for (const Output& output : instruction.source->outputs) {
      const int64_t size = output.type.host || IsStateName(output.name) ? 0 : DTypeBytes(output.type.dtype);
      const auto bytes = [&](int64_t Symbol::*at) { return std::min(kMostBytes, Elements(output.type, at)) * size; };
      bytes_.push_back({bytes(&Symbol::expected), bytes(&Symbol::maximum)});
    }
    if (instruction.op_class != OpClass::kCompute) continue;
    // FLOPs are counted at mean sizes, as they add up over a step.
    cost.flops = OpFlops(*instruction.source, ShapesOf(list, instruction, &Symbol::mean), image_rows, document_share_);
    cost.workspace = WorkspaceOf(list, instruction);
  }
}

}  // namespace planwright
