#include "planner/state/weights/initial_pieces.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace planwright {
namespace {

constexpr char kMaster[] = "master";

// The type of a storage's elements.
DType StorageType(const Plan& plan, const Module& module, const Storage& storage) {
  if (storage.bucket >= 0) return module.buckets.at(static_cast<size_t>(storage.bucket)).dtype;
  const bool buffer = module.parameters.at(static_cast<size_t>(storage.parameters.at(0))).buffer;
  return buffer ? plan.master() : plan.dtype();
}

// Whether the masters of a weight have digits that the weight has not.
bool IsWider(const TakenTensor& taken, DType storage) { return DTypeBytes(taken.dtype) > DTypeBytes(storage); }

// The parts of `runs` whose elements of the whole tensor are below `elements`, or the others.
std::vector<ElementRun> Split(const std::vector<ElementRun>& runs, int64_t elements, bool below) {
  std::vector<ElementRun> split;
  for (const ElementRun& run : runs) {
    const int64_t first = std::clamp<int64_t>(elements - run.whole, 0, run.count);
    if (below && first > 0) split.push_back({run.local, run.whole, first});
    if (!below && first < run.count) split.push_back({run.local + first, run.whole + first, run.count - first});
  }
  return split;
}

// What ranks with one coordinate have of one slice of a storage.
struct SliceRead {
  const TakenTensor* taken = nullptr;    // null: drawn
  int64_t first = 0, read = 0, end = 0;  // in the storage: [first, read) is read, [read, end) is drawn
};

class Table {
 public:
  Table(const Plan& plan, const WeightsFit& fit) : plan_(plan), fit_(fit) {}

  void AddRank(int rank, std::vector<int64_t>& bytes, int64_t& drawn) {
    for (size_t m = 0; m < plan_.modules.size(); ++m) {
      const Module& module = plan_.modules[m];
      if (!module.grid.contains(rank)) continue;
      const ShardCoordinates at = CoordinatesOf(module.grid, rank);
      const int stage = CoordinateOf(module.grid, rank, Axis::kPp);
      for (size_t s = 0; s < module.storages.size(); ++s) {
        if (module.storages[s].stage == stage) AddStorage(m, s, at, rank, bytes, drawn);
      }
    }
  }

 private:
  void AddStorage(size_t m, size_t s, const ShardCoordinates& at, int rank, std::vector<int64_t>& bytes,
                  int64_t& drawn) {
    const Module& module = plan_.modules[m];
    const Storage& storage = module.storages[s];
    int64_t first = 0, end = 0;  // of the rank's shard, counted in the storage
    if (storage.bucket >= 0) {
      const Bucket& bucket = module.buckets.at(static_cast<size_t>(storage.bucket));
      const int64_t owned = bucket.elements / bucket.shards;
      first = owned * ShardIndexOf(plan_, module, bucket, rank) - storage.offset;
      end = first + owned;
    }
    const DType type = StorageType(plan_, module, storage);
    for (const SliceRead& slice : SlicesAt(m, s, at)) {
      drawn += slice.end - slice.read;
      if (slice.taken == nullptr) continue;
      int64_t& of = bytes[static_cast<size_t>(slice.taken->source)];
      of += (slice.read - slice.first) * slice.taken->width;
      const int64_t shard = std::max<int64_t>(0, std::min(slice.read, end) - std::max(slice.first, first));
      if (storage.bucket >= 0 && IsWider(*slice.taken, type)) of += shard * slice.taken->width;
      if (storage.bucket >= 0 && plan_.initialize->optimizer) of += shard * 2 * DTypeBytes(plan_.master());
    }
  }

  // Experts lie along expert_tp and ep, all else along tp: so many ranks share an answer.
  const std::vector<SliceRead>& SlicesAt(size_t m, size_t s, const ShardCoordinates& at) {
    const Module& module = plan_.modules[m];
    const Storage& storage = module.storages[s];
    const bool experts = module.parameters.at(static_cast<size_t>(storage.parameters.at(0))).experts > 0;
    const auto key = std::tuple(m, s, experts ? at.expert_tp_rank : at.tp_rank, experts ? at.ep_rank : 0);
    const auto [known, added] = slices_.try_emplace(key);
    if (!added) return known->second;
    for (const PublishedSlice& slice : SlicesOf(module, storage, at)) {
      if (slice.runs.empty()) continue;
      SliceRead& read = known->second.emplace_back();
      read.first = read.read = slice.runs.front().local;
      read.end = slice.runs.back().local + slice.runs.back().count;
      const auto taken = fit_.taken.find(slice.name);
      if (taken == fit_.taken.end()) continue;
      read.taken = &taken->second;
      for (const ElementRun& run : Split(slice.runs, taken->second.elements, true)) read.read += run.count;
    }
    return known->second;
  }

  const Plan& plan_;
  const WeightsFit& fit_;
  std::map<std::tuple<size_t, size_t, int, int>, std::vector<SliceRead>> slices_;
};

}  // namespace

std::vector<InitialPiece> InitialPieces(const Plan& plan, const WeightsFit& fit, const Module& module, int rank) {
  std::vector<InitialPiece> pieces;
  const auto draw = [&pieces](CheckpointPiece piece) {
    if (!piece.runs.empty()) pieces.push_back({-1, nullptr, std::move(piece)});
  };
  const auto add = [&](const TakenTensor& taken, CheckpointPiece piece) {
    if (!piece.runs.empty()) pieces.push_back({taken.source, &fit.ReaderOf(taken), std::move(piece)});
  };
  for (CheckpointPiece& piece : PiecesToLoad(plan, module, rank)) {
    const auto found = fit.taken.find(piece.name);
    if (found == fit.taken.end()) {
      if (piece.state.empty()) draw(std::move(piece));
      continue;
    }
    const TakenTensor& taken = found->second;
    const DType type = StorageType(plan, module, module.storages.at(static_cast<size_t>(piece.storage)));
    if (piece.state.empty()) {
      CheckpointPiece drawn = piece;
      drawn.runs = Split(piece.runs, taken.elements, false);
      piece.runs = Split(piece.runs, taken.elements, true);
      piece.key = taken.key;
      add(taken, std::move(piece));
      draw(std::move(drawn));
    } else if (piece.state == kMaster) {
      if (!IsWider(taken, type)) continue;
      piece.runs = Split(piece.runs, taken.elements, true);
      piece.key = taken.key;
      add(taken, std::move(piece));
    } else if (plan.initialize->optimizer) {
      add(taken, std::move(piece));
    }
  }
  return pieces;
}

std::vector<RankReads> ReadTable(const Plan& plan, const WeightsFit& fit) {
  std::vector<RankReads> table;
  std::map<std::pair<std::vector<int64_t>, int64_t>, size_t> groups;
  Table reads(plan, fit);
  for (const Role& role : plan.roles) {
    for (const RankRange& range : role.ranks) {
      for (int i = 0; i < range.count; ++i) {
        const int rank = range.first + i * range.stride;
        std::vector<int64_t> bytes(fit.sources.size());
        int64_t drawn = 0;
        reads.AddRank(rank, bytes, drawn);
        const auto [group, added] = groups.try_emplace({bytes, drawn}, table.size());
        if (added) table.push_back({{}, {}, bytes, drawn});
        RankReads& row = table[group->second];
        row.ranks.push_back(rank);
        if (std::find(row.roles.begin(), row.roles.end(), role.name) == row.roles.end()) row.roles.push_back(role.name);
      }
    }
  }
  for (RankReads& row : table) std::sort(row.ranks.begin(), row.ranks.end());
  std::sort(table.begin(), table.end(), [](const RankReads& a, const RankReads& b) { return a.ranks[0] < b.ranks[0]; });
  return table;
}

}  // namespace planwright
