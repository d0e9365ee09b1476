#include "planner/simulate/simulate_step.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "planner/link/host_waits.h"
#include "planner/link/program_accesses.h"

namespace planwright {
namespace {

// How far one role has come.
struct Runner {
  const LinkedProgram* program = nullptr;
  const RoleTimes* times = nullptr;
  std::unique_ptr<ProgramAccesses> accesses;
  std::unique_ptr<StreamDependencies> order;  // null: there is one stream
  size_t next = 0;                            // index among the entries of the step
  bool arrived = false;                       // at that entry
  double host = 0, last_communication = 0;    // the latter: when the last one arrived
  std::vector<double> stream;                 // when it is free
  std::vector<signed char> host_waits;        // by number of the instruction; -1: not known yet
  std::vector<int> waited_for_by;             // roles that wait until this one comes on
};

class Simulator {
 public:
  Simulator(const std::vector<const LinkedProgram*>& programs, const CommunicationMatches& matches,
            const std::vector<RoleTimes>& times, HostModel host)
      : matches_(matches), host_(host), runners_(programs.size()) {
    step_.roles.resize(programs.size());
    for (size_t r = 0; r < programs.size(); ++r) {
      Runner& runner = runners_[r];
      runner.program = programs[r], runner.times = &times[r];
      runner.accesses = std::make_unique<ProgramAccesses>(*programs[r]);
      const int streams = runner.accesses->streams();
      if (streams > 1) runner.order = std::make_unique<StreamDependencies>(runner.accesses->resources(), streams);
      runner.host = runner.last_communication = times[r].begin;
      runner.stream.assign(static_cast<size_t>(streams), times[r].begin);
      runner.host_waits.assign(static_cast<size_t>(programs[r]->instructions()), -1);
      step_.roles[r].entries.resize(times[r].entries.size());
      step_.roles[r].begin = times[r].begin;
    }
  }

  SimulatedStep Run() {
    for (size_t r = runners_.size(); r-- > 0;) ready_.push_back(static_cast<int>(r));
    while (!ready_.empty()) {
      const int role = ready_.back();
      ready_.pop_back();
      Advance(role);
    }
    double first = std::numeric_limits<double>::infinity(), last = 0;
    for (size_t r = 0; r < runners_.size(); ++r) {
      SimulatedRole& role = step_.roles[r];
      if (role.entries.empty()) continue;
      step_.complete &= runners_[r].next == role.entries.size();
      role.end = std::max(runners_[r].host, *std::max_element(runners_[r].stream.begin(), runners_[r].stream.end()));
      for (const SimulatedEntry& entry : role.entries) role.waiting += entry.start - entry.arrived;
      first = std::min(first, role.begin), last = std::max(last, role.end);
    }
    step_.length = std::max(0.0, last - first);
    return std::move(step_);
  }

 private:
  const LinkedEntry& EntryOf(const Runner& runner) const {
    return runner.program->entries()[runner.program->step().first + runner.next];
  }

  // Goes on until the role has to wait for another, or is at its end.
  void Advance(int role) {
    Runner& runner = runners_[role];
    std::vector<SimulatedEntry>& entries = step_.roles[role].entries;
    for (; runner.next < entries.size(); ++runner.next, runner.arrived = false) {
      SimulatedEntry& entry = entries[runner.next];
      if (!runner.arrived) Arrive(runner, entry);
      entry.start = entry.arrived;
      if (runner.times->entries[runner.next].waits) {
        for (const StepEntry& met : matches_.of(role, runner.next)) {
          Runner& other = runners_[met.role];
          if (other.next < met.entry || (other.next == met.entry && !other.arrived)) {
            other.waited_for_by.push_back(role);
            return Wake(runner);
          }
          entry.start = std::max(entry.start, step_.roles[met.role].entries[met.entry].arrived);
        }
      }
      Finish(runner, entry);
    }
    Wake(runner);
  }

  // Those who wait for this role look again.
  void Wake(Runner& runner) {
    ready_.insert(ready_.end(), runner.waited_for_by.begin(), runner.waited_for_by.end());
    runner.waited_for_by.clear();
  }

  // The host launches the entry, and its stream comes to it.
  void Arrive(Runner& runner, SimulatedEntry& entry) {
    const LinkedInstruction& instruction = *EntryOf(runner).instruction;
    const EntryTime& time = runner.times->entries[runner.next];
    runner.host += time.before;
    entry.arrived = std::max(runner.host, runner.stream[instruction.stream]);
    if (runner.order) {
      const InstructionAccesses& touched = runner.accesses->of(runner.program->step().first + runner.next);
      for (int64_t wait : runner.order->Next(touched)) {
        // Entries are numbered as they are handed over. Those of the step before are done.
        if (wait >= 0) entry.arrived = std::max(entry.arrived, EndOf(runner, static_cast<size_t>(wait)));
      }
    }
    if (instruction.op_class == OpClass::kCommunication)
      entry.arrived = std::max(entry.arrived, runner.last_communication);
    entry.arrived += time.delay;
    if (instruction.op_class == OpClass::kCommunication) runner.last_communication = entry.arrived;
    runner.host += time.launch;
    runner.arrived = true;
  }

  double EndOf(const Runner& runner, size_t entry) const {
    return step_.roles[static_cast<size_t>(&runner - runners_.data())].entries[entry].end;
  }

  void Finish(Runner& runner, SimulatedEntry& entry) {
    const LinkedInstruction& instruction = *EntryOf(runner).instruction;
    entry.end = entry.start + runner.times->entries[runner.next].run;
    runner.stream[instruction.stream] = entry.end;
    signed char& waits = runner.host_waits[static_cast<size_t>(instruction.number)];
    if (waits < 0) waits = HostWaitsFor(*runner.program->calls()[EntryOf(runner).call].block, instruction);
    const bool runs_here = host_ == HostModel::kRunsMainStream && instruction.stream == 0;
    if (waits || runs_here) runner.host = std::max(runner.host, entry.end);
  }

  const CommunicationMatches& matches_;
  const HostModel host_;
  std::vector<Runner> runners_;  // by role
  std::vector<int> ready_;       // roles that may go on
  SimulatedStep step_;
};

}  // namespace

SimulatedStep SimulateStep(const std::vector<const LinkedProgram*>& programs, const CommunicationMatches& matches,
                           const std::vector<RoleTimes>& times, HostModel host) {
  return Simulator(programs, matches, times, host).Run();
}

}  // namespace planwright
