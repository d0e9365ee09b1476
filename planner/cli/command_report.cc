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

struct ReportOptions : CommandOptions {
  std::optional<std::string> page;
};

// Of several runs: a table, or a page with all their curves.
int ReportSeveral(const ReportOptions& options) {
  constexpr size_t kMostRuns = 12;  // more lines cannot be told apart
  if (options.json) return UsageError("--json tells of one run: give one run directory at a time");
  if (options.words.size() > kMostRuns) {
    return UsageError(
        Cat("`plan report` lays ", kMostRuns, " runs over each other at most; found ", options.words.size()));
  }
  std::vector<RunReport> reports;
  for (const std::string& run_dir : options.words) {
    absl::StatusOr<RunReport> report = GatherRun(run_dir, {});
    if (!report.ok()) return UsageError(Printable(std::string(report.status().message())));
    reports.push_back(*std::move(report));
  }
  if (options.page) return WritePage(*options.page, OverlayPage(reports));
  std::cout << OverlayText(reports, LineWidth(STDOUT_FILENO, kShowWidth));
  return kExitSuccess;
}

int Report(const ReportOptions& options) {
  if (options.words.empty()) return UsageError("`plan report` needs a run directory");
  if (options.page && options.json) return UsageError("--html and --json exclude each other");
  if (options.page) {
    if (absl::Status status = CheckPageFile(*options.page); !status.ok())
      return UsageError(Printable(std::string(status.message())));
  }
  if (options.words.size() > 1) return ReportSeveral(options);
  const absl::StatusOr<RunReport> report = GatherRun(options.words[0], {});
  if (!report.ok()) return UsageError(Printable(std::string(report.status().message())));
  if (options.page) return WritePage(*options.page, ReportPage(*report));
  if (options.json) {
    WriteReportJson(*report, StepsOnFile(*report), std::cout);
  } else {
    std::cout << ReportText(*report, LineWidth(STDOUT_FILENO, kShowWidth));
  }
  return kExitSuccess;
}

}  // namespace

CliCommand ReportCommand() {
  CliCommand command = {"report", "tells what happened in a run: curves, where the time went, lives, checkpoints",
                        Runs(Report), "d"};
  command.usage = "RUN... [--html FILE | --json]";
  command.options = {
      Option("--html FILE", &ReportOptions::page, "write it as one page for a browser; `-` is stdout")
          .Writes()
          .With({"plan report runs/toy --html toy.html", "as a page with curves"}),
      JsonOption("print the data for scripts, with every step"),
  };
  command.details =
      "RUN is a run directory; the run may still go on. Only its files are read. Of several runs a table is\n"
      "printed, and --html draws their curves over each other.\n"
      "Exit status: 0, however the run ended; 2 if RUN is no run directory. See `plan status` for a status that\n"
      "tells how the run is.\n";
  command.examples = {{"plan report runs/toy", "tells what happened"}};
  command.see_also = {"status", "evaluate"}, command.pages = {"docs/run_reports.md"};
  return command;
}

}  // namespace planwright
