// An index file, mapped: the documents of the shards of one source. Nothing in a file is trusted: Open checks every
// number in it, so that what the accessors return lies in the file, and ranges of shards, documents and images in their
// shard, document and file.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/data/samples/index_format.h"
#include "planner/data/samples/mapped_file.h"

namespace planwright {

// A file that an index names.
struct IndexedFile {
  std::string_view path;
  int64_t bytes = 0, changed = 0;
  IndexedFileKind kind = IndexedFileKind::kShard;
};

struct LeftOutDocument {
  std::string_view name, why;
};

// What an index has of one shard.
struct ShardSlice {
  std::span<const DocumentRecord> documents;
  std::span<const ImageRecord> images;
  std::span<const DocumentCheck> checks;     // of each document
  std::span<const ImageCheck> image_checks;  // of each image
  std::string_view names;
  std::vector<LeftOutDocument> left_out;
  uint64_t tokens = 0;
  DigestBytes content{};
  uint32_t own_file = 0;                             // the number of the shard's file, as `images` have it
  std::function<IndexedFile(uint32_t number)> file;  // of a number that `images` have, and of own_file
};

class IndexFile {
 public:
  // NotFound if there is none. DataLoss, with the path and what is wrong, if the file is damaged, and
  // FailedPrecondition if it is of another version.
  static absl::StatusOr<IndexFile> Open(const std::string& path);

  const IndexHeader& header() const { return *header_; }
  std::span<const DocumentRecord> documents() const { return documents_; }
  std::span<const DocumentCheck> checks() const { return checks_; }  // of each document
  std::span<const ShardRecord> shards() const { return shards_; }
  IndexedFile file(uint32_t number) const;
  ShardSlice Slice(size_t shard) const;

  // Of the shard that has the document.
  std::string_view NameOf(size_t shard, size_t document) const;
  std::span<const ImageRecord> ImagesOf(size_t shard, size_t document) const;
  std::span<const ImageCheck> ImageChecksOf(size_t shard, size_t document) const;

  int64_t TurnedImages() const;      // how many say that they are to be turned
  int64_t DamagedDocuments() const;  // how many have a damaged image
  // Documents::digest(). `turned`: images are turned as they say; then, if any is, the digest is of that too.
  std::string Digest(bool turned) const;

 private:
  absl::Status Check();
  absl::Status CheckSections();
  absl::Status CheckFiles() const;
  absl::Status CheckShard(size_t shard) const;
  std::pair<uint64_t, uint64_t> ImageRange(size_t shard, size_t document) const;
  ShardRecord EndOf(size_t shard) const;  // where the next shard begins

  MappedFile mapped_;
  const IndexHeader* header_ = nullptr;
  std::span<const ShardRecord> shards_;
  std::span<const DocumentRecord> documents_;
  std::span<const ImageRecord> images_;
  std::span<const LeftOutRecord> left_out_;
  std::span<const DocumentCheck> checks_;
  std::span<const ImageCheck> image_checks_;
  std::span<const FileRecord> files_;
  std::string_view names_, texts_;
};

}  // namespace planwright
