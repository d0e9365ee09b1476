// Walks one rank's program: the linked list, entry by entry.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/bound_program.h"
#include "executor/rank.h"
#include "executor/step_reports.h"
#include "executor/streams/streams.h"
#include "executor/values.h"
#include "planner/link/linked_program.h"
#include "planner/link/program_accesses.h"

namespace planwright::executor {

class ProgramWalker {
 public:
  explicit ProgramWalker(Rank& rank);

  // The role's setup, steps [first, rank.last_step], and teardown. Any failure is an ExitError that names rank, host,
  // place, instruction and recipe line.
  void Run(int64_t first_step);

 private:
  // A value that --probe keeps.
  struct Kept {
    size_t entry = 0;  // before it runs (a call's input), or behind it
    bool behind = false;
    uint32_t call = 0;
    const Probe* probe = nullptr;
    int value = 0;
  };

  void Walk(int64_t first_step);
  void RunList(LinkedProgram::Range list, const std::string& name, bool binds = false);
  void BindList(LinkedProgram::Range list, const std::string& name);
  // An instruction with all that it needs to run: its values, and in whose call.
  struct Launch {
    const LinkedEntry* entry = nullptr;
    CallContext context;
    std::vector<Value*> inputs, outputs;  // null: state
    std::vector<Arguments::Part> parts;
    std::vector<std::shared_ptr<Value>> held;  // of one that runs later, on another thread
  };

  void RunOne(size_t index);
  void Prepare(const LinkedEntry& entry, bool later, Launch& launch);
  void RunLater(size_t index, Launch launch);
  StreamPlace Place(size_t index);
  void Execute(const Launch& launch, Tensors& inputs);
  // The walker goes on when all streams have done what they were given.
  void Join();
  void EnterPath(uint32_t call);
  void FindProbes();
  void KeepProbes(size_t entry, bool behind);
  void KeepGradients();
  void WriteValues();
  [[noreturn]] void Fail(const LinkedEntry& entry, const std::string& list, int status, const std::string& what);
  // Runs `work` of an entry in `list`; its failure is located.
  template <typename Work>
  void Locating(const LinkedEntry& entry, const std::string& list, Work work);

  Rank& rank_;
  LinkedBlocks blocks_;
  const LinkedProgram program_;
  StepReports reports_;
  BoundProgram bound_;
  Values values_;
  const ProgramAccesses program_accesses_;
  StreamDependencies order_;          // of what has been handed to streams_
  std::unique_ptr<Streams> streams_;  // null: all runs on one
  int64_t step_ = 0;                  // from 0
  Launch launch_;                     // of the instruction that runs on this thread
  Tensors inputs_;                    // of the same
  std::string list_, path_;           // "step 3", "step 3 > m.s0 m.s0.forward"
  int64_t path_call_ = -1;            // which path_ names
  std::vector<Kept> kept_;            // in the order of the list
  size_t next_kept_ = 0;
  bool keeping_ = false;  // this step's probes are kept
};

}  // namespace planwright::executor
