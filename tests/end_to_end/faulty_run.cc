#include "tests/end_to_end/faulty_run.h"

#include <signal.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <sstream>
#include <thread>
#include <vector>

#include "planner/base/files/exit_status.h"
#include "planner/wire/records/recorder_reader.h"
#include "tests/end_to_end/processes.h"
#include "tests/support/eventually.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC, like the times in recorder pages

int64_t Now() { return Clock::now().time_since_epoch().count(); }

Started StartRun(const FaultyRun& run, const std::string& folder) {
  std::vector<std::string> argv = {run.binaries + "/plan", "launch", run.recipe, "budget.train_samples=80000",
                                   "budget.learning_rate.decay_samples=80000"};
  if (run.ranks == 2) argv.push_back("modules.language.placement.first_rank=1");
  for (const std::string& word :
       {std::string("--local"), std::string("--yes"), std::string("--device"), run.device, std::string("--executor"),
        run.binaries + "/failing_executor", std::string("--run-dir"), folder + "/run"}) {
    argv.push_back(word);
  }
  return StartProgram(
      argv,
      {"PLANWRIGHT_FAULT=" + run.fault, "PLANWRIGHT_FAULT_RANK=" + std::to_string(run.fault_rank),
       "PLANWRIGHT_FAULT_STEP=" + std::to_string(run.fault_step), "PLANWRIGHT_FAULT_MARK=" + folder + "/mark",
       "PLANWRIGHT_TIMEOUT_SECONDS=" + std::to_string(run.timeout_seconds)},
      folder + "/output");
}

// When the first rank noticed the failure. A death is noticed when it happens, a stopped rank when its time is over.
std::optional<int64_t> NoticedAt(const FaultyRun& run, const std::string& run_dir, std::optional<int64_t> fault) {
  std::optional<int64_t> first;
  const auto consider = [&](int64_t moment) { first = std::min(first.value_or(moment), moment); };
  for (int rank = 0; rank < run.ranks; ++rank) {
    const std::optional<RankPosition> position = ReadRecorder(run_dir, rank);
    if (position && position->failed != 0) consider(position->failed);
  }
  if (fault && run.fault == "kill") consider(*fault);
  if (fault && run.fault == "stop") consider(*fault + run.timeout_seconds * int64_t{1000000000});
  return first;
}

bool Contains(const nlohmann::json& text, const std::string& part) {
  return text.is_string() && text.get<std::string>().find(part) != std::string::npos;
}

// The log has the failure too, which is shown once, as the message.
bool SaysTheMessage(const std::string& line, const nlohmann::json& message) {
  std::istringstream lines(message.is_string() ? message.get<std::string>() : "");
  for (std::string said; std::getline(lines, said);) {
    if (line.find(said.substr(0, 500)) != std::string::npos) return true;
  }
  return false;
}

// The end of the guilty rank's log is in outcome.json, and was shown.
std::string WhatIsWrongWithLastLines(const FaultyRun& run, const Aftermath& after) {
  const std::string log = "logs/rank000" + std::to_string(run.fault_rank) + ".log";
  const nlohmann::json files = after.outcome.value("last_lines", nlohmann::json::array());
  if (files.empty() || files[0].at("file") != log || files[0].at("lines").empty())
    return "outcome.json has no lines of " + log;
  for (const std::string line : files[0].at("lines")) {
    if (SaysTheMessage(line, after.outcome.value("message", nlohmann::json()))) continue;
    if (!Contains(after.output, "    " + line + "\n")) return "not shown: " + line;
  }
  // The last thing that a rank logs: the failure if it can, else that it was ready.
  const std::string last = files[0].at("lines").back();
  if (run.fault == "throw" && !Contains(last, "planted failure") && !Contains(last, "recipe: "))
    return "the log does not end with the failure";
  if (run.fault == "kill" && !Contains(last, "ready in ")) return "the log of the killed rank is not whole";
  return "";
}

}  // namespace

Aftermath RunWithFault(const FaultyRun& run) {
  Aftermath after;
  std::string folder = (fs::temp_directory_path() / "planwright_fault_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return after;
  const std::string run_dir = folder + "/run";
  const Started launch = StartRun(run, folder);
  const std::optional<int> status = WaitFor(launch.pid, std::chrono::seconds(run.patience_seconds));
  if (status) Eventually([&] { return ProcessesWith(run_dir).empty(); });
  const int64_t end = Now();
  after.ended = status && ProcessesWith(run_dir).empty();
  after.status = status.value_or(-1);
  for (pid_t left : ProcessesWith(run_dir)) kill(left, SIGKILL);
  if (!status) WaitFor(launch.pid, kPatience);

  after.output = ReadAll(launch.output);
  after.outcome = nlohmann::json::parse(ReadAll(run_dir + "/outcome.json"), nullptr, false);
  if (after.outcome.is_discarded()) after.outcome = nullptr;
  const std::string mark = ReadAll(folder + "/mark");
  const std::optional<int64_t> fault = mark.empty() ? std::nullopt : std::optional<int64_t>(std::stoll(mark));
  const std::optional<int64_t> noticed = NoticedAt(run, run_dir, fault);
  if (noticed && fault) after.noticed = static_cast<double>(*noticed - *fault) / 1e9;
  if (noticed && after.ended) after.gone = static_cast<double>(end - *noticed) / 1e9;
  fs::remove_all(folder);
  return after;
}

std::string WhatIsWrong(const FaultyRun& run, const Aftermath& after) {
  if (!after.ended) return "the run did not end by itself";
  if (!after.noticed) return "the fault did not happen, or nobody noticed it";
  const bool hang = run.fault == "stop" || run.fault == "endless" || run.fault == "skip";
  const int out_of_memory = run.device == "cuda" ? kExitDeviceMemory : kExitHostMemory;
  const int status = run.fault == "stop"      ? kExitStopped
                     : hang                   ? kExitHang
                     : run.fault == "kill"    ? kExitPeerLost
                     : run.fault == "device"  ? kExitDevice
                     : run.fault == "refused" ? out_of_memory
                                              : kExitInternal;
  if (after.status != status)
    return "the launcher ended with " + std::to_string(after.status) + ", not " + std::to_string(status);
  if (!after.outcome.is_object() || !after.outcome.contains("rank")) return "outcome.json names no rank";
  const nlohmann::json& at = after.outcome.at("instruction");
  if (run.fault == "skip") {
    // Each waits for the other in another collective, and either may report first. The report must name both.
    const nlohmann::json others = after.outcome.value("others", nlohmann::json::array());
    if (others.size() != 1) return "outcome.json does not tell where the other rank is";
    return Contains(at, "all_reduce $reals") || Contains(others[0], "all_reduce $reals")
               ? ""
               : "outcome.json names other collectives";
  }
  if (after.outcome.at("rank") != run.fault_rank) return "outcome.json names another rank";
  // A broken device no longer says how far it was. Known are the last instruction that it had done, and the one at
  // which its rank noticed.
  if (run.fault == "device")
    return at.is_string() && after.outcome.at("last_done").is_string() ? "" : "outcome.json does not tell between what";
  if (!Contains(at, "step " + std::to_string(run.fault_step) + " > ") || !Contains(at, " > linear "))
    return "outcome.json names another instruction";
  if (!after.outcome.at("recipe_line").is_string()) return "outcome.json names no recipe line";
  if (run.fault == "throw" && !Contains(after.outcome.at("message"), "planted failure"))
    return "outcome.json has another message";
  if (hang && run.fault != "stop" && after.outcome.at("message").is_null()) return "outcome.json has no message";
  return WhatIsWrongWithLastLines(run, after);
}

}  // namespace planwright::testing
