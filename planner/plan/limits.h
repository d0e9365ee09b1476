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
inline constexpr int64_t kLargestNumber = (int64_t{1} << 53) - 1;  // of a plan, seeds too: JSON readers keep no larger ones exactly
inline constexpr int64_t kMostElements = int64_t{1} << 50;   // of all tensors of a module; FLOPs of a token in a layer
inline constexpr int64_t kMostSamples = 1'000'000'000'000'000;  // of a training
inline constexpr int64_t kMostTokens = 1 << 24;      // of a sample; samples of a microbatch; pixels along an image
inline constexpr int64_t kMostGridSide = 1 << 16, kMostPixelShuffle = 1 << 6;  // patches along an image, and along one of its tokens
inline constexpr int64_t kLargestDim = int64_t{1} << 36;     // of a value
inline constexpr size_t kMostModules = 64;           // and bridges: an encoder has one
inline constexpr size_t kMostParts = 1 << 12;        // groups, roles, symbols, stages
inline constexpr int kDeepestCalls = 8;              // blocks that call one another; lowered ones go two deep
inline constexpr int64_t kMostInstructions = 1 << 24;  // of all programs and blocks with what they call

}  // namespace planwright
