#include "planner/run/slurm/cluster_limits.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/near_name.h"
#include "planner/plan/slurm_options.h"
#include "planner/run/slurm/job_script.h"

namespace planwright {
namespace {

// "1-04:00:00", as Slurm writes it.
std::string TimeText(int64_t seconds) {
  constexpr int64_t kDay = 24 * 3600;
  const std::string days = seconds >= kDay ? absl::StrCat(seconds / kDay, "-") : "";
  return absl::StrCat(days,
                      absl::StrFormat("%02d:%02d:%02d", seconds % kDay / 3600, seconds % 3600 / 60, seconds % 60));
}

}  // namespace

std::vector<std::string> ClusterProblems(const Plan& plan, const std::vector<Partition>& partitions) {
  const LaunchPlan& launch = plan.launch;
  std::vector<std::string> problems, names, asked_names;
  if (partitions.empty()) return problems;
  for (const Partition& one : partitions) names.push_back(one.name);
  std::vector<const Partition*> asked;
  const std::set<std::string> wanted = absl::StrSplit(launch.partition, ',', absl::SkipEmpty());
  for (const std::string& name : wanted) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string near = NearNameHelp(name, names);
    problems.push_back(absl::StrCat("launch.slurm.partition: this cluster has no partition ", name, "; it has ",
                                    absl::StrJoin(names, ", "), near.empty() ? "" : "; " + near));
  }
  for (const Partition& one : partitions) {
    if (wanted.empty() ? one.is_default : wanted.contains(one.name)) asked.push_back(&one);
  }
  if (!problems.empty() || asked.empty()) return problems;
  for (const Partition* one : asked) asked_names.push_back(one->name);
  const std::string where =
      absl::StrCat(asked.size() == 1 ? "partition " : "each of the partitions ", absl::StrJoin(asked_names, ", "));
  // Slurm starts a job in whichever of them it fits.
  std::optional<int64_t> most_seconds = 0;
  int most_cores = 0;
  bool known = true;
  for (const Partition* one : asked) {
    most_seconds =
        most_seconds && one->most_seconds ? std::optional(std::max(*most_seconds, *one->most_seconds)) : std::nullopt;
    most_cores = std::max(most_cores, one->most_cores);
    known = known && one->most_cores > 0;
  }
  const int64_t seconds = launch.time.empty() ? 0 : SlurmSeconds(launch.time).value_or(0);
  if (most_seconds && seconds > *most_seconds) {
    problems.push_back(absl::StrCat("launch.slurm.time is `", launch.time, "`, and ", where, " gives a job ",
                                    TimeText(*most_seconds), " at most: it would wait for ever"));
  }
  const int cores = CoresOfNode(plan);
  if (known && cores > most_cores) {
    const std::string why = launch.cpus_per_task > 0
                                ? absl::StrCat("launch.slurm.cpus_per_task is ", launch.cpus_per_task)
                                : absl::StrCat("each node has ", cores, " ranks, with a core for each");
    problems.push_back(absl::StrCat(why, ", and the largest node of ", where, " has ", most_cores,
                                    most_cores == 1 ? " core" : " cores",
                                    launch.cpus_per_task > 0 ? "" : "; write launch.slurm.cpus_per_task"));
  }
  return problems;
}

}  // namespace planwright
