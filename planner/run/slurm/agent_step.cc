#include "planner/run/slurm/agent_step.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/status_macros.h"
#include "planner/run/launch/rank_environment.h"
#include "planner/run/slurm/slurm_commands.h"

namespace planwright {

using namespace std::chrono_literals;

absl::StatusOr<std::unique_ptr<AgentStep>> AgentStep::Begin(std::vector<std::string> arguments,
                                                            const Terminal& terminal) {
  const absl::StatusOr<std::string> program = FindProgram(arguments[0]);
  if (!program.ok()) return program.status();
  arguments[0] = *program;
  ABSL_ASSIGN_OR_RETURN(const ChildProcess child, Start({.arguments = arguments, .environment = OwnEnvironment()}));
  return std::unique_ptr<AgentStep>(new AgentStep(child, terminal));
}

AgentStep::~AgentStep() {
  bool ended = EndsWithin(5s);
  for (const int number : {SIGTERM, SIGKILL}) {
    if (ended) break;
    kill(-pid_, number);
    ended = EndsWithin(2s);
  }
  Drain();
}

std::string AgentStep::GivenUp() {
  Drain();
  const bool ended = Ended();
  if (!ended && (!agent_ended_ || std::chrono::steady_clock::now() < *agent_ended_ + 2s)) return "";
  const std::string said = errors_of_nodes_.empty() ? last_line_ : absl::StrJoin(errors_of_nodes_, "; ");
  return absl::StrCat(ended ? "srun ended" : "an agent ended", said.empty() ? "" : ": ", said);
}

void AgentStep::Drain() {
  const auto print = [this](std::string_view line) {
    last_line_ = line;
    terminal_(true, "[srun] " + last_line_);
    Note(last_line_);
  };
  output_.Drain(print);
  errors_.Drain(print);
}

bool AgentStep::Ended() {
  if (!ended_ && waitpid(pid_, nullptr, WNOHANG) != 0) ended_ = true;  // also if nobody can tell how
  return ended_;
}

bool AgentStep::EndsWithin(std::chrono::milliseconds time) {
  for (const auto until = std::chrono::steady_clock::now() + time; !Ended(); std::this_thread::sleep_for(50ms)) {
    if (std::chrono::steady_clock::now() >= until) return false;
    Drain();  // what it says as it ends may be more than a pipe holds
  }
  return true;
}

// "srun: error: n1: task 1: Exited with exit code 1", and before or after it, of the node, the reason: "slurmstepd:
// error: pyxis:     [ERROR] Invalid image format: /images/a.sqsh".
void AgentStep::Note(std::string_view line) {
  constexpr std::string_view kError = "error: ";
  constexpr size_t kMost = 8;
  const size_t at = line.find(kError);
  if (at == std::string_view::npos) return;
  std::string said(line.substr(at + kError.size()));
  if (line.starts_with("srun:")) {
    if (!agent_ended_ && absl::StrContains(said, ": Exited with exit code "))
      agent_ended_ = std::chrono::steady_clock::now();
    return;
  }
  absl::RemoveExtraAsciiWhitespace(&said);
  const bool known = std::find(errors_of_nodes_.begin(), errors_of_nodes_.end(), said) != errors_of_nodes_.end();
  if (!known && errors_of_nodes_.size() < kMost) errors_of_nodes_.push_back(std::move(said));
}

}  // namespace planwright
