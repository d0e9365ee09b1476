// Opens the files of a shard and proves them against the manifest, except for the bytes of tensors. The reader and the
// check of a whole checkpoint share it. Messages say what is wrong, without the name of the file, which the caller has.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "planner/state/checkpoint/format.h"
#include "planner/wire/records/safetensors.h"

namespace planwright {

// Unavailable if there is no such file; DataLoss if it is no plain file or has another size.
absl::Status CheckFileSize(const std::string& path, int64_t bytes);

// The whole of a small file. Unavailable if it cannot be read; DataLoss if its size or digest is another.
absl::StatusOr<std::string> ReadProvedFile(const std::string& path, int64_t bytes, const std::string& sha256);

// The manifest of a checkpoint. Unavailable if it cannot be read; DataLoss if it is damaged or of another version.
absl::StatusOr<Manifest> ReadManifestFile(const std::string& folder);

// The index of a shard, as the manifest has it: also of which run, life and step it is. Errors as above.
absl::StatusOr<ShardIndex> ReadIndexFile(const std::string& folder, const Manifest& manifest,
                                         const ManifestShard& shard);

// The shard: its size, the digest of its header, and all that header and index say of tensors and of the checkpoint fit
// together. Errors as above.
absl::StatusOr<SafetensorsFile> OpenShardFile(const std::string& folder, const ShardIndex& index);

// Reads the bytes of a tensor of a shard and proves them by their digest. `progress(bytes)`: called after each piece
// that was read. DataLoss if they are others, or cannot be read. `not_finite`: becomes the first element of the part
// that is infinity or NaN, if there is one.
absl::Status ProveTensor(const PlainFile& file, const StoredTensor& stored, const std::string& key,
                         const std::string& sha256, const std::function<void(int64_t)>& progress,
                         std::optional<int64_t>* not_finite = nullptr);

// What is wrong with tensor `key`, in words that the reader and the check share.
std::string NoShardHas(const std::string& key, int64_t element);
std::string TwoShardsHave(const std::string& key, int64_t element, int rank, int other_rank);

// All shards must say the same of a tensor. OK, or DataLoss with what differs from `first`, of rank `first_rank`.
absl::Status CheckSameTensor(const std::string& key, const ShardTensor& tensor, DType first_dtype,
                             const std::vector<int64_t>& first_shape, int first_rank);

}  // namespace planwright
