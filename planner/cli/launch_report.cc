#include "planner/cli/launch_report.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <system_error>

#include "planner/base/files/exit_status.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"
#include "planner/cli/terminal.h"
#include "planner/run/outcome/memory_text.h"
#include "planner/run/outcome/outcome_text.h"
#include "planner/run/outcome/profile_text.h"
#include "planner/run/trial/trial_text.h"
#include "planner/views/show/show.h"

namespace planwright {

Terminal PrintingTerminal(bool as_json) {
  return [as_json](bool is_error, std::string_view line) {
    (is_error || as_json ? std::cerr : std::cout) << PrintableLines(line) << "\n";
  };
}

int ReportRun(const Outcome& outcome, const std::string& run_dir, bool as_json) {
  signal(SIGPIPE, SIG_IGN);  // how the run ended matters more than that nobody reads it
  if (as_json) {
    nlohmann::ordered_json json = OutcomeJson(outcome);
    if (!run_dir.empty()) json["run_dir"] = run_dir;
    std::cout << JsonText(json, 2) << "\n";
  } else {
    const size_t width = LineWidth(STDOUT_FILENO, kShowWidth);
    if (outcome.profile) std::cout << RunProfileText(*outcome.profile, width);
    if (outcome.memory && !outcome.trial) std::cout << RunMemoryText(*outcome.memory, width);
    if (outcome.trial) std::cout << PrintableLines(TrialText(*outcome.trial));
  }
  std::cerr << PrintableLines(OutcomeText(outcome));
  if (!run_dir.empty()) std::cerr << "run directory: " << Printable(run_dir) << "\n";
  std::cout.flush();
  if (std::cout || outcome.exit_code != kExitSuccess) return outcome.exit_code;
  std::error_code error;
  const std::string place = std::filesystem::read_symlink("/proc/self/fd/1", error).string();
  // There it can only be because stdout was closed (main.cc): the file itself takes everything.
  const std::string missing = "the run is done, but what it printed is not all in " +
                              (place == "/dev/null" ? "its output, which is closed" : Printable(place));
  if (as_json) {  // the result that was asked for
    std::cerr << "error: " << missing << "\n";
    return kExitUsage;
  }
  std::cerr << "warning: " << missing << "; " << Printable(run_dir) << "/logs/rank0000.out has the lines\n";
  return kExitSuccess;
}

int ReportFailedLaunch(const absl::Status& status) {
  UsageError(status);
  return absl::IsResourceExhausted(status) ? kExitStorage : kExitUsage;
}

}  // namespace planwright
