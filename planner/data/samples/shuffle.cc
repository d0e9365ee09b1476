#include "planner/data/samples/shuffle.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "planner/base/text/bug.h"

namespace planwright {

ShuffleRule ShuffleRuleOf(const std::string& text) {
  if (text == "all") return {ShuffleRule::Kind::kAll, 0};
  if (text == "none") return {ShuffleRule::Kind::kNone, 0};
  int64_t run = 0;
  Require(absl::SimpleAtoi(text, &run) && run >= 1, "a shuffle that the planner must have refused");
  return {ShuffleRule::Kind::kRuns, run};
}

// --- documents

DocumentOrder::DocumentOrder(const ShuffleRule& rule, int64_t seed, const std::string& source,
                             const std::vector<int64_t>& shard_begins)
    : rule_(rule), seed_(seed), source_(source), stretches_(shard_begins) {
  const int64_t documents = shard_begins.back();
  if (rule.kind != ShuffleRule::Kind::kRuns) stretches_ = {0, documents};
  if (rule.kind == ShuffleRule::Kind::kAll && documents > 0)
    all_.emplace(seed, absl::StrCat("sources.documents.", source), documents);
}

void DocumentOrder::Append(int64_t stretch, int64_t first, int64_t end, std::vector<int64_t>& documents) const {
  const int64_t begin = stretches_[stretch], length = stretches_[stretch + 1] - begin;
  while (first < end) {
    if (rule_.kind != ShuffleRule::Kind::kRuns) {
      documents.push_back(all_ ? all_->At(begin + first) : begin + first);
      ++first;
      continue;
    }
    const int64_t run = first / rule_.run, run_begin = run * rule_.run;
    const KeyedPermutation permutation(seed_, absl::StrCat("sources.documents.", stretch, ".", run, ".", source_),
                                       std::min(rule_.run, length - run_begin));
    for (; first < end && first / rule_.run == run; ++first)
      documents.push_back(begin + run_begin + permutation.At(first - run_begin));
  }
}

// --- samples

EpochOrder::EpochOrder(const ShuffleRule& rule, int64_t seed, const std::string& source,
                       std::vector<int64_t> stretch_packs, int64_t documents)
    : rule_(rule), seed_(seed), source_(source), stretch_packs_(std::move(stretch_packs)) {
  // So many samples hold about rule.run documents. min: also for a run without end.
  run_ = std::max<int64_t>(1, std::min(rule.run, documents) * stretch_packs_.back() / documents);
}

std::shared_ptr<const EpochOrder::Shards> EpochOrder::ShardsOf(int64_t epoch) const {
  std::atomic<std::shared_ptr<const Shards>>& latest = latest_[epoch % 2];
  std::shared_ptr<const Shards> found = latest.load();
  if (found != nullptr && found->epoch == epoch) return found;
  auto shards = std::make_shared<Shards>();
  shards->epoch = epoch;
  const int64_t count = static_cast<int64_t>(stretch_packs_.size()) - 1;
  const KeyedPermutation permutation(seed_, absl::StrCat("sources.shards.", epoch, ".", source_), count);
  int64_t place = 0;
  for (int64_t i = 0; i < count; ++i) {
    shards->order.push_back(permutation.At(i));
    shards->first_place.push_back(place);
    place += stretch_packs_[shards->order.back() + 1] - stretch_packs_[shards->order.back()];
  }
  latest.store(shards);
  return shards;
}

int64_t EpochOrder::Pack(int64_t epoch, int64_t place) const {
  const int64_t packs = stretch_packs_.back();
  if (rule_.kind == ShuffleRule::Kind::kNone) return place;
  if (rule_.kind == ShuffleRule::Kind::kAll)
    return KeyedPermutation(seed_, absl::StrCat("sources.samples.", epoch, ".", source_), packs).At(place);
  const int64_t run = place / run_, begin = run * run_;
  const KeyedPermutation permutation(seed_, absl::StrCat("sources.samples.", epoch, ".", run, ".", source_),
                                     std::min(run_, packs - begin));
  const int64_t shuffled = begin + permutation.At(place - begin);
  const std::shared_ptr<const Shards> shards = ShardsOf(epoch);
  // The last shard that begins at or before the place: shards without packs begin where the next one does.
  const auto& firsts = shards->first_place;
  const int64_t i = std::upper_bound(firsts.begin(), firsts.end(), shuffled) - firsts.begin() - 1;
  return stretch_packs_[shards->order[i]] + shuffled - firsts[i];
}

}  // namespace planwright
