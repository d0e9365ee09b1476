#include "executor/ops_communication.h"

#include <ATen/ops/empty.h>

#include "executor/communication/collectives.h"
#include "executor/exchange.h"

namespace planwright::executor {
namespace {

Communicator& GroupOf(const Instruction& instruction, const Rank& rank) {
  Communicator* group = rank.communicators.Find(instruction.group);
  TORCH_CHECK(group != nullptr, "rank ", rank.rank, " is not in a communicator ", instruction.group);
  return *group;
}

Reduce ReduceOf(const Instruction& instruction) {
  const std::string& name = instruction.text("reduce");
  if (name == "sum") return Reduce::kSum;
  TORCH_CHECK(name == "max", "unknown reduction ", name);
  return Reduce::kMax;
}

// Buffers and accumulators are communicated where they lie.
Tensors RunOnState(const Instruction& instruction, Rank& rank) {
  Communicator& group = GroupOf(instruction, rank);
  const at::Tensor input = rank.StateValue(instruction.inputs.at(0));
  at::Tensor output = rank.StateValue(instruction.outputs.at(0).name);
  switch (instruction.kind) {
    case OpKind::kAllReduce:
      TORCH_CHECK(input.is_same(output) || input.is_alias_of(output), "a buffer is reduced in place");
      group.AllReduce(output, ReduceOf(instruction));
      break;
    case OpKind::kReduceScatter:
      group.ReduceScatter(input, output);
      break;
    case OpKind::kAllGather:
      group.AllGather(input, output);
      break;
    default:
      TORCH_CHECK(false, OpName(instruction.kind), " does not take buffers");
  }
  return {output};
}

at::Tensor RunBroadcast(const Instruction& instruction, const Values& values, Rank& rank) {
  Communicator& group = GroupOf(instruction, rank);
  const int root = static_cast<int>(instruction.integer("root"));
  const ValueType& type = instruction.outputs.at(0).type;
  const int64_t rows = values.Get(instruction.inputs.at(0)).sum().item<int64_t>();
  std::vector<int64_t> shape = {rows};
  for (size_t i = 1; i < type.dims.size(); ++i) shape.push_back(std::get<int64_t>(type.dims[i]));
  at::Tensor value;
  if (group.index() == root) {
    value = values.Get(instruction.inputs.at(1)).contiguous();
    TORCH_CHECK(value.sizes() == at::IntArrayRef(shape), "broadcast of ", value.sizes(), ", expected ", at::IntArrayRef(shape));
  } else {
    value = at::empty(shape, at::TensorOptions(rank.device).dtype(ScalarTypeOf(type.dtype)));
  }
  if (value.numel() > 0) group.Broadcast(value, root);
  return value;
}

// Row counts are made on the device and read on the host.
at::Tensor Placed(at::Tensor value, const ValueType& type) { return type.host ? value.cpu() : value; }

}  // namespace

Tensors RunCommunication(const Instruction& instruction, const Values& values, Rank& rank) {
  if (instruction.kind == OpKind::kExchange) return RunExchange(instruction, values, rank);
  if (IsStateName(instruction.inputs.at(0))) return RunOnState(instruction, rank);
  if (instruction.kind == OpKind::kBroadcast) return {RunBroadcast(instruction, values, rank)};
  Communicator& group = GroupOf(instruction, rank);
  const at::Tensor input = values.Get(instruction.inputs[0]).to(rank.device);
  at::Tensor result;
  switch (instruction.kind) {
    case OpKind::kAllReduce: result = AllReduce(group, input, ReduceOf(instruction)); break;
    case OpKind::kAllGather: result = AllGather(group, input, instruction.integer("dim")); break;
    case OpKind::kReduceScatter: result = ReduceScatter(group, input, instruction.integer("dim")); break;
    case OpKind::kAllToAll: result = AllToAll(group, input); break;
    case OpKind::kAllToAllV:
      result = AllToAllV(group, input, values.Get(instruction.inputs.at(1)), values.Get(instruction.inputs.at(2)));
      break;
    default: TORCH_CHECK(false, OpName(instruction.kind), " is not a communication instruction");
  }
  return {Placed(std::move(result), instruction.outputs.at(0).type)};
}

}  // namespace planwright::executor
