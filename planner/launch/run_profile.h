// Where the time of a step went: the sum over the parts that ranks wrote for `--trace` (planner/run_files/trace.h).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "planner/plan/plan.h"
#include "planner/run_files/trace.h"

namespace planwright {

// Times of one step in milliseconds: the mean over the profiled steps and over the ranks of a role.
struct ProfileRow {
  std::string name;         // a part of the model or of the step, or a kind of instruction
  double times = 0;         // how often its instructions run
  double device = 0;        // from their begin to their end, added up
  double slowest_rank = 0;  // `device` of the rank that took longest
  double idle_before = 0;   // during which the device did nothing, until one of these began
  double host = 0;          // that the host took to launch them
};

struct ProfilePart {
  ProfileRow whole;
  std::vector<ProfileRow> kinds;  // longest first
};

struct RoleProfile {
  std::string role;
  std::vector<int> ranks;
  std::vector<ProfilePart> parts;  // longest first
  ProfileRow all;                  // of all instructions
  // From the first begin to the last end, on the mean and of the slowest rank. step = all.device - overlap +
  // all.idle_before.
  double step = 0, slowest_step = 0;
  double communication = 0;  // of `all`: instructions that pass values between ranks
  double overlap = 0;        // what `all` counts more than once, because several streams ran at the same time
};

struct RunProfile {
  StepRange steps;
  std::vector<RoleProfile> roles;  // by their first rank
};

// Sums up the parts of all ranks. Error, with the file: a trace that is not there or cannot be read.
absl::StatusOr<RunProfile> ReadRunProfile(const Plan& plan, const std::string& run_dir);

nlohmann::ordered_json RunProfileJson(const RunProfile& profile);

}  // namespace planwright
