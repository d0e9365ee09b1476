#include "planner/run/slurm/submitted_job.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/base/text/status_macros.h"
#include "planner/run/outcome/last_lines.h"
#include "planner/run/slurm/job_files.h"
#include "planner/run/slurm/slurm_commands.h"

namespace planwright {
namespace {

std::string NumberPath(const std::string& run_dir) { return run_dir + "/job/number"; }

// A number, of an array as 12_3. Anything else is no word for Slurm's programs.
bool IsJobNumber(const std::string& text) {
  return !text.empty() && text.size() <= 32 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) || c == '_'; });
}

// By Slurm's word for the state of a job.
SubmittedJob::Is KindOf(std::string_view state) {
  constexpr std::string_view kWaits[] = {"PENDING",     "REQUEUED",     "REQUEUE_HOLD",
                                         "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"};
  // COMPLETING: what is left of it ends, and then Slurm says how.
  constexpr std::string_view kRuns[] = {"RUNNING",   "CONFIGURING", "COMPLETING", "SUSPENDED",
                                        "SIGNALING", "STAGE_OUT",   "STOPPED",    "RESIZING"};
  const auto is_one = [&](const auto& words) {
    return std::find(std::begin(words), std::end(words), state) != std::end(words);
  };
  return is_one(kWaits) ? SubmittedJob::Is::kWaits : is_one(kRuns) ? SubmittedJob::Is::kRuns : SubmittedJob::Is::kOver;
}

// "2:0": exit status and signal.
void ReadExitCode(const std::string& text, SubmittedJob& job) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  if (parts.size() == 2 && absl::SimpleAtoi(parts[0], &job.exit_status) && absl::SimpleAtoi(parts[1], &job.signal))
    return;
  job.exit_status = job.signal = 0;
}

void ReadWhatItLeft(const std::string& run_dir, SubmittedJob& job) {
  const absl::StatusOr<std::string> text = ReadWholeFile(JobOutcomePath(run_dir), kOutcomeJson.bytes);
  absl::StatusOr<Outcome> outcome = text.ok() ? ReadOutcome(*text) : text.status();
  if (outcome.ok() && !job.live()) {
    job.outcome = *std::move(outcome);
    job.is = SubmittedJob::Is::kOver;  // as its head has said
  }
  LastLines log = {"job/slurm-" + job.id + ".log"};
  log.lines = LastLinesOfFile(run_dir + "/" + log.file);
  if (job.is == SubmittedJob::Is::kOver && !log.lines.empty()) job.log = std::move(log);
}

}  // namespace

std::string JobOutcomePath(const std::string& run_dir) { return OutcomePath(run_dir + "/job"); }

absl::Status WriteJobNumber(const std::string& run_dir, const std::string& job) {
  return WriteFileAtomically(NumberPath(run_dir), job + "\n");
}

bool ReadScontrolJob(const std::string& text, SubmittedJob& job) {
  const std::vector<std::string> words = absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  for (const std::string& word : words) {
    const size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, equals), value = word.substr(std::min(equals + 1, word.size()));
    if (name == "JobState") job.state = value;
    if (name == "Reason" && value != "None") job.reason = value;
    if (name == "ExitCode") {
      ReadExitCode(value, job);
      break;  // what follows are values of the user, and other jobs of an array
    }
  }
  if (job.state.empty()) return false;
  job.is = KindOf(job.state);
  return true;
}

bool ReadSacctJob(const std::string& text, SubmittedJob& job) {
  // The last line is that of the newest start.
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  if (lines.empty()) return false;
  const std::vector<std::string> fields = absl::StrSplit(lines.back(), '|');
  job.state = fields[0].substr(0, fields[0].find(' '));  // "CANCELLED by 1000"
  if (job.state.empty()) return false;
  if (fields.size() > 1) ReadExitCode(fields[1], job);
  job.is = KindOf(job.state);
  return true;
}

SubmittedJob AskAboutJob(const std::string& id, std::chrono::milliseconds patience) {
  SubmittedJob job = {.id = id};
  if (!IsJobNumber(id)) return job;
  const absl::StatusOr<std::string> now = RunSlurm({"scontrol", "--oneliner", "show", "job", id}, patience);
  if (now.ok() && ReadScontrolJob(*now, job)) return job;
  if (!now.ok() && !absl::StrContains(now.status().message(), "Invalid job id")) return job;
  job.is = SubmittedJob::Is::kOver;
  const absl::StatusOr<std::string> before = RunSlurm(
      {"sacct", "--noheader", "--allocations", "--parsable2", "--format=State,ExitCode", "--jobs=" + id}, patience);
  if (before.ok()) (void)ReadSacctJob(*before, job);
  return job;
}

SubmittedJob AskOfJob(const std::string& run_dir, std::chrono::milliseconds patience) {
  SubmittedJob job;
  const std::string number(
      absl::StripAsciiWhitespace(ReadWholeFile(NumberPath(run_dir), kLargestNameFile).value_or("")));
  if (IsJobNumber(number)) job = AskAboutJob(number, patience);
  // It may have been submitted again by hand.
  if (job.id.empty() || job.is == SubmittedJob::Is::kOver) {
    const std::string other = JobOfScript(JobScriptPath(run_dir), patience);
    const size_t gap = other.find(" (");
    if (gap != std::string::npos) {
      job = {.id = other.substr(0, gap), .state = other.substr(gap + 2, other.size() - gap - 3)};
      job.is = KindOf(job.state);
    }
  }
  ReadWhatItLeft(run_dir, job);
  return job;
}

int ExitStatusOf(const SubmittedJob& job) {
  if (job.outcome) return job.outcome->exit_code;
  return job.exit_status > 0 ? job.exit_status : static_cast<int>(kExitPeerLost);
}

std::string JobStateText(const SubmittedJob& job) {
  std::string text = job.state.empty() ? "over, and Slurm says no more of it" : job.state;
  if (!job.reason.empty()) absl::StrAppend(&text, " (", job.reason, ")");
  if (job.is != SubmittedJob::Is::kOver) return text;
  if (job.exit_status != 0) absl::StrAppend(&text, ", exit status ", job.exit_status);
  if (job.signal != 0) absl::StrAppend(&text, ", signal ", job.signal);
  return text;
}

}  // namespace planwright
