#include "planner/estimate/program_index.h"

#include <algorithm>

#include "planner/estimate/op_flops.h"
#include "planner/plan/sample_images.h"

namespace planwright {
namespace {

int Number(std::unordered_map<std::string, int>& numbers, const std::string& name) {
  return numbers.try_emplace(name, static_cast<int>(numbers.size())).first->second;
}

}  // namespace

ProgramIndex::ProgramIndex(const Plan& plan) : plan_(plan) {
  for (const Symbol& symbol : plan.symbols) symbols_[symbol.name] = &symbol;
  for (size_t i = 0; i < plan.blocks.size(); ++i) block_index_[plan.blocks[i].name] = static_cast<int>(i);
  double all = 0, squares = 0;
  for (int64_t patches : ImagesOfSample(plan.data, plan.budget.sequence_length).patches) {
    all += static_cast<double>(patches);
    squares += static_cast<double>(patches) * static_cast<double>(patches);
  }
  image_rows_ = all > 0 ? squares / all : 0;
  blocks_.reserve(plan.blocks.size());
  for (const Block& block : plan.blocks) blocks_.push_back(IndexBody(&block, block.body));
}

BlockCode ProgramIndex::IndexStep(const Role& role) { return IndexBody(nullptr, role.step); }

int64_t ProgramIndex::Resolve(const Dim& dim, int64_t Symbol::* size) const {
  if (const auto* number = std::get_if<int64_t>(&dim)) return std::clamp<int64_t>(*number, 0, kMostBytes);
  const auto symbol = symbols_.find(std::get<std::string>(dim));
  if (symbol == symbols_.end()) return 0;
  const int64_t value = symbol->second->*size;
  return std::clamp<int64_t>(value > 0 ? value : symbol->second->maximum, 0, kMostBytes);
}

int64_t ProgramIndex::Elements(const ValueType& type, int64_t Symbol::* size) const {
  int64_t elements = 1;
  for (const Dim& dim : type.dims) {
    if (__builtin_mul_overflow(elements, Resolve(dim, size), &elements) || elements > kMostBytes) return kMostBytes;
  }
  return elements;
}

BlockCode ProgramIndex::IndexBody(const Block* block, const std::vector<Instruction>& body) {
  BlockCode code;
  code.block = block;
  std::unordered_map<std::string, int> slots;
  std::vector<const ValueType*> types;
  const auto define = [&](const Output& output) {
    const int slot = Number(slots, output.name);
    types.resize(std::max<size_t>(types.size(), slot + 1));
    types[slot] = &output.type;
    return slot;
  };
  const auto find = [&](const std::string& name) {
    const auto it = slots.find(name);
    return it == slots.end() ? -1 : it->second;
  };
  if (block) {
    for (const Output& input : block->inputs) code.inputs.push_back(define(input));
    for (const Output& take : block->takes) code.takes.push_back({Number(kept_index_, take.name), define(take)});
  }
  for (const Instruction& instruction : body) {
    StepCode& step = code.body.emplace_back();
    step.instruction = &instruction;
    step.op_class = OpClassOf(instruction.kind);
    std::vector<std::vector<double>> shapes;
    const auto note = [&](const ValueType* type) {
      std::vector<double>& shape = shapes.emplace_back();
      if (!type) return;
      for (const Dim& dim : type->dims) shape.push_back(static_cast<double>(Resolve(dim, &Symbol::mean)));
      if (!type->host) step.largest = std::max(step.largest, Elements(*type, &Symbol::expected));
    };
    for (const std::string& input : instruction.inputs) {
      const int slot = find(input);
      if (instruction.kind == OpKind::kCall) step.inputs.push_back(slot);
      if (step.op_class == OpClass::kCompute) note(slot < 0 ? nullptr : types[slot]);
    }
    for (const Output& output : instruction.outputs) {
      if (step.op_class == OpClass::kCompute) note(&output.type);
      if (IsStateName(output.name)) continue;
      const int64_t size = output.type.host ? 0 : DTypeBytes(output.type.dtype);
      const auto bytes = [&](int64_t Symbol::* at) { return std::min(kMostBytes, Elements(output.type, at)) * size; };
      step.outputs.push_back({define(output), {bytes(&Symbol::expected), bytes(&Symbol::maximum)}});
    }
    if (step.op_class == OpClass::kCompute) step.flops = OpFlops(instruction, shapes, image_rows_);
    if (instruction.kind == OpKind::kCall) {
      const auto called = block_index_.find(instruction.block);
      if (called != block_index_.end()) step.block = called->second;
      if (!instruction.frame.empty()) {
        step.frame = Number(frame_index_, instruction.frame);
        if (step.frame == static_cast<int>(frames_.size())) frames_.push_back(instruction.frame);
      }
    }
    for (const std::string& name : instruction.frees) {
      if (const int slot = find(name); slot >= 0) step.frees.push_back(slot);
    }
  }
  if (block) {
    for (const std::string& output : block->outputs) code.outputs.push_back(find(output));
    for (const std::string& name : block->saved) code.saved.push_back({Number(kept_index_, name), find(name)});
  }
  code.slots = static_cast<int>(slots.size());
  return code;
}

}  // namespace planwright
