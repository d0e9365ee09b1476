// Which elements of which tensors a rank writes to a checkpoint, and which it needs from one (docs/checkpoints.md).
// Both follow from Plan::checkpoint and shard_map.h, so writing and loading cannot disagree.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/shard_map.h"
#include "planner/state/checkpoint/format.h"

namespace planwright {

// A part of one tensor, and where a rank has it.
struct CheckpointPiece {
  std::string key;             // Parameter::name with the expert's number, or that and ".STATE"
  DType dtype = DType::kFp32;  // of the tensor in the file
  std::vector<int64_t> shape;  // of the whole tensor
  int storage = -1;            // index in Module::storages
  // Empty: the elements are in the storage's tensor. Else they are in this state of the storage's bucket, in the shard
  // that the rank owns: a name of optimizer_states.h.
  std::string state;
  // Ascending. `whole`: index in the tensor; `local`: index in the storage's tensor, or in the bucket shard.
  std::vector<ElementRun> runs;
  std::string name;    // Parameter::name with the expert's number
  int parameter = -1;  // index in Module::parameters
};

// The pieces that this rank writes: over all ranks, each element of each tensor once (V9). A weight with a master is
// not among them: it is rounded from NAME.master.
std::vector<CheckpointPiece> PiecesToWrite(const Plan& plan, const Module& module, int rank);

// The pieces that this rank needs for its storages and for the bucket shards that it owns. A weight with a master has
// the key NAME.master and an empty `state`: the loader rounds it.
std::vector<CheckpointPiece> PiecesToLoad(const Plan& plan, const Module& module, int rank);
// Those of them that checkpoints have: not what adapters stand on.
std::vector<CheckpointPiece> PiecesOfCheckpoint(const Plan& plan, const Module& module, int rank);

// What a checkpoint of this plan keeps of a parameter, by its name with the expert's number.
struct KeptParameter {
  std::vector<int64_t> shape;
  std::vector<std::string> states;  // of the optimizer, "master" among them
};
std::map<std::string, KeptParameter> KeptParameters(const Plan& plan);

// All keys of a checkpoint of this plan with their type and whole shape, without the common ones, sorted by key.
struct CheckpointTensor {
  std::string key;
  DType dtype = DType::kFp32;
  std::vector<int64_t> shape;
  bool operator==(const CheckpointTensor&) const = default;
};
std::vector<CheckpointTensor> CheckpointTensors(const Plan& plan);

// How the tensors of a checkpoint differ from those of a proven plan: a line for each that is missing, is one too many,
// or has another shape or type.
std::vector<std::string> TensorsThatDiffer(const Plan& plan, const TensorTypes& tensors);

// What a key is about: a parameter, by its name with the expert's number, and a state of it. An empty state: the weight
// or buffer itself.
struct KeyParts {
  std::string name, state;
  // A moment may be any number, as the run has made it. All else must be finite.
  bool moment() const { return !state.empty() && state != "master"; }
};
KeyParts SplitKey(const std::string& key);

}  // namespace planwright
