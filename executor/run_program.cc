#include "executor/run_program.h"

#include <absl/strings/str_cat.h>

#include "executor/communication/failure.h"
#include "executor/instruction_text.h"
#include "executor/ops_communication.h"
#include "executor/ops_state.h"
#include "executor/probe_writer.h"
#include "planner/cli/exit_status.h"

namespace planwright::executor {
namespace {

// The first lines of an exception: c10 appends a C++ backtrace.
std::string Brief(const char* what) {
  const std::string text = what;
  return text.substr(0, text.find("\nException raised from"));
}

void CheckType(const Output& output, const at::Tensor& value, bool any_size) {
  const ValueType& type = output.type;
  TORCH_CHECK(value.defined(), output.name, " was not made");
  bool fits = static_cast<size_t>(value.dim()) == type.dims.size();
  for (size_t i = 0; fits && !any_size && i < type.dims.size(); ++i) {
    const auto* size = std::get_if<int64_t>(&type.dims[i]);
    fits = size == nullptr || *size == value.size(i);
  }
  TORCH_CHECK(fits, output.name, " has shape ", value.sizes(), ", not the planned one");
  const bool integer = type.dtype == DType::kInt64;
  TORCH_CHECK(integer == (value.scalar_type() == at::kLong), output.name, " has dtype ", value.scalar_type(), ", planned ",
              DTypeName(type.dtype));
}

}  // namespace

void ProgramWalker::Run(int64_t first_step) {
  rank_.step.step = first_step;
  RunList(rank_.role.setup, "setup");
  if (rank_.probe != nullptr) rank_.probe->WriteParameters(rank_);
  for (int64_t step = first_step; step <= rank_.last_step; ++step) {
    rank_.step.step = step;
    RunList(rank_.role.step, absl::StrCat("step ", step + 1));
    if (saved_.size() != 0) throw ExitError(kExitInternal, "saved but never taken: " + saved_.Describe());
    if (rank_.probe != nullptr && Probed(step)) rank_.probe->WriteValues(rank_);
  }
  RunList(rank_.role.teardown, "teardown");
}

bool ProgramWalker::Probed(int64_t step) const { return step == 0 || step == rank_.last_step; }

void ProgramWalker::RunList(const std::vector<Instruction>& list, const std::string& name) {
  Scope scope;
  scope.path = name;
  scope.origin = rank_.role.origin;
  const Module* module = rank_.role.modules.size() == 1 ? rank_.plan.FindModule(rank_.role.modules[0]) : nullptr;
  scope.call = rank_.Context(module, "", -1);
  RunBody(list, scope);
}

void ProgramWalker::RunBody(const std::vector<Instruction>& body, Scope& scope) {
  for (size_t place = 0; place < body.size(); ++place) {
    const Instruction& instruction = body[place];
    const bool waits = OpClassOf(instruction.kind) == OpClass::kCommunication;
    rank_.recorder.Begin(waits ? RecorderState::kWaiting : RecorderState::kRunning, rank_.step.step + 1,
                         instruction.microbatch >= 0 ? instruction.microbatch : scope.call.microbatch,
                         OriginOf(instruction, scope), scope.path, place, TextOf(instruction));
    try {
      RunOne(instruction, scope);
    } catch (const ExitError& error) {
      if (error.located()) throw;
      Fail(instruction, scope, place, error.status(), error.what());
    } catch (const std::bad_alloc&) {
      Fail(instruction, scope, place, kExitInternal, "out of memory");
    } catch (const std::exception& error) {
      Fail(instruction, scope, place, ExitStatusOf(KindOf(error)), Brief(error.what()));
    }
    for (const std::string& name : instruction.frees) scope.values.Free(name);
  }
}

void ProgramWalker::RunOne(const Instruction& instruction, Scope& scope) {
  switch (OpClassOf(instruction.kind)) {
    case OpClass::kControl:
      return Call(instruction, scope);
    case OpClass::kData:
      return Bind(instruction, rank_.handlers.data(instruction, ContextOf(instruction, scope)), scope);
    case OpClass::kCompute:
      return Bind(instruction, Compute(instruction, scope), scope);
    case OpClass::kCommunication:
      return Bind(instruction, RunCommunication(instruction, scope.values, rank_), scope);
    case OpClass::kState:
      return RunState(instruction, scope.values, ContextOf(instruction, scope), scope.frame, rank_);
  }
}

void ProgramWalker::Call(const Instruction& instruction, Scope& scope) {
  const Block* block = rank_.plan.FindBlock(instruction.block);
  TORCH_CHECK(block != nullptr, "no block ", instruction.block);
  TORCH_CHECK(block->inputs.size() == instruction.inputs.size() && block->outputs.size() == instruction.outputs.size(),
              "call with ", instruction.inputs.size(), " inputs and ", instruction.outputs.size(), " outputs of block ", block->name);
  const int microbatch = instruction.microbatch >= 0 ? instruction.microbatch : scope.call.microbatch;
  Scope inner;
  inner.block = block;
  inner.frame = instruction.frame.empty() ? scope.frame : instruction.frame;
  inner.path = absl::StrCat(scope.path, " > ", inner.frame, " ", block->name);
  inner.call = rank_.Context(rank_.plan.FindModule(block->module), inner.frame, microbatch);
  inner.origin = block->origin >= 0 ? block->origin : scope.origin;
  for (size_t i = 0; i < block->inputs.size(); ++i) inner.values.Set(block->inputs[i].name, scope.values.Get(instruction.inputs[i]));
  for (const Output& taken : block->takes) inner.values.Set(taken.name, saved_.Take(inner.frame, microbatch, taken.name));
  KeepProbes(block->inputs, inner);

  RunBody(block->body, inner);

  for (size_t i = 0; i < block->outputs.size(); ++i) scope.values.Set(instruction.outputs[i].name, inner.values.Get(block->outputs[i]));
  for (const std::string& name : block->saved) saved_.Save(inner.frame, microbatch, name, inner.values.Get(name));
}

Tensors ProgramWalker::Compute(const Instruction& instruction, const Scope& scope) {
  Tensors inputs, parameters, gradients;
  for (const std::string& name : instruction.inputs) inputs.push_back(scope.values.Get(name));
  if (!instruction.parameters.empty() || !instruction.gradients.empty()) {
    TORCH_CHECK(scope.block != nullptr, "only blocks read parameters");
    const auto module = rank_.modules.find(scope.block->module);
    TORCH_CHECK(module != rank_.modules.end(), "module ", scope.block->module, " is not allocated on this rank");
    for (const std::string& slot : instruction.parameters) parameters.push_back(module->second.slot(scope.frame, slot).parameter);
    for (const std::string& slot : instruction.gradients) {
      gradients.push_back(module->second.slot(scope.frame, slot).gradient);
      TORCH_CHECK(gradients.back().defined(), scope.frame, ".", slot, " takes no gradient");
    }
  }
  const ComputeHandler handler = rank_.handlers.compute(instruction.kind);
  TORCH_CHECK(handler != nullptr, "no handler of ", OpName(instruction.kind));
  return handler({instruction, ContextOf(instruction, scope), inputs, parameters, gradients});
}

void ProgramWalker::Bind(const Instruction& instruction, Tensors outputs, Scope& scope) {
  TORCH_CHECK(outputs.size() == instruction.outputs.size(), outputs.size(), " outputs, planned ", instruction.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Output& output = instruction.outputs[i];
    if (IsStateName(output.name)) continue;
    // A lane's part of a block's samples may be smaller than the largest lane's, which the type of read data names.
    CheckType(output, outputs[i], OpClassOf(instruction.kind) == OpClass::kData);
    scope.values.Set(output.name, std::move(outputs[i]));
  }
  KeepProbes(instruction.outputs, scope);
}

void ProgramWalker::KeepProbes(const std::vector<Output>& made, const Scope& scope) {
  if (rank_.probe == nullptr || scope.block == nullptr || !Probed(rank_.step.step)) return;
  for (const Probe& probe : scope.block->probes) {
    for (const Output& output : made) {
      if (output.name == probe.value) rank_.probe->Keep(*scope.block, probe, scope.call, scope.values.Get(output.name));
    }
  }
}

CallContext ProgramWalker::ContextOf(const Instruction& instruction, const Scope& scope) const {
  const auto module = instruction.attributes.find("module");
  if (module == instruction.attributes.end() && instruction.microbatch < 0) return scope.call;
  const Module* named =
      module == instruction.attributes.end() ? scope.call.module : rank_.plan.FindModule(std::get<std::string>(module->second));
  return rank_.Context(named, scope.frame, instruction.microbatch >= 0 ? instruction.microbatch : scope.call.microbatch);
}

int ProgramWalker::OriginOf(const Instruction& instruction, const Scope& scope) const {
  return instruction.origin >= 0 ? instruction.origin : scope.origin;
}

const std::string& ProgramWalker::TextOf(const Instruction& instruction) {
  const auto [it, fresh] = texts_.try_emplace(&instruction);
  if (fresh) it->second = InstructionText(instruction);
  return it->second;
}

void ProgramWalker::Fail(const Instruction& instruction, const Scope& scope, size_t place, int status, const std::string& what) {
  const std::string origin = OriginText(rank_.plan, OriginOf(instruction, scope));
  throw ExitError(status, absl::StrCat("rank ", rank_.rank, " on ", rank_.host, ": ", scope.path, " ", place, ": ",
                                       TextOf(instruction), ": ", what, origin.empty() ? "" : "\n  recipe: ", origin),
                  true);
}

}  // namespace planwright::executor
