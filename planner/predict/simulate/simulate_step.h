// When each instruction of a step runs, given how long each takes (docs/step_time.md). It follows the linked programs
// of all roles: the order of each host and of its streams, what instructions wait for on other streams, hosts that wait
// for their device, and members of a communication that come at different times. It knows no device: times come from
// whoever asks. Two ranks that take different times are two roles here.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/plan/link/linked_program.h"
#include "planner/plan/link/stream_waits.h"
#include "planner/plan/plan.h"
#include "planner/predict/simulate/match_communications.h"

namespace planwright {

// How long one entry takes, in seconds.
struct EntryTime {
  double before = 0;  // of the host, between the launch of the entry before and the launch of this one
  double launch = 0;  // of the host, to launch it
  double delay = 0;   // between the begin of its launch, or when all that it waits for is done, and its begin
  // Of its stream, from its start to its end. A communication starts when all members are there.
  double run = 0;
  // After the begin of the step, until when it has to wait for something that no instruction of the step does.
  double no_earlier = 0;
  // Of a communication: false if it hands its message over and goes on, before others come for it.
  bool waits = true;
  // The speed at which it goes on, as a share of its own, while something of the other sort (work, or a communication)
  // that its rank launched before runs on another stream; above 0.
  double beside = 1;
  // Of a communication: how long it takes until the others know that this member is there. It goes on in all of them
  // when all of them know of all.
  double announce = 0;
  // Of a communication: the part of `run` in which it keeps its rank's way out of the node busy. Where others of the
  // rank do at the same time, on other streams, all of them take longer.
  double network = 0;
};

struct RoleTimes {
  double begin = 0;              // when the host comes to the step
  std::vector<EntryTime> kinds;  // entries that take the same have the same
  // Of LinkedProgram::step(), in program order: indices in `kinds`.
  std::vector<uint32_t> entries;

  const EntryTime& of(size_t entry) const { return kinds[entries[entry]]; }
};

// What launches an instruction.
enum class HostModel {
  kLaunches,        // a host that runs ahead of its device, until it needs a number from it
  kRunsMainStream,  // the thread that launches runs the main stream itself (CPUs)
};

// Of the devices that a plan is for.
inline HostModel HostModelOf(const Plan& plan) {
  return plan.cluster.gpu == "none" ? HostModel::kRunsMainStream : HostModel::kLaunches;
}

struct SimulatedEntry {
  double arrived = 0;  // its stream has come to it, and what it waits for on this rank is done
  double start = 0;    // of a communication: when all members were there; else `arrived`
  double end = 0;
  // What it came to it by: the entry of its own role whose end let it arrive, some time later where the host was slow.
  // -1: the begin of the step.
  int after = -1;
  StepEntry last = {-1, 0};  // of a communication that waited: the member that came last; role -1: it did not wait
};

struct SimulatedRole {
  std::vector<SimulatedEntry> entries;  // as RoleTimes::entries
  double begin = 0, end = 0;            // of its step: the end of host and streams
  double waiting = 0;                   // sum of start - arrived over all communications: for others
};

struct SimulatedStep {
  std::vector<SimulatedRole> roles;  // as `programs`
  double length = 0;                 // from the first begin to the last end
  bool complete = true;              // false: some role never met its partners, which V3 refuses
};

// `programs`, `waits`, `times`: by role, in the order of Plan::roles. `waits`, `matches`: of these programs.
SimulatedStep SimulateStep(const std::vector<const LinkedProgram*>& programs,
                           const std::vector<const StreamWaits*>& waits, const CommunicationMatches& matches,
                           const std::vector<RoleTimes>& times, HostModel host);

}  // namespace planwright
