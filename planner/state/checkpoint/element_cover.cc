#include "planner/state/checkpoint/element_cover.h"

#include <algorithm>

namespace planwright {

ElementCursor::ElementCursor(const std::vector<ElementStride>& elements) : elements_(&elements) {
  if (!done()) Set(0);
}

void ElementCursor::Set(int64_t time) {
  const ElementStride& stride = (*elements_)[stride_];
  run_ = {local_ + time * stride.count, stride.first + time * stride.stride, stride.count};
}

void ElementCursor::SeekPast(int64_t whole) {
  for (; !done(); ++stride_) {
    const ElementStride& stride = (*elements_)[stride_];
    if (stride.first + (stride.times - 1) * stride.stride + stride.count > whole) {
      // Straight to the run, however many there are before it.
      const int64_t behind = whole - stride.first - stride.count;
      const int64_t time = behind < 0 || stride.times == 1 ? 0 : behind / stride.stride + 1;
      return Set(time);
    }
    local_ += stride.count * stride.times;
  }
}

ElementCover::ElementCover(const std::vector<const std::vector<ElementStride>*>& shards) {
  for (size_t shard = 0; shard < shards.size(); ++shard) {
    ShardCursor of_shard{shard, ElementCursor(*shards[shard])};
    if (!of_shard.cursor.done()) heap_.push_back(of_shard);
  }
  std::make_heap(heap_.begin(), heap_.end(), After);
}

void ElementCover::MoveTop(int64_t whole) {
  std::pop_heap(heap_.begin(), heap_.end(), After);
  heap_.back().cursor.SeekPast(whole);
  if (heap_.back().cursor.done()) {
    heap_.pop_back();
  } else {
    std::push_heap(heap_.begin(), heap_.end(), After);
  }
}

bool ElementCover::Advance(int64_t whole) {
  while (!heap_.empty() && heap_.front().cursor.end() <= whole) MoveTop(whole);
  return !heap_.empty();
}

std::optional<CoverProblem> ElementCover::Walk(int64_t first, int64_t count,
                                               const std::function<void(const CoveredRun&)>& visit) {
  const int64_t end = first + count;
  for (int64_t at = first; at < end;) {
    if (!Advance(at) || heap_.front().cursor.run().whole > at) return CoverProblem{at, {}, {}};
    std::pop_heap(heap_.begin(), heap_.end(), After);
    const ShardCursor found = heap_.back();
    heap_.pop_back();
    const ElementRun& run = found.cursor.run();
    const int64_t until = std::min(end, found.cursor.end());
    const bool shared = Advance(at) && heap_.front().cursor.run().whole < until;
    if (shared) return CoverProblem{std::max(at, heap_.front().cursor.run().whole), found.shard, heap_.front().shard};
    visit({found.shard, {run.local + at - run.whole, at, until - at}});
    heap_.push_back(found);
    std::push_heap(heap_.begin(), heap_.end(), After);
    at = until;
  }
  return std::nullopt;
}

}  // namespace planwright
