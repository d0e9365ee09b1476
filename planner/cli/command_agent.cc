#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

#include "nlohmann/json.hpp"
#include "planner/base/files/exit_status.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"
#include "planner/run/agents/agent.h"

namespace planwright {
namespace {

constexpr WholeNumbers kNodes{0, kMostRanks - 1};

struct AgentLine : CommandOptions {
  std::optional<int64_t> node;
};

int Serve(const AgentLine& line) {
  if (line.words.size() != 1) return UsageError("give the file that the head has written, and nothing else");
  AgentOptions options = {.file = line.words[0]};
  if (line.node) options.node = static_cast<int>(*line.node);
  // Under srun Slurm has numbered the nodes.
  if (const char* number = std::getenv("SLURM_NODEID"); number != nullptr && !line.node) {
    const absl::StatusOr<int64_t> node = kNodes("--node", number);
    if (!node.ok()) return UsageError(node.status());
    options.node = static_cast<int>(*node);
  }
  // The head of a job writes this name, and has its agents started.
  if (const char* job = std::getenv("SLURM_JOB_ID"); job != nullptr) {
    const std::string name = std::filesystem::path(options.file).filename().string();
    options.file_is_written = name == std::string("head-") + job + ".json";
  }
  options.waits = [](const std::string& why) { std::cerr << "waiting for a head: " << Printable(why) << std::endl; };
  const absl::Status served = RunAgent(options);
  const int status = served.ok()                                       ? kExitSuccess
                     : served.code() == absl::StatusCode::kUnavailable ? kExitPeerLost
                                                                       : kExitUsage;
  if (!served.ok()) UsageError(served);
  if (line.json) std::cout << JsonText(nlohmann::ordered_json({{"exit_code", status}}), 2) << "\n";
  return status;
}

}  // namespace

CliCommand AgentCommand() {
  CliCommand command = {"agent", "runs the ranks of one node for a head", Runs(Serve), "f"};
  command.usage = "HEAD_FILE [--node N] [--json]";
  command.options = {
      {"--node N", &AgentLine::node,
       "the number of this node, from 0; default: SLURM_NODEID, or the first that is free", kNodes},
      JsonOption("print the exit code as JSON"),
  };
  command.details =
      "`plan launch --agents` names the file, and `plan launch --slurm` starts agents by itself. An agent runs until\n"
      "its head ends it. If the head is lost, it ends its ranks and exits with 10.\n";
  command.examples = {{"plan agent runs/toy/job/head.json", "on each node, after `plan launch --agents` said so"}};
  command.see_also = {"launch"}, command.pages = {"docs/agents.md"};
  command.runs = true;
  return command;
}

}  // namespace planwright
