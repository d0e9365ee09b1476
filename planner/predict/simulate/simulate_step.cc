#include "planner/predict/simulate/simulate_step.h"

#include <algorithm>
#include <limits>

#include "planner/plan/link/host_waits.h"

namespace planwright {
namespace {

// How far one role has come.
struct Runner {
  const LinkedProgram* program = nullptr;
  const RoleTimes* times = nullptr;
  const StreamWaits* waits = nullptr;
  size_t next = 0;                          // index among the entries of the step
  bool arrived = false;                     // at that entry
  double host = 0, last_communication = 0;  // the latter: when the last one arrived
  std::vector<double> stream;               // when it is free
  // The entries by which host, last communication and streams are where they are; -1: the begin.
  int host_after = -1, last_communication_after = -1;
  std::vector<int> stream_after;
  // By stream, the entries that take time, in order; empty where nothing is slowed down.
  std::vector<std::vector<uint32_t>> ran;
  std::vector<signed char> host_waits;  // by number of the instruction; -1: not known yet
  std::vector<int> waited_for_by;       // roles that wait until this one comes on
};

class Simulator {
 public:
  Simulator(const std::vector<const LinkedProgram*>& programs, const std::vector<const StreamWaits*>& waits,
            const CommunicationMatches& matches, const std::vector<RoleTimes>& times, HostModel host)
      : matches_(matches), host_(host), runners_(programs.size()) {
    for (const RoleTimes& role : times) {
      for (const EntryTime& kind : role.kinds) slows_ |= kind.beside < 1 || kind.network > 0;
    }
    step_.roles.resize(programs.size());
    for (size_t r = 0; r < programs.size(); ++r) {
      Runner& runner = runners_[r];
      runner.program = programs[r], runner.times = &times[r], runner.waits = waits[r];
      const int streams = waits[r]->streams();
      runner.host = runner.last_communication = times[r].begin;
      runner.stream.assign(static_cast<size_t>(streams), times[r].begin);
      runner.stream_after.assign(static_cast<size_t>(streams), -1);
      runner.ran.resize(static_cast<size_t>(streams));
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
      entry.last.role = -1;
      double known = entry.arrived + runner.times->of(runner.next).announce;
      if (runner.times->of(runner.next).waits) {
        for (const StepEntry& met : matches_.of(role, runner.next)) {
          Runner& other = runners_[met.role];
          if (other.next < met.entry || (other.next == met.entry && !other.arrived)) {
            other.waited_for_by.push_back(role);
            return Wake(runner);
          }
          const double arrived = step_.roles[met.role].entries[met.entry].arrived;
          if (arrived > entry.start) entry.start = arrived, entry.last = met;
          known = std::max(known, arrived + other.times->of(met.entry).announce);
        }
      }
      Finish(runner, entry, known - entry.start);
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
    const EntryTime& time = runner.times->of(runner.next);
    const auto no_earlier = [&](double when, int after) {
      if (when > entry.arrived) entry.arrived = when, entry.after = after;
    };
    const auto stream = static_cast<size_t>(instruction.stream);
    runner.host += time.before;
    entry.arrived = runner.stream[stream], entry.after = runner.stream_after[stream];
    no_earlier(runner.host, runner.host_after);
    for (uint32_t wait : runner.waits->of(runner.next)) no_earlier(EndOf(runner, wait), static_cast<int>(wait));
    if (instruction.op_class == OpClass::kCommunication) {
      no_earlier(runner.last_communication, runner.last_communication_after);
      runner.last_communication_after = entry.after;
    }
    no_earlier(runner.times->begin + time.no_earlier, -1);
    entry.arrived += time.delay;
    if (instruction.op_class == OpClass::kCommunication) runner.last_communication = entry.arrived;
    runner.host += time.launch;
    runner.arrived = true;
  }

  double EndOf(const Runner& runner, size_t entry) const {
    return step_.roles[static_cast<size_t>(&runner - runners_.data())].entries[entry].end;
  }

  // When an instruction ends that takes `run` by itself. While streams launched something of the other sort before,
  // which still runs, it goes on slowly.
  double EndBeside(Runner& runner, const LinkedInstruction& instruction, double start, double run, double slowed) {
    const double beside = std::min(1.0, slowed);
    if (!slows_ || runner.ran.size() == 1 || run <= 0) return start + run;
    const std::vector<SimulatedEntry>& entries = step_.roles[static_cast<size_t>(&runner - runners_.data())].entries;
    const bool communicates = instruction.op_class == OpClass::kCommunication;
    beside_.clear();
    for (const std::vector<uint32_t>& ran : runner.ran) {
      // Of one stream in order: what ended before `start` is behind all that matters.
      for (size_t i = ran.size(); i-- > 0 && entries[ran[i]].end > start;) {
        if (Communicates(runner, ran[i]) != communicates) beside_.push_back(&entries[ran[i]]);
      }
    }
    runner.ran[static_cast<size_t>(instruction.stream)].push_back(static_cast<uint32_t>(runner.next));
    std::sort(beside_.begin(), beside_.end(),
              [](const SimulatedEntry* a, const SimulatedEntry* b) { return a->start < b->start; });
    double at = start, left = run;
    for (const SimulatedEntry* other : beside_) {
      if (other->end <= at) continue;
      const double free = std::max(0.0, other->start - at);
      if (left <= free) break;
      left -= free, at += free;
      const double slow = (other->end - at) * beside;
      if (left <= slow) return at + left / beside;
      left -= slow, at = other->end;
    }
    return at + left;
  }

  // What left the node at the same time, on other streams, shares the way with this entry, which comes last: both take
  // longer by what both have of it, as far as it is more than there is.
  void ShareNetwork(Runner& runner, SimulatedEntry& entry) {
    const double network = runner.times->of(runner.next).network;
    if (network <= 0) return;
    const size_t own = EntryOf(runner).instruction->stream;
    std::vector<SimulatedEntry>& entries = step_.roles[static_cast<size_t>(&runner - runners_.data())].entries;
    for (size_t stream = 0; stream < runner.ran.size(); ++stream) {
      const std::vector<uint32_t>& ran = runner.ran[stream];
      size_t first = ran.size();
      while (first > 0 && entries[ran[first - 1]].end > entry.start) --first;
      if (stream == own) continue;
      for (size_t i = first; i < ran.size(); ++i) {
        SimulatedEntry& other = entries[ran[i]];
        const double wanted = network + runner.times->of(ran[i]).network;
        const double both = std::min(entry.end, other.end) - std::max(entry.start, other.start);
        if (wanted <= 1 || both <= 0 || !Communicates(runner, ran[i])) continue;
        entry.end += both * (wanted - 1);
        Delay(runner, stream, i, both * (wanted - 1));
      }
    }
  }

  // An entry ends later than was known when its stream came to the next one.
  void Delay(Runner& runner, size_t stream, size_t at, double seconds) {
    std::vector<SimulatedEntry>& entries = step_.roles[static_cast<size_t>(&runner - runners_.data())].entries;
    const std::vector<uint32_t>& ran = runner.ran[stream];
    entries[ran[at]].end += seconds;
    for (size_t i = at + 1; i < ran.size(); ++i) {
      const double later = entries[ran[i - 1]].end - entries[ran[i]].start;
      if (later <= 0) break;
      SimulatedEntry& next = entries[ran[i]];
      next.arrived = std::max(next.arrived, entries[ran[i - 1]].end);
      next.start += later, next.end += later;
    }
    runner.stream[stream] = std::max(runner.stream[stream], entries[ran.back()].end);
  }

  bool Communicates(const Runner& runner, size_t entry) const {
    return runner.program->entries()[runner.program->step().first + entry].instruction->op_class ==
           OpClass::kCommunication;
  }

  // `announced`: after its start, when all members know of all.
  void Finish(Runner& runner, SimulatedEntry& entry, double announced) {
    const LinkedInstruction& instruction = *EntryOf(runner).instruction;
    const EntryTime& time = runner.times->of(runner.next);
    entry.end = EndBeside(runner, instruction, entry.start, announced + time.run, time.beside);
    if (slows_ && runner.ran.size() > 1) ShareNetwork(runner, entry);
    const int index = static_cast<int>(runner.next);
    runner.stream[instruction.stream] = entry.end, runner.stream_after[instruction.stream] = index;
    signed char& waits = runner.host_waits[static_cast<size_t>(instruction.number)];
    if (waits < 0) waits = HostWaitsFor(*runner.program->calls()[EntryOf(runner).call].block, instruction);
    const bool runs_here = host_ == HostModel::kRunsMainStream && instruction.stream == 0;
    if ((waits || runs_here) && entry.end > runner.host) runner.host = entry.end, runner.host_after = index;
  }

  const CommunicationMatches& matches_;
  const HostModel host_;
  bool slows_ = false;                         // some entry takes longer beside others
  std::vector<Runner> runners_;                // by role
  std::vector<int> ready_;                     // roles that may go on
  std::vector<const SimulatedEntry*> beside_;  // what EndBeside looks at; kept so that its memory is reused
  SimulatedStep step_;
};

}  // namespace

SimulatedStep SimulateStep(const std::vector<const LinkedProgram*>& programs,
                           const std::vector<const StreamWaits*>& waits, const CommunicationMatches& matches,
                           const std::vector<RoleTimes>& times, HostModel host) {
  return Simulator(programs, waits, matches, times, host).Run();
}

}  // namespace planwright
