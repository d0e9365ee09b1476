// Reads one shard from front to back and makes its part of an index: where the texts, masks and images of its documents
// are, how long and how large. All that a run will read of a text is checked, and the headers of images; with
// `decode_images` all of each image (docs/training/data.md#index).
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/data/samples/image_meter.h"
#include "planner/data/samples/index_file.h"
#include "planner/data/samples/outside_images.h"
#include "planner/data/samples/tar_members.h"

namespace planwright {

// What the documents of a shard depend on, beside its bytes.
struct ReadingSettings {
  bool ids = false;                      // text is ids (.tok), else bytes (.txt)
  int64_t vocabulary = 0;                // ids are below it
  int64_t image_token = -1;              // ids: the mark of an image; -1: there are no images
  std::set<int64_t> other_image_tokens;  // ids: of further encoders; they must not be in a text
  std::set<std::string> ignore;          // extensions of members that are not read
  bool decode_images = false;
  bool keep_damaged = false;  // documents with an image that cannot be decoded stay (ImageCheck::kDamagedImage)
  bool turned = false;        // images are turned as they say (orientation.h)

  // SHA-256 of all of this, and of the version of the index.
  DigestBytes Digest() const;
};

// The part of an index of one shard, in memory.
struct ShardTables {
  std::vector<NamedFile> files;  // first the shard
  std::vector<DocumentRecord> documents;
  std::vector<ImageRecord> images;
  std::vector<DocumentCheck> checks;     // of each document
  std::vector<ImageCheck> image_checks;  // of each image
  std::string names;
  // Names of damaged documents, and why. So many of them are in `documents` all the same, with a damaged image.
  std::vector<std::pair<std::string, std::string>> damaged;
  size_t kept = 0;
  // Of what was read. A document with an image that is not there is neither in `documents` nor in `damaged`.
  OutsideImages outside;
  bool of_settings = false;  // some are only damaged because the recipe lacks a key, which the reason names
  uint64_t tokens = 0;
  DigestBytes content{};

  ShardSlice Slice() const;  // as long as the tables stay
};

// Reads the shard at `path`, relative to `base` or absolute. A damaged document is noted and left out; after
// `most_damaged` of them the rest of the shard is not read. Tables that lack images (`outside`) are of no other use.
// InvalidArgument, with the path of the shard: its headers are damaged, a name comes twice, or it is too large for an
// index. Unavailable: it cannot be read. `progress` is told how many documents and bytes came since it was told last.
absl::StatusOr<ShardTables> IndexShard(const std::string& base, const std::string& path,
                                       const ReadingSettings& settings, size_t most_damaged, TarMembersCache& tars,
                                       absl::FunctionRef<void(int64_t documents, int64_t bytes)> progress);

}  // namespace planwright
