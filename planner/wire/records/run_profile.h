// Where the time of a step went: `profile` of outcome.json (docs/profiling.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "planner/wire/records/trace.h"

namespace planwright {

// Times of one step in milliseconds: the mean over the profiled steps and over the ranks of a role.
struct ProfileRow {
  std::string name;                 // a part of the model or of the step, or a kind of instruction
  double times = 0;                 // how often its instructions run
  double device = 0;                // from their begin to their end, added up
  double slowest_rank = 0;          // `device` of the rank that took longest
  double idle_before = 0;           // during which the device did nothing, until one of these began
  double host = 0;                  // that the host took to launch them
  std::optional<double> predicted;  // `device`, as it was predicted (docs/step_time.md); of nothing that was not
  bool operator==(const ProfileRow&) const = default;
};

struct ProfilePart {
  ProfileRow whole;
  std::vector<ProfileRow> kinds;  // longest first
  bool operator==(const ProfilePart&) const = default;
};

struct RoleProfile {
  std::string role;
  std::vector<int> ranks;
  std::vector<ProfilePart> parts;  // longest first; they add up to all instructions
  // From the first begin to the last end, on the mean and of the slowest rank. step = instructions - overlap + idle.
  double step = 0, slowest_step = 0;
  double instructions = 0, slowest_instructions = 0;  // `device` of all of them, and of the rank that took longest
  double communication = 0;                           // of `instructions`: those that pass values between ranks
  double overlap = 0;  // what `instructions` counts more than once, as several streams ran at the same time
  double idle = 0;
  std::optional<double> waiting;  // of `communication`: until the last member came; not known of ranks of many hosts
  // As predicted: the step of all ranks, from its begin until the last one is done, `communication` and `waiting`.
  std::optional<double> predicted_step, predicted_communication, predicted_waiting;
  bool operator==(const RoleProfile&) const = default;
};

struct RunProfile {
  StepRange steps;
  std::vector<RoleProfile> roles;  // by their first rank
  bool operator==(const RunProfile&) const = default;
};

// One row that differs from its prediction, in milliseconds of a step of its role.
struct ProfileMiss {
  std::string role, part, kind;
  double measured = 0, predicted = 0;
};
// Those that are furthest off, most first; at most `most`.
std::vector<ProfileMiss> WorstMisses(const RunProfile& profile, size_t most);

nlohmann::ordered_json RunProfileJson(const RunProfile& profile);
// What RunProfileJson wrote. Numbers that are missing are 0; nullopt if it has no steps or no list of roles.
std::optional<RunProfile> RunProfileFrom(const nlohmann::json& json);

}  // namespace planwright
