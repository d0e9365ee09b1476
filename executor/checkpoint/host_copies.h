// What a rank has to write to a checkpoint, copied to host memory that is allocated once. The writer's thread copies
// beside the next forward and backward; the optimizer waits for it, bucket by bucket (BucketState::copied). On a GPU
// the memory is pinned and the copies have a stream of their own.
//
// The bytes of the shard, in the order of the file, are cut into pieces, which follow each other in the memory. If the
// plan limits it (CheckpointPlan::copy_bytes), a piece takes the place of one that has been written.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/optimizer/module_state.h"
#include "planner/plan/plan.h"
#include "planner/state/checkpoint/pieces.h"
#include "planner/state/checkpoint/shard_writer.h"

namespace planwright::executor {

class HostCopies {
 public:
  HostCopies(const Plan& plan, int rank) : plan_(plan), rank_(rank) {}

  // Allocates the memory, for all modules of the rank. Pinning takes seconds, which are better spent before the first
  // step. Does nothing the second time.
  void Prepare(at::Device device);
  // Copies what the optimizer changes without being asked (the expert bias), and marks the buckets, which it does not
  // touch from now on until they are copied.
  void Begin(ModuleState& module);
  // Copies as much as the memory holds. Called by another thread, after Begin for each module; so are those below.
  void Copy();

  // What this rank writes. Ranges lie in the memory of this object, and become valid as BeforeRange says.
  const std::vector<ShardSource>& sources() const { return sources_; }
  // ShardWriting::before_range, for a shard that is written after Copy: copies what has room now.
  void BeforeRange(const std::byte* range);
  bool done() const { return copied_ == pieces_.size(); }  // all is copied
  bool limited() const { return slots_.size() < pieces_.size(); }
  int64_t bytes() const;  // of host memory

 private:
  // A flat tensor from which elements are copied.
  struct Origin {
    const Module* module = nullptr;
    int storage = -1;   // one that lies in it
    int bucket = -1;    // an index in buckets_ if the optimizer changes it there; -1: it does not
    std::string state;  // as in CheckpointPiece
    at::Tensor from;    // from Begin until it is copied
    at::Tensor whole;   // a copy of all of it, made by Begin; undefined: it is copied in pieces
  };
  // A bucket with elements to copy.
  struct Marked {
    const Module* module = nullptr;
    int bucket = -1;
    int64_t parts = 0, open = 0;  // of all pieces; of those, not copied yet
    std::shared_ptr<CopyMark> mark;
  };
  // Elements that lie side by side in an origin and in a piece.
  struct Part {
    size_t origin = 0;
    int64_t first = 0, count = 0;  // elements of the origin
    int64_t offset = 0;            // bytes from the start of the piece
  };

  size_t OriginOf(const Module& module, const CheckpointPiece& piece);
  void AddRanges(const CheckpointPiece& piece, size_t origin, int64_t& reached, ShardSource& source);
  void CopyPieces(size_t end);
  void QueuePiece(size_t piece);
  void PieceIsCopied(size_t piece);

  const Plan& plan_;
  const int rank_;
  std::optional<at::Device> device_;
  std::vector<Origin> origins_;
  std::vector<Marked> buckets_;
  std::vector<std::vector<Part>> pieces_;
  std::vector<at::Tensor> slots_;  // bytes; piece i is in slot i % slots
  int64_t piece_bytes_ = 0;        // of a slot
  std::vector<ShardSource> sources_;
  std::vector<std::pair<const std::byte*, int64_t>> ranges_;  // in the order of the file, with their piece; -1: none
  size_t copied_ = 0, next_range_ = 0;                        // of the checkpoint that is written
  std::optional<c10::Event> begun_;                           // on a GPU: the state is that after the step
  std::optional<c10::Stream> stream_;                         // of the copies
};

// The flat tensor on the device that holds a piece: a storage's, or a state of a bucket shard. c10::Error if the rank
// has none.
at::Tensor FlatTensorOf(const ModuleState& module, int storage, const std::string& state);

}  // namespace planwright::executor
