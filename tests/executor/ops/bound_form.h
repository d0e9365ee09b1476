// Runs an operation as the executor does: in the form that it binds to operands like the given ones.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "executor/ops/forms.h"
#include "planner/plan/op_table.h"

namespace planwright::executor {

// The kind whose plain form a handler is; none: it is a test's own.
inline std::optional<OpKind> KindOfPlainForm(ComputeHandler handler) {
  static const std::map<ComputeHandler, OpKind> kinds = [] {
    std::map<ComputeHandler, OpKind> all;
    for (const OpInfo& info : AllOps()) all.emplace(PlainFormOf(info.kind), info.kind);
    return all;
  }();
  const auto found = kinds.find(handler);
  return found == kinds.end() ? std::nullopt : std::optional(found->second);
}

// The type that a plan would state for a tensor.
inline ValueType PlannedTypeOf(const at::Tensor& x) {
  ValueType type;
  type.dtype = x.scalar_type() == at::kBFloat16 ? DType::kBf16
               : x.scalar_type() == at::kFloat  ? DType::kFp32
               : x.scalar_type() == at::kDouble ? DType::kFp64
                                                : DType::kInt64;
  type.dims.assign(x.sizes().begin(), x.sizes().end());
  type.host = x.is_cpu();
  return type;
}

// The form for these operands on `device`.
inline ComputeForm FormFor(OpKind kind, at::Device device, const ComputeContext& context) {
  Instruction instruction = context.instruction;
  instruction.kind = kind;
  std::vector<ValueType> types;
  for (const at::Tensor& input : context.inputs) types.push_back(PlannedTypeOf(input));
  ComputeBinding binding{instruction, context.call.module, device, {}, context.parameters, context.gradients};
  for (const ValueType& type : types) binding.inputs.push_back(&type);
  return ChooseForm(binding);
}

// `plain`: the plain form of a kind. Where no operand is on a GPU, it is what runs.
inline Tensors RunBound(ComputeHandler plain, const ComputeContext& context) {
  for (const Tensors* operands : {&context.inputs, &context.parameters, &context.gradients}) {
    const auto on_gpu =
        std::find_if(operands->begin(), operands->end(), [](const at::Tensor& x) { return x.is_cuda(); });
    if (on_gpu == operands->end()) continue;
    const std::optional<OpKind> kind = KindOfPlainForm(plain);
    return kind ? FormFor(*kind, on_gpu->device(), context).run(context) : plain(context);
  }
  return plain(context);
}

}  // namespace planwright::executor
