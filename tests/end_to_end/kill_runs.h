// Runs cases of the kill matrix with the real programs, and judges how each run ended and how it goes on.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "tests/end_to_end/kill_cases.h"
#include "tests/end_to_end/processes.h"

namespace planwright::testing {

// The runs of cases: the tiny model with the programs of a folder, and what the launcher promises of them.
struct KillSetup {
  std::string binaries;                // folder of plan, executor and matrix_executor
  std::string recipe;                  // the tiny one
  std::vector<std::string> overrides;  // its layout
  std::string device = "cpu";          // or "cuda"
  int nodes = 0;                       // above 0: so many, each with one rank and an agent (one_rank_nodes.h)
  bool judges_times = false;           // only on a machine that does nothing else
  double noticed = 1, gone = 2;        // seconds until a death is noticed; from then until no process is left
  double hang_ends = 2;                // seconds from the time-out until no process is left
};

// Four ranks on CPUs, one of each role: leader and sibling of each module, with tp 2.
KillSetup FourRanks(const std::string& binaries, const std::string& recipe);
// Two ranks on GPUs, one of each module. Their kernels repeat their bits.
KillSetup TwoGpus(const std::string& binaries, const std::string& recipe);
// Four ranks as FourRanks, each on a node of its own, all of them on one device: "cpu", or one GPU as "cuda".
KillSetup FourNodes(const std::string& binaries, const std::string& recipe, const std::string& device);

// What is left of a run with a fault. Times in seconds.
struct KillAftermath {
  bool ended = false;      // the launcher ended by itself, and no process is left
  int status = -1;         // of the launcher
  nlohmann::json outcome;  // RUN/outcome.json; null: there is none
  std::string output;
  std::string path;               // of the fault: calls, index and kind of the instruction; empty: of no instruction
  std::optional<double> noticed;  // from the fault to when the rank itself, a peer or the launcher noticed it
  std::optional<double> gone;     // from the fault to when no process was left
};

class KillRuns {
 public:
  // Makes the runs that cases are compared with. `problem()` says what went wrong; empty: nothing.
  explicit KillRuns(KillSetup setup);
  ~KillRuns();
  KillRuns(const KillRuns&) = delete;
  const std::string& problem() const { return problem_; }
  const Plan& plan() const { return plan_; }

  // Runs the case, and resumes its run if the case says so. Returns what is wrong; empty: nothing.
  std::string WhatIsWrong(const KillCase& one, KillAftermath& after) const;

 private:
  KillAftermath RunWithFault(const KillCase& one, const std::string& run_dir) const;
  std::string Judge(const KillCase& one, const KillAftermath& after) const;
  std::string Resume(const std::string& run_dir) const;

  Started Launch(const std::string& executor, const std::string& run_dir, int steps,
                 const std::vector<std::string>& environment) const;

  const KillSetup setup_;
  std::string folder_, problem_;
  Plan plan_;
  std::vector<std::string> metrics_;  // of the run without a fault, by step, without times
  int timeout_seconds_ = 0;           // of runs that hang
};

}  // namespace planwright::testing
