// Which modules of a run leave, under which names, and what they are as sizes (docs/hugging_face.md#what-comes-home).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/exchange/findings.h"
#include "planner/exchange/folder_names.h"
#include "planner/exchange/said_model.h"
#include "planner/plan/plan.h"
#include "planner/state/forms/element_map.h"

namespace planwright {

struct RunModel {
  const Module* language = nullptr;  // null: it stays behind
  const Module* encoder = nullptr;
  SaidModel said;  // `from`: the module's name and the recipe's key
};

// The modules to export: all, or the one named `module`. Problems if there is none of this name, or if they are more
// than one encoder.
RunModel ModelOfRun(const Plan& plan, const std::string& module, Findings& findings,
                    const DialectSet& dialects = BuiltInDialects());

// A parameter of a run, or one expert of it, in a tensor of a folder.
struct LeavingPart {
  std::string key;                // in the checkpoint: its master's where it has one
  DType stored = DType::kFp32;    // in the checkpoint
  std::optional<ElementMap> map;  // none: it is the tensor, in the same order
};

// A tensor of a folder, made of parameters of a run.
struct LeavingTensor {
  std::string name;
  std::vector<int64_t> shape;
  bool buffer = false;   // the expert bias
  bool trained = false;  // by the run, any part of it
  std::vector<LeavingPart> parts;
};

// All parameters of the modules, in their order, as a folder of this dialect holds them: in the form of which a source
// has the most (`has`); without one, in the first. `keys`: of the checkpoint. A projector does not leave in a folder of
// an encoder alone; a note says so. A problem for each line of a form that does not fit. Of a module with adapters,
// what they stand on stays behind: it is in no checkpoint.
std::vector<LeavingTensor> LeavingTensors(const RunModel& run, const Dialect& dialect,
                                          const std::map<std::string, DType>& keys, const ShapeInFolder& has,
                                          Findings& findings);

}  // namespace planwright
