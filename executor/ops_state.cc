#include "executor/ops_state.h"

#include <ATen/ops/zeros.h>

#include <absl/strings/str_split.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "executor/optimizer/optimizer.h"
#include "executor/probe_writer.h"
#include "planner/cli/exit_status.h"
#include "planner/plan/lr_schedule.h"

namespace planwright::executor {
namespace {

constexpr int kSkippedStepsAllowed = 10;  // in a row

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void BeginStep(Rank& rank) {
  rank.step_started = Now();
  rank.step.Begin(rank.step.step);
  const double consumed = static_cast<double>(rank.step.step * rank.plan.budget.global_samples);
  rank.step.learning_rate = LearningRateAt(rank.plan.budget.learning_rate, consumed);
  rank.step.weight_decay = WeightDecayAt(rank.plan.budget.weight_decay, consumed);
  for (auto& [name, module] : rank.modules) module.ZeroGradients();
}

// Whether this rank is the one that adds a value that is replicated along the axes of `once_over`.
bool Adds(const Instruction& instruction, const Module* module, int rank) {
  if (!instruction.attributes.contains("once_over")) return true;
  TORCH_CHECK(module != nullptr, "accumulate once over an axis, but the instruction is of no module: it needs a `module` attribute");
  for (absl::string_view name : absl::StrSplit(instruction.text("once_over"), ',', absl::SkipEmpty())) {
    const std::optional<Axis> axis = AxisFromName(std::string_view(name.data(), name.size()));
    TORCH_CHECK(axis, "unknown axis in once_over");
    if (CoordinateOf(module->grid, rank, *axis) != 0) return false;
  }
  return true;
}

void Accumulate(const Instruction& instruction, const Values& values, const CallContext& call, Rank& rank) {
  if (!Adds(instruction, call.module, rank.rank)) return;
  at::Tensor sum = rank.StateValue(instruction.text("into"));
  const at::Tensor& value = values.Get(instruction.inputs.at(0));
  TORCH_CHECK(value.numel() == 1, "accumulated values have one element");
  sum.add_(value.reshape({1}).to(sum.device(), sum.scalar_type()));
}

void AccumulateCounts(const Instruction& instruction, const Values& values, const CallContext& call, const std::string& frame,
                      Rank& rank) {
  const auto layer = std::find_if(call.module->layers.begin(), call.module->layers.end(), [&](const LayerSummary& l) { return l.frame == frame; });
  TORCH_CHECK(layer != call.module->layers.end() && layer->expert_row >= 0, frame, " is not a layer with experts");
  at::Tensor sum = ExpertCounts(rank.step, *call.module, *layer);
  sum.add_(values.Get(instruction.inputs.at(0)).to(sum.device()));
}

StepRecord RecordOf(const Rank& rank) {
  const StepState& step = rank.step;
  const int64_t tokens = step.sum("$integers.loss_tokens").item<int64_t>();
  StepRecord record;
  record.step = step.step + 1;
  record.consumed_samples = record.step * rank.plan.budget.global_samples;
  if (tokens > 0) record.loss = step.sum("$reals.loss").item<double>() / static_cast<double>(tokens);
  record.grad_norm = step.grad_norm;
  int64_t moe_layers = 0;
  for (size_t i = 0; i < rank.plan.modules.size(); ++i) {
    record.module_grad_norms.emplace_back(rank.plan.modules[i].name, step.module_norms[i]);
    moe_layers += rank.plan.modules[i].expert_layers();
  }
  record.learning_rate = step.learning_rate;
  record.step_seconds = Now() - rank.step_started;
  record.skipped = step.skipped;
  record.routing = static_cast<uint64_t>(step.sum("$integers.routing").item<int64_t>());
  if (moe_layers > 0) {  // mean over samples and layers, without the coefficient
    record.aux_loss = step.sum("$reals.aux").item<double>() / static_cast<double>(rank.plan.budget.global_samples * moe_layers);
  }
  return record;
}

void LogStep(Rank& rank) {
  rank.skipped_in_a_row = rank.step.skipped ? rank.skipped_in_a_row + 1 : 0;
  const StepRecord record = RecordOf(rank);
  if (rank.log != nullptr) {
    const absl::Status status = rank.log->Write(record);
    if (!status.ok()) throw ExitError(kExitStorage, std::string(status.message()));
    if (record.step % std::max<int64_t>(rank.plan.log_every_steps, 1) == 0 || record.skipped) {
      std::printf("%s\n", StepLine(record, rank.plan.budget.steps).c_str());
      std::fflush(stdout);
    }
  }
  if (rank.skipped_in_a_row < kSkippedStepsAllowed) return;
  std::string culprits;
  for (const auto& [module, norm] : record.module_grad_norms) {
    if (!std::isfinite(norm)) culprits += " " + module;
  }
  throw ExitError(kExitNumerics, std::to_string(rank.skipped_in_a_row) + " steps in a row had a gradient norm that is not finite, in" +
                                     culprits);
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

void RunState(const Instruction& instruction, const Values& values, const CallContext& call, const std::string& frame, Rank& rank) {
  switch (instruction.kind) {
    case OpKind::kAllocateParameters: {
      const std::string& name = instruction.text("module");
      const Module* module = rank.plan.FindModule(name);
      TORCH_CHECK(module != nullptr, "no module ", name);
      rank.modules.emplace(name, ModuleState(rank.plan, *module, rank.rank, rank.device));
      return;
    }
    case OpKind::kInitializeParameters:
    case OpKind::kLoadParameters: return rank.handlers.parameters(instruction.kind, ModuleOf(instruction, rank));
    case OpKind::kRefreshMasters: return ModuleOf(instruction, rank).RefreshMasters();
    case OpKind::kBeginStep: return BeginStep(rank);
    case OpKind::kAccumulate: return Accumulate(instruction, values, call, rank);
    case OpKind::kAccumulateCounts: return AccumulateCounts(instruction, values, call, frame, rank);
    case OpKind::kScaleGradients: return ScaleGradients(rank.step, BucketOf(instruction, rank));
    case OpKind::kSquareNorm: return SquareNorm(BucketOf(instruction, rank), rank.step.sum("$reals.norm." + instruction.text("module")));
    case OpKind::kClipAndGate:
      if (rank.probe != nullptr) rank.probe->WriteGradients(rank);
      return ClipAndGate(rank.plan, rank.step);
    case OpKind::kAdamW: return StepAdamW(rank.plan.optimizer, rank.step, BucketOf(instruction, rank));
    case OpKind::kUpdateExpertBias: return UpdateExpertBias(rank.step, ModuleOf(instruction, rank));
    case OpKind::kLogStep: return LogStep(rank);
    default: TORCH_CHECK(false, OpName(instruction.kind), " is not a state instruction");
  }
}

}  // namespace planwright::executor
