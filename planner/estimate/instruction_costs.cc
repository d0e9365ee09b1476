#include "planner/estimate/instruction_costs.h"

#include <algorithm>

#include "planner/estimate/op_flops.h"
#include "planner/plan/sample_images.h"

namespace planwright {

InstructionCosts::InstructionCosts(const LinkedBlocks& blocks) {
  const Plan& plan = blocks.plan();
  for (const Symbol& symbol : plan.symbols) symbols_[symbol.name] = &symbol;
  double all = 0, squares = 0;
  for (int64_t patches : ImagesOfSample(plan.data, plan.budget.sequence_length).patches) {
    all += static_cast<double>(patches);
    squares += static_cast<double>(patches) * static_cast<double>(patches);
  }
  image_rows_ = all > 0 ? squares / all : 0;
  costs_.reserve(blocks.instructions());
  for (size_t i = 0; i < plan.blocks.size(); ++i) Add(blocks.block(static_cast<int>(i)));
}

int64_t InstructionCosts::Resolve(const Dim& dim, int64_t Symbol::*size) const {
  if (const auto* number = std::get_if<int64_t>(&dim)) return std::clamp<int64_t>(*number, 0, kMostBytes);
  const auto symbol = symbols_.find(std::get<std::string>(dim));
  if (symbol == symbols_.end()) return 0;
  const int64_t value = symbol->second->*size;
  return std::clamp<int64_t>(value > 0 ? value : symbol->second->maximum, 0, kMostBytes);
}

int64_t InstructionCosts::Elements(const ValueType& type, int64_t Symbol::*size) const {
  int64_t elements = 1;
  for (const Dim& dim : type.dims) {
    if (__builtin_mul_overflow(elements, Resolve(dim, size), &elements) || elements > kMostBytes) return kMostBytes;
  }
  return elements;
}

void InstructionCosts::Add(const LinkedBlock& list) {
  if (list.body.empty()) return;
  const size_t first = static_cast<size_t>(list.body.front().number);
  if (first < costs_.size()) {
    bytes_.resize(costs_[first].outputs);
    costs_.resize(first);
  }
  for (const LinkedInstruction& instruction : list.body) {
    costs_.resize(static_cast<size_t>(instruction.number) + 1);
    Cost& cost = costs_.back();
    cost.outputs = bytes_.size();
    std::vector<std::vector<double>> shapes;
    const auto note = [&](const ValueType* type) {
      std::vector<double>& shape = shapes.emplace_back();
      if (!type) return;
      for (const Dim& dim : type->dims) shape.push_back(static_cast<double>(Resolve(dim, &Symbol::mean)));
      if (!type->host) cost.largest = std::max(cost.largest, Elements(*type, &Symbol::expected));
    };
    const bool computes = instruction.op_class == OpClass::kCompute;
    if (computes) {
      for (int input : instruction.inputs) note(input < 0 ? nullptr : list.types[input]);
    }
    for (const Output& output : instruction.source->outputs) {
      if (computes) note(&output.type);
      const int64_t size = output.type.host || IsStateName(output.name) ? 0 : DTypeBytes(output.type.dtype);
      const auto bytes = [&](int64_t Symbol::*at) { return std::min(kMostBytes, Elements(output.type, at)) * size; };
      bytes_.push_back({bytes(&Symbol::expected), bytes(&Symbol::maximum)});
    }
    if (computes) cost.flops = OpFlops(*instruction.source, shapes, image_rows_);
  }
}

}  // namespace planwright
