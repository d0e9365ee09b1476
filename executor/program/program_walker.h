// Walks one rank's program: the linked list of instructions, entry by entry, in program order. It decides nothing: the
// plan says what runs, where, and with which peers. On several streams it hands instructions over in program order,
// each with what it must wait for (planner/plan/stream_dependencies.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/program/bound_program.h"
#include "executor/program/launches.h"
#include "executor/program/probe_points.h"
#include "executor/program/step_reports.h"
#include "executor/program/stop_rules.h"
#include "executor/program/values.h"
#include "executor/program/walk.h"
#include "executor/streams/streams.h"
#include "planner/plan/link/linked_program.h"
#include "planner/plan/link/program_accesses.h"

namespace planwright::executor {

class ProgramWalker {
 public:
  // Keeps references.
  ProgramWalker(Rank& rank, Walk& walk);

  // Runs the role's setup or, if the rank resumes, its list `resume`; then the steps of walk.steps, with evaluations
  // and `save` where the plan says so; and teardown. Ends early if all ranks agree to stop (begin_step, or between two
  // rounds of an evaluation), after the list `save`, unless this life has done no step; then it returns false. Every
  // failure is an ExitError that names rank, host, path in the program,
  // instruction and recipe line.
  bool Run();

 private:
  bool RunAll();
  void SetUp();
  void RunList(LinkedProgram::Range list, const std::string& name, bool binds = false);
  void BindList(LinkedProgram::Range list, const std::string& name);
  void AnnounceReads();
  std::vector<DataRead> ReadsOf(LinkedProgram::Range list) const;
  // When so many steps are done: all rounds of all sets, and what they give. False: it was ended between two rounds, as
  // a rank is asked to stop, and gives nothing.
  bool Evaluate(int64_t steps_done);
  bool StopsEvaluation(int64_t steps_done);
  bool probes_evaluation() const { return walk_.files.probe != nullptr && !trains_; }
  void RunOne(size_t index);
  void Prepare(size_t index, bool later, Launch& launch);
  void RunTimed(size_t index);
  void RunLater(size_t index, Launch launch);
  StreamLaunch StreamLaunchOf(size_t index);
  // In this step.
  CallContext ContextOf(const LinkedEntry& entry) const;
  void Execute(const Launch& launch, Tensors& inputs);  // with the fail points around it
  // Everything that the walker does next comes after all work handed to streams so far.
  void JoinStreams();
  void EnterPath(uint32_t call);
  void KeepProbes(size_t entry, bool after);
  void KeepGradients();
  void WriteProbes();
  void WriteProfile();
  // Does `work` for an entry of `list`. An exception becomes an ExitError that says where.
  template <typename Work>
  void WithLocation(const LinkedEntry& entry, const std::string& list, Work work);

  Rank& rank_;
  Walk& walk_;
  LinkedBlocks blocks_;
  const LinkedProgram program_;
  const bool trains_;          // whether the run has steps to do; if not, it evaluates
  const bool reports_beside_;  // the plan has the report of a step on another stream than the main one
  StopRules stop_rules_;
  StepReports reports_;
  EvaluationReports evaluations_;
  BoundProgram bound_;
  ValueTable values_;
  Launches launches_;
  ProgramAccesses program_accesses_;
  StreamDependencies order_;          // of the instructions handed to streams_ so far
  std::unique_ptr<Streams> streams_;  // null: the program uses one stream
  int64_t step_ = 0;                  // from 0
  int evaluating_ = -1;               // CallContext::evaluation
  int64_t round_ = 0;                 // of the set that is evaluated
  int64_t rounds_done_ = 0;           // of this evaluation, over all sets
  Launch launch_;   // of the instruction that runs on this thread; kept so that its vectors are reused
  Tensors inputs_;  // of the same
  std::shared_ptr<const Launch> first_;   // of an instruction that waits for the next, to be done with it
  std::string list_, path_;               // "step 3", "step 3 > m.s0 m.s0.forward"
  int64_t path_call_ = -1;                // the call that path_ names
  std::vector<ProbePoint> probe_points_;  // in the order of the list
  size_t next_probe_point_ = 0;
  bool a_step_is_done_ = false;  // of this life: deadlines are shorter then
  bool probing_ = false;         // whether this step's probes are kept
  bool profiling_ = false;       // whether this step is profiled
  int64_t timed_ = -1;           // Launch::timed of the instruction that is being launched
};

}  // namespace planwright::executor
