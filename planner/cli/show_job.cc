#include "planner/cli/show_job.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "planner/base/paper/table.h"
#include "planner/cli/go_on.h"
#include "planner/plan/launch_environment.h"
#include "planner/plan/ranks_text.h"
#include "planner/run/launch/launch_life.h"
#include "planner/run/launch/rank_program.h"
#include "planner/run/slurm/job_script.h"

namespace planwright {
namespace {

constexpr char kOfThisShell[] = "(of this shell)";

// The job without values that may be secrets.
JobFiles WithoutSecrets(JobFiles job) {
  for (auto& [name, value] : job.options.passed_on) value = kOfThisShell;
  return job;
}

// The variables of launch.env, as NAME and what stands for its value.
std::map<std::string, std::string> RankVariables(const LaunchPlan& launch) {
  std::map<std::string, std::string> variables;
  for (const std::string& entry : launch.env) {
    const std::string name(VariableOf(entry));
    variables.emplace(name, IsPassedOn(entry) ? kOfThisShell : entry.substr(name.size() + 1));
  }
  return variables;
}

// Lines of a shell stay lines.
std::string ShellLines(const std::string& text) {
  if (text.find('\n') == std::string::npos) return ShellWord(text);
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string CommandText(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(ShellLines(word));
  return absl::StrJoin(quoted, " ");
}

// Nodes with equally many ranks together: "node 0: ranks 0-7".
std::string RanksOfNodes(const Plan& plan) {
  RankProgram program;
  program.world_size = plan.world_size, program.ranks_per_node = plan.cluster.gpus_per_node;
  const int nodes = NodesOfPlan(plan), most = 3;
  std::vector<std::string> parts;
  for (int node = 0; node < nodes; ++node) {
    if (nodes > most + 1 && node == most - 1) {
      parts.emplace_back("...");
      node = nodes - 1;
    }
    parts.push_back(absl::StrCat("node ", node, ": ranks ", RanksText(RanksOfNode(program, node))));
  }
  return absl::StrJoin(parts, ", ");
}

std::string FilesText(const JobFiles& job, const ShownJob& shown, size_t width) {
  const bool container = !job.plans[0].launch.container.empty();
  Table table(container ? std::vector<std::string>{"what", "here", "in the container", "path"}
                        : std::vector<std::string>{"what", "here", "path"});
  for (const NeededFile& file : shown.needs.files) {
    std::vector<std::string> row = {file.what, !file.here ? "no" : file.made ? "will be made" : "yes"};
    if (container) row.push_back(file.seen.empty() ? "NOT THERE" : file.seen);
    row.push_back(file.path);
    table.Add(row);
  }
  return table.Text("", width);
}

}  // namespace

std::string JobText(const JobFiles& job, const ShownJob& shown, size_t width) {
  const std::string& run_dir = job.options.run_dir;
  const LaunchPlan& launch = job.plans[0].launch;
  const std::string who = launch.container.empty() ? "the system of each node" : "the image";
  std::string text = absl::StrCat("# submitted: sbatch --parsable ", JobScriptPath(run_dir), "\n# ",
                                  JobScriptPath(run_dir), "\n", shown.script);
  absl::StrAppend(&text, "\n# ", run_dir, "/job/launch.json\n", LaunchJson(WithoutSecrets(job)));
  absl::StrAppend(&text, "\n# on the first node, as the script says: an agent for each node\n", CommandText(shown.srun),
                  "\n");
  const Plan& largest = LargestPlan(job.plans);
  const std::string with = absl::StrJoin(RankVariables(largest.launch), " ", absl::PairFormatter("="));
  absl::StrAppend(&text, "\n# by the agent, for each rank (", RanksOfNodes(largest), ")",
                  with.empty() ? "" : absl::StrCat(", with ", with), "\n",
                  CommandText(CommandOfRanks(largest, job.options, 1)), "\n");
  absl::StrAppend(&text, "\n# files that they need, and whether this machine has them\n", FilesText(job, shown, width));
  if (!shown.needs.of_system.empty()) {
    // A container is begun by a shell of its image.
    const char* shells = launch.container.empty() ? (launch.setup.empty() ? "" : ", beside /bin/bash for launch.setup")
                         : launch.setup.empty()   ? ", beside /bin/sh"
                                                  : ", beside /bin/sh and, for launch.setup, /bin/bash";
    absl::StrAppend(&text, "\n# libraries that ", who, " must have", shells, "\n",
                    Wrapped(absl::StrJoin(shown.needs.of_system, " "), width == 0 ? 120 : width), "\n");
  }
  if (!shown.needs.not_found.empty())
    absl::StrAppend(&text, "\n# libraries of the executor that this machine does not find, and nodes must\n",
                    absl::StrJoin(shown.needs.not_found, " "), "\n");
  const auto [first_port, last_port] = shown.needs.ports;
  absl::StrAppend(&text, "\n# network\n",
                  launch.interface.empty() ? "the first interface that is no loopback" : launch.interface,
                  " (launch.interface), TCP ports ", first_port, " to ", last_port,
                  " (net.ipv4.ip_local_port_range of this machine)\n");
  if (!shown.left_behind.empty())
    absl::StrAppend(&text, "\n# variables of this shell that no rank gets, as launch.env does not name them\n",
                    absl::StrJoin(shown.left_behind, " "), "\n");
  const std::string said = !shown.sbatch.empty() ? shown.sbatch
                           : shown.slurm_answers ? "sbatch --test-only takes the script"
                                                 : "not asked: no Slurm answers here";
  return absl::StrCat(text, "\n# what Slurm says\n", said, "\n");
}

nlohmann::ordered_json JobJson(const JobFiles& job, const ShownJob& shown) {
  using Json = nlohmann::ordered_json;
  Json files = Json::array();
  for (const NeededFile& file : shown.needs.files) {
    Json one = {
        {"what", file.what}, {"path", file.path}, {"here", file.here}, {"made", file.made}, {"writes", file.writes}};
    if (!job.plans[0].launch.container.empty()) one["seen"] = file.seen.empty() ? Json() : Json(file.seen);
    files.push_back(std::move(one));
  }
  Json json = {{"script", shown.script},
               {"launch", Json::parse(LaunchJson(WithoutSecrets(job)))},
               {"sbatch", {"sbatch", "--parsable", JobScriptPath(job.options.run_dir)}},
               {"srun", shown.srun},
               {"rank", CommandOfRanks(LargestPlan(job.plans), job.options, 1)},
               {"rank_variables", RankVariables(LargestPlan(job.plans).launch)},
               {"files", files},
               {"libraries_of_system", shown.needs.of_system},
               {"libraries_not_found", shown.needs.not_found},
               {"ports", {shown.needs.ports.first, shown.needs.ports.second}},
               {"not_passed_on", shown.left_behind},
               {"problems", shown.problems}};
  if (shown.slurm_answers) json["slurm"] = shown.sbatch.empty() ? "takes the script" : shown.sbatch;
  return json;
}

}  // namespace planwright
