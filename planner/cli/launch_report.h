// What `plan launch` and `plan job` say about a run.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "planner/run/launch/launch_life.h"
#include "planner/wire/records/outcome.h"

namespace planwright {

// Prints what ranks print: rank 0's output on stdout, everything else on stderr; all on stderr where stdout is for
// JSON. It does not flush: while ranks run, there is a BackgroundOutput.
Terminal PrintingTerminal(bool as_json);

// Prints the outcome and returns its exit code. If the run is done, but stdout cannot be written, that is told on
// stderr: as a warning, as the run directory has all that was printed, and for JSON, which is a result, as an error,
// with kExitUsage. `run_dir` empty: it will be gone, so that nobody shall look there.
int ReportRun(const Outcome& outcome, const std::string& run_dir, bool as_json);

// For a launch that failed without an outcome: prints why, and returns the exit code: kExitStorage if its files had no
// room.
int ReportFailedLaunch(const absl::Status& status);

}  // namespace planwright
