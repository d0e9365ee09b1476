// Actions of communication instructions.

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "executor/base/tensors.h"
#include "executor/communication/communicator.h"
#include "executor/program/actions.h"
#include "executor/program/exchange.h"
#include "executor/program/exit_error.h"
#include "executor/program/to_host.h"
#include "planner/base/files/exit_status.h"

namespace planwright::executor {
namespace {

// A group may be used on several streams; each has a communicator of its own.
Communicator& GroupOf(const Instruction& instruction, const Rank& rank) {
  Communicator* group = rank.communicators.Find(instruction.group, instruction.stream);
  TORCH_CHECK(group != nullptr, "rank ", rank.rank, " is not in communicator ",
              CommunicatorName(instruction.group, instruction.stream));
  return *group;
}

Reduce ReduceOf(const Instruction& instruction) {
  const std::string& name = instruction.text("reduce");
  if (name == "sum") return Reduce::kSum;
  TORCH_CHECK(name == "max", "unknown reduction ", name);
  return Reduce::kMax;
}

Cut CutOf(const Instruction& instruction) {
  const int64_t* zigzag = instruction.FindInteger("zigzag");
  return zigzag != nullptr && *zigzag != 0 ? Cut::kZigzag : Cut::kConsecutive;
}

// Operands that are state ("$" accumulators, "%" buffers) are reduced or gathered in place. They are never reallocated,
// so the action holds the tensors themselves.
Action BindStateCommunication(const Instruction& instruction, Rank& rank) {
  Communicator& group = GroupOf(instruction, rank);
  const at::Tensor input = rank.StateValue(instruction.inputs.at(0));
  at::Tensor output = rank.StateValue(instruction.outputs.at(0).name);
  switch (instruction.kind) {
    case OpKind::kAllReduce: {
      TORCH_CHECK(input.is_same(output) || input.is_alias_of(output),
                  "all_reduce of state needs the same buffer as input and output: ", instruction.inputs.at(0));
      return [&group, output, reduce = ReduceOf(instruction)](const ActionArguments&) mutable {
        group.AllReduce(output, reduce);
        return Tensors{output};
      };
    }
    case OpKind::kReduceScatter:
      return [&group, input, output](const ActionArguments&) mutable {
        group.ReduceScatter(input, output);
        return Tensors{output};
      };
    case OpKind::kAllGather:
      return [&group, input, output](const ActionArguments&) mutable {
        group.AllGather(input, output);
        return Tensors{output};
      };
    default: TORCH_CHECK(false, OpName(instruction.kind), " cannot take state as an operand");
  }
}

// broadcast: row counts, value (of the root) -> value. Only the root has the value, so the others need the row counts
// to allocate theirs.
Action BindBroadcast(const Instruction& instruction, const Rank& rank) {
  Communicator& group = GroupOf(instruction, rank);
  const int root = static_cast<int>(instruction.integer("root"));
  const ValueType& type = instruction.outputs.at(0).type;
  std::vector<int64_t> row;
  for (size_t i = 1; i < type.dims.size(); ++i) row.push_back(std::get<int64_t>(type.dims[i]));
  const at::TensorOptions options = at::TensorOptions(rank.device).dtype(ScalarTypeOf(type.dtype));
  return [&group, root, row, options](const ActionArguments& arguments) {
    std::vector<int64_t> shape = {arguments.inputs[0]->OnHost().sum().item<int64_t>()};
    shape.insert(shape.end(), row.begin(), row.end());
    at::Tensor value;
    if (group.index() == root) {
      value = arguments.input(1).contiguous();
      TORCH_CHECK(value.sizes() == at::IntArrayRef(shape), "broadcast of shape ", value.sizes(),
                  ", the row counts say ", at::IntArrayRef(shape));
    } else {
      value = at::empty(shape, options);
    }
    if (value.numel() > 0) group.Broadcast(value, root);
    return Tensors{value};
  };
}

// Row counts in host memory. The exchanges of rows that follow need the counts that were sent as well as those that
// were received. One copy brings both, so that the host waits for the device once for each expert layer and microbatch.
Tensors CountsOnHost(const ActionArguments& arguments, const at::Tensor& sent, at::Tensor received) {
  if (received.is_cpu()) return {std::move(received)};
  const at::Tensor both = ToHost(at::cat({sent.reshape({-1}), received.reshape({-1})}));
  arguments.inputs[0]->SetOnHost(both.narrow(0, 0, sent.numel()).view(sent.sizes()));
  return {both.narrow(0, sent.numel(), received.numel()).view(received.sizes())};
}

// Stops this rank if more rows come than memory is planned for. Called with their counts, before anything is allocated
// for them (docs/memory.md#capacity-of-expert-rows).
using CapacityCheck = std::function<void(const ActionArguments&, const at::Tensor& counts)>;

// The check for the rows that an instruction brings. What memory is planned for is in the plan, with the size that
// counts them. A size without a number of its own has room for all that can come.
CapacityCheck CapacityOf(const std::string& name, const Plan& plan) {
  const auto symbol =
      std::find_if(plan.symbols.begin(), plan.symbols.end(), [&](const Symbol& each) { return each.name == name; });
  if (symbol == plan.symbols.end() || symbol->expected == 0) return [](const ActionArguments&, const at::Tensor&) {};
  return [&size = *symbol](const ActionArguments& arguments, const at::Tensor& counts) {
    const int64_t rows = counts.sum().item<int64_t>();
    if (rows <= size.expected) return;
    const double times = std::ceil(100.0 * static_cast<double>(rows) / static_cast<double>(size.mean)) / 100;
    throw ExitError(
        kExitCapacity,
        absl::StrCat("layer ", arguments.call.layer, ": ", rows, " ", size.name,
                     " came to this rank, and memory is planned for ", size.expected, ": moe.imbalance ",
                     arguments.call.module->imbalance, " times the mean of ", size.mean, "; raise moe.imbalance to ",
                     times, " or more, or leave it out to plan for all ", size.maximum, " that can come"));
  };
}

CapacityCheck CapacityOf(const Instruction& instruction, const Plan& plan) {
  const auto* name = std::get_if<std::string>(&instruction.outputs.at(0).type.dims.at(0));
  return CapacityOf(name == nullptr ? std::string() : *name, plan);
}

// Where tokens are gathered, no message brings rows: select_rows makes them, of as many as the exchanged counts say.
CapacityCheck CapacityOfSelected(const Instruction& exchange, const Plan& plan) {
  const Group* group = plan.FindGroup(exchange.group);
  const Module* module = group == nullptr ? nullptr : plan.FindModule(group->module);
  return CapacityOf(module != nullptr && module->gathers_tokens() ? module->name + ".expert_rows" : "", plan);
}

}  // namespace

Action BindCommunication(const LinkedInstruction& linked, Rank& rank) {
  const Instruction& instruction = *linked.source;
  if (instruction.kind == OpKind::kExchange) return BindExchange(linked, rank);
  if (IsStateName(instruction.inputs.at(0))) return BindStateCommunication(instruction, rank);
  if (instruction.kind == OpKind::kBroadcast) return BindBroadcast(instruction, rank);
  Communicator& group = GroupOf(instruction, rank);
  // NCCL moves device tensors only. A host input goes through the device, and back if the plan wants the output there.
  const auto through_device = [device = rank.device,
                               host = instruction.outputs.at(0).type.host](auto collective) -> Action {
    return [device, host, collective](const ActionArguments& arguments) {
      const at::Tensor result = collective(ToDevice(arguments.input(0), device), arguments);
      return Tensors{host ? ToHost(result) : result};
    };
  };
  switch (instruction.kind) {
    case OpKind::kAllReduce:
      return through_device([&group, reduce = ReduceOf(instruction)](const at::Tensor& x, const ActionArguments&) {
        return AllReduce(group, x, reduce);
      });
    case OpKind::kAllGather:
      return through_device([&group, dim = instruction.integer("dim"), cut = CutOf(instruction)](
                                const at::Tensor& x, const ActionArguments&) { return AllGather(group, x, dim, cut); });
    case OpKind::kReduceScatter:
      return through_device(
          [&group, dim = instruction.integer("dim"), cut = CutOf(instruction)](
              const at::Tensor& x, const ActionArguments&) { return ReduceScatter(group, x, dim, cut); });
    case OpKind::kReshard: {
      const std::vector<int64_t>* segments = instruction.FindIntegers("segments");
      TORCH_CHECK(segments != nullptr, "reshard without segments");
      const ReshardDims dims = {instruction.integer("from_dim"), instruction.integer("to_dim"),
                                instruction.integer("zigzag_dim"), *segments};
      return through_device(
          [&group, dims](const at::Tensor& x, const ActionArguments&) { return Reshard(group, x, dims); });
    }
    case OpKind::kAllToAll:
      TORCH_CHECK(instruction.outputs.at(0).type.host,
                  "the output of all_to_all is row counts, which the plan must place on the host");
      return [&group, device = rank.device,
              check = CapacityOfSelected(instruction, rank.plan)](const ActionArguments& arguments) {
        const at::Tensor sent = arguments.input(0).to(device);
        Tensors counts = CountsOnHost(arguments, sent, AllToAll(group, sent));
        check(arguments, counts.front());
        return counts;
      };
    case OpKind::kGatherTokens:
      return through_device([&group](const at::Tensor& tokens, const ActionArguments&) {
        return AllGather(group, tokens, 0, Cut::kConsecutive);
      });
    case OpKind::kScatterTokens:
      // The sum is rounded once: terms are wide.
      return through_device([&group, dtype = ScalarTypeOf(instruction.outputs.at(0).type.dtype)](
                                const at::Tensor& terms, const ActionArguments&) {
        return ReduceScatter(group, terms, 0, Cut::kConsecutive).to(dtype);
      });
    case OpKind::kAllToAllV:
      TORCH_CHECK(instruction.inputs.size() == 3,
                  "all_to_all_v takes 3 inputs (rows, counts to send, counts to receive), not ",
                  instruction.inputs.size());
      return through_device([&group, check = CapacityOf(instruction, rank.plan)](const at::Tensor& rows,
                                                                                 const ActionArguments& arguments) {
        const at::Tensor& receive = arguments.inputs[2]->OnHost();
        check(arguments, receive);
        return AllToAllV(group, rows, arguments.inputs[1]->OnHost(), receive);
      });
    case OpKind::kAllGatherV:
      return through_device([&group, check = CapacityOf(instruction, rank.plan)](const at::Tensor& rows,
                                                                                 const ActionArguments& arguments) {
        const at::Tensor& counts = arguments.inputs[1]->OnHost();
        check(arguments, counts);
        return AllGatherV(group, rows, counts);
      });
    case OpKind::kReduceScatterV:
      return through_device([&group](const at::Tensor& terms, const ActionArguments& arguments) {
        return ReduceScatterV(group, terms, arguments.inputs[1]->OnHost());
      });
    default: TORCH_CHECK(false, OpName(instruction.kind), " is not a communication instruction");
  }
}

}  // namespace planwright::executor
