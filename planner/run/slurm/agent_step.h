// The step of srun that runs the agents of a job.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/run/launch/child_process.h"
#include "planner/run/launch/launch_life.h"
#include "planner/run/launch/line_pipe.h"

namespace planwright {

class AgentStep {
 public:
  // `arguments`: srun first, which is looked for in PATH. Errors: those of FindProgram and of Start.
  static absl::StatusOr<std::unique_ptr<AgentStep>> Begin(std::vector<std::string> arguments, const Terminal& terminal);
  // The head has ended the agents by now. A step whose node is lost may not end by itself.
  ~AgentStep();

  // Prints what srun has said. A pipe holds little: whoever does not call it for long holds up srun.
  void Drain();
  // Why no more agents will come; empty: they may. An agent that ended does not come, though srun waits for the others.
  // What its node says of it may come later than that it ended.
  std::string GivenUp();

 private:
  AgentStep(const ChildProcess& child, const Terminal& terminal)
      : pid_(child.pid), output_(child.output), errors_(child.errors), terminal_(terminal) {}
  bool Ended();
  // True: it has ended within the time.
  bool EndsWithin(std::chrono::milliseconds time);
  void Note(std::string_view line);

  const int pid_;
  LinePipe output_, errors_;
  const Terminal& terminal_;
  std::string last_line_;
  std::vector<std::string> errors_of_nodes_;  // the first ones, each once
  std::optional<std::chrono::steady_clock::time_point> agent_ended_;
  bool ended_ = false;
};

}  // namespace planwright
