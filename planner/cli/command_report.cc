// `plan report`: all that happened in a run, in the terminal or as a page.

#include <unistd.h>

#include <iostream>

#include "planner/base/files/exit_status.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"
#include "planner/cli/page_file.h"
#include "planner/cli/terminal.h"
#include "planner/views/report/overlay_page.h"
#include "planner/views/report/report_page.h"
#include "planner/views/report/report_text.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

int WritePage(const std::string& file, const std::string& page) {
  const absl::Status status = WritePageFile(file, page);
  return status.ok() ? kExitSuccess : UsageError(Printable(std::string(status.message())));
}

// Of several runs: a table, or a page with all their curves.
int ReportSeveral(const Arguments& arguments, const std::optional<std::string>& file) {
  constexpr size_t kMostRuns = 12;  // more lines cannot be told apart
  if (arguments.has("--json")) return UsageError("--json tells of one run: give one run directory at a time");
  if (arguments.words.size() > kMostRuns) {
    return UsageError(
        Cat("`plan report` lays ", kMostRuns, " runs over each other at most; found ", arguments.words.size()));
  }
  std::vector<RunReport> reports;
  for (const std::string& run_dir : arguments.words) {
    absl::StatusOr<RunReport> report = GatherRun(run_dir, {});
    if (!report.ok()) return UsageError(Printable(std::string(report.status().message())));
    reports.push_back(*std::move(report));
  }
  if (file) return WritePage(*file, OverlayPage(reports));
  std::cout << OverlayText(reports, LineWidth(STDOUT_FILENO, kShowWidth));
  return kExitSuccess;
}

int Report(const Arguments& arguments) {
  if (arguments.words.empty()) return UsageError("`plan report` needs a run directory");
  const std::optional<std::string> file = arguments.value("--html");
  if (file && arguments.has("--json")) return UsageError("--html and --json exclude each other");
  if (file) {
    if (absl::Status status = CheckPageFile(*file); !status.ok())
      return UsageError(Printable(std::string(status.message())));
  }
  if (arguments.words.size() > 1) return ReportSeveral(arguments, file);
  const absl::StatusOr<RunReport> report = GatherRun(arguments.words[0], {});
  if (!report.ok()) return UsageError(Printable(std::string(report.status().message())));
  if (file) return WritePage(*file, ReportPage(*report));
  if (arguments.has("--json")) {
    WriteReportJson(*report, StepsOnFile(*report), std::cout);
  } else {
    std::cout << ReportText(*report, LineWidth(STDOUT_FILENO, kShowWidth));
  }
  return kExitSuccess;
}

}  // namespace

CliCommand ReportCommand() {
  return {"report",
          "tells what happened in a run: curves, where the time went, lives, checkpoints",
          "RUN... [--html FILE | --json]",
          {{"--html", "", "FILE", "write it as one page for a browser; `-` is stdout", /*writes=*/true},
           {"--json", "", "", "print the data for scripts, with every step"}},
          "RUN is a run directory; the run may still go on. Only its files are read. Of several runs a table is\n"
          "printed, and --html draws their curves over each other.\n"
          "Exit status: 0, however the run ended; 2 if RUN is no run directory. See `plan status` for a status that\n"
          "tells how the run is.\n",
          Report,
          "d"};
}

}  // namespace planwright
