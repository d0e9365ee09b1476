// Upper limits of the sizes of a plan. They are far above what machines and models have. Their purpose: whatever a
// damaged file claims, reading and checking it takes little time and memory, and no sum or product overflows
// (docs/limits.md).
#pragma once

#include <cstddef>
#include <cstdint>

namespace planwright {

// ---- The file.
inline constexpr size_t kLargestPlan = size_t{6} << 20;  // bytes
inline constexpr size_t kMostPlanValues = 11 << 15;      // objects, lists, numbers and texts
inline constexpr size_t kDeepestPlan = 16;               // levels of objects and lists; the planner writes seven
inline constexpr size_t kMostPlanFields = 64;            // of one object
inline constexpr int64_t kMostListed = 1 << 19;          // rows of all runs (number_runs.h)
inline constexpr int64_t kLargestNumber = (int64_t{1} << 53) - 1;  // JSON readers keep larger integers inexactly

// ---- Ranks and parts.
inline constexpr int64_t kMostRanks = 1 << 20;  // products of three sizes of axes stay far from overflow
inline constexpr size_t kMostModules = 1 << 4;  // of bridges too: an encoder has one
inline constexpr size_t kMostParts = 1 << 12;   // of groups, roles, symbols and stages, each
// These count all modules together. Each stage cuts its parameters of each kind of sharing into buckets of its own.
// With gradients.buckets 1 these are at most three.
inline constexpr int64_t kMostLayers = 1 << 9, kMostStages = 3 << 5, kMostBuckets = 3 << 7;
// Rows of the tables of all bridges, and runs of such rows, as the file holds them.
inline constexpr int64_t kMostTransfers = 1 << 18, kMostTransferRuns = 3 << 12;

// ---- Programs.
// Microbatches of a step, times the stages and bridges that each passes: programs name each passage.
inline constexpr int64_t kMostPassages = 9 << 8;
inline constexpr int kDeepestCalls = 8;  // levels of blocks that call each other; the planner makes two
// These count all programs and blocks, with calls opened.
inline constexpr int64_t kMostInstructions = 5 << 19, kMostCalls = 1 << 19;

// ---- Runs.
inline constexpr int64_t kMostRestarts = 1'000'000'000;
inline constexpr int64_t kMostCores = 1 << 20;  // that a job asks for on a node

// ---- The optimizer.
inline constexpr size_t kMostRateParts = 1 << 6;  // of rates: a step hands those of each to its kernels

// ---- Evaluation.
inline constexpr size_t kMostEvaluationSets = 1 << 6;
inline constexpr int64_t kMostDivergenceWindow = 1 << 20;  // steps whose losses a run keeps

// ---- Sizes.
inline constexpr int64_t kMostElements = int64_t{1} << 50;  // of all tensors of a module; FLOPs of a token in a layer
inline constexpr int64_t kLargestDim = int64_t{1} << 36;    // of a value
inline constexpr int64_t kMostSamples = 1'000'000'000'000'000;  // of a training
inline constexpr int64_t kMostTokens = 1 << 24;  // of a sample; also samples of a microbatch, and pixels along an image
// Patches along an image, and along one image token.
inline constexpr int64_t kMostGridSide = 1 << 16, kMostPixelShuffle = 1 << 6;

// ---- Statements of models.
inline constexpr size_t kLargestStatement = size_t{64} << 10;  // bytes
inline constexpr size_t kMostStatementLines = 2000, kMostLayerKinds = 32;
inline constexpr size_t kMostPieceWeights = 256;
inline constexpr size_t kMostListedNames = 256;  // of one line
inline constexpr size_t kMostFormulaParts = 64;  // numbers, names, operations and brackets
// Flags that a module may lack: the checker tries both values of each, all together.
inline constexpr size_t kMostOptionalFlags = 4;
// These flags, and the constants that conditions name and that may be 0: as above.
inline constexpr size_t kMostTriedConstants = 6;

}  // namespace planwright
