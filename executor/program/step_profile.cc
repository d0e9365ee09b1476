#include "executor/program/step_profile.h"

#include <time.h>

#include <algorithm>
#include <filesystem>

#include "executor/program/device_words.h"
#include "executor/program/exit_error.h"
#include "executor/program/instruction_text.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/plan/link/program_parts.h"

namespace planwright::executor {
namespace {

std::string ClassName(OpClass op_class) {
  switch (op_class) {
    case OpClass::kControl: return "control";
    case OpClass::kData: return "data";
    case OpClass::kCompute: return "compute";
    case OpClass::kCommunication: return "communication";
    case OpClass::kState: return "state";
    case OpClass::kStorage: return "storage";
  }
  return "";
}

int64_t NanosecondsOf(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

// A frame, or what an instruction beside all frames says of itself.
std::string FrameOf(const LinkedProgram& program, const LinkedEntry& entry) {
  const int frame = program.calls()[entry.call].frame;
  if (frame >= 0) return std::string(program.blocks().frame(frame));
  const std::string* module = entry.instruction->source->FindText("module");
  return module == nullptr ? "" : *module;
}

// What an instruction is, without its times.
TraceInstruction Described(const Rank& rank, const LinkedProgram& program, const BoundProgram& bound,
                           const LinkedEntry& entry) {
  const Instruction& source = *entry.instruction->source;
  const BoundCall& call = bound.call(entry);
  TraceInstruction described{.kind = std::string(OpName(source.kind)),
                             .frame = FrameOf(program, entry),
                             .part = PartOf(program, entry),
                             .text = bound.instruction(entry).text,
                             .op_class = ClassName(entry.instruction->op_class),
                             .origin = OriginText(rank.plan, source.origin >= 0 ? source.origin : call.origin),
                             .layer = call.context.layer,
                             .microbatch = source.microbatch >= 0 ? source.microbatch : call.context.microbatch,
                             .stream = entry.instruction->stream};
  program.AppendPath(entry.call, described.path);
  if (described.path.starts_with(" > ")) described.path.erase(0, 3);
  return described;
}

}  // namespace

void StepProfile::Prepare(const LinkedProgram& program, at::Device device) {
  if (nothing_left()) return;
  first_entry_ = program.step().first, entries_ = program.step().end - first_entry_;
  launches_.resize(entries_ * static_cast<size_t>(steps_.count()));
#ifdef PLANWRIGHT_CUDA
  if (device.is_cuda()) {
    clock_ = MakeCudaInstructionClock(launches_.size());
    return;
  }
#endif
  TORCH_CHECK(device.is_cpu(), "no clock for instructions on ", device);
  clock_ = MakeHostInstructionClock(launches_.size());
}

void StepProfile::Write(const Rank& rank, const LinkedProgram& program, const BoundProgram& bound) {
  const std::vector<InstructionSpan> spans = clock_->Read();
  Trace trace{.rank = rank.rank,
              .role = rank.role.name,
              .host = rank.host,
              .device = DeviceName(rank.device),
              .driver = DriverVersion(rank.device),
              .libraries = LibraryVersions(rank.device),
              .wall_of_zero = NanosecondsOf(CLOCK_REALTIME) - NanosecondsOf(CLOCK_MONOTONIC),
              .steps = steps_};
  for (size_t i = 0; i < entries_; ++i) {
    const LinkedEntry& entry = program.entries()[first_entry_ + i];
    for (int stream = static_cast<int>(trace.streams.size()); stream <= entry.instruction->stream; ++stream)
      trace.streams.emplace_back(program.blocks().stream(stream));
  }
  for (size_t number = 0; number < spans.size(); ++number) {
    const size_t i = number % entries_;
    TraceInstruction instruction = Described(rank, program, bound, program.entries()[first_entry_ + i]);
    instruction.step = steps_.first + static_cast<int64_t>(number / entries_);
    instruction.number = static_cast<int64_t>(i);
    instruction.launch_begin = launches_[number].begin, instruction.launch_end = launches_[number].end;
    instruction.waited = launches_[number].waited;
    instruction.begin = spans[number].begin, instruction.end = spans[number].end;
    trace.instructions.push_back(std::move(instruction));
  }
  const std::string path = TracePath(run_dir_, rank.rank);
  absl::Status status = MakeDirectories(std::filesystem::path(path).parent_path());
  if (status.ok()) status = WriteFileAtomically(path, TraceJson(trace));
  if (!status.ok()) throw ExitError(kExitStorage, std::string(status.message()));
}

}  // namespace planwright::executor
