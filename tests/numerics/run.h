// Real runs of the real programs. Reads what a user would read.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/numerics/tensors.h"

namespace planwright::testing {

// One line of metrics.jsonl.
struct StepMetrics {
  double loss = 0, grad_norm = 0, learning_rate = 0, aux_loss = 0;
  std::map<std::string, double> module_grad_norms, bridge_mean_square;  // NaN for null
  std::string routing;
  bool skipped = false;
  std::map<std::string, double> source_loss;  // where there are several sources
};

// A line of metrics.jsonl that is an evaluation.
struct EvaluationMetrics {
  int64_t step = 0;
  std::map<std::string, double> losses;  // by set, and by "set/source"; NaN for null
  std::map<std::string, int64_t> tokens;
};

struct TrainingRun {
  int exit_code = -1;
  std::string output;     // stdout and stderr of the launcher
  std::string directory;  // the run directory
  std::vector<StepMetrics> steps;
  std::vector<EvaluationMetrics> evaluations;
  Tensors parameters, parameters_last, gradients_first, gradients_last, values_first, values_last;
};

struct LaunchOptions {
  std::string recipe;  // path from the source folder, or absolute
  std::vector<std::string> overrides;
  int steps = 0;             // 0: the whole budget
  std::string executor;      // a binary beside `plan`; empty: the ordinary one
  std::string device;        // "cpu" or "cuda"; empty: what the recipe says
  std::string binaries;      // the folder of `plan`; empty: this build's
  std::string run_dir = {};  // that stays, and may hold a run that goes on; empty: a new one, which is removed
  std::string probe;         // the folder of probe files, which stay there; empty: a folder that is removed
  std::vector<std::string> options = {};  // more of `plan launch`
  bool probes = true;                     // false: no --probe, and only exit code, output and steps come back
  // Above 0: one rank on each of so many nodes, all of them this machine. NCCL takes them for ranks of other hosts, so
  // they may share a GPU, and goes through sockets.
  int nodes = 0;
};

// Runs `plan launch` of a recipe, with --probe, and returns everything that it left: with --local, or with --agents and
// an agent for each node.
TrainingRun Launch(const LaunchOptions& options);

// Where the evaluations of two runs differ: their steps, sets, tokens, or losses by more than `tolerance` (relative).
std::vector<std::string> CompareEvaluations(const TrainingRun& run, const TrainingRun& reference, double tolerance);

// Where two runs differ by more than `tolerance` (relative): losses, auxiliary losses, module norms and mean squares of
// the bridges of every step, and every parameter's gradient at the first and the last step. Empty: they agree. If the
// runs choose different experts at some step, only the steps before it are compared, and `parted_at` names it.
struct Comparison {
  std::vector<std::string> differences;  // worst first within each kind
  std::optional<size_t> parted_at;       // index of the first step with another routing fingerprint
  double worst_loss = 0, worst_norm = 0, worst_bridge = 0, worst_gradient_first = 0, worst_gradient_last = 0;
};
Comparison Compare(const TrainingRun& run, const TrainingRun& reference, double tolerance);
// The same with another tolerance for the gradients of the last step.
Comparison Compare(const TrainingRun& run, const TrainingRun& reference, double tolerance, double last_gradients);

}  // namespace planwright::testing
