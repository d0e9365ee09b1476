#include "planner/state/checkpoint/shard_writer.h"

#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "planner/base/digest/sha256.h"
#include "planner/base/files/file_io.h"
#include "planner/state/checkpoint/durable_file.h"
#include "planner/state/checkpoint/shard_files.h"
#include "planner/wire/records/safetensors.h"

namespace planwright {
namespace {

constexpr size_t kChunk = size_t{4} << 20;  // bytes of one write

// Writes in chunks and calls `wrote` after each. Small parts are gathered, so that 100,000 of them are few writes.
class ChunkWriter {
 public:
  ChunkWriter(DurableFile& file, const std::function<void(int64_t)>& wrote) : file_(file), wrote_(wrote) {
    buffer_.reserve(kChunk);
  }

  absl::Status Add(const char* bytes, size_t count) {
    while (count > 0) {
      const size_t part = std::min(count, kChunk - buffer_.size());
      if (part == kChunk) {
        if (absl::Status status = Write(bytes, part); !status.ok()) return status;
      } else {
        buffer_.append(bytes, part);
        if (buffer_.size() == kChunk) {
          if (absl::Status status = Flush(); !status.ok()) return status;
        }
      }
      bytes += part;
      count -= part;
    }
    return absl::OkStatus();
  }
  absl::Status Flush() {
    if (buffer_.empty()) return absl::OkStatus();
    absl::Status status = Write(buffer_.data(), buffer_.size());
    buffer_.clear();
    return status;
  }

 private:
  absl::Status Write(const char* bytes, size_t count) {
    if (absl::Status status = file_.Write(bytes, count); !status.ok()) return status;
    if (wrote_) wrote_(static_cast<int64_t>(count));
    return absl::OkStatus();
  }

  DurableFile& file_;
  const std::function<void(int64_t)>& wrote_;
  std::string buffer_;
};

// Checks a source and returns its entry in the header.
absl::StatusOr<TensorEntry> EntryOf(const ShardSource& source) {
  const absl::StatusOr<int64_t> count = CheckShardTensor(source.key, source.shape, source.elements);
  if (!count.ok()) return count.status();
  int64_t bytes = 0;
  for (const auto& range : source.ranges) bytes += static_cast<int64_t>(range.size());
  if (bytes != *count * DTypeBytes(source.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", source.key, ": ", *count, " elements of ",
                                                   std::string(DTypeName(source.dtype)), " do not fit ", bytes,
                                                   " bytes"));
  }
  return TensorEntry{source.key, source.dtype, ShapeInShard(source.shape, *count)};
}

bool HasBytes(const std::string& path, const std::string& text) {
  const absl::StatusOr<std::string> read = ReadWholeFile(path, text.size());
  return read.ok() && *read == text;
}

}  // namespace

absl::StatusOr<ManifestShard> WriteShard(const std::string& folder, int rank, const CheckpointIdentity& of,
                                         const std::vector<ShardSource>& sources, const ShardWriting& calls) {
  const std::string path = folder + "/" + ShardFile(rank);
  const auto wrong = [&path](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat("writing ", path, ": ", status.message()));
  };
  std::vector<TensorEntry> entries;
  for (const ShardSource& source : sources) {
    absl::StatusOr<TensorEntry> entry = EntryOf(source);
    if (!entry.ok()) return wrong(entry.status());
    entries.push_back(*std::move(entry));
  }
  ShardIndex index;
  index.rank = rank;
  index.of = of;
  const absl::StatusOr<SafetensorsLayout> layout = LayOutSafetensors(entries, ShardMetadata(index));
  if (!layout.ok()) return wrong(layout.status());

  index.bytes = static_cast<int64_t>(layout->header.size());
  index.header_sha256 = Sha256Hex(layout->header);
  DurableFile file;
  if (absl::Status status = file.Open(path, /*fresh=*/false); !status.ok()) return status;
  ChunkWriter writer(file, calls.wrote);
  if (absl::Status status = writer.Add(layout->header.data(), layout->header.size()); !status.ok()) return status;
  for (size_t at : layout->order) {
    const ShardSource& source = sources[at];
    Sha256 digest;
    for (const auto& range : source.ranges) {
      if (calls.before_range) calls.before_range(range.data());
      const char* bytes = reinterpret_cast<const char*>(range.data());
      // In chunks, so that a byte comes from memory once for both the digest and the file.
      for (size_t done = 0; done < range.size(); done += kChunk) {
        const size_t count = std::min(kChunk, range.size() - done);
        digest.Add(bytes + done, count);
        if (absl::Status status = writer.Add(bytes + done, count); !status.ok()) return status;
      }
      index.bytes += static_cast<int64_t>(range.size());
    }
    index.tensors[source.key] = {source.dtype, source.shape, source.elements, digest.Hex()};
  }
  if (absl::Status status = writer.Flush(); !status.ok()) return status;
  if (absl::Status status = file.Finish(); !status.ok()) return status;

  const std::string text = WriteShardIndex(index);
  if (text.size() > kShardIndexJson.bytes)
    return wrong(absl::InvalidArgumentError(absl::StrCat("an index of ", text.size(), " bytes is too long")));
  if (absl::Status status = WriteDurably(folder, IndexFile(rank), text); !status.ok()) return status;
  return ManifestShard{rank, index.bytes, static_cast<int64_t>(text.size()), Sha256Hex(text)};
}

absl::Status WriteDurably(const std::string& folder, const std::string& name, const std::string& text) {
  const std::string path = folder + "/" + name, fresh = NameBeside(path);
  absl::Status status;
  {
    DurableFile file;
    status = file.Open(fresh, /*fresh=*/true);
    if (status.ok()) status = file.Write(text.data(), text.size());
    if (status.ok()) status = file.Finish();
  }
  if (status.ok() && rename(fresh.c_str(), path.c_str()) != 0) {
    const int error = errno;
    if (!HasBytes(path, text)) status = CannotWrite(path, error);
  }
  if (!status.ok()) {
    unlink(fresh.c_str());
    return status;
  }
  return SyncFolder(folder);
}

absl::Status PublishManifest(const std::string& folder, const Manifest& manifest) {
  const std::string text = WriteManifest(manifest);
  // What cannot be read again must not replace what can.
  if (const absl::Status status = ReadManifest(text).status(); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("writing ", folder, "/", kManifestFile, ": ", status.message()));
  }
  if (manifest.run_id.empty()) return absl::InvalidArgumentError(absl::StrCat("writing ", folder, ": it names no run"));
  const auto check = [&folder](const std::string& name, int64_t bytes) {
    const absl::Status status = CheckFileSize(folder + "/" + name, bytes);
    if (status.ok()) return status;
    return absl::UnavailableError(absl::StrCat(folder, "/", name, ": ", status.message()));
  };
  if (absl::Status status = check(kCheckpointPlanFile, manifest.plan_bytes); !status.ok()) return status;
  for (const ManifestShard& shard : manifest.shards) {
    if (absl::Status status = check(ShardFile(shard.rank), shard.bytes); !status.ok()) return status;
    if (absl::Status status = check(IndexFile(shard.rank), shard.index_bytes); !status.ok()) return status;
  }
  if (absl::Status status = WriteDurably(folder, kManifestFile, text); !status.ok()) return status;
  return SyncFolder(folder + "/..");  // the name of the checkpoint itself
}

}  // namespace planwright
