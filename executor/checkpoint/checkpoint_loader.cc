#include "executor/checkpoint/checkpoint_loader.h"

#include <utility>
#include <vector>

#include "executor/checkpoint/load_pieces.h"
#include "planner/state/checkpoint/pieces.h"
#include "planner/state/checkpoint/plan_fit.h"

namespace planwright::executor {

absl::StatusOr<std::unique_ptr<CheckpointLoader>> CheckpointLoader::Open(const Plan& plan, int rank,
                                                                         const std::string& folder) {
  absl::StatusOr<std::unique_ptr<CheckpointReader>> reader = CheckpointReader::Open(folder);
  if (!reader.ok()) return reader.status();
  if (absl::Status status = MisfitOf(folder, TensorMisfits(plan, **reader)); !status.ok()) return status;
  return std::unique_ptr<CheckpointLoader>(new CheckpointLoader(plan, rank, *std::move(reader)));
}

absl::Status CheckpointLoader::Load(ModuleState& module, int threads) {
  const std::vector<CheckpointPiece> pieces = PiecesOfCheckpoint(plan_, module.module(), rank_);
  std::vector<PieceToLoad> list;
  for (const CheckpointPiece& piece : pieces) list.push_back({&piece, reader_.get()});
  absl::Status first;
  for (const absl::Status& status : LoadPieces(list, nullptr, threads, module)) first.Update(status);
  return first;
}

void CheckpointLoader::LoadCounters(StepState& step, ManifestNotes& notes) const {
  const CheckpointCounters& counters = reader_->manifest().counters;
  step.applied_steps.fill_(counters.applied_steps);
  step.skipped_steps.fill_(counters.skipped_steps);
  notes = reader_->manifest().notes;
}

}  // namespace planwright::executor
