// Which modules of a run leave, under which names, and what they are as sizes (docs/hugging_face.md#what-comes-home).
#pragma once

#include <string>
#include <vector>

#include "planner/exchange/findings.h"
#include "planner/exchange/said_model.h"
#include "planner/plan/plan.h"

namespace planwright {

struct RunModel {
  const Module* language = nullptr;  // null: it stays behind
  const Module* encoder = nullptr;
  SaidModel said;  // `from`: the module's name and the recipe's key. Its dialect: the one that an export alone writes
};

// The modules to export: all, or the one named `module`. Problems if there is none of this name, or if they are more
// than one encoder.
RunModel ModelOfRun(const Plan& plan, const std::string& module, Findings& findings);

// A parameter of a run, as files have it.
struct LeavingTensor {
  std::string name;  // in the files
  std::string key;   // in the checkpoint: its master's where it has one
  std::vector<int64_t> shape;
  DType stored = DType::kFp32;  // in the checkpoint
  bool buffer = false;          // the expert bias
};

// All parameters of the modules, in their order, under the names of a folder of this dialect. `keys`: of the
// checkpoint. A projector does not leave in a folder of an encoder alone; a note says so.
std::vector<LeavingTensor> LeavingTensors(const RunModel& run, const Dialect& dialect,
                                          const std::map<std::string, DType>& keys, Findings& findings);

}  // namespace planwright
