// Writes an index file shard by shard, in bounded memory: only names of files and of documents that are left out wait
// for the end. The file appears under its name when it is whole.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "planner/data/samples/index_file.h"
#include "planner/data/samples/index_format.h"

namespace planwright {

// A digest as 64 hex digits, and back.
DigestBytes BytesOfDigest(const std::string& hex);
std::string HexOfDigest(const DigestBytes& digest);

// How much of everything the shards of an index have together.
struct IndexCounts {
  uint64_t shards = 0, documents = 0, images = 0, left_out = 0, name_bytes = 0;
  void Add(const ShardSlice& slice);
};

class IndexWriter {
 public:
  // Begins a temporary file beside `path`. Errors of the storage, with the path.
  static absl::StatusOr<IndexWriter> Begin(const std::string& path, const IndexCounts& counts);
  IndexWriter(IndexWriter&& other) noexcept = default;
  IndexWriter& operator=(IndexWriter&& other) = delete;
  ~IndexWriter();  // removes the temporary file

  // All shards, in their order; together they have what `counts` says.
  absl::Status Add(const ShardSlice& slice);

  // Writes the rest and gives the file its name. `keeps`: it is on the disk then. Else a crash of the machine may leave
  // a damaged file, which IndexFile refuses.
  absl::Status Finish(const DigestBytes& reading, const DigestBytes& source, bool keeps);

 private:
  explicit IndexWriter(std::string path) : path_(std::move(path)) {}
  absl::Status Write(uint64_t offset, const void* data, size_t bytes) const;
  uint32_t NumberOf(const IndexedFile& file);
  void AddFile(const IndexedFile& file);
  absl::StatusOr<DigestBytes> Digest() const;
  absl::StatusOr<uint64_t> Checksum(const IndexHeader& header) const;

  // Closes the temporary file at the end of the writer, whatever moves.
  struct Descriptor {
    int fd = -1;
    Descriptor() = default;
    Descriptor(Descriptor&& other) noexcept : fd(other.fd) { other.fd = -1; }
  };

  std::string path_, beside_;
  Descriptor file_;
  IndexCounts counts_, added_;
  uint64_t documents_at_ = 0, images_at_ = 0, left_out_at_ = 0, names_at_ = 0;  // sections, in the file
  uint64_t checks_at_ = 0, image_checks_at_ = 0, end_ = 0;
  uint64_t tokens_ = 0;
  std::vector<ShardRecord> shards_;
  std::vector<FileRecord> shard_files_, other_files_;
  std::string shard_texts_, other_texts_, left_out_texts_;
  uint64_t padded_ = 0;                  // documents with a damaged image, so far
  std::vector<uint64_t> padded_before_;  // by shard
  std::vector<LeftOutRecord> left_out_;
  std::map<std::string, uint32_t, std::less<>> tars_;  // numbers of files
};

}  // namespace planwright
