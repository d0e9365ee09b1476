#include "planner/slurm/job_script.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "absl/strings/str_join.h"

namespace planwright {
namespace {

constexpr std::string_view kWord = "letters, digits, and . _ - + : @ %";

bool IsWordCharacter(unsigned char c, std::string_view more) {
  return std::isalnum(c) || std::string_view("._-+:@%").find(static_cast<char>(c)) != std::string_view::npos ||
         more.find(static_cast<char>(c)) != std::string_view::npos;
}

// A value may not begin like an option, and has only characters that stand for themselves everywhere.
absl::Status Check(const std::string& option, const std::string& value, std::string_view more) {
  const bool fits = !value.empty() && value[0] != '-' &&
                    std::all_of(value.begin(), value.end(), [&](unsigned char c) { return IsWordCharacter(c, more); });
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(option + " is `" + value + "`; it may have " + std::string(kWord) +
                                    (more.empty() ? "" : " " + std::string(more)) + ", and does not begin with -");
}

bool AllDigits(std::string_view text) {
  return !text.empty() && text.size() <= 9 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

// The name of the job: the plan's, as far as sbatch can show it.
std::string JobName(const Plan& plan) {
  std::string name = plan.name.substr(0, 64);
  for (char& c : name) {
    if (!IsWordCharacter(static_cast<unsigned char>(c), "") || c == '%') c = '-';
  }
  if (name.empty() || name[0] == '-') name.insert(0, "run");
  return name;
}

}  // namespace

int NodesOfPlan(const Plan& plan) {
  return (plan.world_size + plan.cluster.gpus_per_node - 1) / plan.cluster.gpus_per_node;
}

absl::Status CheckTime(const std::string& time) {
  std::string_view rest = time;
  const size_t dash = rest.find('-');
  const bool days = dash != std::string_view::npos;
  bool fits = !days || AllDigits(rest.substr(0, dash));
  if (days) rest.remove_prefix(dash + 1);
  size_t parts = 0;
  for (bool more = true; more; ++parts) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    fits = fits && AllDigits(rest.substr(0, colon));
    more = colon < rest.size();
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  if (fits && parts <= 3) return absl::OkStatus();
  return absl::InvalidArgumentError("launch.slurm.time is `" + time +
                                    "`; sbatch takes MINUTES, HOURS:MINUTES:SECONDS or DAYS-HOURS:MINUTES:SECONDS");
}

absl::StatusOr<std::string> RenderJobScript(const Plan& plan, const JobScript& job) {
  const LaunchPlan& launch = plan.launch;
  std::string options;
  absl::Status status;
  const auto option = [&](const std::string& name, const std::string& value, std::string_view more = "") {
    if (value.empty()) return;
    if (absl::Status problem = Check("launch.slurm." + name, value, more); status.ok()) status = std::move(problem);
    options += "#SBATCH --" + name + "=" + value + "\n";
  };
  const bool gpus = plan.cluster.gpu != "none";
  option("job-name", JobName(plan));
  option("partition", launch.partition, ",");
  option("account", launch.account);
  option("qos", launch.qos);
  option("constraint", launch.constraint, "&|,*()[]");
  if (!launch.time.empty()) {
    if (absl::Status problem = CheckTime(launch.time); !problem.ok()) return problem;
    option("time", launch.time);
  }
  option("nodes", std::to_string(NodesOfPlan(plan)));
  options += "#SBATCH --ntasks-per-node=1\n";
  if (gpus) {
    options += "#SBATCH --gpus-per-node=" + std::to_string(plan.cluster.gpus_per_node) + "\n";
    options += "#SBATCH --exclusive\n#SBATCH --mem=0\n";
  } else {
    options +=
        "#SBATCH --cpus-per-task=" + std::to_string(std::min(plan.world_size, plan.cluster.gpus_per_node)) + "\n";
  }
  // Slurm tells the batch script alone (B:) before the time is over, and starts a job again whose node failed. With
  // layouts to fall back to, the job outlives a node.
  options += "#SBATCH --signal=B:USR1@" + std::to_string(job.signal_seconds) + "\n";
  options += "#SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH --export=NONE\n";
  if (!launch.fallbacks.empty()) options += "#SBATCH --no-kill\n";
  options += "#SBATCH --output=" + job.run_dir + "/job/slurm-%j.log\n";
  if (!status.ok()) return status;
  for (const auto& [what, path] :
       {std::pair("the run directory", job.run_dir), std::pair("the program", job.program)}) {
    // % is sbatch's in the name of the output.
    absl::Status problem = Check(what, path, "/");
    if (problem.ok() && path.find('%') != std::string::npos)
      problem = absl::InvalidArgumentError(std::string(what) + " is `" + path + "`; sbatch would replace the %");
    if (!problem.ok()) return problem;
  }
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
  if (plan.cluster.gpu == "none") {
    arguments.push_back("--cpus-per-task=" + std::to_string(std::min(plan.world_size, plan.cluster.gpus_per_node)));
  } else {
    arguments.push_back("--gpus-per-node=" + std::to_string(plan.cluster.gpus_per_node));
  }
  if (!plan.launch.fallbacks.empty()) arguments.push_back("--no-kill");
  if (!plan.launch.container.empty()) {
    if (absl::Status problem = Check("launch.slurm.container", plan.launch.container, "/#="); !problem.ok())
      return problem;
    arguments.push_back("--container-image=" + plan.launch.container);
    std::vector<std::string> mounts = plan.launch.mounts;
    for (const std::string& folder : {job.run_dir, job.program.substr(0, job.program.rfind('/'))})
      mounts.push_back(folder + ":" + folder);
    for (const std::string& mount : mounts) {
      if (absl::Status problem = Check("launch.slurm.mounts", mount, "/="); !problem.ok()) return problem;
    }
    arguments.push_back("--container-mounts=" + absl::StrJoin(mounts, ","));
  }
  arguments.insert(arguments.end(), {job.program, "agent", head_file});
  return arguments;
}

}  // namespace planwright
