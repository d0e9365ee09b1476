// What a rank has to write to a checkpoint, copied to host memory. The memory is allocated once and used for every
// checkpoint. On a GPU it is pinned, and the copy of a bucket's masters and moments runs beside the next forward and
// backward: the optimizer waits for it, bucket by bucket (BucketState::copied).
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <memory>
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

  // Allocates the memory for a module. Copy does so, too; pinning takes seconds, which are better spent before the first
  // step.
  void Prepare(const ModuleState& module) { CopyOf(module); }
  // Begins to copy what the rank writes of the module. On a CPU the copy is done when this returns.
  void Copy(ModuleState& module);
  // Waits until everything is copied. May be called from another thread.
  void Wait();

  // What the copies hold, of all modules. Views of the memory of this object.
  std::vector<ShardSource> Sources() const;

 private:
  // A copy of a storage, or of a state of a bucket shard, and the pieces that lie in it.
  struct Tensor {
    int storage = -1, bucket = -1;  // bucket -1: the storage's own tensor
    std::string state;
    std::vector<at::Tensor> chunks;  // flat; all but the last have kChunkBytes
    std::vector<CheckpointPiece> pieces;
  };
  struct ModuleCopy {
    const Module* module = nullptr;
    std::vector<Tensor> tensors;
  };

  ModuleCopy& CopyOf(const ModuleState& module);

  const Plan& plan_;
  const int rank_;
  std::vector<ModuleCopy> modules_;
  std::vector<std::shared_ptr<c10::Event>> under_way_;  // on a GPU: the copies that were begun last
};

// The flat tensor on the device that holds a piece: a storage's, or a state of a bucket shard. c10::Error if the rank
// has none.
at::Tensor FlatTensorOf(const ModuleState& module, int storage, const std::string& state);

}  // namespace planwright::executor
