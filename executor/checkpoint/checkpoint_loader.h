// Loads a rank's state from a checkpoint of any layout (docs/checkpoints.md#loading).
#pragma once

#include <absl/status/status.h>

#include <memory>
#include <string>

#include "executor/optimizer/module_state.h"
#include "executor/optimizer/step_state.h"
#include "planner/plan/plan.h"
#include "planner/state/checkpoint/shard_reader.h"

namespace planwright::executor {

class CheckpointLoader {
 public:
  // DataLoss if the checkpoint is damaged. InvalidArgument if its tensors are not those of the plan: every tensor that
  // the plan needs must be there, in the same shape and type, and no other.
  static absl::StatusOr<std::unique_ptr<CheckpointLoader>> Open(const Plan& plan, int rank, const std::string& folder);

  // Fills all storages and bucket shards of the module on `threads` threads. DataLoss as in LoadPieces.
  absl::Status Load(ModuleState& module, int threads);
  void LoadCounters(StepState& step, ManifestNotes& notes) const;

  int64_t bytes_read() const { return reader_->bytes_read(); }

 private:
  CheckpointLoader(const Plan& plan, int rank, std::unique_ptr<CheckpointReader> reader)
      : plan_(plan), rank_(rank), reader_(std::move(reader)) {}

  const Plan& plan_;
  const int rank_;
  const std::unique_ptr<CheckpointReader> reader_;
};

}  // namespace planwright::executor
