// The job that was submitted for a run: its number, and what Slurm says became of it.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "planner/wire/records/outcome.h"

namespace planwright {

struct SubmittedJob {
  enum class Is {
    kUnknown,  // Slurm does not answer here, or nobody knows the number
    kWaits,    // in the queue
    kRuns,     // on its nodes
    kOver,     // it has ended, or Slurm has forgotten it
  };
  Is is = Is::kUnknown;
  std::string id;                  // "4711"; empty: the run has no job
  std::string state;               // in Slurm's words: "PENDING", "FAILED"; empty: it says nothing
  std::string reason;              // "Resources", "NonZeroExitCode"; empty: none
  int exit_status = 0;             // of its script; 0 also where a signal ended it
  int signal = 0;                  // that ended its script
  std::optional<Outcome> outcome;  // of a job that ended before a life of its run began (JobOutcomePath)
  std::optional<LastLines> log;    // what it printed last, of a job that is over
  bool live() const { return is == Is::kWaits || is == Is::kRuns; }
};

// RUN/job/number: the job that was submitted last, or that began last.
absl::Status WriteJobNumber(const std::string& run_dir, const std::string& job);

// RUN/job/outcome.json: how a job ended before a life of its run began. A life that begins removes it.
std::string JobOutcomePath(const std::string& run_dir);

// Asks Slurm about a job by its number, for so long. Only `id`, the state and the end are set.
SubmittedJob AskAboutJob(const std::string& id, std::chrono::milliseconds patience);

// Asks Slurm about the job of a run directory, for so long: the controller (scontrol), and for a job that it has
// forgotten, the accounting (sacct). Reads what the job left in RUN/job.
SubmittedJob AskOfJob(const std::string& run_dir, std::chrono::milliseconds patience = std::chrono::seconds(10));

// Of a job that is over before a life of its run began, how a script should take it: as its outcome says, else the exit
// status of its script, or kExitPeerLost where that tells nothing.
int ExitStatusOf(const SubmittedJob& job);

// "PENDING (Resources)", "FAILED (NonZeroExitCode), exit status 2".
std::string JobStateText(const SubmittedJob& job);

// The answers of Slurm's programs, into `job`. False: the text says nothing of a job.
bool ReadScontrolJob(const std::string& text, SubmittedJob& job);  // of `scontrol --oneliner show job`
bool ReadSacctJob(const std::string& text, SubmittedJob& job);     // of `sacct --parsable2 --format=State,ExitCode`

}  // namespace planwright
