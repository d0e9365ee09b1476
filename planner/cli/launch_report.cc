#include "planner/cli/launch_report.h"

#include <unistd.h>

#include <iostream>

#include "planner/cli/command.h"
#include "planner/cli/profile_text.h"
#include "planner/cli/terminal.h"
#include "planner/show/show.h"

namespace planwright {

Terminal PrintingTerminal(bool as_json) {
  return [as_json](bool is_error, std::string_view line) {
    (is_error || as_json ? std::cerr : std::cout) << line << std::endl;
  };
}

int ReportRun(const Outcome& outcome, const std::string& run_dir, bool as_json) {
  if (as_json) {
    nlohmann::ordered_json json = OutcomeJson(outcome);
    json["run_dir"] = run_dir;
    std::cout << json.dump(2) << "\n";
  } else if (outcome.profile) {
    std::cout << RunProfileText(*outcome.profile, LineWidth(STDOUT_FILENO, kShowWidth));
  }
  std::cerr << OutcomeText(outcome) << "run directory: " << run_dir << "\n";
  return outcome.exit_code;
}

int ReportFailedLaunch(const absl::Status& status) { return UsageError(std::string(status.message())); }

}  // namespace planwright
