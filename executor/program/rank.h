// What one rank has while it runs: plan, role, device, communicators, weights, sums, and the handlers that other rooms
// provide.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "executor/communication/communicators.h"
#include "executor/ops/handler.h"
#include "executor/optimizer/module_state.h"
#include "executor/optimizer/step_state.h"
#include "executor/streams/streams.h"
#include "executor/telemetry/recorder.h"
#include "executor/telemetry/step_log.h"
#include "executor/tensors.h"
#include "planner/plan/plan.h"

namespace planwright::executor {

class ProbeWriter;
class StepProfile;

// Ends the rank with an exit status of planner/run_files/exit_status.h. what() is the message for the log. `located`:
// the message names rank, instruction and recipe line already, so nobody adds them again.
class ExitError : public std::runtime_error {
 public:
  ExitError(int status, const std::string& message, bool located = false)
      : std::runtime_error(message), status_(status), located_(located) {}
  int status() const { return status_; }
  bool located() const { return located_; }

 private:
  int status_;
  bool located_;
};

// What the walker calls but does not link: the rooms of compute and data handlers, and the filling of weights. Tests
// replace them.
struct Handlers {
  std::function<ComputeHandler(OpKind)> compute;  // null: no handler of this kind
  // Runs a read of samples and returns its outputs.
  std::function<Tensors(const Instruction&, const CallContext&)> data;
  // Runs initialize_parameters or load_parameters: fills the storages of a module, but not its master weights.
  std::function<void(OpKind kind, ModuleState&)> parameters;
};

// N of the frame "MODULE.layers.N"; -1 for other frames.
int LayerOf(std::string_view frame);

struct Rank {
  const Plan& plan;
  const Role& role;
  int rank = 0;
  at::Device device;
  Handlers handlers;
  Communicators communicators;
  StepState step;
  Recorder& recorder;
  StepLog* log = nullptr;          // null on all ranks except rank 0
  ProbeWriter* probe = nullptr;    // null without --probe
  StepProfile* profile = nullptr;  // null without --profile
  int64_t last_step = 0;           // of this run, from 0
  std::string host;
  BeforeInstruction before_instruction = {};  // for tests that delay streams
  // Ends the process with an exit status and a message. May be called from any thread; does not return.
  std::function<void(int, const std::string&)> leave = {};
  std::map<std::string, ModuleState> modules;

  // The tensor of a state operand: a bucket's buffer "%MODULE.gradients.3", or an accumulator "$reals.loss". c10::Error
  // if there is none.
  at::Tensor StateValue(const std::string& name);
  // The context of a call of a block of `module` (null: of no module) in `frame`.
  CallContext Context(const Module* module, std::string_view frame, int microbatch) const;
};

}  // namespace planwright::executor
