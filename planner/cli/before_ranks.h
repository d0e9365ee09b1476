// What a launch looks at before its first rank is started: a mistake is told once, by the launcher, and leaves no run
// directory.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "planner/plan/plan.h"
#include "planner/run/launch/run_options.h"

namespace planwright {

// Where the run directory holds a run of another plan: prints what going on with this one changes. InvalidArgument if
// the loss curve may change and the user has not accepted that.
absl::Status CheckChanges(const Plan& plan, const std::string& run_dir, bool accepted);

// The same for the files of data of kind `sources`: whether they have the documents on which the newest checkpoint was
// trained. `digests`: of the files now, by source, as Manifest::data. Checkpoints that say nothing of files are not
// compared.
absl::Status CheckFiles(const Plan& plan, const std::map<std::string, std::string>& digests, const std::string& run_dir,
                        bool accepted);

// Whether weights and recorded batches fit the plan, as far as they are on this machine. Tells what is wrong on stderr.
// Returns the exit status if no job shall be submitted.
std::optional<int> CheckFilesOfJob(const Plan& plan, const RunOptions& options);

struct LaunchWay {
  bool here = false;     // ranks run on this machine
  bool yes = false;      // questions are answered
  bool as_json = false;  // the outcome of a run that is done is printed as JSON
};

// Whether the run in its directory is done already, whether weights and recorded batches fit the plan, and whether the
// executor and this machine can run it. Tells what is wrong on stderr. Returns the exit status if no rank shall start;
// kExitSuccess of a run that is done.
std::optional<int> CheckBeforeRanks(const Plan& plan, const RunOptions& options, const LaunchWay& way);

}  // namespace planwright
