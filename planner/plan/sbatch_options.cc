#include "planner/plan/sbatch_options.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "planner/plan/slurm_options.h"

namespace planwright {
namespace {

// An option that a job has from elsewhere.
struct Taken {
  std::string_view name;
  const char* why;   // after "`--nodes=4`: "
  const char* help;  // what to do instead
  bool on_gpus_alone = false;
};

constexpr char kKeyOfItsOwn[] = "it has a key of its own";
constexpr char kNodes[] = "the ranks of `modules` and `cluster.gpus_per_node` say how many nodes there are";
constexpr char kTasks[] = "one agent runs on each node, and starts the ranks of its node";
constexpr char kGpus[] = "`cluster.gpus_per_node` says how many GPUs a node gives";
constexpr char kCores[] = "ranks on CPUs have a core each, and jobs on GPUs have whole nodes";
constexpr char kWhole[] = "jobs on GPUs have whole nodes, with all memory";
constexpr char kSignal[] = "a job is told of its end so early that it can write a checkpoint";
constexpr char kQueue[] = "a job whose time is over goes back into the queue, and goes on from its checkpoint";
constexpr char kOutput[] = "what a job prints is in RUN/job/slurm-N.log";
constexpr char kExport[] = "the environment of a job is in RUN/job/launch.json";
constexpr char kFolder[] = "a job runs in the folder in which it is submitted";
constexpr char kOneJob[] = "a launch is one job of the cluster where it is submitted";
constexpr char kUser[] = "a job is of the user who launches it";
constexpr char kAnswer[] = "it changes what sbatch does and prints, not the job";
constexpr char kContained[] = "the agents of a job run in a container, and its head does not";
constexpr char kRemove[] = "remove it", kRemoveChange[] = "remove it, and change the recipe's ranks or cluster";

constexpr Taken kTaken[] = {
    {"job-name", "`name` is the name of the job", "write name: at the top of the recipe"},
    {"partition", kKeyOfItsOwn, "write launch.slurm.partition"},
    {"account", kKeyOfItsOwn, "write launch.slurm.account"},
    {"qos", kKeyOfItsOwn, "write launch.slurm.qos"},
    {"constraint", kKeyOfItsOwn, "write launch.slurm.constraint"},
    {"reservation", kKeyOfItsOwn, "write launch.slurm.reservation"},
    {"time", kKeyOfItsOwn, "write launch.slurm.time"},
    {"gres", kKeyOfItsOwn, "write launch.slurm.gres"},
    {"cpus-per-task", kKeyOfItsOwn, "write launch.slurm.cpus_per_task"},
    {"container", kKeyOfItsOwn, "write launch.slurm.container"},
    {"container-image", kContained, "write launch.slurm.container"},
    {"container-mounts", kContained, "write launch.slurm.mounts"},
    {"nodes", kNodes, kRemoveChange},
    {"ntasks", kTasks, kRemoveChange},
    {"ntasks-per-core", kTasks, kRemove},
    {"ntasks-per-gpu", kTasks, kRemove},
    {"ntasks-per-node", kTasks, kRemove},
    {"ntasks-per-socket", kTasks, kRemove},
    {"gpus", kGpus, kRemoveChange},
    {"gpus-per-node", kGpus, kRemoveChange},
    {"gpus-per-socket", kGpus, kRemoveChange},
    {"gpus-per-task", kGpus, kRemoveChange},
    {"cpus-per-gpu", kCores, kRemove},
    {"mem", kWhole, kRemove, true},
    {"mem-per-cpu", kWhole, kRemove, true},
    {"mem-per-gpu", kWhole, kRemove, true},
    {"exclusive", kWhole, kRemove, true},
    {"oversubscribe", kWhole, kRemove, true},
    {"share", kWhole, kRemove, true},
    {"overcommit", kTasks, kRemove},
    {"array", kOneJob, kRemove},
    {"het-group", kOneJob, kRemove},
    {"clusters", kOneJob, "remove it, and launch on that cluster"},
    {"uid", kUser, kRemove},
    {"gid", kUser, kRemove},
    {"signal", kSignal, kRemove},
    {"requeue", kQueue, kRemove},
    {"no-requeue", kQueue, kRemove},
    {"no-kill", "`launch.fallbacks` says whether a job outlives a node", "remove it, or write launch.fallbacks"},
    {"open-mode", kOutput, kRemove},
    {"output", kOutput, kRemove},
    {"error", kOutput, kRemove},
    {"input", "a job reads nothing", kRemove},
    {"export", kExport, "write launch.env"},
    {"export-file", kExport, "write launch.env"},
    {"get-user-env", kExport, kRemove},
    {"chdir", kFolder, "remove it, and launch in that folder"},
    {"wrap", "the script is the launcher's", kRemove},
    {"parsable", kAnswer, kRemove},
    {"test-only", kAnswer, "remove it, and launch with --dry-run"},
    {"wait", kAnswer, kRemove},
    {"quiet", kAnswer, kRemove},
    {"verbose", kAnswer, kRemove},
    {"help", kAnswer, kRemove},
    {"usage", kAnswer, kRemove},
    {"version", kAnswer, kRemove},
};

SbatchProblem NotInFull(std::string_view option) {
  return {"`" + std::string(option) +
              "` is no option of sbatch in full: --NAME or --NAME=VALUE of letters, digits, and . _ - + : @ % , / = & "
              "| * ( ) [ ]",
          "write it as on sbatch's command line, without quotes or spaces: --exclude=NODES"};
}

bool IsName(std::string_view name) {
  return !name.empty() && std::islower(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::islower(c) || std::isdigit(c) || c == '-'; });
}

}  // namespace

std::string_view SbatchOptionName(std::string_view option) { return option.substr(0, option.find('=')); }

SbatchProblem SbatchOptionProblem(std::string_view option, bool on_gpus) {
  if (!option.starts_with("--")) return NotInFull(option);
  const std::string_view text = option.substr(2), name = SbatchOptionName(text);
  if (!IsName(name) || !SlurmWordProblem(text, ",/=&|*()[]").empty()) return NotInFull(option);
  const std::string quoted = "`" + std::string(option) + "`: ";
  for (const Taken& taken : kTaken) {
    if (taken.on_gpus_alone && !on_gpus) continue;
    if (taken.name == name) return {quoted + taken.why, taken.help, true};
  }
  if (name.starts_with("container-") || name.starts_with("no-container-")) return {quoted + kContained, kRemove, true};
  // sbatch takes --nod for --nodes.
  for (const Taken& taken : kTaken) {
    if (!taken.name.starts_with(name) || (taken.on_gpus_alone && !on_gpus)) continue;
    return {quoted + "sbatch may take it for --" + std::string(taken.name) + ", which the plan gives",
            "write the name of the option in full", true};
  }
  return {};
}

std::string SbatchOptionsProblem(const std::vector<std::string>& options, bool on_gpus) {
  std::set<std::string_view> names;
  for (const std::string& option : options) {
    if (const SbatchProblem problem = SbatchOptionProblem(option, on_gpus); !problem.what.empty())
      return "launch.slurm.options: " + problem.what + "; " + problem.help;
    if (!names.insert(SbatchOptionName(option)).second)
      return "launch.slurm.options has " + std::string(SbatchOptionName(option)) + " twice; remove one";
  }
  return "";
}

}  // namespace planwright
