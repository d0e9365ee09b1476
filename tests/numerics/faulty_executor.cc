// The executor with one deliberate fault and without the check of its plan, so that the numerics tests can show that
// they notice it.
//   PLANWRIGHT_FAULT=shifted_bridge_rows | swapped_bridge_lanes | doubled_gradient | missing_tp_sum |
//                    misplaced_expert_rows | plan:NAME (faults/plan_fault.h) | statement:NAME (mutated_plan.h)
// Or with files of samples on rank 3 that are those of another folder, as on another node:
//   PLANWRIGHT_FAULT=other_files:FOLDER
// Or with instructions moved to other streams, and neighbours done at once, which must not change any result:
//   PLANWRIGHT_FAULT=random_streams:SEED
// Or with the plan's own streams delayed at random:
//   PLANWRIGHT_FAULT=delayed_streams
#include <ATen/ops/roll.h>
#ifdef PLANWRIGHT_CUDA
#include <ATen/cuda/Sleep.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>

#include "executor/ops/fast/joined_form.h"
#include "executor/ops/joined_forms.h"
#include "executor/rank/rank_main.h"
#include "planner/compile/groups/derive_groups.h"
#include "planner/compile/schedule/blocks/block_builder.h"
#include "planner/verify/verify.h"
#include "tests/numerics/faults/plan_fault.h"
#include "tests/numerics/mutated_plan.h"

namespace planwright::executor {
namespace {

std::string Fault() {
  const char* fault = std::getenv("PLANWRIGHT_FAULT");
  return fault ? fault : "";
}

// Every image gets the rows of the one before: as if a bridge delivered the rows of another sample.
Tensors MergeShiftedRows(const ComputeContext& context) {
  Tensors inputs = context.inputs;
  inputs[1] = at::roll(inputs[1], 1, 0);
  return ops::RunMergeImages({context.instruction, context.call, inputs, context.parameters, context.gradients});
}

// Only the gradient of o_proj: one weight among many.
Tensors AddGradientTwice(const ComputeContext& context) {
  ops::RunLinearWeightGrad(context);
  if (context.instruction.gradients.front() != "o_proj") return {};
  return ops::RunLinearWeightGrad(
      {context.instruction, context.call, context.inputs, context.parameters, context.gradients});
}

Tensors MisplaceExpertRows(const ComputeContext& context) {
  Tensors outputs = ops::RunExperts(context);
  if (outputs[0].size(0) > 1) outputs[0].narrow(0, 0, 2).copy_(outputs[0].narrow(0, 0, 2).flip(0).clone());
  return outputs;
}

ComputeForm FaultyForm(const ComputeBinding& binding) {
  const std::string fault = Fault();
  const OpKind kind = binding.instruction.kind;
  if (fault == "shifted_bridge_rows" && kind == OpKind::kMergeImages) return {MergeShiftedRows};
  if (fault == "doubled_gradient" && kind == OpKind::kLinearWeightGrad) return {AddGradientTwice};
  if (fault == "misplaced_expert_rows" && kind == OpKind::kExperts) return {MisplaceExpertRows};
  return ChooseForm(binding);
}

// Where ranks have no kernels for two instructions at once, it is one after the other, in the place of both.
Tensors DoBoth(const ComputeContext& first, const ComputeContext& second) {
  return ops::OneByOne(PlainFormOf(first.instruction.kind), first, PlainFormOf(second.instruction.kind), second);
}
JoinedHandler JoinedForm(const ComputeBinding& first, const ComputeBinding& second) {
  return first.device.is_cuda() ? ChooseJoinedForm(first, second) : DoBoth;
}

// "random_streams:7": instructions are put on three streams at random, the same on all ranks, and delayed at random,
// differently on each rank. This is no fault: a plan may do so, and it is verified like any other.
std::optional<uint64_t> StreamSeed() {
  const std::string fault = Fault(), name = "random_streams:";
  if (fault.rfind(name, 0) != 0) return std::nullopt;
  return std::stoull(fault.substr(name.size()));
}

// Both ends of a communication must name the same stream, roles of one module and stage must be equal, and a call has
// no stream. Where values are freed follows from the streams, and is not filled in here.
void ScatterOverStreams(std::vector<Instruction>& body, uint64_t seed, const std::string& list) {
  for (Instruction& op : body) {
    if (op.kind == OpKind::kCall || op.kind == OpKind::kExchange || OpClassOf(op.kind) == OpClass::kStorage) continue;
    const int64_t* bucket = op.FindInteger("bucket");
    const std::string named = !op.outputs.empty() ? op.outputs[0].name : !op.inputs.empty() ? op.inputs[0] : "";
    const std::string key = std::string(OpName(op.kind)) +
                            (op.group.empty() ? list + named + (bucket ? std::to_string(*bucket) : "") : op.group);
    const uint64_t draw = std::hash<std::string>()(key + "/" + std::to_string(seed)) % 3;
    op.stream = draw == 0 ? "" : draw == 1 ? "first" : "second";
  }
}

absl::Status ScatterOverStreams(Plan& plan, uint64_t seed) {
  for (Block& block : plan.blocks) {
    ScatterOverStreams(block.body, seed, block.name);
    FillFrees(block);
  }
  for (Role& role : plan.roles) {
    for (const RoleList& part : kRoleLists) {
      const bool of_files = part.list == &Role::resume || part.list == &Role::save;  // they have one stream
      if (of_files) continue;
      std::vector<Instruction>& list = role.*part.list;
      ScatterOverStreams(list, seed, part.name);
      for (Instruction& op : list) op.frees.clear();
      FillFrees(list, {}, {});
    }
  }
  plan.groups = DeriveGroups(plan.modules, plan.bridges, plan.blocks, plan.roles);  // with their streams
  for (const Violation& violation : VerifyPlan(plan))
    return absl::InvalidArgumentError(violation.rule + ": " + violation.message);
  return absl::OkStatus();
}

// Delays by a millisecond at most, and half of the time not at all. On a GPU the stream is delayed, not the host.
void Delay(bool cuda) {
  thread_local std::mt19937_64 random(std::random_device{}());
  const int64_t microseconds = static_cast<int64_t>(random() % 2000) - 1000;
  if (microseconds <= 0) return;
#ifdef PLANWRIGHT_CUDA
  if (cuda) return at::cuda::sleep(microseconds * 1000);
#endif
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

absl::Status DamagePlan(Plan& plan) {
  const std::string fault = Fault();
  if (const auto seed = StreamSeed()) return ScatterOverStreams(plan, *seed);
  if (const std::string name = "statement:"; fault.rfind(name, 0) == 0) {
    absl::StatusOr<Plan> mutated = testing::WithMutant(plan, fault.substr(name.size()));
    if (mutated.ok()) plan = *std::move(mutated);
    return mutated.status();
  }
  if (const std::string name = "other_files:"; fault.rfind(name, 0) == 0) {
    if (std::getenv("RANK") == std::string("3")) plan.data.base = fault.substr(name.size());
    return absl::OkStatus();
  }
  if (fault.rfind("plan:", 0) == 0) {
    for (const testing::PlanFault& known : testing::AllPlanFaults()) {
      if (fault != "plan:" + known.name) continue;
      known.damage(plan);
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError("no fault " + fault);
  }
  if (fault == "swapped_bridge_lanes") {
    for (Bridge& bridge : plan.bridges) {
      std::swap(bridge.forward.at(0).to_rank, bridge.forward.at(1).to_rank);
      std::swap(bridge.backward.at(0).from_rank, bridge.backward.at(1).from_rank);
    }
  }
  if (fault == "missing_tp_sum") {
    for (Role& role : plan.roles) {
      std::erase_if(role.step, [](const Instruction& op) {
        return op.kind == OpKind::kAllReduce && op.inputs.front().find("gradient_shards") != std::string::npos;
      });
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace planwright::executor

int main(int argc, char** argv) {
  using namespace planwright::executor;
  const bool cuda = std::find(argv, argv + argc, std::string_view("cuda")) != argv + argc;
  const BeforeInstruction delay = [cuda] { Delay(cuda); };
  const bool sound = StreamSeed() || Fault() == "delayed_streams";
  return RankMain(argc, argv,
                  {.compute = FaultyForm,
                   .joined = sound ? JoinedForm : nullptr,
                   .prepare = DamagePlan,
                   .before_instruction = sound ? delay : nullptr});
}
