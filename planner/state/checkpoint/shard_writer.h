// Writes the files of a checkpoint so that they survive a power cut and a parallel file system
// (docs/checkpoints.md#publishing): every rank writes, syncs and closes its shard and index; rank 0 checks the sizes of
// all and publishes the manifest.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/state/checkpoint/format.h"

namespace planwright {

// One tensor of a shard. `ranges` together are its elements in the order of `elements`, in host memory.
struct ShardSource {
  std::string key;
  DType dtype = DType::kFp32;
  std::vector<int64_t> shape;           // of the whole tensor
  std::vector<ElementStride> elements;  // that this rank writes
  std::vector<std::span<const std::byte>> ranges;
};

// What the writing of a shard calls. Both may wait.
struct ShardWriting {
  // Before the bytes of a range are read, with the first of them. Ranges come in the order of the file: that of
  // LayOutSafetensors, and of ShardSource::ranges. Those of earlier ranges are not read again, so their memory may be
  // used for this one.
  std::function<void(const std::byte*)> before_range;
  // After each write of at most 4 MiB, with the bytes of the shard since the last call.
  std::function<void(int64_t)> wrote;
};

// Writes rank-N.safetensors and rank-N.json in `folder`, which exists, and syncs both and the folder. `of`: the
// checkpoint, which both files name. Reads `sources` once. InvalidArgument if ranges do not fit elements, or keys
// repeat; ResourceExhausted, with the path, if a write fails (a full disk).
absl::StatusOr<ManifestShard> WriteShard(const std::string& folder, int rank, const CheckpointIdentity& of,
                                         const std::vector<ShardSource>& sources, const ShardWriting& calls = {});

// Writes `text` at FOLDER/NAME by temporary file, sync, rename and sync of the folder. If the rename fails but the file
// is there with these bytes, it is a success (a file system may have lost only the answer).
absl::Status WriteDurably(const std::string& folder, const std::string& name, const std::string& text);

// Checks that every file of the manifest has its size, as this process sees it, and writes the manifest.
// InvalidArgument if it names no run; Unavailable if a size differs; ResourceExhausted if it cannot be written.
absl::Status PublishManifest(const std::string& folder, const Manifest& manifest);

}  // namespace planwright
