// Sizes that no plan passes. They are far above what machines and models have, and keep whatever a file claims from
// costing more than a moment.
#pragma once

#include <cstddef>
#include <cstdint>

namespace planwright {

inline constexpr int64_t kMostRanks = 1 << 20;           // products of three sizes stay far from overflow
inline constexpr int64_t kMostListed = 1 << 19;          // rows of all runs of a plan's file together
inline constexpr size_t kLargestPlan = size_t{6} << 20;  // bytes of a plan's file
inline constexpr size_t kDeepestPlan = 16;               // levels of objects and lists in it; a written one has seven
inline constexpr size_t kMostPlanValues = 11 << 15;      // objects, lists, numbers and texts in it
inline constexpr size_t kMostPlanFields = 64;            // of one object

// Of all modules. Each stage and sharing cuts its parameters into buckets of its own: three for one of
// gradients.buckets.
inline constexpr int64_t kMostLayers = 1 << 9, kMostStages = 3 << 5, kMostBuckets = 3 << 7;
// of a step's microbatches through stages and over bridges: programs name each
inline constexpr int64_t kMostPassages = 9 << 8;
// Of the tables of all bridges: rows, and runs of rows in equal steps, which is how a file holds them.
inline constexpr int64_t kMostTransfers = 1 << 18, kMostTransferRuns = 3 << 12;
// of a plan, seeds too: JSON readers keep no larger ones exactly
inline constexpr int64_t kLargestNumber = (int64_t{1} << 53) - 1;
inline constexpr int64_t kMostElements = int64_t{1} << 50;  // of all tensors of a module; FLOPs of a token in a layer
inline constexpr int64_t kMostSamples = 1'000'000'000'000'000;  // of a training
inline constexpr int64_t kMostTokens = 1 << 24;  // of a sample; samples of a microbatch; pixels along an image
// patches along an image, and along one of its tokens
inline constexpr int64_t kMostGridSide = 1 << 16, kMostPixelShuffle = 1 << 6;
inline constexpr int64_t kLargestDim = int64_t{1} << 36;  // of a value
inline constexpr size_t kMostModules = 1 << 4;            // and bridges: an encoder has one
inline constexpr size_t kMostParts = 1 << 12;             // groups, roles, symbols, stages
inline constexpr int kDeepestCalls = 8;                   // blocks that call one another; lowered ones go two deep
// of all programs and blocks with what they call
inline constexpr int64_t kMostInstructions = 5 << 19, kMostCalls = 1 << 19;

}  // namespace planwright
