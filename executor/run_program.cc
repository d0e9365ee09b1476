#include "executor/run_program.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "executor/communication/failure.h"
#include "executor/instruction_text.h"
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

const SlotOperands kNoOperands;

}  // namespace

ProgramWalker::ProgramWalker(Rank& rank)
    : rank_(rank),
      blocks_(rank.plan),
      program_(blocks_, rank.role),
      reports_(rank.plan, rank.step, rank.log),
      bound_(program_, rank, reports_),
      values_(static_cast<size_t>(program_.values())) {
  if (rank.probe != nullptr) FindProbes();
}

void ProgramWalker::Run(int64_t first_step) {
  if (!program_.problem().empty()) {
    throw ExitError(kExitInternal, absl::StrCat("rank ", rank_.rank, " on ", rank_.host, ": the program does not link: ", program_.problem()), true);
  }
  rank_.step.step = first_step;
  RunList(program_.setup(), "setup", /*binds=*/true);
  if (rank_.probe != nullptr) rank_.probe->WriteParameters(rank_);
  BindList(program_.step(), "step");
  BindList(program_.teardown(), "teardown");
  for (int64_t step = first_step; step <= rank_.last_step; ++step) {
    rank_.step.step = step;
    keeping_ = rank_.probe != nullptr && (step == 0 || step == rank_.last_step);
    RunList(program_.step(), absl::StrCat("step ", step + 1));
    if (keeping_) rank_.probe->WriteValues(rank_);
  }
  keeping_ = false;
  reports_.Finish();
  RunList(program_.teardown(), "teardown");
}

// A list that allocates what later instructions name is bound as it runs, all others before.
void ProgramWalker::RunList(LinkedProgram::Range list, const std::string& name, bool binds) {
  list_ = name;
  path_call_ = -1;
  next_kept_ = 0;
  for (size_t i = list.first; i < list.end; ++i) {
    const LinkedEntry& entry = program_.entries()[i];
    const Instruction& source = *entry.instruction->source;
    const BoundInstruction& bound = bound_.instruction(entry);
    const BoundCall& call = bound_.call(entry);
    if (path_call_ != entry.call) EnterPath(entry.call);
    rank_.recorder.Begin(bound.state, rank_.step.step + 1, source.microbatch >= 0 ? source.microbatch : call.context.microbatch,
                         source.origin >= 0 ? source.origin : call.origin, path_, static_cast<size_t>(entry.instruction->place), bound.text);
    Locating(entry, [&] {
      if (binds) bound_.Bind(entry);
      if (keeping_) KeepProbes(i, false);
      RunOne(entry);
      if (keeping_) KeepProbes(i, true);
    });
    for (int event : program_.after(i)) {
      if (event >= 0) values_.Free(event);  // what a frame keeps stays where it is
    }
  }
}

void ProgramWalker::BindList(LinkedProgram::Range list, const std::string& name) {
  list_ = name;
  path_call_ = -1;
  for (size_t i = list.first; i < list.end; ++i) {
    const LinkedEntry& entry = program_.entries()[i];
    Locating(entry, [&] { bound_.Bind(entry); });
  }
}

template <typename Work>
void ProgramWalker::Locating(const LinkedEntry& entry, Work work) {
  try {
    work();
  } catch (const ExitError& error) {
    if (error.located()) throw;
    Fail(entry, error.status(), error.what());
  } catch (const std::bad_alloc&) {
    Fail(entry, kExitInternal, "out of memory");
  } catch (const std::exception& error) {
    Fail(entry, ExitStatusOf(KindOf(error)), Brief(error.what()));
  }
}

void ProgramWalker::RunOne(const LinkedEntry& entry) {
  const LinkedInstruction& linked = *entry.instruction;
  const BoundInstruction& bound = bound_.instruction(entry);
  BoundCall& call = bound_.call(entry);
  call.context.step = rank_.step.step;
  const CallContext* context = &call.context;
  CallContext own;
  if (bound.context) {
    own = *bound.context;
    own.step = rank_.step.step;
    own.layer = call.context.layer;
    if (linked.source->microbatch < 0) own.microbatch = call.context.microbatch;
    context = &own;
  }
  const int* numbers = program_.ValuesOf(entry.call);
  if (linked.op_class != OpClass::kCompute) {
    return Set(entry, bound.action({linked, numbers, values_, *context}));
  }
  inputs_.clear();
  for (int operand : linked.inputs) inputs_.push_back(values_.Get(numbers[operand]));
  const SlotOperands& operands = call.operands == nullptr ? kNoOperands : call.operands[linked.place];
  Set(entry, bound.compute({*linked.source, *context, inputs_, operands.parameters, operands.gradients}));
  inputs_.clear();
}

void ProgramWalker::Set(const LinkedEntry& entry, Tensors outputs) {
  const LinkedInstruction& linked = *entry.instruction;
  TORCH_CHECK(outputs.size() == linked.outputs.size(), outputs.size(), " outputs, planned ", linked.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (linked.outputs[i] < 0) continue;  // state
    // A lane's part of a block's samples may be smaller than the largest lane's, which the type of read data names.
    CheckType(linked.source->outputs[i], outputs[i], linked.op_class == OpClass::kData);
    values_.Set(program_.ValueOf(entry, linked.outputs[i]), std::move(outputs[i]));
  }
}

void ProgramWalker::EnterPath(uint32_t call) {
  path_ = list_;
  program_.AppendPath(call, path_);
  path_call_ = call;
}

void ProgramWalker::FindProbes() {
  for (uint32_t c = 0; c < program_.calls().size(); ++c) {
    const LinkedCall& call = program_.calls()[c];
    const Block* block = call.block->block;
    if (block == nullptr || call.first < program_.step().first || call.end > program_.step().end || call.first == call.end) continue;
    for (const Probe& probe : block->probes) {
      for (size_t i = 0; i < block->inputs.size(); ++i) {
        if (block->inputs[i].name == probe.value) kept_.push_back({call.first, false, c, &probe, program_.ValueOf(c, call.block->inputs[i])});
      }
      for (size_t i = call.first; i < call.end; ++i) {
        const LinkedEntry& entry = program_.entries()[i];
        if (entry.call != c) continue;
        for (size_t k = 0; k < entry.instruction->outputs.size(); ++k) {
          if (entry.instruction->source->outputs[k].name != probe.value || entry.instruction->outputs[k] < 0) continue;
          kept_.push_back({i, true, c, &probe, program_.ValueOf(entry, entry.instruction->outputs[k])});
        }
      }
    }
  }
  const auto earlier = [](const Kept& a, const Kept& b) { return std::pair(a.entry, a.behind) < std::pair(b.entry, b.behind); };
  std::stable_sort(kept_.begin(), kept_.end(), earlier);
}

void ProgramWalker::KeepProbes(size_t entry, bool behind) {
  for (; next_kept_ < kept_.size() && kept_[next_kept_].entry == entry && kept_[next_kept_].behind == behind; ++next_kept_) {
    const Kept& kept = kept_[next_kept_];
    const LinkedCall& call = program_.calls()[kept.call];
    const CallContext context = rank_.Context(nullptr, call.frame < 0 ? "" : blocks_.frame(call.frame), call.microbatch);
    rank_.probe->Keep(*call.block->block, *kept.probe, context, values_.Get(kept.value));
  }
}

void ProgramWalker::Fail(const LinkedEntry& entry, int status, const std::string& what) {
  const Instruction& source = *entry.instruction->source;
  EnterPath(entry.call);
  const std::string origin = OriginText(rank_.plan, source.origin >= 0 ? source.origin : bound_.call(entry).origin);
  throw ExitError(status, absl::StrCat("rank ", rank_.rank, " on ", rank_.host, ": ", path_, " ", entry.instruction->place, ": ",
                                       bound_.instruction(entry).text, ": ", what, origin.empty() ? "" : "\n  recipe: ", origin),
                  true);
}

}  // namespace planwright::executor
