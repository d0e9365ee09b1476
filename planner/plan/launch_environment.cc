#include "planner/plan/launch_environment.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>

namespace planwright {
namespace {

constexpr char kRankNumbers[] = "the launcher numbers ranks", kRemoveIt[] = "remove it";
constexpr char kMeeting[] = "ranks meet where the head listens, at a port that is free";
constexpr char kNetwork[] = "`launch.interface` names the network of rendezvous, Gloo and NCCL";
constexpr char kWriteInterface[] = "write launch.interface";
constexpr char kOfLife[] = "it is made anew for each life of a run";

// Variables that ranks have from elsewhere. A name that ends in _ stands for all that begin so.
struct SetVariable {
  std::string_view name;
  const char* why;  // after "`RANK=0`: "
  const char* help;
};
constexpr SetVariable kSetVariables[] = {
    {"RANK", kRankNumbers, kRemoveIt},
    {"WORLD_SIZE", kRankNumbers, kRemoveIt},
    {"LOCAL_RANK", kRankNumbers, kRemoveIt},
    {"LOCAL_WORLD_SIZE", kRankNumbers, kRemoveIt},
    {"MASTER_ADDR", kMeeting, "remove it; launch.interface names the network"},
    {"MASTER_PORT", kMeeting, "remove it; docs/jobs.md#ports-and-firewalls says which ports are free ones"},
    {"GLOO_SOCKET_IFNAME", kNetwork, kWriteInterface},
    {"NCCL_SOCKET_IFNAME", kNetwork, kWriteInterface},
    {"CUDA_VISIBLE_DEVICES", "rank N of a node takes GPU N of those that Slurm, or the shell of its launcher, gives it",
     kRemoveIt},
    {"PLANWRIGHT_NONCE", kOfLife, kRemoveIt},
    {"PLANWRIGHT_SECRET", kOfLife, kRemoveIt},
    {"PLANWRIGHT_OWN_CORES", "the launcher binds ranks to cores", kRemoveIt},
    {"PLANWRIGHT_FORK_RANKS", "the launcher says which ranks are forked", kRemoveIt},
    {"SLURM_", "Slurm tells a job about itself", kRemoveIt},
};

const SetVariable* FindSetVariable(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kSetVariables), std::end(kSetVariables), [&](const SetVariable& taken) {
        return taken.name.ends_with('_') ? name.starts_with(taken.name) : name == taken.name;
      });
  return found == std::end(kSetVariables) ? nullptr : found;
}

bool IsInName(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool IsVariableName(std::string_view name) {
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), IsInName);
}

}  // namespace

std::string_view VariableOf(std::string_view entry) { return entry.substr(0, entry.find('=')); }
bool IsPassedOn(std::string_view entry) { return entry.find('=') == std::string_view::npos; }

EnvironmentProblem EnvironmentEntryProblem(std::string_view entry) {
  const std::string_view name = VariableOf(entry);
  const std::string quoted = "`" + std::string(entry) + "`";
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
  if (!IsVariableName(name) || std::any_of(entry.begin(), entry.end(), is_control)) {
    return {quoted + " is no variable: NAME=VALUE, or NAME for the value of the shell that launches",
            "write it as NCCL_DEBUG=INFO; with commas or spaces, in quotes"};
  }
  if (const SetVariable* taken = FindSetVariable(name)) return {quoted + ": " + taken->why, taken->help, true};
  return {};
}

EnvironmentProblem SetupLineProblem(std::string_view line) {
  for (size_t equals = line.find('='); equals != std::string_view::npos; equals = line.find('=', equals + 1)) {
    size_t begin = equals;
    while (begin > 0 && IsInName(line[begin - 1])) --begin;
    const std::string_view name = line.substr(begin, equals - begin);
    const bool is_word = begin == 0 || std::string_view(" \t;&(").find(line[begin - 1]) != std::string_view::npos;
    if (!is_word || name.starts_with("SLURM_")) continue;  // a line may help a program that asks Slurm
    if (const SetVariable* taken = FindSetVariable(name))
      return {"it sets " + std::string(name) + ": " + taken->why, "remove " + std::string(name) + " from it", true};
  }
  return {};
}

std::string EnvironmentProblemOf(const LaunchPlan& launch) {
  std::set<std::string_view> names;
  for (const std::string& entry : launch.env) {
    if (const EnvironmentProblem problem = EnvironmentEntryProblem(entry); !problem.what.empty())
      return "launch.env: " + problem.what + "; " + problem.help;
    if (!names.insert(VariableOf(entry)).second)
      return "launch.env has " + std::string(VariableOf(entry)) + " twice; remove one";
  }
  for (const std::string& line : launch.setup) {
    if (const EnvironmentProblem problem = SetupLineProblem(line); !problem.what.empty())
      return "launch.setup: " + problem.what + "; " + problem.help;
  }
  return "";
}

bool IsLibraryVariable(std::string_view name) {
  constexpr std::string_view kBeginnings[] = {
      "ATEN_",    "CUBLAS", "CUDA_", "CUDNN_",  "DNNL_",     "FI_",         "GLOO_",    "GOMP_", "HSA_",
      "IBV_",     "KMP_",   "LD_",   "MALLOC",  "MELLANOX_", "MKL_",        "MLX",      "NCCL_", "NVIDIA_TF32",
      "NVSHMEM_", "OMPI_",  "OMP_",  "ONEDNN_", "OPENBLAS_", "PLANWRIGHT_", "PYTORCH_", "TORCH", "UCX_"};
  // They say what is installed where, to those who build: no library reads them.
  constexpr std::string_view kOfBuilders[] = {
      "CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_VERSION", "NCCL_VERSION", "TORCH_CUDA_ARCH_LIST", "TORCH_HOME"};
  if (std::find(std::begin(kOfBuilders), std::end(kOfBuilders), name) != std::end(kOfBuilders)) return false;
  // What the launcher itself gives a rank says nothing of where the rank runs.
  if (name.starts_with("PLANWRIGHT_") && FindSetVariable(name) != nullptr) return false;
  return std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

}  // namespace planwright
