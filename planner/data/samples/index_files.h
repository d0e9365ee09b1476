// Makes the index files of a plan's sources, and keeps them up to date (docs/training/data.md#index).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/data/samples/outside_images.h"
#include "planner/plan/plan.h"

namespace planwright {

struct IndexOptions {
  int jobs = 0;         // shards that are read at a time; 0: as many as this process may use cores
  bool anew = false;    // also shards are read that look unchanged
  bool decode = false;  // the same, and their images are decoded: what is wrong with any is told. The index is the same
};

// How far the reading of shards is. Shards that need not be read are not counted.
struct IndexProgress {
  bool waiting = false;  // for another process that makes the index in the same folder
  int64_t shards = 0, all_shards = 0;
  int64_t documents = 0;
  int64_t bytes = 0, all_bytes = 0;
  std::string note;  // why shards are read again that look unchanged, or an index of before is not used; once each
};

struct IndexedSource {
  std::string name;
  SourceKind kind{};
  std::string path;  // of the index file
  int64_t shards = 0, documents = 0, tokens = 0, images = 0;
  int64_t turned = 0;         // images that say that they are to be turned (orientation.h)
  int64_t left_out = 0;       // damaged documents (`damaged: skip`); of tokens: documents without a token
  std::string left_out_list;  // the file that lists them; empty: there is none
  // Why documents are damaged, in words for "N documents with ...", and how many by each. So many of them are padding
  // in their place, and the others are left out.
  std::map<std::string, int64_t> causes;
  int64_t padded = 0;
  std::string digest;  // Documents::digest()
  // What is in its files and not in its documents, or should be there: a sentence each.
  std::vector<std::string> notes;
  int64_t shards_read = 0;  // now; 0: the index was up to date, or has been made of parts and an earlier index
  bool made = false;        // now
};

// Brings the index of each source up to date, and returns all of data.sources in their order. An index, or a part of
// one, is used again if the shards have the same sizes and times, some of their documents are the same, and they are
// read with the same settings. `progress` (which
// may be empty) is called by one thread at a time. InvalidArgument: what is wrong with the data, a line each, with
// shard and document, or which images that shards name by path are not there (outside_images.h); no index file is
// changed then. Unavailable, ResourceExhausted: what cannot be read or written.
absl::StatusOr<std::vector<IndexedSource>> UpdateIndex(const DataPlan& data, const IndexOptions& options,
                                                       const std::function<void(const IndexProgress&)>& progress);

// By the names of sources: what UpdateIndex says of images that shards name by path and that are not there. Of indexes
// that are there; none is made.
std::map<std::string, MissingImages> MissingImagesAtHand(const DataPlan& data);

// All of data.sources in their order, without reading more than a few documents. Empty: the index of a source is
// missing or older than its shards, or the files of a source cannot be used.
std::vector<IndexedSource> SourcesAtHand(const DataPlan& data);

// IndexedSource::digest of each source, by its name. None: SourcesAtHand has none.
std::optional<std::map<std::string, std::string>> DigestsAtHand(const DataPlan& data);

}  // namespace planwright
