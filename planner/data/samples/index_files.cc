#include "planner/data/samples/index_files.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "planner/base/files/file_io.h"
#include "planner/base/text/utf8.h"
#include "planner/base/threads/threads.h"
#include "planner/data/samples/index_settings.h"
#include "planner/data/samples/index_update.h"
#include "planner/data/samples/token_update.h"

namespace planwright {
namespace {

constexpr size_t kMostListed = 20;  // mistakes that are told at once

// Keeps other processes from making an index in this folder. Where the file system knows no locks, two processes make
// the same files, each under names of its own, and rename them: then both do the work.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder) : fd_(OpenToWrite(AT_FDCWD, folder + "/lock", O_RDWR | O_CREAT)) {}
  FolderLock(const FolderLock&) = delete;
  ~FolderLock() {
    if (fd_ >= 0) close(fd_);
  }
  bool TakenByAnother() const { return flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; }
  void Wait() const {
    while (flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }

 private:
  const int fd_;
};

class IndexUpdate {
 public:
  IndexUpdate(const DataPlan& data, const IndexOptions& options,
              const std::function<void(const IndexProgress&)>& progress)
      : data_(data), jobs_(options.jobs > 0 ? options.jobs : ThreadsOfRank()), anew_(options.anew || options.decode),
        decode_(options.decode), progress_(progress) {}

  absl::StatusOr<std::vector<IndexedSource>> Run() {
    if (absl::Status status = FindSources(); !status.ok()) return status;
    const bool all_fresh = AllFresh();
    // Before anything is read: of a folder that is not there nothing can be.
    const std::vector<std::string> missing = LinesOf(MissingOfKnown());
    if (!missing.empty()) return absl::InvalidArgumentError(absl::StrJoin(missing, "\n"));
    if (!all_fresh) {
      if (absl::Status status = MakeDirectories(IndexFolder(data_)); !status.ok()) return status;
      const FolderLock lock(IndexFolder(data_));
      if (lock.TakenByAnother()) {
        progress_told_.waiting = true;
        Tell();
        progress_told_.waiting = false;
        lock.Wait();
      }
      AllFresh();  // another process may have made something meanwhile
      TellNotes();
      if (absl::Status status = ReadShards(); !status.ok()) return status;
      const absl::Status tokens = ReadTokens();
      if (absl::Status status = MistakesOf(tokens); !status.ok()) return status;
      if (absl::Status status = CheckLeftOut(); !status.ok()) return status;
      for (const TokenUpdate& source : tokens_) {
        if (source.fresh()) continue;
        if (absl::Status status = source.Keep(); !status.ok()) return status;
      }
      for (const auto& source : webdatasets_) {
        if (source->fresh()) continue;
        if (absl::Status status = source->Merge(); !status.ok()) return status;
      }
    } else if (absl::Status status = CheckLeftOut(); !status.ok()) {
      return status;
    }
    return Summaries();
  }

  std::vector<IndexedSource> AtHand() {
    if (!FindSources().ok() || !AllFresh()) return {};
    return Summaries().value_or(std::vector<IndexedSource>());
  }

  std::map<std::string, MissingImages> MissingAtHand() {
    if (!FindSources().ok()) return {};
    AllFresh();
    return MissingOfKnown();
  }

 private:
  struct Item {
    SourceUpdate* source = nullptr;
    size_t shard = 0;
    size_t damaged = 0;  // documents, once it is read; guarded by mutex_, as is the following
    absl::Status status;
  };

  absl::Status FindSources() {
    std::vector<std::string> problems;
    std::vector<SourceShards> shards = FindSourceShards(data_, problems);
    for (size_t i = 0; i < data_.sources.size(); ++i) {
      const SourcePlan& source = data_.sources[i];
      if (RowOf(source.kind).shards) {
        webdatasets_.push_back(std::make_unique<SourceUpdate>(data_, source, std::move(shards[i])));
        continue;
      }
      absl::StatusOr<TokenUpdate> tokens = TokenUpdate::Open(data_, source);
      if (!tokens.ok()) {
        problems.push_back(absl::StrCat("source ", source.name, ": ", tokens.status().message()));
        continue;
      }
      tokens_.push_back(*std::move(tokens));
    }
    if (problems.empty()) return absl::OkStatus();
    for (std::string& problem : problems) problem = Printable(problem);
    return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
  }

  bool AllFresh() {
    bool fresh = true;
    for (const auto& source : webdatasets_) {
      source->Look(jobs_, anew_);
      fresh = fresh && source->fresh();
    }
    for (TokenUpdate& source : tokens_) {
      source.Look(anew_);
      fresh = fresh && source.fresh();
    }
    return fresh;
  }

  // By the names of sources: images that are not there, of shards that need not be read.
  std::map<std::string, MissingImages> MissingOfKnown() const {
    std::map<std::string, MissingImages> all;
    for (const auto& source : webdatasets_) {
      const std::string& name = source->source().name;
      if (auto missing = MissingOf(name, source->LookForImagesOfKnown(jobs_))) all[name] = *std::move(missing);
    }
    return all;
  }

  // The same of shards that were read.
  std::map<std::string, MissingImages> MissingOfRead() const {
    std::map<std::string, MissingImages> all;
    for (const auto& source : webdatasets_) {
      OutsideImages outside;
      for (const SourceUpdate::Shard& shard : source->shards()) outside.Add(shard.outside);
      const std::string& name = source->source().name;
      if (auto missing = MissingOf(name, outside)) all[name] = *std::move(missing);
    }
    return all;
  }

  static std::vector<std::string> LinesOf(const std::map<std::string, MissingImages>& missing) {
    std::vector<std::string> lines;
    for (const auto& [source, images] : missing) {
      for (std::string& line : images.Lines()) lines.push_back(std::move(line));
    }
    return lines;
  }

  bool Skips() const { return data_.damaged == "skip"; }

  // Damaged documents beyond this number end the command.
  size_t MostDamaged() const { return Skips() ? static_cast<size_t>(std::max<int64_t>(data_.most_damaged, 0)) : 0; }

  absl::Status ReadShards() {
    for (const auto& source : webdatasets_) {
      bool any = false;
      for (size_t i = 0; i < source->shards().size(); ++i) {
        const SourceUpdate::Shard& shard = source->shards()[i];
        if (shard.known) continue;
        any = true;
        items_.push_back({source.get(), i, 0, {}});
        progress_told_.all_bytes += shard.file.bytes;
      }
      const absl::Status made = any ? MakeDirectories(IndexPartsFolder(data_, source->source())) : absl::OkStatus();
      if (!made.ok()) return made;
    }
    progress_told_.all_shards = static_cast<int64_t>(items_.size());
    for (const TokenUpdate& source : tokens_) {
      if (source.fresh()) continue;
      ++progress_told_.all_shards;
      progress_told_.all_bytes += source.bytes();
    }
    ForEachItem(jobs_, static_cast<int64_t>(items_.size()), [&](int64_t item) { ReadItem(static_cast<size_t>(item)); });
    return absl::OkStatus();
  }

  // The first one that has wrong ids, or cannot be read, ends the reading: it has told enough.
  absl::Status ReadTokens() {
    for (TokenUpdate& source : tokens_) {
      if (source.fresh()) continue;
      const absl::Status status = source.Read(jobs_, [&](int64_t documents, int64_t bytes) {
        const std::lock_guard lock(mutex_);
        progress_told_.documents += documents;
        progress_told_.bytes += bytes;
        Tell();
      });
      if (!status.ok()) return status;
      ++progress_told_.shards;
      Tell();
    }
    return absl::OkStatus();
  }

  // With more than this in one shard the rest of it is not read.
  size_t EnoughOfShard() const { return Skips() ? MostDamaged() + 1 : kMostListed; }

  void ReadItem(size_t number) {
    Item& item = items_[number];
    {
      const std::lock_guard lock(mutex_);
      if (EnoughBefore(number)) return;
    }
    const absl::Status status =
        item.source->Read(item.shard, EnoughOfShard(), decode_, tars_, [&](int64_t documents, int64_t bytes) {
          const std::lock_guard lock(mutex_);
          progress_told_.documents += documents;
          progress_told_.bytes += bytes;
          Tell();
        });
    const std::lock_guard lock(mutex_);
    item.status = status;
    item.damaged = item.source->shards()[item.shard].damaged.size();
    wrong_ += item.damaged + (status.ok() ? 0 : 1);
    ++progress_told_.shards;
    Tell();
  }

  // Whether the shards before this one have as many mistakes as are told. The answer does not depend on which of them
  // are finished, but for that a shard may be read in vain: so the same mistakes are told with any number of threads.
  bool EnoughBefore(size_t number) const {
    if (wrong_ < std::min(kMostListed, EnoughOfShard())) return false;
    size_t damaged = 0, failed = 0;
    for (size_t i = 0; i < number; ++i) {
      damaged += items_[i].damaged;
      failed += items_[i].status.ok() ? 0 : 1;
    }
    return failed + (Skips() ? 0 : damaged) >= kMostListed || damaged >= EnoughOfShard();
  }

  // The mistakes of the shards that were read, and of the sources of tokens: of all that ends the command, the first.
  absl::Status MistakesOf(const absl::Status& tokens) const {
    std::vector<std::string> lines;
    absl::StatusCode code = absl::StatusCode::kInvalidArgument;
    bool damaged = false, of_settings = false;
    for (const Item& item : items_) {
      // What the machine cannot do is no mistake in the data.
      if (!item.status.ok() && !absl::IsInvalidArgument(item.status) && !absl::IsNotFound(item.status))
        return item.status;
      if (!item.status.ok()) lines.push_back(Printable({item.status.message().data(), item.status.message().size()}));
      const SourceUpdate::Shard& shard = item.source->shards()[item.shard];
      for (size_t i = 0; !Skips() && i < shard.damaged.size(); ++i) {
        damaged = true;
        lines.push_back(item.source->DamageLine(shard, shard.damaged[i].first, shard.damaged[i].second));
      }
      of_settings = of_settings || shard.of_settings;
    }
    if (!tokens.ok() && !absl::IsInvalidArgument(tokens)) return tokens;
    for (absl::string_view line : absl::StrSplit(tokens.message(), '\n', absl::SkipEmpty())) lines.emplace_back(line);
    const std::vector<std::string> missing = LinesOf(MissingOfRead());
    if (lines.empty() && missing.empty()) return absl::OkStatus();
    if (lines.size() > kMostListed) lines.resize(kMostListed);
    if (lines.size() == kMostListed) lines.push_back("there may be more: these are the first");
    // With a key that the recipe lacks the documents are sound, and should not be left out.
    if (damaged && !of_settings) lines.push_back("`data.damaged: skip` leaves damaged documents out");
    lines.insert(lines.begin(), missing.begin(), missing.end());
    return absl::Status(code, absl::StrJoin(lines, "\n"));
  }

  absl::Status CheckLeftOut() const {
    std::vector<std::string> lines;
    size_t damaged = 0;
    for (const auto& source : webdatasets_) {
      for (const SourceUpdate::Shard& shard : source->shards()) {
        damaged += shard.damaged.size();
        for (size_t i = 0; i < shard.damaged.size() && lines.size() < kMostListed; ++i)
          lines.push_back(source->DamageLine(shard, shard.damaged[i].first, shard.damaged[i].second));
      }
    }
    if (damaged <= MostDamaged()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("more than ", MostDamaged(),
                                                   " documents are damaged (data.most_damaged); the first are:\n",
                                                   absl::StrJoin(lines, "\n")));
  }

  absl::StatusOr<std::vector<IndexedSource>> Summaries() const {
    std::vector<IndexedSource> all;
    size_t webdataset = 0, tokens = 0;
    for (const SourcePlan& source : data_.sources) {
      if (RowOf(source.kind).shards) {
        absl::StatusOr<IndexedSource> summary = webdatasets_[webdataset++]->Summary();
        if (!summary.ok()) return summary.status();
        for (const Item& item : items_) summary->shards_read += &item.source->source() == &source ? 1 : 0;
        all.push_back(*std::move(summary));
        continue;
      }
      all.push_back(tokens_[tokens++].Summary());
    }
    return all;
  }

  void Tell() {
    if (progress_) progress_(progress_told_);
  }

  void TellNotes() {
    const auto tell = [&](const std::string& note) {
      progress_told_.note = Printable(note);
      Tell();
      progress_told_.note.clear();
    };
    for (const auto& source : webdatasets_) {
      for (const std::string& note : source->notes()) tell(note);
    }
    for (const TokenUpdate& source : tokens_) {
      if (!source.note().empty()) tell(source.note());
    }
  }

  const DataPlan& data_;
  const int jobs_;
  const bool anew_, decode_;
  const std::function<void(const IndexProgress&)>& progress_;
  std::vector<std::unique_ptr<SourceUpdate>> webdatasets_;
  std::vector<TokenUpdate> tokens_;
  TarMembersCache tars_;
  std::mutex mutex_;
  std::vector<Item> items_;
  size_t wrong_ = 0;             // mistakes so far; guarded by mutex_
  IndexProgress progress_told_;  // guarded by mutex_
};

}  // namespace

namespace {

// Whether files can be made in a folder, or in the first of those above it that is there.
bool CanMakeFilesIn(const std::string& named) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path folder = fs::absolute(named, error);
  while (!fs::exists(folder, error) && folder.has_parent_path() && folder.parent_path() != folder)
    folder = folder.parent_path();
  return fs::is_directory(folder, error) && access(folder.c_str(), W_OK) == 0;
}

}  // namespace

absl::StatusOr<std::vector<IndexedSource>> UpdateIndex(const DataPlan& data, const IndexOptions& options,
                                                       const std::function<void(const IndexProgress&)>& progress) {
  absl::StatusOr<std::vector<IndexedSource>> sources = IndexUpdate(data, options, progress).Run();
  if (sources.ok() || absl::IsInvalidArgument(sources.status()) || CanMakeFilesIn(IndexFolder(data))) return sources;
  return absl::UnavailableError(
      absl::StrCat(sources.status().message(), ": the index lies beside the recipe, or where data.index=FOLDER says"));
}

std::map<std::string, MissingImages> MissingImagesAtHand(const DataPlan& data) {
  // Without an index nothing is known of images, and a list of many shards is not worth reading.
  const bool any = std::any_of(data.sources.begin(), data.sources.end(), [&](const SourcePlan& source) {
    std::error_code error;
    return RowOf(source.kind).shards && std::filesystem::exists(IndexPath(data, source), error);
  });
  if (!any) return {};
  return IndexUpdate(data, {}, {}).MissingAtHand();
}

std::vector<IndexedSource> SourcesAtHand(const DataPlan& data) { return IndexUpdate(data, {}, {}).AtHand(); }

std::optional<std::map<std::string, std::string>> DigestsAtHand(const DataPlan& data) {
  const std::vector<IndexedSource> sources = SourcesAtHand(data);
  if (sources.empty()) return std::nullopt;
  std::map<std::string, std::string> digests;
  for (const IndexedSource& source : sources) digests[source.name] = source.digest;
  return digests;
}

}  // namespace planwright
