// One part of a plan against one source: which tensor of the source is which of the part, and whether it has the right
// shape and type. fit.h puts the parts together.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "planner/state/weights/fit.h"

namespace planwright {

// A tensor that a part needs.
struct WantedTensor {
  std::string name;       // Parameter::name with the expert's number
  std::string file_name;  // Parameter::file_name with the expert's number
  const Parameter* parameter = nullptr;
  int index = -1;           // in Module::parameters
  int64_t expert = -1;      // number of the expert; -1: the parameter has none
  bool vocabulary = false;  // has a row for each token: embeddings and lm_head
};
std::vector<WantedTensor> WantedOf(const WeightPart& part);

// What is said of a tensor of a type that no run has numbers of (ReadType), after its name.
std::string TypeIsNotRead(const std::string& type);

// What is found out of the parts of one source.
struct SourceTensors {
  // Keys of files, or names of parameters of a checkpoint, that belong to a part, whether they fit or not.
  std::set<std::string> used;
  std::vector<TensorLine> lines;  // problems of single tensors
};

// Fills `fit`, and adds to `taken` what fits, and to SourceFit::stored what is a part of a tensor. Problems of the part
// as a whole are added to `problems`.
void FitPart(const Plan& plan, const WeightPart& part, SourceFit& source, PartFit& fit,
             std::map<std::string, TakenTensor>& taken, SourceTensors& tensors, std::vector<std::string>& problems);

}  // namespace planwright
