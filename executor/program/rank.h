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

#include "executor/base/fail_point.h"
#include "executor/base/tensors.h"
#include "executor/communication/communicators.h"
#include "executor/ops/forms.h"
#include "executor/optimizer/module_state.h"
#include "executor/optimizer/step_state.h"
#include "executor/streams/streams.h"
#include "executor/telemetry/recorder.h"
#include "executor/telemetry/step_log.h"
#include "executor/tensorboard/event_file.h"
#include "planner/plan/plan.h"
#include "planner/predict/estimate/deadlines.h"
#include "planner/state/checkpoint/format.h"

namespace planwright::executor {

class ProbeWriter;
class StepProfile;

// Ends the rank with an exit status of planner/base/files/exit_status.h. what() is the message for the log. `located`:
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
  // The form in which an instruction runs, asked once; its `run` is null if there is none for the kind.
  std::function<ComputeForm(const ComputeBinding&)> compute;
  // Runs a read of samples and returns its outputs.
  std::function<Tensors(const Instruction&, const CallContext&)> data;
  // Runs initialize_parameters or load_parameters: fills the storages of a module, but not its master weights.
  std::function<void(OpKind kind, ModuleState&)> parameters;
  // Called once before the first step, with the reads of a step in program order and the steps that will run, from 0:
  // so that reads may begin before `data` is called. Null: nothing is read ahead.
  std::function<void(std::vector<DataRead>, int64_t first_step, int64_t last_step)> data_of_steps = {};
  // Called before the first round of a set of Plan::evaluation, with the reads of a round in program order: `data` is
  // then asked for them, round by round. Null: this rank reads nothing there.
  std::function<void(size_t set, std::vector<DataRead>)> data_of_evaluation = {};
  // Called at the end of each step (from 0): for how many seconds its data instructions waited for samples on this
  // rank. Null: unknown.
  std::function<double(int64_t step)> data_wait = {};
  // Called at the end of the run: for how long all its steps waited for samples, for the log. Null: no step reads any.
  std::function<std::string()> all_data_waits = {};
  // Runs an instruction of class storage. `module`: that it names, or null. `notes`: are saved and loaded with the
  // counters. Null: the run writes no checkpoints.
  std::function<void(OpKind kind, ModuleState* module, StepState& step, ManifestNotes& notes)> storage = {};
  // Called after each `route` with the experts of its tokens, i64 [T,k]; null without --record-routing.
  std::function<void(const CallContext&, const at::Tensor& ids)> record_routing = {};
  // Called after the last step: writes what record_routing has not written yet. Null as that.
  std::function<void()> finish_routing = {};
  // Returns the experts of the tokens of a `route` for `samples` samples of this lane; null without --replay-routing.
  std::function<at::Tensor(const CallContext&, int64_t samples, int64_t top_k)> replay_routing = {};
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
  EventFile* events = nullptr;     // the same
  ProbeWriter* probe = nullptr;    // null without --probe
  StepProfile* profile = nullptr;  // null without --trace
  // The steps of this life, from 0. If the run resumes, the first one is known after the list `resume`.
  int64_t first_step = 0, last_step = 0;
  DeadlineRule deadlines = {};    // none by default
  bool resumes = false;           // the list `resume` runs instead of `setup`
  bool evaluated = false;         // an earlier life has done the evaluation before the first step
  double evaluation_seconds = 0;  // that the last evaluation of earlier lives took; 0: unknown
  ManifestNotes notes;            // of the checkpoint that was loaded, then of the next one
  std::string host;
  // Called after each run of the list `resume`: true if it must run again, with another checkpoint.
  std::function<bool()> resume_again = {};
  std::function<void()> ready = {};          // called after setup, before the first step
  std::function<bool()> asked_to_stop = {};  // whether this process was asked to save and stop; null: never
  // Asked before each round of an evaluation after so many steps, counted from 0 over all sets, and behind the last
  // one: whether it ends there, as all ranks do then. `settle` waits until all rounds so far are done. Null: never.
  std::function<bool(int64_t steps_done, int64_t round, const std::function<void()>& settle)> stops_evaluation = {};
  // Seconds of the evaluation at most in which nobody asked stops_evaluation. Null as that.
  std::function<double()> unheard_in_evaluation = {};
  BeforeInstruction before_instruction = {};  // for tests that delay streams
  FailPointHook fail_point = {};              // for tests of failures
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
