// The tensors that a Hugging Face folder has of a module: what they are called, and which parameters are in them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/state/dialect/dialect.h"
#include "planner/state/forms/disk_tensors.h"

namespace planwright {

struct FolderTensor {
  std::string name;
  std::vector<int64_t> shape;
  int parameter = -1;             // index in Module::parameters; of several, the first
  int64_t expert = -1;            // number of the expert; -1: the parameter has no experts, or all are in the tensor
  std::vector<DiskPiece> pieces;  // empty: the tensor is the parameter
};

struct FolderTensors {
  std::vector<FolderTensor> tensors;  // in the order of the module's parameters
  int64_t left = 0;       // parameters that the folder does not have, as one of an encoder alone has no projector
  TextProblems problems;  // of lines `tensor` that do not fit the module
};

// The shape that a folder has of a tensor; null: it has no such tensor.
using ShapeInFolder = std::function<const std::vector<int64_t>*(const std::string& name)>;

// `dialect`: of the folder's config.json. Of the forms that it may have, the one of which `has` knows the names of the
// most parameters, and of several of these the one with the most right shapes; the first one if that says nothing, or
// without `has`.
FolderTensors TensorsInFolder(const DialectSet& dialects, const Dialect& dialect, const Module& module,
                              const ShapeInFolder& has = {});

// "FILE:12:9: what is wrong", in one line.
std::string TextOf(const TextProblem& problem);

}  // namespace planwright
