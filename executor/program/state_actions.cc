// Actions of state instructions: weights, sums over the step, the optimizer, the log. And of storage instructions,
// which others carry out.

#include <ATen/ops/arange.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <utility>

#include "executor/optimizer/optimizer.h"
#include "executor/program/actions.h"
#include "planner/plan/lr_schedule.h"

namespace planwright::executor {
namespace {

// An action without outputs.
template <typename Work>
Action WithoutOutputs(Work work) {
  return [work](const ActionArguments& arguments) {
    work(arguments);
    return Tensors{};
  };
}

Action BindBeginStep(Rank& rank, const FirstAdditions& additions, const Handlers& handlers, StepReports& reports) {
  // Bound after setup, so the modules exist; their addresses in the map do not change.
  std::vector<std::pair<ModuleState*, std::vector<bool>>> modules;
  for (size_t m = 0; m < rank.plan.modules.size(); ++m) {
    const auto module = rank.modules.find(rank.plan.modules[m].name);
    if (module == rank.modules.end()) continue;
    std::vector<bool> written;
    for (size_t i = 0; i < rank.plan.modules[m].storages.size(); ++i) written.push_back(additions.IsWritten(m, i));
    modules.emplace_back(&module->second, std::move(written));
  }
  return WithoutOutputs([modules, &rank, &handlers, &reports](const ActionArguments& arguments) {
    reports.Begin();
    rank.step.Begin(arguments.call.step);
    const double consumed = static_cast<double>(arguments.call.step * rank.plan.budget.global_samples);
    const auto [learning_rate, weight_decay] = RatesAt(rank.plan, -1, consumed);
    rank.step.learning_rate = learning_rate, rank.step.weight_decay = weight_decay;
    for (size_t i = 0; i < rank.step.part_rates.size(); ++i)
      rank.step.part_rates[i] = RatesAt(rank.plan, static_cast<int>(i), consumed);
    // Handlers add to gradients, over all microbatches of the step.
    for (const auto& [module, written] : modules) module->ZeroGradients(written);
    if (handlers.asked_to_stop && handlers.asked_to_stop()) rank.step.sum("$integers.stop_requests").fill_(1);
  });
}

// Whether this rank adds its value to a sum over all ranks. A value that is replicated along the axes of `once_over`
// must be counted once: by the ranks at coordinate 0 of each of them.
bool AddsToSum(const Instruction& instruction, const Module* module, int rank) {
  if (!instruction.attributes.contains("once_over")) return true;
  TORCH_CHECK(module != nullptr,
              "accumulate with once_over needs a module: the instruction is in no block and has no `module` attribute");
  for (absl::string_view name : absl::StrSplit(instruction.text("once_over"), ',', absl::SkipEmpty())) {
    const std::optional<Axis> axis = AxisFromName(std::string_view(name.data(), name.size()));
    TORCH_CHECK(axis, "unknown axis in once_over: ", instruction.text("once_over"));
    if (CoordinateOf(module->grid, rank, *axis) != 0) return false;
  }
  return true;
}

Action BindAccumulate(const Instruction& instruction, const Module* module, Rank& rank) {
  if (!AddsToSum(instruction, module, rank.rank)) return WithoutOutputs([](const ActionArguments&) {});
  return WithoutOutputs([sum = rank.StateValue(instruction.text("into"))](const ActionArguments& arguments) {
    const at::Tensor& value = arguments.input(0);
    TORCH_CHECK(value.numel() == 1, "accumulate takes a value of one element, not of shape ", value.sizes());
    // Added in the dtype of the accumulator, which is wider than most values: fp64 or i64.
    at::Tensor(sum).add_(value.reshape({1}).to(sum.device(), sum.scalar_type()));
  });
}

// By a mask, and not by an index: several samples may be of one part, and their order of addition must not differ from
// run to run. `where` and not a product: a loss that is not finite stays in its part.
Action BindAccumulateRows(const Instruction& instruction, const Module* module, Rank& rank) {
  if (!AddsToSum(instruction, module, rank.rank)) return WithoutOutputs([](const ActionArguments&) {});
  return WithoutOutputs([sums = rank.StateValue(instruction.text("into"))](const ActionArguments& arguments) {
    const at::Tensor &values = arguments.input(0), &rows = arguments.input(1);
    const int64_t samples = rows.numel();
    TORCH_CHECK(samples > 0 && values.numel() % samples == 0, "accumulate_rows takes values of ", samples,
                " samples, not of shape ", values.sizes());
    const at::Tensor of_samples = values.to(sums.device(), sums.scalar_type()).reshape({-1, samples}).sum(0);
    const at::Tensor parts = at::arange(sums.numel(), rows.options().device(sums.device())).unsqueeze(1);
    const at::Tensor mine = rows.to(sums.device()).unsqueeze(0).eq(parts);
    at::Tensor(sums).add_(at::where(mine, of_samples.unsqueeze(0), at::zeros({}, of_samples.options())).sum(1));
  });
}

// All layers of one kind share a block, so the action has the rows of every layer and the call says which one is meant.
Action BindAccumulateCounts(const Module* module, const Rank& rank) {
  TORCH_CHECK(module != nullptr, "accumulate_counts outside a block: no module says which layers have experts");
  std::vector<at::Tensor> rows(module->layers.size());
  for (const LayerSummary& layer : module->layers) {
    if (layer.expert_row < 0) continue;
    const int index = LayerOf(layer.frame);
    TORCH_CHECK(index >= 0, "frame ", layer.frame, " does not name a layer (MODULE.layers.N)");
    rows.resize(std::max(rows.size(), static_cast<size_t>(index) + 1));
    rows[index] = ExpertCounts(rank.step, *module, layer);
  }
  return WithoutOutputs([rows](const ActionArguments& arguments) {
    const int layer = arguments.call.layer;
    TORCH_CHECK(layer >= 0 && layer < static_cast<int>(rows.size()) && rows[layer].defined(), "layer ", layer,
                " has no experts");
    at::Tensor(rows[layer]).add_(arguments.input(0).to(rows[layer].device()));
  });
}

ModuleState& ModuleOf(const Instruction& instruction, Rank& rank) {
  const auto module = rank.modules.find(instruction.text("module"));
  TORCH_CHECK(module != rank.modules.end(), "module ", instruction.text("module"), " is not allocated on this rank");
  return module->second;
}

BucketState& BucketOf(const Instruction& instruction, Rank& rank) {
  return ModuleOf(instruction, rank).buckets().at(static_cast<size_t>(instruction.integer("bucket")));
}

}  // namespace

Action BindState(const LinkedInstruction& linked, const Module* module, const FirstAdditions& additions, Rank& rank,
                 const Handlers& handlers, StepReports& reports, EvaluationReports& evaluations) {
  const Instruction& instruction = *linked.source;
  switch (instruction.kind) {
    case OpKind::kAllocateParameters: {
      TORCH_CHECK(linked.module >= 0, "no module ", instruction.text("module"));
      return WithoutOutputs([&rank, &made = rank.plan.modules[linked.module]](const ActionArguments&) {
        if (rank.modules.contains(made.name)) return;  // the list runs again, with another checkpoint
        rank.modules.emplace(made.name, ModuleState(rank.plan, made, rank.rank, rank.device));
      });
    }
    case OpKind::kInitializeParameters:
    case OpKind::kLoadParameters:
      return WithoutOutputs([&rank, &handlers, kind = instruction.kind, &state = ModuleOf(instruction, rank)](
                                const ActionArguments&) { handlers.parameters(kind, state, rank.step, rank.notes); });
    case OpKind::kRefreshMasters:
      return WithoutOutputs([&state = ModuleOf(instruction, rank)](const ActionArguments&) { state.RefreshMasters(); });
    case OpKind::kBeginStep: return BindBeginStep(rank, additions, handlers, reports);
    case OpKind::kAccumulate:
      return BindAccumulate(instruction, linked.module >= 0 ? &rank.plan.modules[linked.module] : module, rank);
    case OpKind::kAccumulateRows:
      return BindAccumulateRows(instruction, linked.module >= 0 ? &rank.plan.modules[linked.module] : module, rank);
    case OpKind::kAccumulateCounts: return BindAccumulateCounts(module, rank);
    case OpKind::kScaleGradients:
      return WithoutOutputs([scale = BucketFormsOn(rank.device).scale_gradients, &step = rank.step,
                             &bucket = BucketOf(instruction, rank)](const ActionArguments&) {
        if (scale != nullptr) scale(step, bucket);
      });
    case OpKind::kSquareNorm:
      return WithoutOutputs([add = BucketFormsOn(rank.device).square_norm, &step = rank.step,
                             &bucket = BucketOf(instruction, rank),
                             sum = rank.step.sum("$reals.norm." + instruction.text("module"))](const ActionArguments&) {
        add(step, bucket, sum);
      });
    case OpKind::kClipAndGate:
      return WithoutOutputs([&rank](const ActionArguments&) { ClipAndGate(rank.plan, rank.step); });
    case OpKind::kAdamW:
      return WithoutOutputs([&rank, adamw = BucketFormsOn(rank.device).adamw,
                             &bucket = BucketOf(instruction, rank)](const ActionArguments&) {
        if (const auto copy = std::exchange(bucket.copied, nullptr)) copy->Wait();
        adamw(rank.plan.optimizer, rank.step, bucket);
      });
    case OpKind::kUpdateExpertBias:
      return WithoutOutputs([&step = rank.step, &state = ModuleOf(instruction, rank)](const ActionArguments&) {
        UpdateExpertBias(step, state);
      });
    case OpKind::kLogStep: return WithoutOutputs([&reports](const ActionArguments&) { reports.End(); });
    case OpKind::kLogEvaluation: return WithoutOutputs([&evaluations](const ActionArguments&) { evaluations.End(); });
    default: TORCH_CHECK(false, OpName(instruction.kind), " is not a state instruction");
  }
}

Action BindStorage(const LinkedInstruction& linked, Rank& rank, const Handlers& handlers) {
  const Instruction& instruction = *linked.source;
  TORCH_CHECK(handlers.storage, "this executor keeps no checkpoints");
  ModuleState* module = linked.module >= 0 ? &ModuleOf(instruction, rank) : nullptr;
  return WithoutOutputs([&rank, &handlers, kind = instruction.kind, module](const ActionArguments&) {
    handlers.storage(kind, module, rank.step, rank.notes);
  });
}

}  // namespace planwright::executor
