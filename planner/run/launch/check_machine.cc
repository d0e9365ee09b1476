#include "planner/run/launch/check_machine.h"

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/run/launch/core_binding.h"
#include "planner/run/launch/program_output.h"

namespace planwright {
namespace {

// -1: built for CPUs.
std::optional<int> GpusOf(const std::string& executor) {
  const absl::StatusOr<std::string> output = OutputOf({executor, "--devices"});
  if (!output.ok()) return std::nullopt;
  // A script around the executor may print other lines.
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(*output, '\n'))) {
    const std::string cuda = "cuda ";
    int gpus = 0;
    if (line == "cpu") return -1;
    if (line.starts_with(cuda) && absl::SimpleAtoi(line.substr(cuda.size()), &gpus) && gpus >= 0) return gpus;
  }
  return std::nullopt;
}

}  // namespace

absl::Status CheckExecutor(const Plan& plan, const RunOptions& options, bool here) {
  if (!OnGpus(plan, options)) return absl::OkStatus();
  const std::optional<int> gpus = GpusOf(options.executor);
  if (!gpus) return absl::OkStatus();
  if (*gpus < 0) {
    const std::string who = options.device == "cuda" ? std::string("--device cuda asks for GPUs")
                                                     : absl::StrCat("the plan is for ", plan.cluster.gpu, " GPUs");
    return absl::InvalidArgumentError(
        absl::StrCat(who, ", and the executor ", options.executor,
                     " was built for CPUs, without CUDA; for CPU ranks launch with --device cpu or cluster.gpu=none"));
  }
  if (!here || *gpus >= plan.world_size) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the plan has ", plan.world_size, " ranks with a GPU each, and ranks here see ", *gpus,
                   *gpus == 1 ? " GPU" : " GPUs", "; use fewer ranks, or several nodes with --slurm or --agents"));
}

std::string TooFewCores(const Plan& plan, const RunOptions& options) {
  const std::vector<int> cores = OwnCores();
  if (OnGpus(plan, options) || plan.world_size <= static_cast<int>(cores.size())) return "";
  return absl::StrCat("the plan has ", plan.world_size, " ranks, and ", cores.size(),
                      cores.size() == 1 ? " core is" : " cores are", " here for them: they take turns");
}

}  // namespace planwright
