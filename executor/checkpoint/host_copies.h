// What a rank has to write to a checkpoint, copied to host memory. The memory is allocated once and used for every
// checkpoint; on GPUs it is pinned.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "executor/optimizer/module_state.h"
#include "planner/checkpoint/pieces.h"
#include "planner/checkpoint/shard_writer.h"
#include "planner/plan/plan.h"

namespace planwright::executor {

class HostCopies {
 public:
  HostCopies(const Plan& plan, int rank) : plan_(plan), rank_(rank) {}

  // Copies the pieces of the module. Returns when the copy is done: training may change the state then.
  void Copy(ModuleState& module);

  // What the copies hold, of all modules copied so far. Views of the memory of this object.
  std::vector<ShardSource> Sources() const;
  int64_t bytes() const;  // of all copies

 private:
  // The copy of a storage, or of a state of a bucket shard, flat, with the pieces that lie in it.
  struct Tensor {
    at::Tensor host;
    int storage = -1, bucket = -1;  // bucket -1: the storage's own tensor
    std::string state;
    std::vector<CheckpointPiece> pieces;
  };
  struct ModuleCopy {
    const Module* module = nullptr;
    std::vector<Tensor> tensors;
  };

  ModuleCopy& CopyOf(ModuleState& module);

  const Plan& plan_;
  const int rank_;
  std::vector<ModuleCopy> modules_;
};

// The flat tensor on the device that holds a piece: a storage's, or a state of a bucket shard. c10::Error if the rank
// has none.
at::Tensor FlatTensorOf(const ModuleState& module, int storage, const std::string& state);

}  // namespace planwright::executor
