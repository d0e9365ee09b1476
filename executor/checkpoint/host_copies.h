// What a rank has to write to a checkpoint, copied to host memory that is allocated once. Masters and moments are
// copied by the writer's thread beside the next forward and backward; the optimizer waits for it, bucket by bucket
// (BucketState::copied). On a GPU the memory is pinned and the copies have a stream of their own.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <optional>
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

  // Allocates the memory for a module. Pinning takes seconds, which are better spent before the first step.
  void Prepare(const ModuleState& module) { CopyOf(module); }
  // Copies what is in no bucket, and marks the buckets, which the optimizer does not touch from now on until
  // CopyBuckets has copied them.
  void Begin(ModuleState& module);
  // Copies the marked buckets of all modules. Called by another thread, after Begin for each module.
  void CopyBuckets();

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
    std::vector<Tensor> tensors;  // those of a bucket follow each other
  };
  // A tensor that CopyBuckets has to copy.
  struct Task {
    at::Tensor from;
    const std::vector<at::Tensor>* to = nullptr;
    std::shared_ptr<CopyMark> last_of;  // the mark of its bucket, if no other tensor of the bucket follows
  };

  ModuleCopy& CopyOf(const ModuleState& module);

  const Plan& plan_;
  const int rank_;
  std::vector<ModuleCopy> modules_;
  std::vector<Task> tasks_;
  std::optional<c10::Event> begun_;  // on a GPU: the state is that after the step
};

// The flat tensor on the device that holds a piece: a storage's, or a state of a bucket shard. c10::Error if the rank
// has none.
at::Tensor FlatTensorOf(const ModuleState& module, int storage, const std::string& state);

}  // namespace planwright::executor
