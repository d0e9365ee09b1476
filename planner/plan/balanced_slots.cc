#include "planner/plan/balanced_slots.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <numeric>
#include <set>
#include <utility>

namespace planwright {
namespace {

// Samples by their number of patches, most first. Those with equally many stay in the order of their numbers, so that
// the result is the same everywhere.
using SampleList = std::vector<int64_t>;

// Divides a group into halves of equal size and nearly equal work. If the size is odd, the first half has one sample
// more, and should have the work of an average sample more.
class Halver {
 public:
  explicit Halver(std::span<const int64_t> patches) : patches_(patches) {}

  std::pair<SampleList, SampleList> Halve(const SampleList& group) const {
    std::pair<SampleList, SampleList> halves = Deal(group);
    const int64_t wanted = group.size() % 2 == 1 ? Work(group) / static_cast<int64_t>(group.size()) : 0;
    // Each exchange at least halves what it can of the difference; a few reach what exchanges of one pair can reach.
    for (int rounds = std::bit_width(group.size()) + 1; rounds > 0 && Exchange(wanted, halves); --rounds) {
    }
    return halves;
  }

  int64_t Work(const SampleList& group) const {
    int64_t work = 0;
    for (int64_t sample : group) work += patches_[sample];
    return work;
  }

 private:
  // Pair by pair, the larger sample goes to the half that has less.
  std::pair<SampleList, SampleList> Deal(const SampleList& group) const {
    SampleList first, second;
    int64_t more = 0;  // patches of the first half beyond those of the second
    for (size_t i = 0; i + 1 < group.size(); i += 2) {
      const bool larger_first = more <= 0;
      first.push_back(group[larger_first ? i : i + 1]);
      second.push_back(group[larger_first ? i + 1 : i]);
      more += patches_[first.back()] - patches_[second.back()];
    }
    if (group.size() % 2 == 1) first.push_back(group.back());
    return {std::move(first), std::move(second)};
  }

  // Exchanges the two samples after which the first half has nearly `wanted` more than the second. False if no exchange
  // brings it nearer. Both halves are sorted, and stay so.
  bool Exchange(int64_t wanted, std::pair<SampleList, SampleList>& halves) const {
    auto& [first, second] = halves;
    const int64_t more = Work(first) - Work(second) - wanted;
    int64_t best = std::abs(more);
    size_t best_first = 0, best_second = 0;
    bool found = false;
    // With a sample of the first half fixed, the difference grows along the second half; where it changes its sign
    // moves along as the first one gets smaller.
    size_t k = 0;
    for (size_t i = 0; i < first.size(); ++i) {
      const auto after = [&](size_t j) { return more - 2 * (patches_[first[i]] - patches_[second[j]]); };
      while (k < second.size() && after(k) > 0) ++k;
      for (size_t j : {k, k - 1}) {
        if (j >= second.size() || std::abs(after(j)) >= best) continue;
        best = std::abs(after(j));
        best_first = i;
        best_second = j;
        found = true;
      }
    }
    if (!found) return false;
    std::swap(first[best_first], second[best_second]);
    Sort(first);
    Sort(second);
    return true;
  }

  void Sort(SampleList& group) const {
    std::sort(group.begin(), group.end(),
              [&](int64_t a, int64_t b) { return patches_[a] != patches_[b] ? patches_[a] > patches_[b] : a < b; });
  }

  std::span<const int64_t> patches_;
};

// What each lane has in many layouts. A microbatch has a number of slots that divides theirs, and a lane has the same
// part of each microbatch: a half, a quarter, an eighth or one slot.
class LaneSums {
 public:
  LaneSums(std::span<const int64_t> patches, const std::vector<int64_t>& slots) : patches_(patches) {
    const size_t count = slots.size();
    for (size_t microbatch = 2; microbatch <= count; ++microbatch) {
      if (count % microbatch != 0) continue;
      for (size_t lanes : std::set<size_t>{2, 4, 8, microbatch}) {
        if (microbatch % lanes == 0) layouts_.emplace_back(count, microbatch, microbatch / lanes);
      }
    }
    for (LaneLayout& layout : layouts_) {
      for (size_t slot = 0; slot < count; ++slot) layout.sums[layout.lane[slot]] += patches_[slots[slot]];
    }
  }

  // Puts other samples into the slots from `begin` on. Returns what that adds to the squares of what lanes have. The
  // lanes of a layout have always the same together, so with less they are more equal.
  __int128 Replace(size_t begin, std::span<const int64_t> before, std::span<const int64_t> after) {
    __int128 change = 0;
    for (LaneLayout& layout : layouts_) {
      for (size_t i = 0; i < before.size(); ++i) {
        int64_t& sum = layout.sums[layout.lane[begin + i]];
        const int64_t more = patches_[after[i]] - patches_[before[i]];
        change += static_cast<__int128>(more) * (2 * sum + more);
        sum += more;
      }
    }
    return change;
  }

 private:
  struct LaneLayout {
    LaneLayout(size_t slots, size_t microbatch, size_t share) : lane(slots), sums(microbatch / share) {
      for (size_t slot = 0; slot < slots; ++slot) lane[slot] = static_cast<uint32_t>(slot % microbatch / share);
    }
    std::vector<uint32_t> lane;  // of each slot
    std::vector<int64_t> sums;   // patches of each lane
  };

  std::span<const int64_t> patches_;
  std::vector<LaneLayout> layouts_;
};

// Two neighbouring halves.
struct Division {
  size_t begin, middle, end;
};

// Lets halves change places where that makes the lanes of more layouts equal. What a half has stays.
void Orient(std::span<const int64_t> patches, const std::vector<Division>& divisions, std::vector<int64_t>& slots) {
  constexpr int kPasses = 2;
  LaneSums sums(patches, slots);
  for (int pass = 0; pass < kPasses; ++pass) {
    bool changed = false;
    for (const auto& [begin, middle, end] : divisions) {
      const std::vector<int64_t> before(slots.begin() + begin, slots.begin() + end);
      std::vector<int64_t> after = before;
      std::rotate(after.begin(), after.begin() + (middle - begin), after.end());
      if (sums.Replace(begin, before, after) < 0) {
        std::copy(after.begin(), after.end(), slots.begin() + begin);
        changed = true;
      } else {
        sums.Replace(begin, after, before);
      }
    }
    if (!changed) return;
  }
}

}  // namespace

std::vector<int64_t> BalancedSlots(std::span<const int64_t> patches) {
  std::vector<int64_t> slots(patches.size());
  std::iota(slots.begin(), slots.end(), 0);
  std::stable_sort(slots.begin(), slots.end(), [&](int64_t a, int64_t b) { return patches[a] > patches[b]; });
  const Halver halver(patches);
  // The halves of all groups, from the whole to pairs. A later division is inside an earlier one, or beside it.
  std::vector<Division> divisions = {{0, 0, slots.size()}};
  for (size_t i = 0; i < divisions.size(); ++i) {
    Division& division = divisions[i];
    const auto [first, second] = halver.Halve({slots.begin() + division.begin, slots.begin() + division.end});
    division.middle = division.begin + first.size();
    std::copy(first.begin(), first.end(), slots.begin() + division.begin);
    std::copy(second.begin(), second.end(), slots.begin() + division.middle);
    const auto [begin, middle, end] = division;
    if (middle - begin > 1) divisions.push_back({begin, 0, middle});
    if (end - middle > 1) divisions.push_back({middle, 0, end});
  }
  Orient(patches, divisions, slots);
  return slots;
}

}  // namespace planwright
