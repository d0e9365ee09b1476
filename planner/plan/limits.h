// Sizes that no plan passes. They are far above what machines and models have, and keep whatever a file claims from costing more than a moment.
#pragma once

#include <cstddef>
#include <cstdint>

namespace planwright {

inline constexpr int64_t kMostRanks = 1 << 20;       // products of three sizes stay far from overflow
inline constexpr int64_t kMostListed = 1 << 21;      // rows of all runs of a plan's file together
inline constexpr size_t kLargestPlan = size_t{16} << 20;  // bytes of a plan's file
inline constexpr size_t kDeepestPlan = 16;           // levels of objects and lists in it; a written one has seven
inline constexpr size_t kMostPlanValues = 1 << 20;   // objects, lists, numbers and texts in it
inline constexpr size_t kMostPlanFields = 64;        // of one object

inline constexpr size_t kMostLayers = 1 << 12;      // of a module
// Of a step, on the stages of all modules: programs name each. And on their layers: proofs follow each.
inline constexpr int64_t kMostStageForwards = 1 << 12, kMostLayerForwards = 1 << 16;
inline constexpr size_t kMostModules = 64;           // and bridges: an encoder has one
inline constexpr size_t kMostParts = 1 << 12;        // groups, roles, symbols, stages
inline constexpr int kDeepestCalls = 8;              // blocks that call one another; lowered ones go two deep
inline constexpr int64_t kMostInstructions = 1 << 24;  // of all programs and blocks with what they call

}  // namespace planwright
