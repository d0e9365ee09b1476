// How a run ended: RUN/outcome.json, and lives/N/outcome.json of earlier lives (docs/failures.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "planner/wire/records/rank_variables.h"
#include "planner/wire/records/run_memory.h"
#include "planner/wire/records/run_profile.h"
#include "planner/wire/records/trial_verdict.h"

namespace planwright {

// A rank that computed much longer than others of its role.
struct SlowRank {
  int rank = 0;
  std::string role;
  int64_t first_step = 0, last_step = 0;  // that were compared, from 1
  double seconds = 0;                     // that it computed in a step, waiting not counted; mean over these steps
  double median = 0;                      // of all ranks of the role
  bool operator==(const SlowRank&) const = default;
};

// The last lines that a rank logged or printed.
struct LastLines {
  std::string file;                // within the run directory: "logs/rank0003.log"
  std::vector<std::string> lines;  // the newest last; printable (planner/base/text/utf8.h), long ones are cut
  bool operator==(const LastLines&) const = default;
};

// The rank that made a run fail, and its last instruction.
struct Failure {
  int rank = -1;  // -1: the file does not say
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
  std::vector<LastLines> last_lines;  // of the rank's logs
  bool operator==(const Failure&) const = default;
};

struct Outcome {
  int exit_code = 0;  // of `plan launch`; planner/base/files/exit_status.h
  std::string cause;  // "done", "rank 3 was killed by SIGKILL", ...
  std::optional<Failure> failure;
  std::vector<SlowRank> slow;                  // also of a run that is done
  std::optional<RunProfile> profile;           // of a run with --trace that came to the end of these steps
  std::optional<RunMemory> memory;             // of a run that is done
  std::optional<TrialVerdict> trial;           // of a trial, however it ended
  int interrupted_by = 0;                      // the signal that asked the run to end; 0: none
  std::string run_id = {};                     // of the run directory; empty: the launch has not come so far
  std::vector<RankVariable> environment = {};  // that ranks had, of those that libraries read
  bool operator==(const Outcome&) const = default;
};

std::string OutcomePath(const std::string& run_dir);

nlohmann::ordered_json OutcomeJson(const Outcome& outcome);
// The bytes of the file.
std::string OutcomeFile(const Outcome& outcome);
// Reads the bytes of the file. Fields that are missing or of another type count as not given; texts are those of the
// file: print them with Printable. An exit_code that no process can have is kExitUsage. InvalidArgument if it is not a
// JSON object with an exit_code.
absl::StatusOr<Outcome> ReadOutcome(std::string_view text);

}  // namespace planwright
