// Which shard has which elements of a tensor: walks the strides of all shards together, in the order of the whole
// tensor, without opening them to lists of runs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "planner/state/checkpoint/format.h"

namespace planwright {

// The runs of one shard, one after the other.
class ElementCursor {
 public:
  // `elements` have passed CheckShardTensor and outlive the cursor.
  explicit ElementCursor(const std::vector<ElementStride>& elements);

  bool done() const { return stride_ == elements_->size(); }
  // The run where the cursor is; `local` counts the elements of the shard from 0. Not after the last one.
  const ElementRun& run() const { return run_; }
  int64_t end() const { return run_.whole + run_.count; }
  // Moves forward to the first run that ends after element `whole` of the tensor.
  void SeekPast(int64_t whole);

 private:
  void Set(int64_t time);

  const std::vector<ElementStride>* elements_;
  size_t stride_ = 0;
  int64_t local_ = 0;  // elements of the strides before
  ElementRun run_;
};

// Elements that one of the shards has. `local` counts the elements of that shard.
struct CoveredRun {
  size_t shard = 0;
  ElementRun run;
};

// Element `whole` is in no shard, or in both of these.
struct CoverProblem {
  int64_t whole = 0;
  std::optional<size_t> shard, other;
};

// Walks once through a tensor.
class ElementCover {
 public:
  explicit ElementCover(const std::vector<const std::vector<ElementStride>*>& shards);

  // Calls `visit` for parts of the elements [first, first + count), which ascend and fill them. Ends at the first
  // problem. Calls ascend too: `first` is not below an element of an earlier call.
  std::optional<CoverProblem> Walk(int64_t first, int64_t count, const std::function<void(const CoveredRun&)>& visit);

 private:
  struct ShardCursor {
    size_t shard;
    ElementCursor cursor;
  };
  // Whether `a` comes after `b`: the heap's top begins first.
  static bool After(const ShardCursor& a, const ShardCursor& b) { return a.cursor.run().whole > b.cursor.run().whole; }
  // Brings the first run that ends after `whole` to the top. False: there is none.
  bool Advance(int64_t whole);
  void MoveTop(int64_t whole);

  std::vector<ShardCursor> heap_;
};

}  // namespace planwright
