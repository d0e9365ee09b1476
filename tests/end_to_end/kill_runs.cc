#include "tests/end_to_end/kill_runs.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "absl/time/time.h"
#include "planner/base/files/exit_status.h"
#include "planner/plan/plan_json.h"
#include "planner/wire/records/recorder_reader.h"
#include "tests/end_to_end/processes.h"
#include "tests/support/eventually.h"
#include "tests/support/one_rank_nodes.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC, like marks and recorder pages

constexpr int kSteps = 4;

int64_t Now() { return Clock::now().time_since_epoch().count(); }

// Every line of metrics.jsonl without what differs from run to run.
std::vector<std::string> MetricsOf(const std::string& run_dir) {
  std::vector<std::string> metrics;
  std::istringstream lines(ReadAll(run_dir + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json step = nlohmann::json::parse(line, nullptr, false);
    if (step.is_object())
      step.erase("step_seconds"), step.erase("pace"), step.erase("device_memory"), step.erase("run_id"),
          step.erase("life");
    metrics.push_back(step.dump());
  }
  return metrics;
}

// When the launcher saw the first rank fail, in CLOCK_MONOTONIC. Ranks that were done may have ended before.
std::optional<int64_t> FirstEnd(const std::string& run_dir) {
  const auto wall =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch());
  const int64_t ahead = wall.count() - Now();
  std::istringstream lines(ReadAll(run_dir + "/logs/launch.log"));
  for (std::string line; std::getline(lines, line);) {
    const size_t text = line.find("  rank ");
    if (text == std::string::npos || line.find(" ended ") == std::string::npos) continue;
    if (line.ends_with("exit status 0")) continue;
    absl::Time time;
    if (absl::ParseTime("%Y-%m-%d %H:%M:%E*S %Ez", line.substr(0, text), &time, nullptr))
      return absl::ToUnixNanos(time) - ahead;
  }
  return std::nullopt;
}

// When anybody first noticed the fault: the launcher, the rank itself, or a peer.
std::optional<int64_t> NoticedAt(const std::string& run_dir, int ranks) {
  std::optional<int64_t> first = FirstEnd(run_dir);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::optional<RankPosition> position = ReadRecorder(run_dir, rank);
    if (position && position->failed != 0) first = std::min(first.value_or(position->failed), position->failed);
  }
  return first;
}

int StatusAfter(const std::string& fault) {
  if (fault == "SIGSTOP") return kExitStopped;
  if (fault == "exit") return 3;
  return fault == "exception" ? kExitInternal : kExitPeerLost;
}

std::string CauseAfter(const KillCase& one) {
  const std::string who = "rank " + std::to_string(one.rank);
  if (one.fault == "SIGSTOP") return who + " is stopped (SIGSTOP)";
  if (one.fault == "exit") return who + " ended with exit status 3";
  if (one.fault == "exception") return who + " stopped because of a bug in Planwright";
  return who + " was killed by " + one.fault;
}

std::string Differs(const std::string& what, const std::string& found, const std::string& expected) {
  return what + " is \"" + found + "\", not \"" + expected + "\"";
}

std::string TextOf(const nlohmann::json& outcome, const char* key) {
  const auto found = outcome.find(key);
  return found == outcome.end() || !found->is_string() ? "" : found->get<std::string>();
}

}  // namespace

KillSetup FourRanks(const std::string& binaries, const std::string& recipe) {
  return {.binaries = binaries,
          .recipe = recipe,
          .overrides = {"modules.radio_encoder.placement.ranks=2", "modules.radio_encoder.parallel.tp=2",
                        "modules.language.placement.first_rank=2", "modules.language.placement.ranks=2",
                        "modules.language.parallel.tp=2"}};
}

KillSetup TwoGpus(const std::string& binaries, const std::string& recipe) {
  return {.binaries = binaries,
          .recipe = recipe,
          .overrides = {"cluster.gpus_per_node=2", "modules.language.placement.first_rank=1",
                        "precision.deterministic=true"},
          .device = "cuda",
          .judges_times = true,
          .noticed = 2,
          .gone = 5,
          .hang_ends = 5};
}

KillSetup FourNodes(const std::string& binaries, const std::string& recipe, const std::string& device) {
  KillSetup setup = FourRanks(binaries, recipe);
  setup.device = device;
  setup.nodes = 4;
  if (device == "cuda") setup.overrides.push_back("precision.deterministic=true");
  return setup;
}

Started KillRuns::Launch(const std::string& executor, const std::string& run_dir, int steps,
                         const std::vector<std::string>& environment) const {
  std::vector<std::string> argv = {setup_.binaries + "/plan", "launch", setup_.recipe, "checkpoint.every_steps=2"};
  argv.insert(argv.end(), setup_.overrides.begin(), setup_.overrides.end());
  argv.insert(argv.end(), {"--device", setup_.device, "--executor", setup_.binaries + "/" + executor, "--steps",
                           std::to_string(steps), "--run-dir", run_dir});
  const std::vector<std::string> where =
      setup_.nodes > 0 ? OneRankNodes(setup_.nodes) : std::vector<std::string>{"--local", "--yes"};
  argv.insert(argv.end(), where.begin(), where.end());
  if (setup_.nodes == 0) return StartProgram(argv, environment, run_dir + ".output");
  std::string command;
  for (const std::string& word : argv) command += (command.empty() ? "" : " ") + Quoted(word);
  return StartProgram({"/bin/sh", "-c", WithAgents(command, Quoted(argv[0]), run_dir, setup_.nodes)}, environment,
                      run_dir + ".output");
}

KillRuns::KillRuns(KillSetup setup) : setup_(std::move(setup)) {
  std::string folder = (fs::temp_directory_path() / "planwright_matrix_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    problem_ = "cannot make a folder in " + fs::temp_directory_path().string();
    return;
  }
  folder_ = folder;
  const int64_t start = Now();
  // Runs of the phase `load` go on with the second of these.
  for (const auto& [name, steps] : {std::pair("/whole", kSteps), std::pair("/begun", 2)}) {
    const Started launch = Launch("executor", folder_ + name, steps, {});
    if (WaitFor(launch.pid, kPatience) != 0) {
      problem_ = "a run without a fault failed:\n" + ReadAll(launch.output);
      return;
    }
  }
  // Much longer than healthy ranks wait for each other, also if the machine gets busier than it was. A test that waits
  // costs nothing.
  const int took = static_cast<int>((Now() - start) / 1000000000);
  timeout_seconds_ = setup_.judges_times ? std::max(5, took) : std::max(30, 3 * took);
  metrics_ = MetricsOf(folder_ + "/whole");
  absl::StatusOr<Plan> plan = ReadPlan(ReadAll(folder_ + "/whole/plan.json"));
  if (!plan.ok() || metrics_.size() != kSteps) {
    problem_ = "a run without a fault left no plan or not all metrics";
    return;
  }
  plan_ = *std::move(plan);
}

KillRuns::~KillRuns() {
  if (!folder_.empty()) fs::remove_all(folder_);
}

std::string KillRuns::WhatIsWrong(const KillCase& one, KillAftermath& after) const {
  const std::string run_dir = folder_ + "/run";
  fs::remove_all(run_dir);
  if (one.phase == "load") fs::copy(folder_ + "/begun", run_dir, fs::copy_options::recursive);
  after = RunWithFault(one, run_dir);
  const std::string wrong = Judge(one, after);
  return wrong.empty() && one.resumes ? Resume(run_dir) : wrong;
}

KillAftermath KillRuns::RunWithFault(const KillCase& one, const std::string& run_dir) const {
  KillAftermath after;
  const std::string mark_file = folder_ + "/mark";
  fs::remove(mark_file);
  std::vector<std::string> environment = {"PLANWRIGHT_FAULT=" + one.fault,
                                          "PLANWRIGHT_FAULT_RANK=" + std::to_string(one.rank),
                                          "PLANWRIGHT_FAULT_LIST=" + one.list,
                                          "PLANWRIGHT_FAULT_STEP=" + std::to_string(one.step),
                                          "PLANWRIGHT_FAULT_NUMBER=" + std::to_string(one.number),
                                          "PLANWRIGHT_FAULT_MOMENT=" + one.moment,
                                          "PLANWRIGHT_FAULT_MARK=" + mark_file};
  if (one.fault == "SIGSTOP") environment.push_back("PLANWRIGHT_TIMEOUT_SECONDS=" + std::to_string(timeout_seconds_));
  const Started launch = Launch("matrix_executor", run_dir, kSteps, environment);
  const std::optional<int> status = WaitFor(launch.pid, kPatience);
  const bool no_process = status && Eventually([&] { return ProcessesWith(run_dir).empty(); });
  const int64_t end = Now();
  after.ended = no_process;
  after.status = status.value_or(-1);
  if (!status) {
    kill(launch.pid, SIGKILL);  // its ranks die with it
    WaitFor(launch.pid, kPatience);
  }
  for (pid_t left : ProcessesWith(run_dir)) kill(left, SIGKILL);
  after.output = ReadAll(launch.output);
  after.outcome = nlohmann::json::parse(ReadAll(run_dir + "/outcome.json"), nullptr, false);
  if (!after.outcome.is_object()) after.outcome = nullptr;
  std::istringstream mark(ReadAll(mark_file));
  int64_t fault = 0;
  if (!(mark >> fault)) return after;
  std::getline(mark.ignore(1), after.path);
  if (const std::optional<int64_t> noticed = NoticedAt(run_dir, plan_.world_size))
    after.noticed = static_cast<double>(*noticed - fault) / 1e9;
  after.gone = static_cast<double>(end - fault) / 1e9;
  return after;
}

std::string KillRuns::Judge(const KillCase& one, const KillAftermath& after) const {
  if (!after.ended) return "the run did not end by itself, or left a process";
  if (!after.gone) return "the fault did not happen";
  if (after.outcome.is_null()) return "there is no outcome.json";
  const int status = StatusAfter(one.fault);
  if (after.status != status) return Differs("the exit status", std::to_string(after.status), std::to_string(status));
  if (after.outcome.value("exit_code", -1) != status) return "outcome.json has another exit code";
  const std::string cause = CauseAfter(one), found = TextOf(after.outcome, "cause");
  if (found != cause) return Differs("the cause", found, cause);
  if (after.outcome.value("rank", -1) != one.rank) return "outcome.json names another rank";
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  if (TextOf(after.outcome, "host") != host) return Differs("the host", TextOf(after.outcome, "host"), host);
  const std::string instruction = TextOf(after.outcome, "instruction");
  if (one.number >= 0) {
    // Calls and index as the rank noted them, and the kind as the plan has it.
    const std::string list = one.list == "step"   ? "step " + std::to_string(one.step)
                             : one.list == "save" ? "save after step " + std::to_string(one.step)
                                                  : one.list;
    const std::string expected = list + after.path;
    if (!instruction.starts_with(expected)) return Differs("the instruction", instruction, expected + "...");
    if (!after.path.ends_with(" > " + one.kind))
      return Differs("the path of the fault", after.path, "... > " + one.kind);
  } else if (instruction.empty()) {
    // No instruction of this moment: the one that the rank began last.
    return "outcome.json names no instruction";
  }
  if (TextOf(after.outcome, "recipe_line").empty()) return "outcome.json names no recipe line";
  if (one.fault == "exception" && TextOf(after.outcome, "message").find("planted failure") == std::string::npos)
    return Differs("the message", TextOf(after.outcome, "message"), "... planted failure");
  if (after.output.find(cause) == std::string::npos) return "the launcher does not print the cause";
  if (!after.noticed && one.fault != "SIGSTOP") return "nobody noticed the fault";
  if (!setup_.judges_times) return "";
  const auto too_late = [](const char* what, double seconds, double limit) {
    return std::string(what) + " after " + std::to_string(seconds) + " s, not within " + std::to_string(limit) + " s";
  };
  if (one.fault == "SIGSTOP") {
    const double limit = timeout_seconds_ + setup_.hang_ends;
    return *after.gone <= limit ? "" : too_late("the hang ended", *after.gone, limit);
  }
  if (*after.noticed > setup_.noticed) return too_late("the fault was noticed", *after.noticed, setup_.noticed);
  const double took = *after.gone - *after.noticed;
  return took <= setup_.gone ? "" : too_late("all processes were gone", took, setup_.gone);
}

// The run goes on with the plain executor, and must become the run without a fault.
std::string KillRuns::Resume(const std::string& run_dir) const {
  const Started launch = Launch("executor", run_dir, kSteps, {});
  const std::optional<int> status = WaitFor(launch.pid, kPatience);
  if (status != 0)
    return "the resumed run ended with " + std::to_string(status.value_or(-1)) + ":\n" + ReadAll(launch.output);
  const std::vector<std::string> metrics = MetricsOf(run_dir);
  if (metrics.size() != metrics_.size())
    return "after the resumed run there are metrics of " + std::to_string(metrics.size()) + " steps";
  for (size_t step = 0; step < metrics.size(); ++step) {
    if (metrics[step] != metrics_[step]) return "resumed: " + Differs("a step", metrics[step], metrics_[step]);
  }
  return "";
}

}  // namespace planwright::testing
