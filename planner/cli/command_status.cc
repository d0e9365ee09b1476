// `plan status`: whether a run goes on, how far it is, and where its ranks are.

#include <unistd.h>

#include <chrono>
#include <iostream>
#include <thread>

#include "planner/base/files/exit_status.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"
#include "planner/cli/terminal.h"
#include "planner/run/slurm/submitted_job.h"
#include "planner/views/report/report_text.h"
#include "planner/views/report/run_stream.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

constexpr std::chrono::seconds kPause{2};  // of --follow
constexpr std::chrono::milliseconds kStreamPause{500};
// The last steps are enough, however long the run is.
constexpr int64_t kMetricsBytes = int64_t{256} << 10;

// Prints the status once. `again`: it has been printed before.
int PrintOnce(const RunReport& report, bool as_json, bool follow, bool again) {
  if (as_json) {
    std::cout << JsonText(StatusJson(report), 2) << std::endl;
    return ExitStatusOf(report);
  }
  // A terminal is cleared, so that the status stays in its place.
  if (follow && isatty(STDOUT_FILENO)) {
    std::cout << "\x1b[H\x1b[J";
  } else if (again) {
    std::cout << "\n";
  }
  std::cout << StatusText(report, LineWidth(STDOUT_FILENO, kShowWidth)) << std::flush;
  return ExitStatusOf(report);
}

// Prints the status of a run that has not begun, by what Slurm says of its job. `said`: what it said before.
void PrintSubmitted(const std::string& run_dir, const std::string& why, const SubmittedJob& job, bool as_json,
                    std::string& said) {
  using Json = nlohmann::ordered_json;
  const bool over = job.is == SubmittedJob::Is::kOver;
  if (as_json) {
    Json json = {
        {"state", over ? "not begun" : "submitted"}, {"run_dir", run_dir}, {"note", why}, {"job", JobJson(job)}};
    if (over) json["exit_status"] = ExitStatusOf(job);
    if (job.log) json["last_lines"] = {{"file", job.log->file}, {"lines", job.log->lines}};
    std::cout << JsonText(json, 2) << std::endl;
    return;
  }
  std::string text = Printable(why);
  if (!job.id.empty() && job.is != SubmittedJob::Is::kUnknown) {
    text += Printable(": job " + job.id + " is " + JobStateText(job));
  } else {
    text +=
        Printable(": Slurm does not say here what became of its job; `squeue --me` shows those that wait or run, and " +
                  run_dir + "/job has its output");
  }
  if (job.outcome) text += "\n" + Printable(job.outcome->cause);
  if (job.log) {
    text += "\nlast lines of " + Printable(run_dir + "/" + job.log->file) + ":";
    for (const std::string& line : job.log->lines) text += "\n  " + line;
  }
  if (text != said) std::cout << text << std::endl;
  said = text;
}

struct StatusOptions : CommandOptions {
  bool follow = false;
};

// Prints an event a line, until the run is over or nobody reads them.
int Stream(const std::string& run_dir) {
  RunStream stream(run_dir);
  for (;;) {
    const absl::StatusOr<bool> over = stream.Next([](const nlohmann::ordered_json& event) {
      std::cout << JsonText(event) << std::endl;  // whoever follows has it at once
      return static_cast<bool>(std::cout);
    });
    if (!over.ok()) return UsageError(Printable(std::string(over.status().message())));
    if (*over) return stream.exit_status();
    std::this_thread::sleep_for(kStreamPause);
  }
}

int Status(const StatusOptions& options) {
  if (options.words.size() != 1)
    return UsageError("`plan status` needs one run directory; found " + std::to_string(options.words.size()));
  if (options.follow && options.json) return Stream(options.words[0]);
  std::string said;  // of a run that has not begun
  for (bool again = false;; again = true) {
    const absl::StatusOr<RunReport> report =
        GatherRun(options.words[0], {.metrics_bytes = kMetricsBytes, .ranks = true, .job = true});
    if (absl::IsFailedPrecondition(report.status())) {
      const SubmittedJob job = AskOfJob(options.words[0]);
      PrintSubmitted(options.words[0], std::string(report.status().message()), job, options.json, said);
      if (job.is == SubmittedJob::Is::kOver) return ExitStatusOf(job);
      if (!options.follow || !std::cout) return kExitSuccess;
      std::this_thread::sleep_for(kPause);
      continue;
    }
    if (!report.ok()) return UsageError(Printable(std::string(report.status().message())));
    const int status = PrintOnce(*report, options.json, options.follow, again);
    if (!options.follow || !report->live() || !std::cout) return status;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

CliCommand StatusCommand() {
  CliCommand command = {"status", "says whether a run goes on, how far it is, and where its ranks are", Runs(Status),
                        "d"};
  command.usage = "RUN [--follow] [--json]";
  command.options = {
      Option("--follow", &StatusOptions::follow,
             "say it again every two seconds, until the run is over; with --json, give each event of the run as "
             "a line")
          .With({"plan status runs/toy --follow", "says how far a run is, until it is over"}),
      JsonOption("print the same as JSON; with --follow, a stream of events"),
  };
  command.details =
      "RUN is a run directory. Its files are read, so this works on any node that sees them. Of a run that was\n"
      "submitted to Slurm and does not go on, Slurm is asked what became of its job.\n"
      "Exit status: 0 if the run goes on or is done, else that of the run; 10 if it ended without a word, as its\n"
      "launch was killed or its machine died; 2 if RUN is no run directory.\n";
  command.see_also = {"report", "launch"}, command.pages = {"docs/failures.md"};
  command.runs = true;
  return command;
}

}  // namespace planwright
