// Where the elements of a rank's storage lie in the published tensors. Initialisation, loading and the probe use this
// one map, so they cannot disagree. Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// `count` elements that are contiguous on both sides, in row-major order.
struct ElementRun {
  int64_t local = 0;  // from the start of the storage
  int64_t whole = 0;  // from the start of the published tensor
  int64_t count = 0;
  bool operator==(const ElementRun&) const = default;
};

// What one storage holds of one published tensor.
struct PublishedSlice {
  int parameter = -1;   // index in Module::parameters
  int64_t expert = -1;  // -1: not one of several experts
  std::string name;     // "{expert}" filled in; the key of initial draws
  std::string file_name;
  std::vector<ElementRun> runs;
};

// A rank's place along the axes that cut parameters.
struct ShardPlace {
  int tp = 1, tp_rank = 0;
  int expert_tp = 1, expert_tp_rank = 0;
  int ep = 1, ep_rank = 0;
};
ShardPlace PlaceOf(const Grid& grid, int rank);

// The slices of `storage`, in storage order: joined parameters follow each other, stacked experts are the rank's
// [ep_rank L, (ep_rank + 1) L). A cut dim is cut segment by segment. Bug if sizes do not divide or do not fill the
// storage.
std::vector<PublishedSlice> SlicesOf(const Module& module, const Storage& storage, const ShardPlace& place);

// The parts of `runs` with local offsets in [first, end), local offsets counted from `first`.
std::vector<ElementRun> ClipRuns(const std::vector<ElementRun>& runs, int64_t first, int64_t end);

// "a.{expert}.b" with the expert's number filled in; unchanged for expert -1.
std::string ExpertName(const std::string& pattern, int64_t expert);

// Number of elements of a shape.
int64_t ElementsOf(const std::vector<int64_t>& shape);

// The module's grid coordinates along the group that shares a bucket: which of Bucket::shards parts this rank owns.
int ShardIndexOf(const Plan& plan, const Module& module, const Bucket& bucket, int rank);

}  // namespace planwright
