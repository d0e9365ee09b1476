// A report for people and for programs: `plan status` (where the run is now) and `plan report` (all that happened).
// Texts of files are made printable. Keys of the JSON are an interface: they are added, and not renamed.
#pragma once

#include <cstddef>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "planner/views/report/run_report.h"

namespace planwright {

// Lines of at most `width` characters, where words allow it.
std::string StatusText(const RunReport& report, size_t width);
nlohmann::ordered_json StatusJson(const RunReport& report);

// With curves of `width` columns.
std::string ReportText(const RunReport& report, size_t width);

// "running", "ended", ...
const char* StateName(RunState state);
// {"id", "state", "reason", "exit_status", "signal", "outcome"}: of the job of a run.
nlohmann::ordered_json JobJson(const SubmittedJob& job);
// {"name", "digest", "ranks", "steps", ...}
nlohmann::ordered_json PlanFactsJson(const PlanFacts& plan);
// {"exit_code", "cause", "rank", ...}: how a life ended, without its profile and its memory.
nlohmann::ordered_json OutcomeFactsJson(const Outcome& outcome);

// {"step", "consumed_samples", "seconds", "sets": {NAME: {"loss", "tokens", "sources"}}}
nlohmann::ordered_json EvaluationRecordJson(const EvaluationRecord& record);

// Gives one step after the other. Unavailable if they cannot be read.
using EachStep = std::function<absl::Status(const StepVisitor&)>;
struct AllSteps {
  EachStep counted, again;  // again: the steps that were lost and done again
};
// Reads the files of the run once more, up to the last step that the report knows. Keeps a reference to the report.
AllSteps StepsOnFile(const RunReport& report);
// One JSON object with every step, in memory that does not grow with their number. What cannot be read becomes a note.
void WriteReportJson(const RunReport& report, const AllSteps& steps, std::ostream& out);

// One line each: "runs: process 4711 on vm, life 2, for 3 min 05 s", "ended with exit status 10: rank 3 was ...".
std::string StateLine(const RunReport& report);
// "rank 3 was killed by SIGKILL": the end of a life in a few words, for tables; empty while it goes on.
std::string EndText(const RunReport& report, const RunLife& life);
// Seconds that training waited for the checkpoint before this one; empty if nobody knows.
std::string WaitedText(const ReportedCheckpoint& checkpoint);
// Why the last life failed, with rank, instruction and recipe line, a line each; empty if it did not fail.
std::vector<std::string> FailureLines(const RunReport& report);

}  // namespace planwright
