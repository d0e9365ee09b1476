// What the walk of a program takes beside the rank: its steps, the handlers that other rooms provide, and the files
// that it writes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/base/fail_point.h"
#include "executor/ops/joined_forms.h"
#include "executor/program/rank.h"
#include "executor/streams/streams.h"
#include "executor/telemetry/recorder.h"
#include "executor/telemetry/step_log.h"
#include "executor/tensorboard/event_file.h"
#include "planner/predict/estimate/deadlines.h"

namespace planwright::executor {

class ProbeWriter;
class StepProfile;

// The steps of one life of a run, and what lives before it have done.
struct StepSpan {
  int64_t first = 0, last = 0;    // from 0; no step: last is before first
  bool resumes = false;           // the list `resume` runs instead of `setup`
  bool evaluated = false;         // an earlier life has done the evaluation before the first step
  double evaluation_seconds = 0;  // that the last evaluation of earlier lives took; 0: unknown
};

// What the walker calls but does not link: the rooms of compute and data handlers, and the filling of weights. Tests
// replace them.
struct Handlers {
  // The form in which an instruction runs, asked once; its `run` is null if there is none for the kind.
  std::function<ComputeForm(const ComputeBinding&)> compute;
  // The form that does two neighbours at once, asked once; null if there is none for them. Empty: there are none.
  std::function<JoinedHandler(const ComputeBinding& first, const ComputeBinding& second)> joined = {};
  // Runs a read of samples and returns its outputs.
  std::function<Tensors(const Instruction&, const CallContext&)> data;
  // Runs initialize_parameters or load_parameters: fills the storages of a module, but not its master weights. `step`
  // and `notes` are those of the weights, if these come from a checkpoint.
  std::function<void(OpKind kind, ModuleState&, StepState& step, ManifestNotes& notes)> parameters;
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
  // Called after the last step, and before a checkpoint is published: writes what record_routing has not written yet.
  // Null as that.
  std::function<void()> finish_routing = {};
  // Returns the experts of the tokens of a `route` for `samples` samples of this lane; null without --replay-routing.
  std::function<at::Tensor(const CallContext&, int64_t samples, int64_t top_k)> replay_routing = {};
  // Called after each run of the list `resume`: the steps of this life; nullopt: the checkpoint was damaged, and the
  // list must run again with another one.
  std::function<std::optional<StepSpan>()> resumed = {};
  // Called after setup, before the first step.
  std::function<void(const Rank&, const StepSpan&)> ready = {};
  // Whether this process was asked to save and stop; null: never.
  std::function<bool()> asked_to_stop = {};
  // Asked before each round of an evaluation after so many steps, counted from 0 over all sets, and behind the last
  // one: whether it ends there, as all ranks do then. `settle` waits until all rounds so far are done. Null: never.
  std::function<bool(int64_t steps_done, int64_t round, const std::function<void()>& settle)> stops_evaluation = {};
  // Seconds of the evaluation at most in which nobody asked stops_evaluation. Null as that.
  std::function<double()> unheard_in_evaluation = {};
};

// The files of a rank. Null: it does not write that one.
struct RankFiles {
  Recorder& recorder;
  StepLog* log = nullptr;          // of rank 0
  EventFile* events = nullptr;     // the same
  ProbeWriter* probe = nullptr;    // with --probe
  StepProfile* profile = nullptr;  // with --trace
};

struct Walk {
  StepSpan steps;      // of a run that resumes they are known after the list `resume`
  bool trial = false;  // steps alone: nothing is evaluated and nothing is saved
  Handlers handlers;
  RankFiles files;
  DeadlineRule deadlines = {};                // none by default
  BeforeInstruction before_instruction = {};  // for tests that delay streams
  FailPointHook fail_point = {};              // for tests of failures
  // Ends the process with an exit status and a message. May be called from any thread; does not return.
  std::function<void(int, const std::string&)> exit = {};
};

}  // namespace planwright::executor
