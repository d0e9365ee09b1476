#include "executor/program/launches.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <absl/strings/str_cat.h>

#include <string>
#include <utility>

#include "executor/program/step_profile.h"
#include "planner/plan/expert_ops.h"
#include "planner/plan/link/joins.h"

namespace planwright::executor {
namespace {

// "[2, tokens, 64]": sizes, and names of those that are known only at run time.
std::string DimsText(const ValueType& type) {
  std::string text;
  for (const auto& dim : type.dims) {
    const auto* size = std::get_if<int64_t>(&dim);
    absl::StrAppend(&text, text.empty() ? "" : ", ", size ? absl::StrCat(*size) : std::get<std::string>(dim));
  }
  return absl::StrCat("[", text, "]");
}

// Checks an output against its planned type. Symbolic sizes are not compared, and floats of any width pass: a handler
// may return statistics wider than planned values. `any_size`: only the number of dims counts.
void CheckType(const Output& output, const at::Tensor& value, bool any_size) {
  const ValueType& type = output.type;
  TORCH_CHECK(value.defined(), "the handler returned nothing for ", output.name);
  bool fits = static_cast<size_t>(value.dim()) == type.dims.size();
  for (size_t i = 0; fits && !any_size && i < type.dims.size(); ++i) {
    const auto* size = std::get_if<int64_t>(&type.dims[i]);
    fits = size == nullptr || *size == value.size(i);
  }
  TORCH_CHECK(fits, output.name, " has shape ", value.sizes(), ", planned ", DimsText(type));
  const bool integer = type.dtype == DType::kInt64;
  TORCH_CHECK(integer == (value.scalar_type() == at::kLong), output.name, " has dtype ", value.scalar_type(),
              ", planned ", DTypeName(type.dtype));
}

const SlotOperands kNoOperands;

}  // namespace

Launches::Launches(const LinkedProgram& program, const BoundProgram& bound, const Rank& rank, const Walk& walk,
                   ValueTable& values)
    : program_(program), bound_(bound), rank_(rank), walk_(walk), values_(values) {}

void Launches::SetEntry(size_t index, bool later, Launch& launch) {
  const LinkedEntry& entry = program_.entries()[index];
  const LinkedInstruction& linked = *entry.instruction;
  const int* numbers = program_.ValuesOf(entry.call);
  const auto held = [&](const std::shared_ptr<Value>& value) {
    if (later) launch.held.push_back(value);
    return value.get();
  };
  const auto read = [&](int operand) { return operand < 0 ? nullptr : held(values_.Get(numbers[operand])); };
  launch.entry = &entry;
  launch.overwrites = program_.Overwritten(index) >= 0;
  launch.writes_gradients = bound_.first_additions().Writes(index);
  launch.inputs.clear(), launch.parts.clear(), launch.outputs.clear();
  for (int operand : linked.inputs) launch.inputs.push_back(read(operand));
  for (size_t p = 0; p < linked.parts.size(); ++p) {
    launch.parts.push_back(
        {linked.source->parts[p].send ? read(linked.parts[p].value) : nullptr, read(linked.parts[p].sizes)});
  }
  for (int operand : linked.outputs)
    launch.outputs.push_back(operand < 0 ? nullptr : held(values_.New(numbers[operand])));
}

void Launches::CarryOut(const Launch& launch, Tensors& inputs) const {
  const LinkedInstruction& linked = *launch.entry->instruction;
  const BoundInstruction& bound = bound_.instruction(*launch.entry);
  // Backwards are instructions of the plan, so LibTorch need not follow views for autograd: a view would keep the
  // tensor that it was made of, and its memory would have two owners.
  const at::AutoDispatchBelowADInplaceOrView without_autograd;
  StepProfile* profile = launch.timed >= 0 ? walk_.files.profile : nullptr;
  if (launch.first != nullptr) {
    // All of the time is that of the first one.
    if (profile != nullptr) profile->Begin(launch.first->timed);
    ComputeBoth(launch, inputs);
    if (profile != nullptr) profile->End(launch.first->timed), profile->Begin(launch.timed), profile->End(launch.timed);
    return;
  }
  if (profile != nullptr) profile->Begin(launch.timed);
  Tensors made = linked.op_class == OpClass::kCompute
                     ? Compute(launch, inputs)
                     : bound.action({linked, launch.context, launch.inputs, launch.parts});
  if (profile != nullptr) profile->End(launch.timed);
  Keep(launch, 0, made);
}

const SlotOperands& Launches::OperandsOf(const LinkedEntry& entry) const {
  const SlotOperands* slots = bound_.call(entry).operands;
  return slots == nullptr ? kNoOperands : slots[entry.instruction->index];
}

Tensors Launches::Compute(const Launch& launch, Tensors& inputs) const {
  const LinkedInstruction& linked = *launch.entry->instruction;
  inputs.clear();
  for (const Value* value : launch.inputs) inputs.push_back(value->tensor);
  const SlotOperands& operands = OperandsOf(*launch.entry);
  // Samples of evaluations are not among those whose choices are recorded.
  const bool recorded =
      launch.context.evaluation < 0 && (walk_.handlers.replay_routing || walk_.handlers.record_routing);
  const std::optional<size_t> choices = recorded ? ChoicesOf(linked.source->kind) : std::nullopt;
  if (choices && walk_.handlers.replay_routing) {
    const int64_t samples = inputs[0].size(1), top_k = linked.source->integer("top_k");
    inputs.push_back(ToDevice(walk_.handlers.replay_routing(launch.context, samples, top_k), rank_.device));
  }
  Tensors made = bound_.instruction(*launch.entry)
                     .compute({*linked.source, launch.context, inputs, operands.parameters, operands.gradients,
                               launch.overwrites, launch.writes_gradients});
  if (choices && walk_.handlers.record_routing) walk_.handlers.record_routing(launch.context, made[*choices]);
  inputs.clear();  // or the walker would keep values alive after the plan has freed them
  return made;
}

void Launches::ComputeBoth(const Launch& launch, Tensors& inputs) const {
  const Launch& first = *launch.first;
  Tensors of_first;
  for (const Value* value : first.inputs) of_first.push_back(value->tensor);
  inputs.clear();
  for (const Value* value : launch.inputs) inputs.push_back(value->tensor);
  const SlotOperands &slots_of_first = OperandsOf(*first.entry), &slots = OperandsOf(*launch.entry);
  Tensors made =
      bound_.instruction(*launch.entry)
          .joined({*first.entry->instruction->source, first.context, of_first, slots_of_first.parameters,
                   slots_of_first.gradients, first.overwrites},
                  {*launch.entry->instruction->source, launch.context, inputs, slots.parameters, slots.gradients});
  inputs.clear();
  const bool passes = JoinOf(*first.entry->instruction->source, *launch.entry->instruction->source) == Join::kPasses;
  const size_t of_first_made = first.outputs.size() - (passes ? 1 : 0);
  TORCH_CHECK(made.size() >= of_first_made, made.size(), " outputs of two instructions instead of the planned ",
              of_first_made + launch.outputs.size());
  const std::span<at::Tensor> all(made);
  Keep(first, passes ? 1 : 0, all.first(of_first_made));
  Keep(launch, 0, all.subspan(of_first_made));
}

// The outputs from number `from` on.
void Launches::Keep(const Launch& launch, size_t from, std::span<at::Tensor> made) const {
  const LinkedInstruction& linked = *launch.entry->instruction;
  TORCH_CHECK(from + made.size() == linked.outputs.size(), made.size(), " outputs instead of the planned ",
              linked.outputs.size() - from);
  for (size_t i = 0; i < made.size(); ++i) {
    if (launch.outputs[from + i] == nullptr) continue;  // state: changed in place
    // The planned type of read data has the sample count of the largest lane; this lane may have fewer.
    CheckType(linked.source->outputs[from + i], made[i], linked.op_class == OpClass::kData);
    launch.outputs[from + i]->tensor = std::move(made[i]);
  }
}

}  // namespace planwright::executor
