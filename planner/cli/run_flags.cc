#include "planner/cli/run_flags.h"

#include <utility>

namespace planwright {
namespace {

absl::StatusOr<std::string> ReadDevice(const std::string& name, const std::string& text) {
  if (text.empty() || text == "cpu" || text == "cuda") return text;
  return absl::InvalidArgumentError(name + " must be cpu or cuda; found `" + text + "`");
}

}  // namespace

Option SlurmOption() {
  return {"--slurm", &RunFlags::slurm, "submit a job to a Slurm cluster; launch.slurm has its options"};
}
Option DryRunOption() { return {"--dry-run", &RunFlags::dry_run, "print what --slurm would submit, and do nothing"}; }
Option AgentsOption() {
  return {"--agents", &RunFlags::agents, "run on nodes on which you start `plan agent` yourself"};
}
Option DeviceOption(std::string help) {
  return {"--device cpu|cuda", At(&RunFlags::run, &RunOptions::device), std::move(help), ReadDevice};
}
Option ExecutorOption() {
  return {"--executor FILE", At(&RunFlags::run, &RunOptions::executor),
          "the executor program; default: the one beside `plan`"};
}

absl::Status CheckWay(const RunFlags& flags) {
  if (flags.local + flags.slurm + flags.agents > 1)
    return absl::InvalidArgumentError("--local, --slurm and --agents exclude each other");
  if (flags.dry_run && !flags.slurm)
    return absl::InvalidArgumentError("--dry-run shows what --slurm would submit; add --slurm");
  return absl::OkStatus();
}

}  // namespace planwright
