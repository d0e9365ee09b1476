// Which elements of the published tensors a rank's storage has, and where. Initialization, loading and probes all use
// this map, so they cannot disagree. Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// `count` elements that are contiguous both in the storage and in the published tensor, in row-major order.
struct ElementRun {
  int64_t local = 0;  // from the start of the storage
  int64_t whole = 0;  // from the start of the published tensor
  int64_t count = 0;
  bool operator==(const ElementRun&) const = default;
};

// The elements of one published tensor that a storage has.
struct PublishedSlice {
  int parameter = -1;   // index in Module::parameters
  int64_t expert = -1;  // number of the expert; -1: the parameter has no experts
  std::string name;     // Parameter::name with the expert's number; the key of initial draws
  std::string file_name;
  std::vector<ElementRun> runs;
};

// The coordinates of a rank along the axes that cut parameters, with their sizes.
struct ShardCoordinates {
  int tp = 1, tp_rank = 0;
  int expert_tp = 1, expert_tp_rank = 0;
  int ep = 1, ep_rank = 0;
};
ShardCoordinates CoordinatesOf(const Grid& grid, int rank);

// The slices of `storage`, in storage order. Joined parameters follow each other; of L stacked experts on each rank,
// this rank has [ep_rank L, (ep_rank + 1) L), each with all its joined parameters: gate and up of one expert, then
// those of the next. A dim is cut segment by segment (Parameter::segments). Rows of padding
// (Parameter::padded) are in no run. A bug if sizes do not divide, or do not fill the storage: rule V7 has refused such
// plans.
std::vector<PublishedSlice> SlicesOf(const Module& module, const Storage& storage, const ShardCoordinates& coordinates);

// The parts of `runs` whose local offsets are in [first, end). Their local offsets are then counted from `first`.
std::vector<ElementRun> ClipRuns(const std::vector<ElementRun>& runs, int64_t first, int64_t end);

// "a.{expert}.b" with the expert's number in place of the braces; unchanged for expert -1.
std::string ExpertName(const std::string& pattern, int64_t expert);

// Number of elements of a shape.
int64_t ElementsOf(const std::vector<int64_t>& shape);

// Which of the Bucket::shards equal parts of a bucket this rank owns: its index in the reduce group.
int ShardIndexOf(const Plan& plan, const Module& module, const Bucket& bucket, int rank);

}  // namespace planwright
