// The tensors of files that hold parameters of a module in another form than one by one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/statement/model_statement.h"
#include "planner/state/forms/element_map.h"
#include "planner/state/forms/stored_form.h"

namespace planwright {

// A parameter in a tensor of a file.
struct DiskPiece {
  int parameter = -1;   // index in Module::parameters
  int64_t expert = -1;  // number of the expert; -1: the parameter has no experts
  ElementMap map;
};

struct DiskTensor {
  std::string name;    // in files
  bool named = false;  // by a line `names`; else as the line `tensor` has it
  std::vector<int64_t> shape;
  std::vector<DiskPiece> pieces;  // each element is in one of them
};

struct DiskTensors {
  std::vector<DiskTensor> tensors;  // in the order of their first parameters
  // Of lines that name no parameter, or that do not fit its sizes; names that two tensors have, or a parameter twice.
  TextProblems problems;
};

// Of the lines `tensor` of a form. Parameters that are in none of them are tensors of their own. Without parameters in
// `module` this finds what is wrong with the lines whatever the sizes are. `module` has at least
// its name, constants, layers, parameters and storages; the layout does not matter.
DiskTensors DiskTensorsOf(const StoredForm& form, const Module& module, const ModelStatement& statement);

// What {encoder} stands for in names of this module: "MODULE." if the plan has several encoders, else nothing.
std::string EncoderOf(const Module& module, const ModelStatement& statement);

}  // namespace planwright
