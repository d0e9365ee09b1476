#include "planner/run/measure/measure_traces.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/predict/estimate/instruction_times.h"
#include "planner/predict/simulate/replayed_step.h"
#include "planner/run/measure/align_clocks.h"
#include "planner/wire/records/trace.h"

namespace planwright {
namespace {

absl::StatusOr<Trace> TraceOf(const std::string& run_dir, int rank) {
  const std::string path = TracePath(run_dir, rank);
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kTraceJson.bytes);
  if (!text.ok()) return text.status();
  absl::StatusOr<Trace> trace = ReadTrace(*text);
  if (!trace.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", trace.status().message()));
  return trace;
}

// Whether the trace has, in each of its steps, the entries of this program in their order.
bool IsOf(const LinkedProgram& program, const Trace& trace) {
  const auto [first, end] = program.step();
  const size_t entries = end - first;
  if (trace.instructions.size() != entries * static_cast<size_t>(trace.steps.count())) return false;
  for (size_t i = 0; i < trace.instructions.size(); ++i) {
    const TraceInstruction& at = trace.instructions[i];
    if (at.number != static_cast<int64_t>(i % entries) ||
        at.step != trace.steps.first + static_cast<int64_t>(i / entries) ||
        at.kind != OpName(program.entries()[first + i % entries].instruction->source->kind))
      return false;
  }
  return true;
}

// "x[64,32], w[96,32] -> y[64,96]"
std::string SizesOf(const LinkedProgram& program, const LinkedEntry& entry) {
  const auto text = [](const ValueType& type) {
    return absl::StrCat("[",
                        absl::StrJoin(type.dims, ",",
                                      [](std::string* out, const Dim& dim) {
                                        std::visit([&](const auto& size) { absl::StrAppend(out, size); }, dim);
                                      }),
                        "]");
  };
  std::vector<std::string> inputs, outputs;
  const auto& types = program.calls()[entry.call].block->types;
  for (int input : entry.instruction->inputs) {
    const ValueType* type = input < 0 ? nullptr : types[static_cast<size_t>(input)];
    if (type) inputs.push_back(text(*type));
  }
  for (const Output& output : entry.instruction->source->outputs) outputs.push_back(text(output.type));
  return absl::StrCat(absl::StrJoin(inputs, " "), " -> ", absl::StrJoin(outputs, " "));
}

// When an entry ran, from the arrival of its last member on.
struct Ran {
  int64_t begin = 0, end = 0;
  size_t entry = 0;
  bool communication = false;
};

// How much of each entry's time one of the other sort, work or a communication, ran on another stream of its rank.
std::vector<Beside> BesideOthers(const LinkedProgram& program, const Trace& trace, int64_t step,
                                 const RoleTimes& times) {
  std::vector<Beside> beside(times.entries.size());
  std::map<int64_t, std::vector<Ran>> streams;  // in order
  const size_t before = static_cast<size_t>(step - trace.steps.first) * times.entries.size();
  std::vector<Ran> all;
  for (size_t i = 0; i < times.entries.size(); ++i) {
    const TraceInstruction& at = trace.instructions[before + i];
    const bool communication =
        program.entries()[program.step().first + i].instruction->op_class == OpClass::kCommunication;
    const auto run = static_cast<int64_t>(times.of(i).run * 1e9);
    all.push_back({at.end - run, at.end, i, communication});
    streams[at.stream].push_back(all.back());
  }
  if (streams.size() < 2) return beside;
  for (size_t i = 0; i < all.size(); ++i) {
    const Ran& own = all[i];
    for (const auto& [stream, list] : streams) {
      if (stream == trace.instructions[before + i].stream) continue;
      auto other = std::lower_bound(list.begin(), list.end(), own.begin,
                                    [](const Ran& ran, int64_t begin) { return ran.end <= begin; });
      for (; other != list.end() && other->begin < own.end; ++other) {
        if (other->communication == own.communication) continue;
        const auto both = static_cast<double>(std::min(own.end, other->end) - std::max(own.begin, other->begin)) * 1e-9;
        beside[i].any += both;
        if (other->entry < i) beside[i].earlier += both;
      }
    }
    const double run = times.of(i).run;
    beside[i] = {std::min(beside[i].earlier, run), std::min(beside[i].any, run)};
  }
  return beside;
}

// How much later than this rank the last member of its communication is done. Of the next one all wait for that member.
double UntilLast(const RankPrograms& ranks, const std::vector<Trace>& traces, size_t rank, size_t entry, int64_t step) {
  const auto at = [&](size_t of, size_t index) -> const TraceInstruction& {
    const auto [first, end] = ranks.programs()[of]->step();
    return traces[of].instructions[static_cast<size_t>(step - traces[of].steps.first) * (end - first) + index];
  };
  const LinkedProgram& program = *ranks.programs()[rank];
  if (program.entries()[program.step().first + entry].instruction->source->kind == OpKind::kExchange) return 0;
  const int64_t own = at(rank, entry).end;
  int64_t last = own;
  for (const StepEntry& met : ranks.matches().of(static_cast<int>(rank), entry))
    last = std::max(last, at(static_cast<size_t>(met.role), met.entry).end);
  return static_cast<double>(last - own) * 1e-9;
}

}  // namespace

absl::Status MeasureTraces(const Plan& plan, const std::string& run_dir, bool on_host, Measurements& into) {
  const RankPrograms ranks(plan);
  const std::vector<const LinkedProgram*>& programs = ranks.programs();
  const InstructionCosts costs(ranks.blocks());
  CommunicationUses communications(ranks.plan());
  const Rates rates = RatesOf(plan);
  std::vector<Trace> traces;
  for (const LinkedProgram* program : programs) {
    const int rank = static_cast<int>(traces.size());
    absl::StatusOr<Trace> trace = TraceOf(run_dir, rank);
    if (!trace.ok()) return trace.status();
    if (!IsOf(*program, *trace))
      return absl::InvalidArgumentError(absl::StrCat(TracePath(run_dir, rank), ": it is the trace of another plan"));
    traces.push_back(*std::move(trace));
  }
  AlignClocks(ranks, traces);
  const HostModel host_model = on_host ? HostModel::kRunsMainStream : HostModel::kLaunches;
  const std::vector<RankClass> classes = ClassesOf(ranks.plan());  // each rank is a role, and so one class
  for (int64_t step = traces.front().steps.first; step <= traces.front().steps.last; ++step) {
    const ReplayedStep replayed = ReplayOf(ranks, traces, step, host_model);
    for (size_t r = 0; r < programs.size(); ++r) {
      const LinkedProgram& program = *programs[r];
      const InstructionTimes uses(program, costs, rates, communications, classes[r]);
      std::vector<Beside> beside = BesideOthers(program, traces[r], step, replayed.times[r]);
      const auto entry_at = [&](size_t i) -> const LinkedEntry& { return program.entries()[program.step().first + i]; };
      const size_t entries = replayed.times[r].entries.size();
      for (size_t i = 0; i < entries; ++i) {
        const LinkedEntry& entry = entry_at(i);
        const LinkedInstruction& instruction = *entry.instruction;
        EntryTime time = replayed.times[r].of(i);
        if (uses.IsDoneBefore(entry)) continue;
        // Of two that are done as one the first has all of the time, and the second is launched. Where the executor had
        // no form for them, or none yet, each has its own. Their sum is what the pair took.
        if (i + 1 < entries && uses.IsDoneBefore(entry_at(i + 1))) {
          const EntryTime& second = replayed.times[r].of(i + 1);
          time.run += second.run, time.before += second.before, time.launch += second.launch;
          beside[i].earlier += beside[i + 1].earlier, beside[i].any += beside[i + 1].any;
        }
        if (const std::optional<ComputeUse> use = uses.ComputeOf(entry)) {
          into.Add(*use, SizesOf(program, entry), time.run, beside[i]);
        } else if (const std::optional<CommunicationUse> use = uses.CommunicationOf(entry)) {
          // NCCL's members are done together. Those of Gloo are not: who has sent its part goes on while it is on its
          // way. So a rank that only sends does not tell how long that is, and rows that nobody counted tell nothing:
          // the one whose rows take longest keeps all others.
          const double until_last = on_host ? UntilLast(ranks, traces, r, i, step) : 0;
          const bool tells = !use->sends_only && !HasRowsOfItsOwn(use->kind);
          if (!on_host || tells) into.Add(*use, time.run + until_last, beside[i]);
        }
        // A data instruction is the host's own work, wherever the others run.
        const bool host_runs_it = instruction.op_class == OpClass::kData && on_host && instruction.stream == 0;
        into.AddLaunch(instruction.source->kind, time.before + (host_runs_it ? time.run : time.launch));
      }
      into.EndStep();
    }
  }
  return absl::OkStatus();
}

}  // namespace planwright
