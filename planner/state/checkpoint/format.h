// The files of a checkpoint (docs/checkpoints.md#files). A checkpoint is a folder RUN/checkpoints/step-00000100.life-1
// with
//
//   manifest.json                    written last: a checkpoint is what has a valid one
//   plan.json                        the plan of the run that wrote it
//   rank-00003.safetensors           what rank 3 wrote: a tensor for each key
//   rank-00003.json                  its index: where each tensor lies in the whole one, and its digest
//
// A tensor of a shard is the whole tensor, in its own shape, where the rank has all of it; else a list [n] of elements,
// ascending by their index in the whole tensor. The manifest has the digest of each index, and an index those of the
// shard's header and of each tensor: so every byte is covered. All files say of which run, life and step they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/instruction.h"
#include "planner/plan/plan.h"
#include "planner/plan/shard_map.h"

namespace planwright {

inline constexpr int kCheckpointFormatVersion = 2;
// Is read too: that of releases whose runs had no identity. Such files have no run_id, and indices say nothing of the
// checkpoint that they belong to.
inline constexpr int kCheckpointFormatWithoutRun = 1;

// `times` runs of `count` elements of the whole tensor, at first, first + stride, ... One run has the stride 0.
struct ElementStride {
  int64_t first = 0, count = 0, stride = 0, times = 1;
  bool operator==(const ElementStride&) const = default;
};
// The whole-tensor side of runs that ascend, as few strides as a greedy pass finds; neighbours are joined first.
std::vector<ElementStride> StridesOf(const std::vector<ElementRun>& runs);
// The inverse: `local` counts the elements of the entry from 0. Not for strides of a file, which may say that they are
// billions of runs: element_cover.h walks them one by one.
std::vector<ElementRun> RunsOf(const std::vector<ElementStride>& strides);

struct ShardTensor {
  DType dtype = DType::kFp32;
  std::vector<int64_t> shape;           // of the whole tensor
  std::vector<ElementStride> elements;  // that this shard has
  std::string sha256;                   // of their bytes in the shard
};

// How many elements of the whole tensor a shard has. InvalidArgument, with the key, unless the key and the shape can be
// in a safetensors file, and the strides ascend, do not overlap and lie in the tensor. Only a tensor without elements
// may have no strides.
absl::StatusOr<int64_t> CheckShardTensor(const std::string& key, const std::vector<int64_t>& shape,
                                         const std::vector<ElementStride>& elements);
// The shape that the tensor has in the shard, where it has `count` elements of a tensor of this shape.
std::vector<int64_t> ShapeInShard(const std::vector<int64_t>& shape, int64_t count);

// What is the same on all ranks (CheckpointPlan::common).
struct CheckpointCounters {
  int64_t step = 0;              // steps that are done
  int64_t applied_steps = 0;     // of these, AdamW's own count
  int64_t skipped_steps = 0;     // the others
  int64_t consumed_samples = 0;  // where the samples of the next step begin
  bool operator==(const CheckpointCounters&) const = default;
};

// Which checkpoint a file belongs to. The manifest says it, and each index again.
struct CheckpointIdentity {
  std::string run_id;  // run_id.h
  int life = 1;        // of the run that wrote it
  CheckpointCounters counters;
  bool operator==(const CheckpointIdentity&) const = default;
};
bool IsRunId(std::string_view text);  // 32 hex digits, as NewRunId makes them

// The type of a whole tensor.
struct TensorType {
  DType dtype = DType::kFp32;
  std::vector<int64_t> shape;
};
using TensorTypes = std::map<std::string, TensorType>;  // by key

// The index of one shard.
struct ShardIndex {
  int rank = 0;
  std::optional<CheckpointIdentity> of;        // none: format 1
  int64_t bytes = 0;                           // of the shard
  std::string header_sha256;                   // of its first bytes, up to where tensors begin
  std::map<std::string, ShardTensor> tensors;  // by key
};
std::string WriteShardIndex(const ShardIndex& index);
// InvalidArgument with what is wrong: untrusted bytes.
absl::StatusOr<ShardIndex> ReadShardIndex(std::string_view text);
// What the header of the shard says beside its tensors, so that a shard that lies alone can be told from others. Empty
// in format 1.
std::map<std::string, std::string> ShardMetadata(const ShardIndex& index);

struct ManifestShard {
  int rank = 0;
  int64_t bytes = 0, index_bytes = 0;
  std::string index_sha256;
};

// The loss of an evaluation set, which has tokens to learn.
struct SetLoss {
  std::optional<double> loss;  // nullopt: it is not finite
  std::string samples_digest;  // SamplesDigest (plan_json.h); empty: of older programs
  bool operator==(const SetLoss&) const = default;
};

// What a run knows of its curves at a checkpoint, beside the counters. The same on all ranks.
struct ManifestNotes {
  // The losses of the last steps, oldest first, as many as `divergence.window` looks at. Empty: the run has no such
  // rule.
  std::vector<double> recent_losses;
  // How many steps up to this one were skipped, as their gradient norm was not finite: a run ends at so many in a row,
  // also if they are of several lives.
  int64_t skipped_in_a_row = 0;
  // The loss of each evaluation set with these weights, by its name. Empty: they have not been evaluated when the
  // checkpoint was written. A set without a token to learn has none.
  std::map<std::string, SetLoss> evaluation;
  bool operator==(const ManifestNotes&) const = default;
};

struct Manifest {
  std::string name;                        // of the plan
  std::string plan_digest, recipe_digest;  // Plan::digest, Plan::recipe_digest
  std::string precision;                   // Plan::precision
  int world_size = 0;
  std::string run_id;  // of the run that wrote it; empty: format 1
  int life = 1;        // of that run
  CheckpointCounters counters;
  int64_t plan_bytes = 0;
  std::string plan_sha256;  // of plan.json
  // With data of kind `sources`: Documents::digest() of each source, by its name. Empty: nothing is said of the files.
  std::map<std::string, std::string> data;
  // The digest of what the adapters of a module stand on, by its name (weights/base_digest.h). Empty: there are none.
  std::map<std::string, std::string> base;
  ManifestNotes notes;
  std::vector<ManifestShard> shards;  // ascending by rank; ranks that write nothing have none

  CheckpointIdentity identity() const { return {run_id, life, counters}; }
};
// JSON whose last field is the SHA-256 of all before it, in every version of the format.
std::string WriteManifest(const Manifest& manifest);
// InvalidArgument with what is wrong: a damaged byte, a byte too many, another version.
absl::StatusOr<Manifest> ReadManifest(std::string_view text);

std::string CheckpointFolder(int64_t step, int life);  // "step-00000100.life-1"
std::string ShardFile(int rank);                       // "rank-00003.safetensors"
std::string IndexFile(int rank);                       // "rank-00003.json"
inline constexpr char kManifestFile[] = "manifest.json";
inline constexpr char kCheckpointPlanFile[] = "plan.json";

}  // namespace planwright
