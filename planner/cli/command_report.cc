// `plan report`: all that happened in a run, in the terminal or as a page.

#include <unistd.h>

#include <iostream>

#include "planner/cli/command.h"
#include "planner/cli/terminal.h"
#include "planner/diagnostics/utf8.h"
#include "planner/report/report_page.h"
#include "planner/report/report_text.h"
#include "planner/run_files/exit_status.h"
#include "planner/run_files/file_io.h"
#include "planner/show/show.h"

namespace planwright {
namespace {

int Report(const Arguments& arguments) {
  if (arguments.words.size() != 1)
    return UsageError("`plan report` needs one run directory; found " + std::to_string(arguments.words.size()));
  const std::optional<std::string> file = arguments.value("--html");
  if (file && arguments.has("--json")) return UsageError("--html and --json exclude each other");
  const absl::StatusOr<RunReport> report = GatherRun(arguments.words[0], {});
  if (!report.ok()) return UsageError(Printable(std::string(report.status().message())));
  if (arguments.has("--json")) {
    WriteReportJson(*report, StepsOnFile(*report), std::cout);
  } else if (!file) {
    std::cout << ReportText(*report, LineWidth(STDOUT_FILENO, kShowWidth));
  } else if (*file == "-") {
    std::cout << ReportPage(*report);
  } else {
    if (absl::Status status = WriteNamedFile(*file, ReportPage(*report)); !status.ok())
      return UsageError(Printable(std::string(status.message())));
    std::cerr << "wrote " << Printable(*file) << "\n";
  }
  return kExitSuccess;
}

}  // namespace

CliCommand ReportCommand() {
  return {"report",
          "tells what happened in a run: curves, where the time went, lives, checkpoints",
          "RUN [--html FILE | --json]",
          {{"--html", "", "FILE", "write it as one page for a browser; `-` is stdout"},
           {"--json", "", "", "print the data for scripts, with every step"}},
          "RUN is a run directory; the run may still go on. Only its files are read.\n"
          "Exit status: 0, however the run ended; 2 if RUN is no run directory. See `plan status` for a status that\n"
          "tells how the run is.\n",
          Report,
          "d"};
}

}  // namespace planwright
