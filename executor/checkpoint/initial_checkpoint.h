// Starts a run from the checkpoint of another one (docs/checkpoints.md#starting-from-a-checkpoint): its weights, and,
// if the recipe asks for them, the states of the optimizer and the counters. Layout, precision and what is trained may
// be others than those of the run that wrote it.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "executor/optimizer/module_state.h"
#include "executor/optimizer/step_state.h"
#include "planner/checkpoint/shard_reader.h"
#include "planner/plan/plan.h"

namespace planwright::executor {

class InitialCheckpoint {
 public:
  // DataLoss if the checkpoint is damaged; Unavailable if a file cannot be read. InvalidArgument, with all differences,
  // if its parameters are not those of the plan: each must be there in its shape, with optimizer its states too, and
  // no other may be there that is not in initialize.ignore.
  static absl::StatusOr<std::unique_ptr<InitialCheckpoint>> Open(const Plan& plan, int rank, const std::string& folder);

  // Fills the storages of the module and its masters, with initialize.optimizer also its moments, on `threads` threads.
  // Where the checkpoint has the master of a weight, the weight is that, rounded. DataLoss as in LoadPieces.
  absl::Status Load(ModuleState& module, int threads);
  // With initialize.optimizer the count of AdamW's steps, which belongs to the moments; with initialize.schedule
  // checkpoint that of skipped steps.
  void LoadCounters(StepState& step) const;

  int64_t bytes_read() const { return reader_->bytes_read(); }

 private:
  InitialCheckpoint(const Plan& plan, int rank, std::unique_ptr<CheckpointReader> reader)
      : plan_(plan), rank_(rank), reader_(std::move(reader)) {}

  const Plan& plan_;
  const int rank_;
  const std::unique_ptr<CheckpointReader> reader_;
};

}  // namespace planwright::executor
