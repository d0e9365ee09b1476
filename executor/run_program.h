// Walks one rank's program: the linked list, entry by entry.
#pragma once

#include <string>
#include <vector>

#include "executor/bound_program.h"
#include "executor/rank.h"
#include "executor/step_reports.h"
#include "executor/values.h"
#include "planner/link/linked_program.h"

namespace planwright::executor {

class ProgramWalker {
 public:
  explicit ProgramWalker(Rank& rank);

  // The role's setup, steps [first, rank.last_step], and teardown. Any failure is an ExitError that names rank, host, place,
  // instruction and recipe line.
  void Run(int64_t first_step);

 private:
  // A value that --probe keeps.
  struct Kept {
    size_t entry = 0;      // before it runs (a call's input), or behind it
    bool behind = false;
    uint32_t call = 0;
    const Probe* probe = nullptr;
    int value = 0;
  };

  void RunList(LinkedProgram::Range list, const std::string& name, bool binds = false);
  void BindList(LinkedProgram::Range list, const std::string& name);
  void RunOne(const LinkedEntry& entry);
  void Set(const LinkedEntry& entry, Tensors outputs);
  void EnterPath(uint32_t call);
  void FindProbes();
  void KeepProbes(size_t entry, bool behind);
  [[noreturn]] void Fail(const LinkedEntry& entry, int status, const std::string& what);
  // Runs `work` of an entry; its failure is located.
  template <typename Work>
  void Locating(const LinkedEntry& entry, Work work);

  Rank& rank_;
  LinkedBlocks blocks_;
  const LinkedProgram program_;
  StepReports reports_;
  BoundProgram bound_;
  Values values_;
  Tensors inputs_;             // of the instruction that runs
  std::string list_, path_;    // "step 3", "step 3 > m.s0 m.s0.forward"
  int64_t path_call_ = -1;     // which path_ names
  std::vector<Kept> kept_;     // in the order of the list
  size_t next_kept_ = 0;
  bool keeping_ = false;       // this step's probes are kept
};

}  // namespace planwright::executor
