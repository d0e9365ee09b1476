#include "executor/program/program_walker.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <chrono>

#include "executor/communication/failure.h"
#include "executor/log/log.h"
#include "executor/program/exit_error.h"
#include "executor/program/probe_writer.h"
#include "executor/program/program_places.h"
#include "executor/program/step_profile.h"
#include "planner/base/files/exit_status.h"
#include "planner/plan/evaluation_schedule.h"
#include "planner/wire/records/evaluated_round.h"

namespace planwright::executor {
namespace {

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

// Whether a step is reported on another stream than the main one.
bool ReportsBeside(const LinkedProgram& program) {
  const auto [first, end] = program.step();
  return std::any_of(program.entries().begin() + first, program.entries().begin() + end, [](const LinkedEntry& entry) {
    return entry.instruction->source->kind == OpKind::kLogStep && entry.instruction->stream != 0;
  });
}

}  // namespace

ProgramWalker::ProgramWalker(Rank& rank, Walk& walk)
    : rank_(rank), walk_(walk), blocks_(rank.plan), program_(blocks_, rank.role), trains_(walk.steps.last >= 0),
      reports_beside_(ReportsBeside(program_)), stop_rules_(rank.plan, rank.device.is_cuda() ? kUnreadStepsAllowed : 0),
      reports_(rank.plan, rank.step, walk.files.log, walk.files.events, walk.handlers.data_wait, stop_rules_),
      evaluations_(rank.plan, trains_, rank.step, walk.files.log, walk.files.events),
      bound_(program_, rank, walk, reports_, evaluations_), values_(static_cast<size_t>(program_.values())),
      launches_(program_, bound_, rank, walk, values_), program_accesses_(program_),
      order_(program_accesses_.resources(), program_accesses_.streams()) {
  if (program_accesses_.streams() > 1) streams_ = MakeStreams(rank.device, walk, program_accesses_.streams());
  if (walk.files.probe != nullptr) probe_points_ = FindProbePoints(rank.plan, program_, trains_);
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
    if (reports_beside_) JoinStreams();  // what follows reads what the report writes
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
  JoinStreams();
  reports_.Finish();
  if (walk_.files.probe != nullptr && trains_) walk_.files.probe->WriteLastParameters(rank_);
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

// Called from the thread of any stream, so it reads no state of the walk (path_ may name a later call by now).
template <typename Work>
void ProgramWalker::WithLocation(const LinkedEntry& entry, const std::string& list, Work work) {
  try {
    work();
  } catch (const ExitError& error) {
    if (error.located()) throw;
    throw FailureAt(entry, list, rank_, program_, bound_, error.status(), error.what());
  } catch (const std::exception& error) {
    throw FailureAt(entry, list, rank_, program_, bound_, ExitStatusOf(FailureKindOf(error)), MessageOf(error));
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
  Recorder& recorder = walk_.files.recorder;
  const std::chrono::nanoseconds waited = recorder.waited();
  walk_.files.profile->Launching(timed_);
  RunOne(index);
  recorder.Launched();
  walk_.files.profile->Launched(timed_, recorder.waited() - waited);
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
  launches_.SetEntry(index, later, launch);
  launch.timed = timed_;
  launch.context = ContextOf(entry);
  launch.first = bound_.instruction(entry).joined != nullptr ? std::exchange(first_, nullptr) : nullptr;
}

void ProgramWalker::Execute(const Launch& launch, Tensors& inputs) {
  const auto work = [&] { launches_.CarryOut(launch, inputs); };
  if (!walk_.fail_point) return work();
  const auto point = [&](const Launch& of) { return FailPointOf(*of.entry, program_, step_ + 1); };
  const auto carry = [&] { BetweenFailPoints(walk_.fail_point, point(launch), work); };
  if (launch.first == nullptr) return carry();
  BetweenFailPoints(walk_.fail_point, point(*launch.first), carry);
}

void ProgramWalker::JoinStreams() {
  if (streams_ != nullptr) streams_->Join();
}

void ProgramWalker::EnterPath(uint32_t call) {
  path_ = list_;
  program_.AppendPath(call, path_);
  path_call_ = call;
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

}  // namespace planwright::executor
