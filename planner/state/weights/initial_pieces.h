// Which elements of which sources a rank reads to begin a run, which it draws, and where they go. The map from
// published tensors to a rank's storages is that of checkpoints (planner/state/checkpoint/pieces.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/state/checkpoint/pieces.h"
#include "planner/state/weights/fit.h"

namespace planwright {

struct InitialPiece {
  int source = -1;                  // index in WeightsFit::sources; -1: the runs are drawn
  ElementReader* reader = nullptr;  // of the source; null: the runs are drawn
  // piece.key: of the reader. The runs are those that the source has, or those that are drawn.
  CheckpointPiece piece;
};

// The pieces of a rank. Weights come from their source, or are drawn. A master is read where the source has wider
// numbers than the run's weights, and is the rounded weight elsewhere. Moments are read with initialize.optimizer, and
// are zero without it. `fit` fits.
std::vector<InitialPiece> InitialPieces(const Plan& plan, const WeightsFit& fit, const Module& module, int rank);

// What ranks read. All of them read the same numbers of bytes, but not the same bytes.
struct RankReads {
  std::vector<int> ranks;
  std::vector<std::string> roles;
  std::vector<int64_t> bytes;  // of each source. Of a checkpoint the elements that are needed: whole tensors of its
                               // shards are read, as their digests are proved
  int64_t drawn = 0;           // elements of storages
};
// All ranks, in the order of the first of each group.
std::vector<RankReads> ReadTable(const Plan& plan, const WeightsFit& fit);

}  // namespace planwright
