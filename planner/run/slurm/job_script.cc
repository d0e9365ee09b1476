#include "planner/run/slurm/job_script.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/plan/slurm_options.h"

namespace planwright {
namespace {

absl::Status CheckPath(const std::string& what, const std::string& path) {
  std::string problem = SlurmWordProblem(path, "/");
  if (problem.empty() && path.find('%') != std::string::npos) problem = "sbatch would replace the %";
  return problem.empty() ? absl::OkStatus() : absl::InvalidArgumentError(what + " is `" + path + "`; " + problem);
}

// The name of the job: the plan's, as far as sbatch can show it.
std::string JobName(const Plan& plan) {
  std::string name = plan.name.substr(0, 64);
  for (char& c : name) {
    if (c == '%' || !SlurmWordProblem(std::string("x") + c, "").empty()) c = '-';
  }
  if (name.empty() || name[0] == '-') name.insert(0, "run");
  return name;
}

// Of a plan for GPUs; empty where launch.slurm.gres says it.
std::string GpusPerNode(const Plan& plan) {
  return GresNamesGpus(plan.launch.gres) ? "" : std::to_string(plan.cluster.gpus_per_node);
}

}  // namespace

// What an agent and its ranks have: as the recipe says, else a core for each rank on a CPU.
int CoresOfNode(const Plan& plan) {
  if (plan.launch.cpus_per_task > 0) return static_cast<int>(plan.launch.cpus_per_task);
  return plan.cluster.gpu == "none" ? std::min(plan.world_size, plan.cluster.gpus_per_node) : 0;
}

int NodesOfPlan(const Plan& plan) {
  return (plan.world_size + plan.cluster.gpus_per_node - 1) / plan.cluster.gpus_per_node;
}

absl::StatusOr<std::string> RenderJobScript(const Plan& plan, const JobScript& job) {
  const LaunchPlan& launch = plan.launch;
  const bool gpus = plan.cluster.gpu != "none";
  if (const std::string problem = SlurmOptionsProblem(launch, gpus); !problem.empty())
    return absl::InvalidArgumentError(problem);
  if (const GresProblem problem = GresProblemOf(launch.gres, gpus ? plan.cluster.gpus_per_node : 0);
      !problem.what.empty())
    return absl::InvalidArgumentError(problem.what + "; " + problem.help);
  for (const absl::Status& status :
       {CheckPath("the run directory", job.run_dir), CheckPath("the program", job.program)}) {
    if (!status.ok()) return status;
  }
  // Slurm may signal a minute before it was asked to. Without a step until then, a job would start again for ever.
  const int64_t time = SlurmSeconds(launch.time).value_or(0), least = 2 * job.signal_seconds + 60;
  if (time > 0 && time < least) {
    return absl::InvalidArgumentError(
        absl::StrCat("launch.slurm.time is `", launch.time, "`, ", time, " s, and ", job.signal_seconds,
                     " s before its end the job is told to write a checkpoint; give it at least ", least, " s"));
  }
  std::string options;
  const auto option = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) options += "#SBATCH --" + name + "=" + value + "\n";
  };
  option("job-name", JobName(plan) + (job.trial ? "-try" : ""));
  option("partition", launch.partition);
  option("account", launch.account);
  option("qos", launch.qos);
  option("constraint", launch.constraint);
  option("reservation", launch.reservation);
  option("time", launch.time);
  option("nodes", std::to_string(NodesOfPlan(plan)));
  options += "#SBATCH --ntasks-per-node=1\n";
  if (gpus) {
    option("gpus-per-node", GpusPerNode(plan));
    option("gres", launch.gres == "none" ? "" : launch.gres);
    if (const int cores = CoresOfNode(plan); cores > 0) option("cpus-per-task", std::to_string(cores));
    options += "#SBATCH --exclusive\n#SBATCH --mem=0\n";
  } else {
    option("gres", launch.gres);
    option("cpus-per-task", std::to_string(CoresOfNode(plan)));
  }
  // Slurm tells the batch script alone (B:) before the time is over, and starts a job again whose node failed. With
  // layouts to fall back to, the job outlives a node.
  options += "#SBATCH --signal=B:USR1@" + std::to_string(job.signal_seconds) + "\n";
  options += job.trial ? "#SBATCH --no-requeue\n" : "#SBATCH --requeue\n";
  options += "#SBATCH --open-mode=append\n#SBATCH --export=NONE\n";
  if (!launch.fallbacks.empty()) options += "#SBATCH --no-kill\n";
  for (const std::string& other : launch.options) options += "#SBATCH " + other + "\n";
  options += "#SBATCH --output=" + job.run_dir + "/job/slurm-%j.log\n";
  return "#!/bin/sh\n" + options + "exec '" + job.program + "' job '" + job.run_dir + "'\n";
}

absl::StatusOr<std::vector<std::string>> AgentStepCommand(const Plan& plan, int nodes, const JobScript& job,
                                                          const std::string& head_file) {
  const std::string count = std::to_string(nodes);
  // --ntasks: without it srun starts as many as the job has tasks. The environment is the head's. Agents bind their
  // ranks themselves.
  std::vector<std::string> arguments = {
      "srun",         "--nodes=" + count, "--ntasks=" + count,   "--ntasks-per-node=1",
      "--export=ALL", "--cpu-bind=none",  "--kill-on-bad-exit=0"};
  const bool gpus = plan.cluster.gpu != "none";
  if (const int cores = CoresOfNode(plan); cores > 0) arguments.push_back("--cpus-per-task=" + std::to_string(cores));
  if (const std::string number = GpusPerNode(plan); gpus && !number.empty())
    arguments.push_back("--gpus-per-node=" + number);
  if (gpus && GresNamesGpus(plan.launch.gres) && plan.launch.gres != "none")
    arguments.push_back("--gres=" + plan.launch.gres);
  if (!plan.launch.fallbacks.empty()) arguments.push_back("--no-kill");
  if (!plan.launch.container.empty()) {
    if (const std::string problem = SlurmOptionsProblem(plan.launch, gpus); !problem.empty())
      return absl::InvalidArgumentError(problem);
    arguments.push_back("--container-image=" + plan.launch.container);
    if (!job.mounts.empty()) arguments.push_back("--container-mounts=" + absl::StrJoin(job.mounts, ","));
  }
  arguments.insert(arguments.end(), {job.program, "agent", head_file});
  return arguments;
}

}  // namespace planwright
