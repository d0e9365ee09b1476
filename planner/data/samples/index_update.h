// One webdataset source whose index is brought up to date: which of its shards an earlier index or a kept part already
// has, which must be read, and the index that is made of all of them.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/data/samples/index_file.h"
#include "planner/data/samples/index_files.h"
#include "planner/data/samples/index_sources.h"
#include "planner/data/samples/index_writer.h"
#include "planner/data/samples/outside_images.h"
#include "planner/plan/plan.h"

namespace planwright {

class SourceUpdate {
 public:
  struct Shard {
    NamedFile file;
    std::optional<PreparedShard> prepared;
    bool known = false;            // its slice or its part is there
    std::optional<size_t> in_old;  // the number that it has in the earlier index; nullopt: it is a part
    std::string part;              // the file of its part
    IndexCounts counts;            // of its slice, if known
    std::vector<std::pair<std::string, std::string>> damaged;  // documents, and why
    bool of_settings = false;                                  // ShardTables::of_settings, if it was read now
    OutsideImages outside;                                     // of what was read now
  };

  SourceUpdate(const DataPlan& data, const SourcePlan& source, SourceShards shards);

  // Looks what is there: the index, if it is up to date, or its slices and kept parts. Some documents of shards whose
  // size and time are as they were are compared with the index, with up to `jobs` threads. `anew`: nothing of what is
  // there is used.
  void Look(int jobs, bool anew);
  bool fresh() const { return fresh_; }
  // Images that shards name which need not be read: those that are not there. For `jobs` see Look.
  OutsideImages LookForImagesOfKnown(int jobs) const;
  // Why shards are read again that look as if they need not be, a sentence each.
  const std::vector<std::string>& notes() const { return notes_; }

  std::vector<Shard>& shards() { return shards_; }
  const std::vector<Shard>& shards() const { return shards_; }
  const SourcePlan& source() const { return source_; }

  // Reads a shard and keeps its part, unless the damage ends the command: any without `damaged: skip`, or
  // `most_damaged` documents, or an image that is not there. `decode`: images are decoded in any case. Errors of
  // IndexShard, and InvalidArgument if prepared.json says that the shard has something else. For one thread a shard.
  absl::Status Read(size_t shard, size_t most_damaged, bool decode, TarMembersCache& tars,
                    absl::FunctionRef<void(int64_t documents, int64_t bytes)> progress);

  // Makes the index of all shards, which are known, and the list of what was left out, and removes the parts.
  absl::Status Merge();

  // What is told of a damaged document of a shard, on one line.
  std::string DamageLine(const Shard& shard, const std::string& name, const std::string& why) const;

  // Of the index, which is up to date.
  absl::StatusOr<IndexedSource> Summary() const;

 private:
  // Takes this index file for that of before. False: it is none, or was read with other settings.
  bool LookInto(const std::string& path);
  void LookForPart(Shard& shard);
  // Whether the files that a slice names are as they were.
  bool Unchanged(const ShardSlice& slice, const NamedFile& shard);
  // Takes shards of the earlier index for changed ones if documents of them are not those that it has.
  void ForgetOtherDocuments(int jobs);
  absl::Status WriteLeftOut() const;

  const DataPlan& data_;
  const SourcePlan& source_;
  const ReadingSettings reading_;
  const DigestBytes reading_digest_, source_digest_;
  std::vector<Shard> shards_;
  std::optional<IndexFile> old_;
  std::map<std::string, NamedFile, std::less<>> tars_;  // that slices refer to, as they are now
  const std::vector<std::string> source_notes_;         // IndexedSource::notes
  std::vector<std::string> notes_;
  bool fresh_ = false;
};

}  // namespace planwright
