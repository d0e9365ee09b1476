#include "planner/state/checkpoint/shard_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "planner/base/digest/sha256.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"

namespace planwright {
namespace {

std::string TypeAndShape(DType dtype, const std::vector<int64_t>& shape) {
  return absl::StrCat(std::string(DTypeName(dtype)), " [", absl::StrJoin(shape, ","), "]");
}

// Whether an index and its manifest are of one checkpoint.
absl::Status CheckSameCheckpoint(const ShardIndex& index, const Manifest& manifest) {
  const auto differs = [](const char* what, const auto& found, const auto& expected) {
    return absl::DataLossError(absl::StrCat("its ", what, " is ", found, "; the manifest says ", expected));
  };
  const CheckpointIdentity expected = manifest.identity();
  if (index.of.has_value() == expected.run_id.empty())
    return differs("run_id", index.of ? index.of->run_id : "missing", index.of ? "none" : expected.run_id);
  if (!index.of || *index.of == expected) return absl::OkStatus();
  const CheckpointCounters &found = index.of->counters, &counters = expected.counters;
  if (index.of->run_id != expected.run_id) return differs("run_id", index.of->run_id, expected.run_id);
  if (index.of->life != expected.life) return differs("life", index.of->life, expected.life);
  if (found.step != counters.step) return differs("step", found.step, counters.step);
  if (found.applied_steps != counters.applied_steps)
    return differs("applied_steps", found.applied_steps, counters.applied_steps);
  if (found.skipped_steps != counters.skipped_steps)
    return differs("skipped_steps", found.skipped_steps, counters.skipped_steps);
  return differs("consumed_samples", found.consumed_samples, counters.consumed_samples);
}

// Whether header and index say the same of each tensor.
absl::Status CheckTensors(const SafetensorsFile& file, const ShardIndex& index) {
  for (const auto& [key, tensor] : index.tensors) {
    const auto found = file.tensors().find(key);
    if (found == file.tensors().end())
      return absl::DataLossError(absl::StrCat("it has no tensor ", key, ", which its index has"));
    const absl::StatusOr<int64_t> count = CheckShardTensor(key, tensor.shape, tensor.elements);
    if (!count.ok()) return absl::DataLossError(std::string(count.status().message()));
    // Nobody reads such a tensor, which would prove it.
    if (*count == 0 && tensor.sha256 != Sha256Hex(""))
      return absl::DataLossError(absl::StrCat("tensor ", key, " has no elements; its SHA-256 is not that of nothing"));
    const StoredTensor& stored = found->second;
    const std::vector<int64_t> shape = ShapeInShard(tensor.shape, *count);
    if (stored.dtype != tensor.dtype || stored.shape != shape) {
      return absl::DataLossError(absl::StrCat("tensor ", key, " is ", TypeAndShape(stored.dtype, stored.shape),
                                              "; by its index it is ", TypeAndShape(tensor.dtype, shape)));
    }
  }
  for (const auto& [key, stored] : file.tensors()) {
    if (!index.tensors.contains(key))
      return absl::DataLossError(absl::StrCat("it has a tensor ", key, ", which its index has not"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckFileSize(const std::string& path, int64_t bytes) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0)
    return absl::UnavailableError(absl::StrCat("it cannot be read: ", std::strerror(errno)));
  if (!S_ISREG(about.st_mode)) return absl::DataLossError("it is not a plain file");
  if (about.st_size != bytes)
    return absl::DataLossError(absl::StrCat("it has ", about.st_size, " bytes instead of ", bytes));
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadProvedFile(const std::string& path, int64_t bytes, const std::string& sha256) {
  // The size comes first: a file of another size is not read.
  if (absl::Status status = CheckFileSize(path, bytes); !status.ok()) return status;
  absl::StatusOr<std::string> text = ReadWholeFile(path, std::max(kShardIndexJson.bytes, kPlanJson.bytes));
  if (!text.ok()) return text.status();
  if (const std::string found = Sha256Hex(*text); found != sha256)
    return absl::DataLossError(absl::StrCat("its SHA-256 is ", found, " instead of ", sha256));
  return text;
}

absl::StatusOr<Manifest> ReadManifestFile(const std::string& folder) {
  const absl::StatusOr<std::string> text = ReadWholeFile(folder + "/" + kManifestFile, kManifestJson.bytes);
  if (!text.ok()) return text.status();
  absl::StatusOr<Manifest> manifest = ReadManifest(*text);
  if (!manifest.ok()) return absl::DataLossError(std::string(manifest.status().message()));
  return manifest;
}

absl::StatusOr<ShardIndex> ReadIndexFile(const std::string& folder, const Manifest& manifest,
                                         const ManifestShard& shard) {
  const absl::StatusOr<std::string> text =
      ReadProvedFile(folder + "/" + IndexFile(shard.rank), shard.index_bytes, shard.index_sha256);
  if (!text.ok()) return text.status();
  absl::StatusOr<ShardIndex> index = ReadShardIndex(*text);
  if (!index.ok()) return absl::DataLossError(std::string(index.status().message()));
  if (index->rank != shard.rank)
    return absl::DataLossError(absl::StrCat("it is the index of rank ", index->rank, ", not of rank ", shard.rank));
  if (index->bytes != shard.bytes) {
    return absl::DataLossError(
        absl::StrCat("it says that its shard has ", index->bytes, " bytes; the manifest says ", shard.bytes));
  }
  if (absl::Status status = CheckSameCheckpoint(*index, manifest); !status.ok()) return status;
  return index;
}

absl::StatusOr<SafetensorsFile> OpenShardFile(const std::string& folder, const ShardIndex& index) {
  const std::string path = folder + "/" + ShardFile(index.rank);
  if (absl::Status status = CheckFileSize(path, index.bytes); !status.ok()) return status;
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
  if (!file.ok()) {
    if (!absl::IsInvalidArgument(file.status())) return absl::UnavailableError(file.status().message());
    return absl::DataLossError(absl::StripPrefix(file.status().message(), path + ": "));
  }
  // The size again: this is the file that is read.
  if (file->bytes() != index.bytes) return absl::DataLossError("its size changes");
  if (Sha256Hex(file->header()) != index.header_sha256)
    return absl::DataLossError("its header has another SHA-256 than its index says");
  if (index.of && file->metadata() != ShardMetadata(index)) {
    return absl::DataLossError(
        absl::StrCat("its header says that it is ", absl::StrJoin(file->metadata(), ", ", absl::PairFormatter(" ")),
                     "; its index says ", absl::StrJoin(ShardMetadata(index), ", ", absl::PairFormatter(" "))));
  }
  if (absl::Status status = CheckTensors(*file, index); !status.ok()) return status;
  return file;
}

absl::Status ProveTensor(const PlainFile& file, const StoredTensor& stored, const std::string& key,
                         const std::string& sha256, const std::function<void(int64_t)>& progress,
                         std::optional<int64_t>* not_finite) {
  constexpr int64_t kChunk = int64_t{1} << 20;  // bytes of one read: they are still in the cache when they are hashed
  std::vector<std::byte> chunk(std::min(kChunk, stored.bytes));
  Sha256 digest;
  for (int64_t done = 0; done < stored.bytes;) {
    const std::span<std::byte> part = std::span(chunk).first(std::min(kChunk, stored.bytes - done));
    if (absl::Status read = file.Read(stored.offset + done, part); !read.ok())
      return absl::DataLossError(absl::StrCat("tensor ", key, ": ", read.message()));
    digest.Add(part.data(), part.size());
    if (not_finite != nullptr && !*not_finite) {
      if (const auto at = FirstNotFinite(stored.dtype, part)) *not_finite = done / DTypeBytes(stored.dtype) + *at;
    }
    done += static_cast<int64_t>(part.size());
    progress(static_cast<int64_t>(part.size()));
  }
  const std::string found = digest.Hex();
  if (found == sha256) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("tensor ", key, " is damaged: its SHA-256 is ", found, " instead of ", sha256));
}

std::string NoShardHas(const std::string& key, int64_t element) {
  return absl::StrCat("no shard has element ", element, " of tensor ", key);
}

std::string TwoShardsHave(const std::string& key, int64_t element, int rank, int other_rank) {
  return absl::StrCat("element ", element, " of tensor ", key, " is in two shards: those of ranks ",
                      std::min(rank, other_rank), " and ", std::max(rank, other_rank));
}

absl::Status CheckSameTensor(const std::string& key, const ShardTensor& tensor, DType first_dtype,
                             const std::vector<int64_t>& first_shape, int first_rank) {
  if (tensor.dtype == first_dtype && tensor.shape == first_shape) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("tensor ", key, " is a part of ", TypeAndShape(tensor.dtype, tensor.shape),
                                          "; in ", IndexFile(first_rank), " it is a part of ",
                                          TypeAndShape(first_dtype, first_shape)));
}

}  // namespace planwright
