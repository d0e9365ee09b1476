// What became of a run: RUN/outcome.json, and the sentence a person reads.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "planner/launch/recorder_reader.h"
#include "planner/launch/supervise.h"
#include "planner/plan/plan.h"

namespace planwright {

// Why a run failed: one rank, and where it was.
struct Failure {
  int rank = -1;
  std::string host;
  // that it was at, or its device if that hangs, with its calls and step; empty: it had not begun
  std::string instruction;
  // an instruction that was complete, on the device too: the last that is known; empty: none is
  std::string last_done;
  std::string recipe_line;  // "recipe.yaml:12:5"; empty: the instruction has none
  std::string message;      // the rank's own words; may be empty
  // where ranks are that are not at `instruction`, if nothing tells which of them is to blame
  std::vector<std::string> elsewhere;
};

struct Outcome {
  int exit_code = 0;  // of `plan launch`; planner/run_files/exit_status.h
  std::string cause;  // "done", "rank 3 was killed by SIGKILL", ...
  std::optional<Failure> failure;
};

// `read_recorder(rank)` gives the rank's last position.
using RecorderSource = std::function<std::optional<RankPosition>(int rank)>;
Outcome OutcomeOf(const Plan& plan, const Supervision& supervision, const RecorderSource& read_recorder);

nlohmann::ordered_json OutcomeJson(const Outcome& outcome);

// Two or three lines for the terminal.
std::string OutcomeText(const Outcome& outcome);

}  // namespace planwright
