#include "executor/ops_communication.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include "executor/communication/collectives.h"
#include "executor/exchange.h"

namespace planwright::executor {
namespace {

Communicator& GroupOf(const Instruction& instruction, const Rank& rank) {
  Communicator* group = rank.communicators.Find(instruction.group, instruction.stream);
  TORCH_CHECK(group != nullptr, "rank ", rank.rank, " is not in a communicator ",
              CommunicatorName(instruction.group, instruction.stream));
  return *group;
}

Reduce ReduceOf(const Instruction& instruction) {
  const std::string& name = instruction.text("reduce");
  if (name == "sum") return Reduce::kSum;
  TORCH_CHECK(name == "max", "unknown reduction ", name);
  return Reduce::kMax;
}

// Buffers and accumulators are communicated where they lie.
Action BindState(const Instruction& instruction, Rank& rank) {
  Communicator& group = GroupOf(instruction, rank);
  const at::Tensor input = rank.StateValue(instruction.inputs.at(0));
  at::Tensor output = rank.StateValue(instruction.outputs.at(0).name);
  switch (instruction.kind) {
    case OpKind::kAllReduce: {
      TORCH_CHECK(input.is_same(output) || input.is_alias_of(output), "a buffer is reduced in place");
      return [&group, output, reduce = ReduceOf(instruction)](const Arguments&) mutable {
        group.AllReduce(output, reduce);
        return Tensors{output};
      };
    }
    case OpKind::kReduceScatter:
      return [&group, input, output](const Arguments&) mutable {
        group.ReduceScatter(input, output);
        return Tensors{output};
      };
    case OpKind::kAllGather:
      return [&group, input, output](const Arguments&) mutable {
        group.AllGather(input, output);
        return Tensors{output};
      };
    default: TORCH_CHECK(false, OpName(instruction.kind), " does not take buffers");
  }
}

Action BindBroadcast(const Instruction& instruction, const Rank& rank) {
  Communicator& group = GroupOf(instruction, rank);
  const int root = static_cast<int>(instruction.integer("root"));
  const ValueType& type = instruction.outputs.at(0).type;
  std::vector<int64_t> row;
  for (size_t i = 1; i < type.dims.size(); ++i) row.push_back(std::get<int64_t>(type.dims[i]));
  const at::TensorOptions options = at::TensorOptions(rank.device).dtype(ScalarTypeOf(type.dtype));
  return [&group, root, row, options](const Arguments& arguments) {
    std::vector<int64_t> shape = {arguments.inputs[0]->OnHost().sum().item<int64_t>()};
    shape.insert(shape.end(), row.begin(), row.end());
    at::Tensor value;
    if (group.index() == root) {
      value = arguments.input(1).contiguous();
      TORCH_CHECK(value.sizes() == at::IntArrayRef(shape), "broadcast of ", value.sizes(), ", expected ",
                  at::IntArrayRef(shape));
    } else {
      value = at::empty(shape, options);
    }
    if (value.numel() > 0) group.Broadcast(value, root);
    return Tensors{value};
  };
}

// One copy brings to the host what is received and what was sent: the exchanges of rows need both.
Tensors CountsOnHost(const Arguments& arguments, const at::Tensor& sent, at::Tensor received) {
  if (received.is_cpu()) return {std::move(received)};
  const at::Tensor both = at::cat({sent.reshape({-1}), received.reshape({-1})}).cpu();
  arguments.inputs[0]->SetOnHost(both.narrow(0, 0, sent.numel()).view(sent.sizes()));
  return {both.narrow(0, sent.numel(), received.numel()).view(received.sizes())};
}

}  // namespace

Action BindCommunication(const LinkedInstruction& linked, Rank& rank) {
  const Instruction& instruction = *linked.source;
  if (instruction.kind == OpKind::kExchange) return BindExchange(linked, rank);
  if (IsStateName(instruction.inputs.at(0))) return BindState(instruction, rank);
  if (instruction.kind == OpKind::kBroadcast) return BindBroadcast(instruction, rank);
  Communicator& group = GroupOf(instruction, rank);
  // What lies on the host moves through the device, and back if the plan says so.
  const auto moved = [device = rank.device, host = instruction.outputs.at(0).type.host](auto collective) -> Action {
    return [device, host, collective](const Arguments& arguments) {
      const at::Tensor result = collective(arguments.input(0).to(device), arguments);
      return Tensors{host ? result.cpu() : result};
    };
  };
  switch (instruction.kind) {
    case OpKind::kAllReduce:
      return moved([&group, reduce = ReduceOf(instruction)](const at::Tensor& x, const Arguments&) {
        return AllReduce(group, x, reduce);
      });
    case OpKind::kAllGather:
      return moved([&group, dim = instruction.integer("dim")](const at::Tensor& x, const Arguments&) {
        return AllGather(group, x, dim);
      });
    case OpKind::kReduceScatter:
      return moved([&group, dim = instruction.integer("dim")](const at::Tensor& x, const Arguments&) {
        return ReduceScatter(group, x, dim);
      });
    case OpKind::kAllToAll:
      TORCH_CHECK(instruction.outputs.at(0).type.host, "row counts belong on the host");
      return [&group, device = rank.device](const Arguments& arguments) {
        const at::Tensor sent = arguments.input(0).to(device);
        return CountsOnHost(arguments, sent, AllToAll(group, sent));
      };
    case OpKind::kAllToAllV:
      TORCH_CHECK(instruction.inputs.size() == 3, "rows and two row counts are needed");
      return moved([&group](const at::Tensor& rows, const Arguments& arguments) {
        return AllToAllV(group, rows, arguments.inputs[1]->OnHost(), arguments.inputs[2]->OnHost());
      });
    default: TORCH_CHECK(false, OpName(instruction.kind), " is not a communication instruction");
  }
}

}  // namespace planwright::executor
