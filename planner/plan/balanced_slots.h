// The order of the samples of a step in which all lanes have nearly equally much to do, whatever the layout
// (docs/training/data.md#balance).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace planwright {

// `patches`: of each sample of a step, from 0. Returns the sample (an index of `patches`) of each slot: each sample
// once. Recursive halving: every half, quarter, eighth, ... of the slots has nearly equally many patches. Which half
// comes first is chosen so that lanes that have the same part of each microbatch have nearly equally many too. Whole
// numbers decide, so the result is the same on every machine. With n samples the halving takes O(n log^2 n) time, and
// the choice O(n log n) for each number that divides n.
std::vector<int64_t> BalancedSlots(std::span<const int64_t> patches);

}  // namespace planwright
