#include "executor/run_program.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "executor/communication/failure.h"
#include "executor/instruction_text.h"
#include "executor/probe_writer.h"
#include "planner/run_files/exit_status.h"

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
  TORCH_CHECK(integer == (value.scalar_type() == at::kLong), output.name, " has dtype ", value.scalar_type(),
              ", planned ", DTypeName(type.dtype));
}

const SlotOperands kNoOperands;

std::unique_ptr<Streams> StreamsOf(const Rank& rank, int streams) {
#ifdef PLANWRIGHT_CUDA
  if (rank.device.is_cuda()) return MakeCudaStreams(streams, rank.recorder, rank.before_each);
#endif
  const auto fail = [&rank](const std::exception& error) {
    const auto* exit = dynamic_cast<const ExitError*>(&error);
    rank.leave(exit != nullptr ? exit->status() : kExitInternal, error.what());
  };
  return MakeHostStreams(streams, rank.recorder, fail, rank.before_each);
}

}  // namespace

ProgramWalker::ProgramWalker(Rank& rank)
    : rank_(rank), blocks_(rank.plan), program_(blocks_, rank.role), reports_(rank.plan, rank.step, rank.log),
      bound_(program_, rank, reports_), values_(static_cast<size_t>(program_.values())), program_accesses_(program_),
      order_(program_accesses_.resources(), program_accesses_.streams()) {
  if (program_accesses_.streams() > 1) streams_ = StreamsOf(rank, program_accesses_.streams());
  if (rank.probe != nullptr) FindProbes();
}

// Another stream's thread may be inside a communication that ends only with the process: then nothing is unwound.
void ProgramWalker::Run(int64_t first_step) {
  if (streams_ == nullptr) return Walk(first_step);
  try {
    Walk(first_step);
  } catch (const ExitError& error) {
    rank_.leave(error.status(), error.what());
  }
}

void ProgramWalker::Walk(int64_t first_step) {
  if (!program_.problem().empty()) {
    throw ExitError(
        kExitInternal,
        absl::StrCat("rank ", rank_.rank, " on ", rank_.host, ": the program does not link: ", program_.problem()),
        true);
  }
  step_ = first_step;
  RunList(program_.setup(), "setup", /*binds=*/true);
  Join();
  if (rank_.probe != nullptr) rank_.probe->WriteParameters(rank_);
  BindList(program_.step(), "step");
  BindList(program_.teardown(), "teardown");
  for (int64_t step = first_step; step <= rank_.last_step; ++step) {
    step_ = step;
    keeping_ = rank_.probe != nullptr && (step == 0 || step == rank_.last_step);
    RunList(program_.step(), absl::StrCat("step ", step + 1));
    if (keeping_) WriteValues();
  }
  keeping_ = false;
  reports_.Finish();
  RunList(program_.teardown(), "teardown");
  Join();
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
    rank_.recorder.Begin(bound.state, step_ + 1, source.microbatch >= 0 ? source.microbatch : call.context.microbatch,
                         source.origin >= 0 ? source.origin : call.origin, path_,
                         static_cast<size_t>(entry.instruction->place), bound.text);
    Locating(entry, list_, [&] {
      if (binds) {
        Join();  // what allocates may be on another stream
        bound_.Bind(entry);
      }
      if (keeping_) KeepProbes(i, false);
      if (keeping_ && source.kind == OpKind::kClipAndGate) KeepGradients();
      RunOne(i);
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
    Locating(entry, list_, [&] { bound_.Bind(entry); });
  }
}

template <typename Work>
void ProgramWalker::Locating(const LinkedEntry& entry, const std::string& list, Work work) {
  try {
    work();
  } catch (const ExitError& error) {
    if (error.located()) throw;
    Fail(entry, list, error.status(), error.what());
  } catch (const std::bad_alloc&) {
    Fail(entry, list, kExitInternal, "out of memory");
  } catch (const std::exception& error) {
    Fail(entry, list, ExitStatusOf(KindOf(error)), Brief(error.what()));
  }
}

void ProgramWalker::RunOne(size_t index) {
  const LinkedEntry& entry = program_.entries()[index];
  const bool later = streams_ != nullptr && !streams_->here(entry.instruction->stream);
  if (later) {
    Launch launch;
    Prepare(entry, true, launch);
    return RunLater(index, std::move(launch));
  }
  Prepare(entry, false, launch_);
  if (streams_ == nullptr) return Execute(launch_, inputs_);
  streams_->Run(Place(index), [this] { Execute(launch_, inputs_); });
}

void ProgramWalker::RunLater(size_t index, Launch launch) {
  auto held = std::make_shared<const Launch>(std::move(launch));
  streams_->Run(Place(index), [this, held, list = list_] {
    Locating(*held->entry, list, [&] {
      Tensors inputs;
      Execute(*held, inputs);
    });
  });
}

StreamPlace ProgramWalker::Place(size_t index) {
  const LinkedInstruction& instruction = *program_.entries()[index].instruction;
  return {instruction.stream, order_.Next(program_accesses_.of(index)),
          instruction.op_class == OpClass::kCommunication};
}

void ProgramWalker::Prepare(const LinkedEntry& entry, bool later, Launch& launch) {
  const LinkedInstruction& linked = *entry.instruction;
  const BoundInstruction& bound = bound_.instruction(entry);
  const CallContext& call = bound_.call(entry).context;
  const int* numbers = program_.ValuesOf(entry.call);
  const auto held = [&](const std::shared_ptr<Value>& value) {
    if (later) launch.held.push_back(value);
    return value.get();
  };
  const auto read = [&](int operand) { return operand < 0 ? nullptr : held(values_.Get(numbers[operand])); };
  launch.entry = &entry;
  launch.context = bound.context ? *bound.context : call;
  launch.context.step = step_;
  if (bound.context) {
    launch.context.layer = call.layer;
    if (linked.source->microbatch < 0) launch.context.microbatch = call.microbatch;
  }
  launch.inputs.clear(), launch.parts.clear(), launch.outputs.clear();
  for (int operand : linked.inputs) launch.inputs.push_back(read(operand));
  for (size_t p = 0; p < linked.parts.size(); ++p) {
    launch.parts.push_back(
        {linked.source->parts[p].send ? read(linked.parts[p].value) : nullptr, read(linked.parts[p].sample_rows)});
  }
  for (int operand : linked.outputs)
    launch.outputs.push_back(operand < 0 ? nullptr : held(values_.New(numbers[operand])));
}

void ProgramWalker::Execute(const Launch& launch, Tensors& inputs) {
  const LinkedEntry& entry = *launch.entry;
  const LinkedInstruction& linked = *entry.instruction;
  const BoundInstruction& bound = bound_.instruction(entry);
  Tensors made;
  if (linked.op_class == OpClass::kCompute) {
    inputs.clear();
    for (const Value* value : launch.inputs) inputs.push_back(value->tensor);
    const SlotOperands* slots = bound_.call(entry).operands;
    const SlotOperands& operands = slots == nullptr ? kNoOperands : slots[linked.place];
    made = bound.compute({*linked.source, launch.context, inputs, operands.parameters, operands.gradients});
    inputs.clear();
  } else {
    made = bound.action({linked, launch.context, launch.inputs, launch.parts});
  }
  TORCH_CHECK(made.size() == linked.outputs.size(), made.size(), " outputs, planned ", linked.outputs.size());
  for (size_t i = 0; i < made.size(); ++i) {
    if (launch.outputs[i] == nullptr) continue;  // state
    // A lane's part of a block's samples may be smaller than the largest lane's, which the type of read data names.
    CheckType(linked.source->outputs[i], made[i], linked.op_class == OpClass::kData);
    launch.outputs[i]->tensor = std::move(made[i]);
  }
}

void ProgramWalker::Join() {
  if (streams_ != nullptr) streams_->Join();
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
    if (block == nullptr || call.first < program_.step().first || call.end > program_.step().end ||
        call.first == call.end)
      continue;
    for (const Probe& probe : block->probes) {
      for (size_t i = 0; i < block->inputs.size(); ++i) {
        if (block->inputs[i].name == probe.value)
          kept_.push_back({call.first, false, c, &probe, program_.ValueOf(c, call.block->inputs[i])});
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
  const auto earlier = [](const Kept& a, const Kept& b) {
    return std::pair(a.entry, a.behind) < std::pair(b.entry, b.behind);
  };
  std::stable_sort(kept_.begin(), kept_.end(), earlier);
}

void ProgramWalker::KeepProbes(size_t entry, bool behind) {
  for (; next_kept_ < kept_.size() && kept_[next_kept_].entry == entry && kept_[next_kept_].behind == behind;
       ++next_kept_) {
    const Kept& kept = kept_[next_kept_];
    const LinkedCall& call = program_.calls()[kept.call];
    Join();
    const CallContext context =
        rank_.Context(nullptr, call.frame < 0 ? "" : blocks_.frame(call.frame), call.microbatch);
    rank_.probe->Keep(*call.block->block, *kept.probe, context, values_.Get(kept.value)->tensor);
  }
}

void ProgramWalker::KeepGradients() {
  Join();
  rank_.probe->WriteGradients(rank_);
}

void ProgramWalker::WriteValues() {
  Join();
  rank_.probe->WriteValues(rank_);
}

// From any stream's thread.
void ProgramWalker::Fail(const LinkedEntry& entry, const std::string& list, int status, const std::string& what) {
  const Instruction& source = *entry.instruction->source;
  std::string path = list;
  program_.AppendPath(entry.call, path);
  const std::string origin = OriginText(rank_.plan, source.origin >= 0 ? source.origin : bound_.call(entry).origin);
  throw ExitError(
      status,
      absl::StrCat("rank ", rank_.rank, " on ", rank_.host, ": ", path, " ", entry.instruction->place, ": ",
                   bound_.instruction(entry).text, ": ", what, origin.empty() ? "" : "\n  recipe: ", origin),
      true);
}

}  // namespace planwright::executor
