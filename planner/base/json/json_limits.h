// How long each text of JSON may be that is read, from a file or from a connection, and how many values and levels it
// may have. They are far above what Planwright writes. Texts come from anywhere, and a tree of JSON takes a hundred
// times the memory of its text: so what is beyond a limit is refused before memory is taken for it (json_text.h). The
// table in docs/limits.md is made of this one.
#pragma once

#include <cstddef>
#include <string_view>

#include "planner/base/text/limits.h"

namespace planwright {

struct JsonLimits {
  std::string_view what;
  size_t bytes;   // of the text; of one line, where each line is a text of its own
  size_t values;  // objects, lists, numbers and texts
  size_t depth;   // levels of objects and lists
  size_t fields;  // of one object
};

inline constexpr JsonLimits kPlanJson = {"plan", kLargestPlan, kMostPlanValues, kDeepestPlan, kMostPlanFields};
inline constexpr JsonLimits kProfileJson = {"profile of a device", 1 << 25, 1 << 21, 8, 1 << 6};

// ---- Of a run directory.
inline constexpr JsonLimits kStartJson = {"start.json of a life", 1 << 14, 1 << 10, 8, 1 << 8};
inline constexpr JsonLimits kOutcomeJson = {"outcome.json", 1 << 24, 1 << 18, 12, 1 << 12};
inline constexpr JsonLimits kStepLineJson = {"line of metrics.jsonl", 1 << 20, 1 << 16, 8, 1 << 12};
inline constexpr JsonLimits kCheckpointLineJson = {"line of the log of checkpoints", 1 << 14, 1 << 8, 4, 1 << 6};
inline constexpr JsonLimits kRankMemoryJson = {"peak of a rank's memory", 1 << 12, 1 << 6, 2, 1 << 5};
inline constexpr JsonLimits kRankVariablesJson = {"environment of a rank", 1 << 22, 1 << 14, 4, 1 << 4};
// 16 steps of at most 32,768 instructions.
inline constexpr JsonLimits kTraceJson = {"trace of a rank", 1 << 29, 1 << 25, 8, 1 << 6};
inline constexpr JsonLimits kRoundsJson = {"rounds of communications", 1 << 21, 1 << 17, 4, 1 << 4};
inline constexpr JsonLimits kRoundTimesJson = {"times of rounds", 1 << 26, 1 << 22, 4, 1 << 4};
inline constexpr JsonLimits kRoutingJson = {"summary of expert choices", 1 << 20, 1 << 16, 8, 1 << 10};
// The files that a node is asked to read, and what came of it.
inline constexpr JsonLimits kTrialJson = {"part of a trial", 1 << 23, 1 << 14, 4, 1 << 5};
// The names and values of an environment.
inline constexpr JsonLimits kJobJson = {"launch.json of a job", 1 << 22, 1 << 16, 4, 1 << 15};
inline constexpr JsonLimits kStartsJson = {"starts of a job in vain", 1 << 12, 1 << 6, 2, 1 << 5};

// ---- Of a checkpoint, and of tensors.
inline constexpr JsonLimits kManifestJson = {"manifest of a checkpoint", 1 << 28, 6 << 20, 6, 1 << 8};
inline constexpr JsonLimits kShardIndexJson = {"index of a shard", 1 << 28, 1 << 24, 6, 1 << 20};
inline constexpr JsonLimits kSafetensorsJson = {"header of a safetensors file", 100'000'000, 1 << 24, 4, 1 << 20};
inline constexpr JsonLimits kWeightIndexJson = {"index of published weights", 100'000'000, 1 << 21, 4, 1 << 20};
inline constexpr JsonLimits kModelConfigJson = {"config.json of published weights", 1 << 22, 1 << 17, 16, 1 << 12};

// ---- Of the shards of a source of data.
inline constexpr JsonLimits kPreparedJson = {"prepared.json of shards", 1 << 26, 1 << 22, 6, 1 << 8};
inline constexpr JsonLimits kPiecesJson = {"pieces.json of shards", 1 << 27, 1 << 22, 3, 1 << 4};
inline constexpr JsonLimits kImagesJson = {"list of a document's images", 1 << 22, 1 << 17, 4, 1 << 4};
// 4,096 patches and squares, and what each encoder sees of each source.
inline constexpr JsonLimits kCountedJson = {"counts of a data index", 1 << 24, 1 << 21, 4, 1 << 4};

// ---- Between processes.
inline constexpr JsonLimits kHeadJson = {"file of a head", 1 << 12, 1 << 4, 2, 1 << 4};
inline constexpr JsonLimits kAgentLineJson = {"message of a head or an agent", 1 << 23, 1 << 16, 8, 1 << 15};
inline constexpr JsonLimits kStoreValueJson = {"value in the store of a run", 1 << 16, 1 << 8, 4, 1 << 6};

inline constexpr const JsonLimits* kAllJsonLimits[] = {
    &kPlanJson,          &kProfileJson,     &kStartJson,       &kOutcomeJson,     &kStepLineJson, &kCheckpointLineJson,
    &kRankMemoryJson,    &kTraceJson,       &kRoutingJson,     &kJobJson,         &kStartsJson,   &kManifestJson,
    &kShardIndexJson,    &kSafetensorsJson, &kWeightIndexJson, &kModelConfigJson, &kPreparedJson, &kPiecesJson,
    &kImagesJson,        &kHeadJson,        &kAgentLineJson,   &kStoreValueJson,  &kRoundsJson,   &kRoundTimesJson,
    &kRankVariablesJson, &kTrialJson,       &kCountedJson};

// ---- Files that are no JSON, in bytes. What is longer is not read.
inline constexpr size_t kLargestNameFile = 512;           // who holds a run directory
inline constexpr size_t kLongestProgramOutput = 1 << 16;  // that is kept of what sbatch or scontrol prints

}  // namespace planwright
