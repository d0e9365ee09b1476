// What one rank is and has while it runs: its plan and role, its place in every grid, its communicators, weights and
// sums.
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
#include "executor/scalar_type.h"
#include "executor/streams/streams.h"
#include "executor/telemetry/recorder.h"
#include "executor/telemetry/step_log.h"
#include "planner/plan/plan.h"

namespace planwright::executor {

class ProbeWriter;

// Ends the rank with an exit status of exit_status.h; what() is for the reader of the log. `located`: it says where
// already.
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

using ComputeHandler = Tensors (*)(const ComputeContext&);

// What the walker calls for the two classes of instructions that other rooms own.
struct Handlers {
  std::function<ComputeHandler(OpKind)> compute;
  // The outputs of read_tokens and read_images.
  std::function<Tensors(const Instruction&, const CallContext&)> data;
  // Fills the storages of a module, without the masters: initialize_parameters and load_parameters.
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
  StepLog* log = nullptr;        // rank 0
  ProbeWriter* probe = nullptr;  // --probe
  int64_t last_step = 0;         // of this run, counted from 0
  std::string host;
  BeforeEach before_each = {};  // of a test that delays streams
  // ends the process with a status and last words, from any thread
  std::function<void(int, const std::string&)> leave = {};
  std::map<std::string, ModuleState> modules;

  // The buffer behind "%..." or the accumulators behind "$...".
  at::Tensor StateValue(const std::string& name);
  // The context of a call in `module` (null: none) under `frame`.
  CallContext Context(const Module* module, std::string_view frame, int microbatch) const;
};

}  // namespace planwright::executor
