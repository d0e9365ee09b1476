#include "planner/run/slurm/save_time.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "planner/run/launch/until_saved.h"
#include "planner/run/slurm/job_script.h"
#include "planner/state/checkpoint/checkpoint_log.h"
#include "planner/state/checkpoint/life_start.h"

namespace planwright {
namespace {

constexpr double kBytesPerSecond = 5e8;  // of a node; a slow parallel file system
constexpr double kMargin = 60, kMost = 3600;
constexpr double kLargestSignalTime = 65535;  // that sbatch takes

// The longest of the last checkpoints that the run has published, from the begin of the copy to the manifest. None: it
// has published none.
std::optional<double> SecondsOfCheckpoint(const std::string& run_dir) {
  constexpr size_t kMostLooked = 8;
  const absl::StatusOr<std::vector<int>> lives = LivesOf(run_dir);
  if (!lives.ok()) return std::nullopt;
  for (size_t i = lives->size(); i-- > 0;) {
    const absl::StatusOr<CheckpointLog> log = ReadCheckpointLog(run_dir, (*lives)[i], "");
    if (!log.ok() || log->checkpoints.empty()) continue;
    double most = 0;
    const size_t first = log->checkpoints.size() - std::min(log->checkpoints.size(), kMostLooked);
    for (size_t c = first; c < log->checkpoints.size(); ++c) most = std::max(most, log->checkpoints[c].written);
    return most;
  }
  return std::nullopt;
}

double BytesOfState(const Plan& plan) {
  // A master and two moments of each weight.
  const double width = plan.precision == "fp64" ? 24 : 12;
  double bytes = 0;
  for (const Module& module : plan.modules) bytes += width * static_cast<double>(module.parameter_count);
  return bytes;
}

}  // namespace

int SecondsToSave(const Plan& plan, const RunOptions& options) {
  const double expected = BytesOfState(plan) / NodesOfPlan(plan) / kBytesPerSecond;
  const double seconds = SecondsOfCheckpoint(options.run_dir).value_or(expected);
  const double save = std::min(seconds + 1, kMost);
  const double all = kMargin + std::max(SecondsUntilStop(plan, options), save) + save;
  return static_cast<int>(std::min(all, kLargestSignalTime));
}

}  // namespace planwright
