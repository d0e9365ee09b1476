// A run of the tiny recipe on two ranks that keeps checkpoints, in a folder of the test. It is launched again and
// again, and its curve is compared with that of a run that never ended.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/processes.h"

namespace planwright::testing {

struct Ended {
  int status = -1;     // of the program; -1: it did not end
  std::string output;  // stdout and stderr
};

// Where a rank is killed: before an instruction of a list of its program.
struct KillPoint {
  int rank = 0;
  std::string list;          // "step", "evaluate": FailPoint::list
  int step = 1, number = 0;  // FailPoint::step and number
  std::string waits;         // not before this file is there, however slow the machine is; empty: at once
};

class CheckpointRun : public ::testing::Test {
 protected:
  static constexpr int kSteps = 40;  // of the whole run

  void SetUp() override;
  void TearDown() override;

  std::string Folder() const { return folder_; }
  std::string RunDir() const { return folder_ + "/run"; }
  std::string Checkpoints() const { return RunDir() + "/checkpoints"; }
  static std::string Recipe();

  // `plan launch`: the encoder on rank 0, the language model on rank 1, a checkpoint after each second step. `words`:
  // overrides and options, which come later than those.
  Started Begin(int steps, const std::vector<std::string>& words = {});
  Ended End(const Started& started);
  Ended Run(int steps, const std::vector<std::string>& words = {}) { return End(Begin(steps, words)); }
  // Until a rank is killed by SIGKILL.
  Ended RunUntilKilled(int steps, const KillPoint& at, std::vector<std::string> words = {});
  // Begin, with a rank that stops itself (SIGSTOP) at a moment and can go on.
  Started BeginPaused(int steps, const KillPoint& at, std::vector<std::string> words = {});
  // Kills the ranks of a launch that are stopped, by SIGKILL.
  void KillPaused(const Started& launch);
  // The end of a launch whose processes may stop themselves, or are stopped, at any moment: they go on.
  Ended GoOn(const Started& launch);
  // Until a rank stops itself (SIGSTOP) and SIGTERM is sent to the launch, which lets it go on.
  Ended InterruptAt(int steps, const KillPoint& at, std::vector<std::string> words = {});
  // The manifest of a checkpoint of the first life: a KillPoint may wait for it.
  std::string FirstManifest(int step) const;
  // `plan` with these words.
  Ended Plan(const std::vector<std::string>& words);

  // Returns when so many steps are in RUN/metrics.jsonl.
  void WaitForSteps(size_t steps);
  // Returns when the rank of BeginPaused has stopped itself and the launch knows.
  void WaitForPause(int rank);
  // Returns when both ranks have been started.
  void WaitForRanks();
  // Returns when the folder of a checkpoint is there that is not in `known`, which then has it. It may be unfinished.
  std::string WaitForNewCheckpoint(std::vector<std::string>& known);

  // All steps of RUN/metrics.jsonl, without times.
  std::vector<std::string> Curve() const;
  nlohmann::json Outcome() const;
  std::vector<std::string> CheckpointNames() const;
  // The run has done so many steps, and they are those of the run that never ended.
  void ExpectCurve(size_t steps);
  // `plan checkpoint verify --all` finds so many whole checkpoints, and no damage.
  void ExpectWholeCheckpoints(size_t number);

 private:
  Started Launch(const std::string& run_dir, int steps, const std::vector<std::string>& words,
                 const std::vector<std::string>& environment = {});
  Started LaunchWithFault(const std::string& fault, int steps, const KillPoint& at, std::vector<std::string> words);
  const std::vector<std::string>& Whole();

  std::string folder_;
  int programs_ = 0;  // started so far
};

}  // namespace planwright::testing
