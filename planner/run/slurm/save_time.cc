#include "planner/run/slurm/save_time.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "planner/run/slurm/job_script.h"
#include "planner/state/checkpoint/run_lives.h"

namespace planwright {
namespace {

constexpr double kBytesPerSecond = 5e8;  // of a node; a slow parallel file system
constexpr int kMargin = 60, kMost = 3600;

// From the birth of a checkpoint's first file to the last write of its manifest. None: the file system keeps no births.
std::optional<double> SecondsOf(const std::string& folder) {
  double first = 0, last = 0;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(folder, error)) {
    struct statx about {};
    if (statx(AT_FDCWD, file.path().c_str(), 0, STATX_BTIME | STATX_MTIME, &about) != 0 ||
        (about.stx_mask & STATX_BTIME) == 0)
      return std::nullopt;
    const double born = about.stx_btime.tv_sec + about.stx_btime.tv_nsec * 1e-9;
    first = first == 0 ? born : std::min(first, born);
    last = std::max(last, about.stx_mtime.tv_sec + about.stx_mtime.tv_nsec * 1e-9);
  }
  if (error || first == 0 || last < first) return std::nullopt;
  return last - first;
}

double BytesOfState(const Plan& plan) {
  // A master and two moments of each weight.
  const double width = plan.precision == "fp64" ? 24 : 12;
  double bytes = 0;
  for (const Module& module : plan.modules) bytes += width * static_cast<double>(module.parameter_count);
  return bytes;
}

}  // namespace

int SecondsToSave(const Plan& plan, const std::string& run_dir) {
  double seconds = BytesOfState(plan) / NodesOfPlan(plan) / kBytesPerSecond;
  if (const absl::StatusOr<int> life = NewestLife(run_dir); life.ok() && *life > 0) {
    const absl::StatusOr<CheckpointList> list = ListCheckpoints(run_dir, *life + 1);
    if (list.ok() && !list->found.empty()) seconds = SecondsOf(list->found[0].folder).value_or(seconds);
  }
  return kMargin + static_cast<int>(std::min<double>(seconds + 1, kMost));
}

}  // namespace planwright
