#include <cstdlib>
#include <iostream>

#include "nlohmann/json.hpp"
#include "planner/base/files/exit_status.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"
#include "planner/run/agents/agent.h"

namespace planwright {
namespace {

int Serve(const Arguments& arguments) {
  if (arguments.words.size() != 1) return UsageError("give the file that the head has written, and nothing else");
  AgentOptions options = {.file = arguments.words[0]};
  // Under srun Slurm has numbered the nodes.
  const char* number = std::getenv("SLURM_NODEID");
  const std::optional<std::string> node = arguments.has("--node")
                                              ? arguments.value("--node")
                                              : (number != nullptr ? std::optional<std::string>(number) : std::nullopt);
  if (node) {
    const absl::StatusOr<int64_t> value = IntegerOption("--node", *node, 0, kMostRanks - 1);
    if (!value.ok()) return UsageError(std::string(value.status().message()));
    options.node = static_cast<int>(*value);
  }
  options.waits = [](const std::string& why) { std::cerr << "waiting for a head: " << Printable(why) << std::endl; };
  const absl::Status served = RunAgent(options);
  const int status = served.ok()                                       ? kExitSuccess
                     : served.code() == absl::StatusCode::kUnavailable ? kExitPeerLost
                                                                       : kExitUsage;
  if (!served.ok()) UsageError(std::string(served.message()));
  if (arguments.has("--json")) std::cout << JsonText(nlohmann::ordered_json({{"exit_code", status}}), 2) << "\n";
  return status;
}

}  // namespace

CliCommand AgentCommand() {
  return {
      "agent",
      "runs the ranks of one node for a head",
      "HEAD_FILE [--node N] [--json]",
      {{"--node", "", "N", "the number of this node, from 0; default: SLURM_NODEID, or the first that is free"},
       {"--json", "", "", "print the exit code as JSON"}},
      "`plan launch --agents` names the file, and `plan launch --slurm` starts agents by itself. An agent runs until\n"
      "its head ends it. If the head is lost, it ends its ranks and exits with 10.\n",
      Serve,
      "f"};
}

}  // namespace planwright
