#include "planner/run/launch/check_machine.h"

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/status_macros.h"
#include "planner/run/launch/core_binding.h"
#include "planner/run/launch/program_output.h"
#include "planner/run/launch/rank_environment.h"
#include "planner/run/launch/recipe_environment.h"

namespace planwright {
namespace {

// -1: built for CPUs.
std::optional<int> GpusOf(const std::string& printed) {
  // A script around the executor, or a line of launch.setup, may print other lines.
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(printed, '\n'))) {
    const std::string cuda = "cuda ";
    int gpus = 0;
    if (line == "cpu") return -1;
    if (line.starts_with(cuda) && absl::SimpleAtoi(line.substr(cuda.size()), &gpus) && gpus >= 0) return gpus;
  }
  return std::nullopt;
}

// What the executor says of its devices, begun as a rank is. `here`: of this shell; else as in a job, of which a shell
// is not the parent.
absl::StatusOr<std::string> DevicesOf(const Plan& plan, const RunOptions& options, bool here) {
  ABSL_ASSIGN_OR_RETURN(const Variables of_recipe, VariablesOfRecipe(plan.launch));
  std::vector<std::string> environment;
  if (here) {
    for (std::string& variable : OwnEnvironment()) {
      if (!of_recipe.contains(variable.substr(0, variable.find('=')))) environment.push_back(std::move(variable));
    }
  } else {
    for (const auto& [name, value] : VariablesOfShell()) {
      if (!of_recipe.contains(name)) environment.push_back(absl::StrCat(name, "=", value));
    }
  }
  for (const auto& [name, value] : of_recipe) environment.push_back(absl::StrCat(name, "=", value));
  return OutputOf(WithSetup(plan.launch, {options.executor, "--devices"}), environment);
}

}  // namespace

absl::Status CheckExecutor(const Plan& plan, const RunOptions& options, bool here) {
  const bool has_setup = !plan.launch.setup.empty();
  if (!OnGpus(plan, options) && !has_setup) return absl::OkStatus();
  // Lines that run in an image cannot be tried outside of it.
  if (!here && has_setup && !plan.launch.container.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> printed = DevicesOf(plan, options, here);
  if (!printed.ok() && has_setup) {
    std::string said(printed.status().message());
    const bool no_module = said.find("module: command not found") != std::string::npos;
    const char* help = no_module ? "modules are a function of the shell, and /etc/profile of this machine has none: "
                                   "begin with lines that define it and name the folder of modules, such as source "
                                   "/usr/share/lmod/lmod/init/bash and module use FOLDER"
                                 : "lines that only the nodes of a job can run may ask for it: [ -z "
                                   "\"$SLURM_JOB_ID\" ] || module load ...";
    return absl::InvalidArgumentError(absl::StrCat("no rank could begin: ", said, "\n", help));
  }
  const std::optional<int> gpus = printed.ok() ? GpusOf(*printed) : std::nullopt;
  if (!gpus || !OnGpus(plan, options)) return absl::OkStatus();
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
