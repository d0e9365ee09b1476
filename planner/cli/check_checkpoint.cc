#include "planner/cli/check_checkpoint.h"

#include <algorithm>
#include <mutex>
#include <thread>

#include "planner/cli/progress_bar.h"
#include "planner/plan/earlier_parts.h"
#include "planner/state/checkpoint/check_files.h"
#include "planner/state/checkpoint/remove_checkpoint.h"
#include "planner/verify/verify.h"
#include "planner/views/show/quantities.h"

namespace planwright {
namespace {

constexpr unsigned kMostCheckingThreads = 16;

bool IsProvenPlan(Plan plan) {
  DropEarlierParts(plan);
  return VerifyPlan(plan).empty();
}

}  // namespace

CheckedCheckpoint CheckCheckpoint(const std::string& folder) {
  CheckedCheckpoint checked;
  checked.folder = folder;
  std::mutex mutex;
  ProgressBar bar;
  const auto progress = [&](int64_t done, int64_t all) {
    const std::scoped_lock lock(mutex);
    checked.bytes = all;
    if (all > 0) bar.Show(static_cast<double>(done) / static_cast<double>(all), "of " + BytesText(all));
  };
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1U, kMostCheckingThreads);
  checked.problems = CheckCheckpointFiles(folder, static_cast<int>(threads), IsProvenPlan, progress);
  checked.removed = !checked.problems.empty() && IsRemoved(folder);
  return checked;
}

}  // namespace planwright
