#include "planner/predict/simulate/replayed_step.h"

#include <algorithm>
#include <limits>

#include "planner/plan/link/host_waits.h"

namespace planwright {
namespace {

double Seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

// The instructions of one step, in program order.
std::vector<const TraceInstruction*> StepOf(const Trace& trace, int64_t step) {
  std::vector<const TraceInstruction*> entries;
  for (const TraceInstruction& instruction : trace.instructions) {
    if (instruction.step == step) entries.push_back(&instruction);
  }
  return entries;
}

// The plan with one role for each rank, in the order of ranks.
Plan WithRoleOfEachRank(Plan plan) {
  std::vector<Role> roles(static_cast<size_t>(plan.world_size));
  for (const Role& role : plan.roles) {
    for (const RankRange& range : role.ranks) {
      for (int i = 0, rank = range.first; i < range.count; ++i, rank += range.stride) {
        Role& own = roles[static_cast<size_t>(rank)];
        own = role;
        own.ranks = {{rank, 1, 1}};
      }
    }
  }
  plan.roles = std::move(roles);
  return plan;
}

}  // namespace

RankPrograms::RankPrograms(const Plan& plan) : plan_(WithRoleOfEachRank(plan)), blocks_(plan_) {
  for (const Role& role : plan_.roles) {
    programs_.push_back(linked_.emplace_back(std::make_unique<LinkedProgram>(blocks_, role)).get());
    waits_.push_back(made_waits_.emplace_back(std::make_unique<StreamWaits>(*programs_.back())).get());
  }
  CommunicationPartners partners(plan_);
  matches_ = std::make_unique<CommunicationMatches>(programs_, partners);
}

ReplayedStep ReplayOf(const RankPrograms& ranks, const std::vector<Trace>& traces, int64_t step, HostModel host_model) {
  const std::vector<const LinkedProgram*>& programs = ranks.programs();
  std::vector<std::vector<const TraceInstruction*>> ran;
  int64_t first = std::numeric_limits<int64_t>::max(), last = 0;
  for (const Trace& trace : traces) {
    ran.push_back(StepOf(trace, step));
    for (const TraceInstruction* entry : ran.back())
      first = std::min(first, entry->begin), last = std::max(last, entry->end);
  }
  ReplayedStep replayed{.length = Seconds(last - first), .waiting = std::vector<double>(programs.size(), 0)};
  for (size_t r = 0; r < programs.size(); ++r) {
    const LinkedProgram& program = *programs[r];
    const StreamWaits& waits = *ranks.waits()[r];
    std::vector<int64_t> stream_end(static_cast<size_t>(waits.streams()), 0);
    RoleTimes& times = replayed.times.emplace_back();
    int64_t host = ran[r].front()->launch_begin, last_communication = 0;
    times.begin = Seconds(host - first);
    for (size_t i = 0; i < ran[r].size(); ++i) {
      const TraceInstruction& at = *ran[r][i];
      const LinkedEntry& entry = program.entries()[program.step().first + i];
      const LinkedInstruction& instruction = *entry.instruction;
      const bool communicates = instruction.op_class == OpClass::kCommunication;
      // What it had to wait for on its own rank.
      int64_t ready = std::max(at.launch_begin, stream_end[instruction.stream]);
      for (uint32_t wait : waits.of(i)) ready = std::max(ready, ran[r][wait]->end);
      if (communicates) ready = std::max(ready, last_communication), last_communication = at.begin;
      times.entries.push_back(static_cast<uint32_t>(i));
      EntryTime& time = times.kinds.emplace_back();
      time.before = Seconds(at.launch_begin - host);
      time.delay = Seconds(std::max<int64_t>(0, at.begin - ready));
      int64_t last_arrival = at.begin;
      for (const StepEntry& met : ranks.matches().of(static_cast<int>(r), i))
        last_arrival = std::max(last_arrival, ran[static_cast<size_t>(met.role)][met.entry]->begin);
      // Gloo keeps a short message for who comes later.
      time.waits = last_arrival < at.end;
      if (time.waits) replayed.waiting[r] += Seconds(last_arrival - at.begin);
      time.run = Seconds(at.end - (time.waits ? last_arrival : at.begin));
      stream_end[instruction.stream] = at.end;
      if (host_model == HostModel::kRunsMainStream && instruction.stream == 0) {
        host = at.end;  // the main stream is the host's own thread
      } else {
        const bool waits_for_device =
            host_model == HostModel::kLaunches && HostWaitsFor(*program.calls()[entry.call].block, instruction);
        const int64_t begin = waits_for_device ? std::max(at.launch_begin, at.end) : at.launch_begin;
        time.launch = Seconds(std::max<int64_t>(0, at.launch_end - begin - at.waited));
        host = at.launch_end;
      }
    }
  }
  return replayed;
}

}  // namespace planwright
