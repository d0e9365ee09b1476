#include "planner/data/samples/index_sources.h"

#include <absl/strings/str_cat.h>

#include <filesystem>
#include <map>
#include <utility>

#include "planner/base/files/file_io.h"
#include "planner/data/samples/shard_list.h"

namespace planwright {
namespace {

class SourceFinder {
 public:
  SourceFinder(const DataPlan& data, std::vector<std::string>& problems) : data_(data), problems_(problems) {}

  SourceShards Find(const SourcePlan& source) {
    SourceShards found;
    notes_.clear();
    const absl::StatusOr<std::vector<std::string>> paths = ExpandAllShards(data_.base, source.shards);
    if (!paths.ok()) {
      Add(source, std::string(paths.status().message()));
      return found;
    }
    for (const std::string& path : *paths) {
      const absl::StatusOr<NamedFile> file = StatFile(data_.base, path, IndexedFileKind::kShard);
      if (!file.ok()) {
        Add(source, std::string(file.status().message()));
        continue;
      }
      found.files.push_back(*file);
      found.prepared.push_back(data_.tokenizer == "ids" ? PreparedOf(source, *file) : std::nullopt);
    }
    found.notes = std::move(notes_);
    return found;
  }

  // Of a source of tokens: all of a prepared.json that is not about tar shards.
  void Compare(const SourcePlan& source) { InFolder(source, ResolvePath(data_.base, source.path)); }

 private:
  void Add(const SourcePlan& source, const std::string& what) {
    problems_.push_back(absl::StrCat("source ", source.name, ": ", what));
  }

  // What the prepared.json beside a shard says of it.
  std::optional<PreparedShard> PreparedOf(const SourcePlan& source, const NamedFile& file) {
    const std::filesystem::path shard = ResolvePath(data_.base, file.path);
    const std::optional<Prepared>& prepared = InFolder(source, shard);
    if (!prepared) return std::nullopt;
    const auto of_shard = prepared->shards.find(shard.filename().string());
    if (of_shard == prepared->shards.end()) {
      Add(source, absl::StrCat(prepared->path, " does not know the shard ", shard.filename().string()));
      return std::nullopt;
    }
    if (of_shard->second.bytes != file.bytes) {
      Add(source, absl::StrCat(shard.string(), " has ", file.bytes, " bytes, and ", prepared->path, " says ",
                               of_shard->second.bytes));
    }
    return of_shard->second;
  }

  // The file of a folder is read, and compared, once.
  const std::optional<Prepared>& InFolder(const SourcePlan& source, const std::filesystem::path& shard) {
    const auto [entry, is_new] = folders_.try_emplace(shard.parent_path().string());
    std::optional<Prepared>& prepared = entry->second;
    if (!is_new) return prepared;
    absl::StatusOr<std::optional<Prepared>> found = FindPrepared(shard.string());
    if (!found.ok()) {
      Add(source, std::string(found.status().message()));
      return prepared;
    }
    prepared = *std::move(found);
    if (!prepared) {
      // Megatron-LM writes none.
      if (!RowOf(source.kind).shards) return prepared;
      if (!data_.tokenizer_digest.empty() || !data_.template_digest.empty()) {
        Add(source, absl::StrCat("there is no prepared.json beside ", shard.string(),
                                 ", which must name the digests that the recipe pins"));
      }
      return prepared;
    }
    for (const std::string& problem : ComparePrepared(*prepared, data_))
      Add(source, absl::StrCat(prepared->path, ": ", problem));
    CompareWithFirst(source, *prepared, &Prepared::tokenizer_digest, "tokenizer", tokenizer_);
    CompareWithFirst(source, *prepared, &Prepared::template_digest, "template", template_);
    NoteMissing(*prepared, shard.parent_path());
    return prepared;
  }

  // A pattern names the files that there are: of a copy that was interrupted a part.
  void NoteMissing(const Prepared& prepared, const std::filesystem::path& folder) {
    size_t missing = 0;
    std::string first;
    for (const auto& [name, about] : prepared.shards) {
      std::error_code unreadable;
      if (std::filesystem::exists(folder / name, unreadable) || unreadable) continue;
      if (missing++ == 0) first = name;
    }
    if (missing == 0) return;
    notes_.push_back(absl::StrCat(prepared.path, " knows ", missing, " of its ", prepared.shards.size(),
                                  " shards that are not in its folder, such as ", first));
  }

  // The first prepared.json that has a digest, and this digest.
  struct First {
    std::string path, digest;
  };

  // Shards of plain text have no template, and contradict none.
  void CompareWithFirst(const SourcePlan& source, const Prepared& prepared, std::string Prepared::*field,
                        const char* what, First& first) {
    const std::string& digest = prepared.*field;
    if (first.digest.empty()) first = {prepared.path, digest};
    if (digest.empty() || digest == first.digest) return;
    Add(source, absl::StrCat(prepared.path, ": its ", what, " has the digest ", digest, ", and that of ", first.path,
                             " ", first.digest, "; a run has one ", what));
  }

  const DataPlan& data_;
  std::vector<std::string>& problems_;
  std::map<std::string, std::optional<Prepared>> folders_;
  std::vector<std::string> notes_;  // of the source that is looked for
  First tokenizer_, template_;
};

}  // namespace

std::vector<SourceShards> FindSourceShards(const DataPlan& data, std::vector<std::string>& problems) {
  SourceFinder finder(data, problems);
  std::vector<SourceShards> all;
  for (const SourcePlan& source : data.sources)
    all.push_back(RowOf(source.kind).shards ? finder.Find(source) : SourceShards{});
  // After the shards, which may need a prepared.json in the same folder.
  for (const SourcePlan& source : data.sources) {
    if (!RowOf(source.kind).shards) finder.Compare(source);
  }
  return all;
}

}  // namespace planwright
