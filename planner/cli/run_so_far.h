// What a launch compares with the run that its directory holds: may it go on without changing the loss curve?
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "planner/plan/plan.h"

namespace planwright {

// Where the run directory holds a run of another plan: prints what going on with this one changes. InvalidArgument if
// the loss curve may change and the user has not accepted that.
absl::Status CheckChanges(const Plan& plan, const std::string& run_dir, bool accepted);

// The same for the files of data of kind `sources`: whether they have the documents on which the newest checkpoint was
// trained. `digests`: of the files now, by source, as Manifest::data. Checkpoints that say nothing of files are not
// compared.
absl::Status CheckFiles(const Plan& plan, const std::map<std::string, std::string>& digests, const std::string& run_dir,
                        bool accepted);

}  // namespace planwright
