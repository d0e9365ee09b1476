#include "executor/program/program_walker.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "executor/communication/failure.h"
#include "executor/log/log.h"
#include "executor/program/exit_error.h"
#include "executor/program/instruction_text.h"
#include "executor/program/probe_writer.h"
#include "executor/program/step_profile.h"
#include "planner/base/files/exit_status.h"
#include "planner/plan/evaluation_schedule.h"
#include "planner/plan/expert_ops.h"
#include "planner/plan/link/joins.h"
#include "planner/wire/records/evaluated_round.h"
#include "planner/wire/records/probe_format.h"

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

// The forward that a block of an evaluation was made of; null: there is none.
const Block* ForwardOf(const Plan& plan, const Block& block) {
  const std::string end = ".evaluate";
  if (!block.name.ends_with(end)) return nullptr;
  return plan.FindBlock(absl::StrCat(block.name.substr(0, block.name.size() - end.size()), ".forward"));
}

std::unique_ptr<Streams> MakeStreams(at::Device device, const Walk& walk, int streams) {
#ifdef PLANWRIGHT_CUDA
  if (device.is_cuda()) return MakeCudaStreams(streams, walk.files.recorder, walk.before_instruction);
#endif
  const auto fail = [&walk](const std::exception& error) {
    const auto* exit = dynamic_cast<const ExitError*>(&error);
    walk.exit(exit != nullptr ? exit->status() : kExitInternal, error.what());
  };
  return MakeHostStreams(streams, walk.files.recorder, fail, walk.before_instruction);
}

}  // namespace

ProgramWalker::ProgramWalker(Rank& rank, Walk& walk)
    : rank_(rank), walk_(walk), blocks_(rank.plan), program_(blocks_, rank.role), trains_(walk.steps.last >= 0),
      stop_rules_(rank.plan, rank.device.is_cuda() ? kUnreadStepsAllowed : 0),
      reports_(rank.plan, rank.step, walk.files.log, walk.files.events, walk.handlers.data_wait, stop_rules_),
      evaluations_(rank.plan, trains_, rank.step, walk.files.log, walk.files.events),
      bound_(program_, rank, walk, reports_, evaluations_), values_(static_cast<size_t>(program_.values())),
      program_accesses_(program_), order_(program_accesses_.resources(), program_accesses_.streams()) {
  if (program_accesses_.streams() > 1) streams_ = MakeStreams(rank.device, walk, program_accesses_.streams());
  if (walk.files.probe != nullptr) FindProbePoints();
}

// With several streams a failure ends the process here, without unwinding. Another stream's thread may be inside a
// communication that never returns, and a destructor that joins that thread would wait for ever.
bool ProgramWalker::Run() {
  if (streams_ == nullptr) return RunAll();
  try {
    return RunAll();
  } catch (const ExitError& error) {
    walk_.exit(error.status(), error.what());
  }
  return false;  // `exit` does not return
}

// Setup is bound while it runs, since later instructions name what earlier ones allocate. After it everything that the
// plan names exists, so steps and teardown are bound then: a wrong name fails before the first step.
void ProgramWalker::SetUp() {
  if (!walk_.steps.resumes) {
    RunList(program_.setup(), "setup", /*binds=*/true);
    return JoinStreams();
  }
  for (std::optional<StepSpan> steps; !steps;) {
    RunList(program_.resume(), "resume", /*binds=*/true);
    JoinStreams();
    walk_.files.recorder.Launched();  // from here on this rank waits for others, and is in no instruction
    steps = walk_.handlers.resumed();
    if (steps) walk_.steps = *steps;
  }
}

bool ProgramWalker::RunAll() {
  if (!program_.problem().empty()) {
    throw ExitError(
        kExitInternal,
        absl::StrCat("rank ", rank_.rank, " on ", rank_.host, ": the program does not link: ", program_.problem()),
        true);
  }
  SetUp();
  const StepSpan& steps = walk_.steps;
  step_ = steps.first;
  stop_rules_.Resume(rank_.notes);
  if (walk_.files.probe != nullptr && trains_) walk_.files.probe->WriteFirstParameters(rank_);
  BindList(program_.step(), "step");
  BindList(program_.evaluate(), "evaluate");
  BindList(program_.score(), "score");
  BindList(program_.save(), "save");
  BindList(program_.teardown(), "teardown");
  LogInfo(bound_.FormsText());
  AnnounceReads();
  if (walk_.files.profile != nullptr) walk_.files.profile->Prepare(program_, rank_.device);
  if (walk_.handlers.ready) walk_.handlers.ready(rank_, steps);
  const Budget& budget = rank_.plan.budget;
  const EvaluationSchedule evaluation{budget.steps, budget.global_samples,
                                      walk_.trial ? 0 : rank_.plan.evaluation.every_samples};
  if (steps.evaluation_seconds > 0) reports_.Evaluated(steps.evaluation_seconds);
  bool stopped = false, cut_off = false;  // cut_off: an evaluation that is due was ended
  // A run that begins is evaluated as it is, a run that goes on where that is due and no earlier life has done it. If
  // that is ended, there is nothing to save.
  if (evaluation.every_samples > 0 && !steps.evaluated && (!steps.resumes || evaluation.DueAfter(step_)))
    stopped = cut_off = !Evaluate(step_);
  if (probes_evaluation() && !cut_off) walk_.files.probe->WriteEvaluated();
  for (int64_t step = step_; step <= steps.last && !stopped; ++step) {
    step_ = step;
    probing_ = walk_.files.probe != nullptr && (step == steps.first || step == steps.last);
    profiling_ = walk_.files.profile != nullptr && walk_.files.profile->Covers(step);
    RunList(program_.step(), absl::StrCat("step ", step + 1));
    a_step_is_done_ = true;
    if (probing_) WriteProbes();
    if (profiling_ && walk_.files.profile->EndsWith(step)) WriteProfile();
    probing_ = profiling_ = false;
    stopped = stop_rules_.StopAfter(step);
    const int64_t every = walk_.trial ? 0 : rank_.plan.checkpoint.every_steps;
    rank_.notes.evaluation.clear();
    // A run that is asked to stop saves first of all. The next life evaluates then, before its first step.
    if (evaluation.DueAfter(step + 1) && (!stopped || step == steps.last) && !Evaluate(step + 1))
      stopped = cut_off = true;
    if (every > 0 && (stopped || step == steps.last || (step + 1) % every == 0)) {
      JoinStreams();
      reports_.Finish();  // the record of a step is written before a checkpoint of it is
      stop_rules_.Note(rank_.notes);
      RunList(program_.save(), absl::StrCat("save after step ", step + 1));
    }
  }
  reports_.Finish();
  if (walk_.files.probe != nullptr && trains_) {
    JoinStreams();
    walk_.files.probe->WriteLastParameters(rank_);
  }
  BetweenFailPoints(walk_.fail_point, {.list = "teardown", .step = step_ + 1}, [this] {
    RunList(program_.teardown(), "teardown");
    JoinStreams();
  });
  return !cut_off && (!stopped || step_ == steps.last);
}

bool ProgramWalker::StopsEvaluation(int64_t steps_done) {
  if (!walk_.handlers.stops_evaluation) return false;
  return walk_.handlers.stops_evaluation(steps_done, rounds_done_, [this] {
    JoinStreams();
    if (rank_.device.is_cuda()) at::detail::getCUDAHooks().deviceSynchronize(rank_.device.index());
    walk_.files.recorder.Launched();  // from here on this rank waits for others, and is in no instruction
  });
}

bool ProgramWalker::Evaluate(int64_t steps_done) {
  JoinStreams();
  reports_.Finish();  // the records of steps come before that of an evaluation
  evaluations_.Begin(steps_done);
  const std::string name = absl::StrCat("evaluation after step ", steps_done);
  const std::vector<EvaluationSet>& sets = rank_.plan.evaluation.sets;
  rounds_done_ = 0;
  for (size_t set = 0; set < sets.size(); ++set) {
    evaluating_ = static_cast<int>(set);
    if (walk_.handlers.data_of_evaluation) walk_.handlers.data_of_evaluation(set, ReadsOf(program_.evaluate()));
    for (round_ = 0; round_ < sets[set].rounds; ++round_, ++rounds_done_) {
      if (StopsEvaluation(steps_done)) {
        evaluating_ = -1;
        return false;
      }
      probing_ = probes_evaluation();
      RunList(program_.evaluate(), name + EvaluatedRound(sets[set].name, round_, sets[set].rounds));
      probing_ = false;
    }
  }
  evaluating_ = -1;
  if (StopsEvaluation(steps_done)) return false;
  evaluations_.SetUnheard(walk_.handlers.unheard_in_evaluation ? walk_.handlers.unheard_in_evaluation() : 0);
  RunList(program_.score(), name);
  JoinStreams();
  reports_.Evaluated(evaluations_.seconds());
  rank_.notes.evaluation = evaluations_.losses();
  return true;
}

void ProgramWalker::RunList(LinkedProgram::Range list, const std::string& name, bool binds) {
  list_ = name;
  path_call_ = -1;
  next_probe_point_ = 0;
  for (size_t i = list.first; i < list.end; ++i) {
    const LinkedEntry& entry = program_.entries()[i];
    const Instruction& source = *entry.instruction->source;
    const BoundInstruction& bound = bound_.instruction(entry);
    const BoundCall& call = bound_.call(entry);
    if (path_call_ != entry.call) EnterPath(entry.call);
    // On record before it starts: if this rank dies inside the instruction, the launcher reads which one it was.
    walk_.files.recorder.Begin(
        bound.state, step_ + 1, source.microbatch >= 0 ? source.microbatch : call.context.microbatch,
        source.origin >= 0 ? source.origin : call.origin, path_, static_cast<size_t>(entry.instruction->index),
        bound.text, a_step_is_done_ ? bound.deadline : bound.first_deadline);
    WithLocation(entry, list_, [&] {
      if (binds) {
        JoinStreams();  // the instruction that allocates may be on another stream
        bound_.Bind(entry);
      }
      if (probing_) KeepProbes(i, false);
      // Reduced and scaled, but not yet clipped: these gradients must be the same in every layout.
      if (probing_ && source.kind == OpKind::kClipAndGate) KeepGradients();
      profiling_ ? RunTimed(i) : RunOne(i);
      if (probing_) KeepProbes(i, true);
    });
    for (int event : program_.after(i)) {
      if (event >= 0) values_.Free(event);  // negative: a frame keeps the value, for the backward
    }
  }
}

void ProgramWalker::BindList(LinkedProgram::Range list, const std::string& name) {
  list_ = name;
  path_call_ = -1;
  for (size_t i = list.first; i < list.end; ++i) {
    const LinkedEntry& entry = program_.entries()[i];
    WithLocation(entry, list_, [&] { bound_.Bind(entry); });
  }
}

void ProgramWalker::AnnounceReads() {
  if (!walk_.handlers.data_of_steps) return;
  walk_.handlers.data_of_steps(ReadsOf(program_.step()), walk_.steps.first, walk_.steps.last);
}

std::vector<DataRead> ProgramWalker::ReadsOf(LinkedProgram::Range list) const {
  std::vector<DataRead> reads;
  for (size_t i = list.first; i < list.end; ++i) {
    const LinkedEntry& entry = program_.entries()[i];
    if (entry.instruction->op_class == OpClass::kData) reads.push_back({entry.instruction->source, ContextOf(entry)});
  }
  return reads;
}

template <typename Work>
void ProgramWalker::WithLocation(const LinkedEntry& entry, const std::string& list, Work work) {
  try {
    work();
  } catch (const ExitError& error) {
    if (error.located()) throw;
    Fail(entry, list, error.status(), error.what());
  } catch (const std::exception& error) {
    Fail(entry, list, ExitStatusOf(FailureKindOf(error)), MessageOf(error));
  }
}

void ProgramWalker::RunOne(size_t index) {
  const LinkedEntry& entry = program_.entries()[index];
  // On the walker's own thread one Launch is reused for all instructions, to save allocations.
  const bool later = streams_ != nullptr && !streams_->runs_on_caller(entry.instruction->stream);
  if (bound_.instruction(entry).done_by_next) {
    const auto first = std::make_shared<Launch>();
    Prepare(index, true, *first);
    first_ = first;
    // It has its place on its stream, where nothing is done.
    if (streams_ != nullptr) streams_->Run(StreamLaunchOf(index), [] {});
    return;
  }
  if (later) {
    Launch launch;
    Prepare(index, true, launch);
    return RunLater(index, std::move(launch));
  }
  Prepare(index, false, launch_);
  if (streams_ == nullptr) {
    Execute(launch_, inputs_);
  } else {
    streams_->Run(StreamLaunchOf(index), [this] { Execute(launch_, inputs_); });
  }
  launch_.first.reset();  // or it would keep values alive
}

void ProgramWalker::RunTimed(size_t index) {
  timed_ = walk_.files.profile->NumberOf(step_, index);
  walk_.files.profile->Launching(timed_);
  RunOne(index);
  walk_.files.profile->Launched(timed_);
  timed_ = -1;
}

// The stream's thread gets its own copy of everything: this thread goes on to the next instruction, and may free the
// numbers of the values meanwhile.
void ProgramWalker::RunLater(size_t index, Launch launch) {
  auto held = std::make_shared<const Launch>(std::move(launch));
  streams_->Run(StreamLaunchOf(index), [this, held, list = list_] {
    WithLocation(*held->entry, list, [&] {
      Tensors inputs;
      Execute(*held, inputs);
    });
  });
}

StreamLaunch ProgramWalker::StreamLaunchOf(size_t index) {
  const LinkedEntry& entry = program_.entries()[index];
  const LinkedInstruction& instruction = *entry.instruction;
  const auto launch = [&](const InstructionAccesses& accesses) -> StreamLaunch {
    return {instruction.stream, order_.Next(accesses), instruction.op_class == OpClass::kCommunication};
  };
  // What the instruction before it touches is touched now, though it was dropped before.
  return launch(bound_.instruction(entry).joined == nullptr ? program_accesses_.of(index)
                                                            : program_accesses_.OfBoth(index));
}

CallContext ProgramWalker::ContextOf(const LinkedEntry& entry) const {
  const BoundInstruction& bound = bound_.instruction(entry);
  const CallContext& call = bound_.call(entry).context;
  CallContext context = bound.context ? *bound.context : call;
  context.step = evaluating_ < 0 ? step_ : round_;
  context.evaluation = evaluating_;
  if (bound.context) {
    context.layer = call.layer;
    // The instruction names a module but no microbatch: take the one of the call.
    if (entry.instruction->source->microbatch < 0) context.microbatch = call.microbatch;
  }
  return context;
}

void ProgramWalker::Prepare(size_t index, bool later, Launch& launch) {
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
  launch.timed = timed_;
  launch.context = ContextOf(entry);
  launch.first = bound_.instruction(entry).joined != nullptr ? std::exchange(first_, nullptr) : nullptr;
  launch.inputs.clear(), launch.parts.clear(), launch.outputs.clear();
  for (int operand : linked.inputs) launch.inputs.push_back(read(operand));
  for (size_t p = 0; p < linked.parts.size(); ++p) {
    launch.parts.push_back(
        {linked.source->parts[p].send ? read(linked.parts[p].value) : nullptr, read(linked.parts[p].sizes)});
  }
  for (int operand : linked.outputs)
    launch.outputs.push_back(operand < 0 ? nullptr : held(values_.New(numbers[operand])));
}

void ProgramWalker::Execute(const Launch& launch, Tensors& inputs) {
  if (!walk_.fail_point) return Carry(launch, inputs);
  const auto carry = [&] { BetweenFailPoints(walk_.fail_point, FailPointOf(launch), [&] { Carry(launch, inputs); }); };
  if (launch.first == nullptr) return carry();
  BetweenFailPoints(walk_.fail_point, FailPointOf(*launch.first), carry);
}

FailPoint ProgramWalker::FailPointOf(const Launch& launch) const {
  const LinkedEntry& entry = *launch.entry;
  const auto index = static_cast<size_t>(&entry - program_.entries().data());
  FailPoint point{.step = step_ + 1, .kind = entry.instruction->source->kind};
  const std::pair<const char*, LinkedProgram::Range> lists[] = {
      {"setup", program_.setup()},       {"resume", program_.resume()}, {"step", program_.step()},
      {"evaluate", program_.evaluate()}, {"score", program_.score()},   {"save", program_.save()},
      {"teardown", program_.teardown()}};
  for (const auto& [name, range] : lists) {
    if (index < range.first || index >= range.end) continue;
    point.list = name;
    point.number = static_cast<int64_t>(index - range.first);
  }
  program_.AppendPath(entry.call, point.path);
  absl::StrAppend(&point.path, " ", entry.instruction->index);
  return point;
}

void ProgramWalker::Carry(const Launch& launch, Tensors& inputs) {
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

const SlotOperands& ProgramWalker::OperandsOf(const LinkedEntry& entry) const {
  const SlotOperands* slots = bound_.call(entry).operands;
  return slots == nullptr ? kNoOperands : slots[entry.instruction->index];
}

Tensors ProgramWalker::Compute(const Launch& launch, Tensors& inputs) {
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

void ProgramWalker::ComputeBoth(const Launch& launch, Tensors& inputs) {
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
void ProgramWalker::Keep(const Launch& launch, size_t from, std::span<at::Tensor> made) {
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

void ProgramWalker::JoinStreams() {
  if (streams_ != nullptr) streams_->Join();
}

void ProgramWalker::EnterPath(uint32_t call) {
  path_ = list_;
  program_.AppendPath(call, path_);
  path_call_ = call;
}

// Links each probe of a block to the entries that make its value, in every call of the block within the step. Blocks of
// an evaluation state no probes: they make values of their forwards under the same names, and of these the logits.
void ProgramWalker::FindProbePoints() {
  const LinkedProgram::Range list = trains_ ? program_.step() : program_.evaluate();
  for (uint32_t c = 0; c < program_.calls().size(); ++c) {
    const LinkedCall& call = program_.calls()[c];
    const Block* block = call.block->block;
    // Only blocks have probes, and only calls of the list are probed.
    if (block == nullptr || call.first < list.first || call.end > list.end || call.first == call.end) continue;
    const Block* probed = trains_ ? block : ForwardOf(rank_.plan, *block);
    if (probed == nullptr) continue;
    for (const Probe& probe : probed->probes) {
      if (trains_ || probe.name == kLogitsProbe) AddProbePoints(c, *block, probe);
    }
  }
  const auto earlier = [](const ProbePoint& a, const ProbePoint& b) {
    return std::pair(a.entry, a.after) < std::pair(b.entry, b.after);
  };
  std::stable_sort(probe_points_.begin(), probe_points_.end(), earlier);
}

// A probe names an input of the block, which exists before its first entry, or an output of one of its instructions.
void ProgramWalker::AddProbePoints(uint32_t number, const Block& block, const Probe& probe) {
  const LinkedCall& call = program_.calls()[number];
  for (size_t i = 0; i < block.inputs.size(); ++i) {
    if (block.inputs[i].name == probe.value)
      probe_points_.push_back({call.first, false, number, &probe, program_.ValueOf(number, call.block->inputs[i])});
  }
  for (size_t i = call.first; i < call.end; ++i) {
    const LinkedEntry& entry = program_.entries()[i];
    if (entry.call != number) continue;  // of a call inside this one
    for (size_t k = 0; k < entry.instruction->outputs.size(); ++k) {
      if (entry.instruction->source->outputs[k].name != probe.value || entry.instruction->outputs[k] < 0) continue;
      probe_points_.push_back({i, true, number, &probe, program_.ValueOf(entry, entry.instruction->outputs[k])});
    }
  }
}

void ProgramWalker::KeepProbes(size_t entry, bool after) {
  for (; next_probe_point_ < probe_points_.size(); ++next_probe_point_) {
    const ProbePoint& point = probe_points_[next_probe_point_];
    if (point.entry != entry || point.after != after) return;
    const LinkedCall& call = program_.calls()[point.call];
    JoinStreams();
    const int64_t microbatch = evaluating_ < 0 ? call.microbatch : rounds_done_;
    const Block& block = *call.block->block;
    const CallContext context =
        rank_.Context(rank_.plan.FindModule(block.module), call.frame < 0 ? "" : blocks_.frame(call.frame),
                      static_cast<int>(microbatch));
    walk_.files.probe->Keep(block, *point.probe, context, values_.Get(point.value)->tensor);
  }
}

void ProgramWalker::KeepGradients() {
  JoinStreams();
  walk_.files.probe->WriteGradients(rank_, walk_.steps);
}

void ProgramWalker::WriteProbes() {
  JoinStreams();
  walk_.files.probe->WriteValues(rank_, walk_.steps);
}

void ProgramWalker::WriteProfile() {
  JoinStreams();
  walk_.files.profile->Write(rank_, program_, bound_);
}

// Called from the thread of any stream, so it reads no state of the walk (path_ may name a later call by now).
void ProgramWalker::Fail(const LinkedEntry& entry, const std::string& list, int status, const std::string& what) {
  const Instruction& source = *entry.instruction->source;
  std::string path = list;
  program_.AppendPath(entry.call, path);
  const std::string origin = OriginText(rank_.plan, source.origin >= 0 ? source.origin : bound_.call(entry).origin);
  throw ExitError(
      status,
      absl::StrCat("rank ", rank_.rank, " on ", rank_.host, ": ", path, " ", entry.instruction->index, ": ",
                   bound_.instruction(entry).text, ": ", what, origin.empty() ? "" : "\n  recipe: ", origin),
      true);
}

}  // namespace planwright::executor
