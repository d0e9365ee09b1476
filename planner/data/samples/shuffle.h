// The key `shuffle`: in which order the documents of a source are packed, and in which order an epoch has the samples
// (docs/training/data.md#shuffle). All orders are permutations that are looked up, not stored.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/data/samples/permutation.h"
#include "planner/plan/plan.h"

namespace planwright {

// What `shuffle` says. all: everything at once. none: nothing. A number: in runs of about so many documents.
struct ShuffleRule {
  enum class Kind { kAll, kNone, kRuns } kind = Kind::kAll;
  int64_t run = 0;
};
// `text`: all, none, or a number of at least 1.
ShuffleRule ShuffleRuleOf(const std::string& text);

// The order of documents before packing; the same in every epoch.
class DocumentOrder {
 public:
  // `shard_begins`: Documents::shard_begins().
  DocumentOrder(const ShuffleRule& rule, int64_t seed, const std::string& source,
                const std::vector<int64_t>& shard_begins);

  // Windows of documents do not cross these places: 0, ..., all documents. With runs the shards, else the two ends.
  const std::vector<int64_t>& stretches() const { return stretches_; }
  // Appends the documents of the places [first, end) of one stretch.
  void Append(int64_t stretch, int64_t first, int64_t end, std::vector<int64_t>& documents) const;

 private:
  const ShuffleRule rule_;
  const int64_t seed_;
  const std::string source_;
  std::vector<int64_t> stretches_;
  std::optional<KeyedPermutation> all_;
};

// The order of samples in an epoch. Several threads may ask at once; none waits for another.
class EpochOrder {
 public:
  // `stretch_packs`: the first pack of each stretch, and the number of packs at the end. `documents`: how many
  // documents are in the packs, at least 1.
  EpochOrder(const ShuffleRule& rule, int64_t seed, const std::string& source, std::vector<int64_t> stretch_packs,
             int64_t documents);

  // The pack that is at `place` of an epoch.
  int64_t Pack(int64_t epoch, int64_t place) const;

 private:
  // The shards of one epoch in their order, and the first place of each.
  struct Shards {
    int64_t epoch = 0;
    std::vector<int64_t> order, first_place;
  };
  std::shared_ptr<const Shards> ShardsOf(int64_t epoch) const;

  const ShuffleRule rule_;
  const int64_t seed_;
  const std::string source_;
  const std::vector<int64_t> stretch_packs_;
  int64_t run_ = 0;  // with runs: samples that are shuffled together
  // Of the latest two epochs: near the end of one, samples of both are read.
  mutable std::atomic<std::shared_ptr<const Shards>> latest_[2];
};

}  // namespace planwright
