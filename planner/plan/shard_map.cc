#include "planner/plan/shard_map.h"

#include <algorithm>

#include "planner/base/text/bug.h"

namespace planwright {
namespace {

// Appends a run, or makes the last one longer where both continue it.
void Append(std::vector<ElementRun>& runs, const ElementRun& run) {
  if (!runs.empty()) {
    ElementRun& last = runs.back();
    if (last.local + last.count == run.local && last.whole + last.count == run.whole) {
      last.count += run.count;
      return;
    }
  }
  runs.push_back(run);
}

// Appends the runs of this rank's part of one tensor, part `part` of `parts`. The part starts at `local` in the
// storage. Returns its number of elements.
int64_t AppendTensor(const Parameter& parameter, int parts, int part, int64_t local, std::vector<ElementRun>& runs) {
  const int64_t elements = ElementsOf(parameter.shape);
  if (parameter.shard_dim < 0 || parts == 1) {
    if (elements > 0) Append(runs, {local, 0, elements});
    return elements;
  }
  const std::vector<int64_t>& shape = parameter.shape;
  // Seen as [outer, shape[shard_dim], inner]: each index of the cut dim is `inner` contiguous elements, and the cut
  // repeats for each outer index.
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < parameter.shard_dim; ++i) outer *= shape[i];
  for (size_t i = parameter.shard_dim + 1; i < shape.size(); ++i) inner *= shape[i];
  const int64_t whole_rows = shape[parameter.shard_dim];
  std::vector<int64_t> segments = parameter.segments;
  if (segments.empty()) segments = {whole_rows};
  const int64_t start = local;
  for (int64_t o = 0; o < outer; ++o) {
    int64_t first = o * whole_rows;
    for (int64_t segment : segments) {
      Require(segment % parts == 0 || parameter.padded, parameter.name + ": a part of " + std::to_string(segment) +
                                                            " rows cannot be cut " + std::to_string(parts) + " ways");
      const int64_t rows = (segment + parts - 1) / parts;  // of which the last ranks may have some too many
      const int64_t own = std::clamp<int64_t>(segment - part * rows, 0, rows);
      if (own * inner > 0) Append(runs, {local, (first + part * rows) * inner, own * inner});
      local += rows * inner;
      first += segment;
    }
    Require(first == (o + 1) * whole_rows, parameter.name + ": the segments do not add up");
  }
  return local - start;
}

}  // namespace

int64_t ElementsOf(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (int64_t size : shape) elements *= size;
  return elements;
}

std::string ExpertName(const std::string& pattern, int64_t expert) {
  const size_t at = pattern.find("{expert}");
  if (expert < 0 || at == std::string::npos) return pattern;
  return pattern.substr(0, at) + std::to_string(expert) + pattern.substr(at + 8);
}

ShardCoordinates CoordinatesOf(const Grid& grid, int rank) {
  ShardCoordinates coordinates;
  coordinates.tp = grid.tp;
  coordinates.tp_rank = CoordinateOf(grid, rank, Axis::kTp);
  coordinates.expert_tp = grid.expert_tp;
  coordinates.expert_tp_rank = CoordinateOf(grid, rank, Axis::kExpertTp);
  coordinates.ep = grid.ep;
  coordinates.ep_rank = CoordinateOf(grid, rank, Axis::kEp);
  return coordinates;
}

std::vector<PublishedSlice> SlicesOf(const Module& module, const Storage& storage,
                                     const ShardCoordinates& coordinates) {
  std::vector<PublishedSlice> slices;
  int64_t local = 0;
  const Parameter& first = module.parameters[storage.parameters.front()];
  // Experts are dealt over ep and cut over expert_tp; all other parameters are cut over tp.
  const bool expert = first.experts > 0;
  const int parts = expert ? coordinates.expert_tp : coordinates.tp;
  const int part = expert ? coordinates.expert_tp_rank : coordinates.tp_rank;
  const int64_t mine = expert ? first.experts / coordinates.ep : 1;
  Require(!expert || mine * coordinates.ep == first.experts, first.name + ": experts do not divide over ep");
  for (int64_t i = 0; i < mine; ++i) {
    for (int index : storage.parameters) {
      const Parameter& parameter = module.parameters[index];
      Require(parameter.experts == first.experts, parameter.name + ": joined to a parameter of other experts");
      PublishedSlice slice;
      slice.parameter = index;
      slice.expert = expert ? coordinates.ep_rank * mine + i : -1;
      slice.name = ExpertName(parameter.name, slice.expert);
      slice.file_name = ExpertName(parameter.file_name, slice.expert);
      local += AppendTensor(parameter, parts, part, local, slice.runs);
      slices.push_back(std::move(slice));
    }
  }
  Require(local == ElementsOf(storage.shape), storage.frame + "." + storage.slot + ": its parameters have " +
                                                  std::to_string(local) + " elements on a rank, the storage " +
                                                  std::to_string(ElementsOf(storage.shape)));
  return slices;
}

std::vector<ElementRun> ClipRuns(const std::vector<ElementRun>& runs, int64_t first, int64_t end) {
  std::vector<ElementRun> clipped;
  for (const ElementRun& run : runs) {
    const int64_t from = std::max(run.local, first), to = std::min(run.local + run.count, end);
    if (from < to) clipped.push_back({from - first, run.whole + from - run.local, to - from});
  }
  return clipped;
}

int ShardIndexOf(const Plan& plan, const Module& module, const Bucket& bucket, int rank) {
  if (bucket.shards == 1) return 0;
  const Group* group = plan.FindGroup(bucket.reduce_group);
  Require(group != nullptr, "bucket " + bucket.name + " is reduced over unknown group " + bucket.reduce_group);
  return IndexInGroup(module.grid, group->view, group->axes, rank);
}

}  // namespace planwright
