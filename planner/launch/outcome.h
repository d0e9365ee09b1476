// How a run ended: RUN/outcome.json, and the text for a person.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "planner/launch/last_lines.h"
#include "planner/launch/recorder_reader.h"
#include "planner/launch/run_memory.h"
#include "planner/launch/run_profile.h"
#include "planner/launch/slow_ranks.h"
#include "planner/launch/supervise.h"
#include "planner/plan/plan.h"

namespace planwright {

// The rank that made a run fail, and its last instruction.
struct Failure {
  int rank = -1;
  std::string host;
  // The rank's last instruction, with its calls and step. If the device hangs: the instruction the device is at. Empty
  // if the rank had not started its program.
  std::string instruction;
  // The last instruction that is known to be complete, on the device too; empty if none is.
  std::string last_done;
  std::string recipe_line;  // "recipe.yaml:12:5"; empty if the instruction comes from no line
  std::string message;      // the rank's own error message; may be empty
  // What the other ranks were in when the run ended, ranks at the same instruction together: "ranks 0-2, 5 waited in
  // step 4 > all_reduce grads over language.dp". Those that wait come first.
  std::vector<std::string> others;
  std::vector<LastLines> last_lines;  // of the rank's logs; the launcher adds them
};

struct Outcome {
  int exit_code = 0;  // of `plan launch`; planner/run_files/exit_status.h
  std::string cause;  // "done", "rank 3 was killed by SIGKILL", ...
  std::optional<Failure> failure;
  std::vector<SlowRank> slow;  // ranks that computed much longer than others of their role; also of a run that is done
  std::optional<RunProfile> profile;  // of a run with --trace that came to the end of these steps
  std::optional<RunMemory> memory;    // of a run that is done
  int interrupted_by = 0;             // Supervision::interrupted_by
  std::string run_id = {};            // of the run directory; empty: the launch has not come so far
};

// Returns the position that a rank noted last; nullopt if it wrote no recorder pages.
using RecorderSource = std::function<std::optional<RankPosition>(int rank)>;
Outcome OutcomeOf(const Plan& plan, const Supervision& supervision, const RecorderSource& read_recorder);

nlohmann::ordered_json OutcomeJson(const Outcome& outcome);

// Two or three lines, plus one for each line of Failure::others and for each slow rank, plus the last lines of the
// rank's logs.
std::string OutcomeText(const Outcome& outcome);

}  // namespace planwright
