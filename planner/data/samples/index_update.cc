#include "planner/data/samples/index_update.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "planner/base/digest/sha256.h"
#include "planner/base/files/file_io.h"
#include "planner/base/text/utf8.h"
#include "planner/base/threads/threads.h"
#include "planner/data/samples/document_check.h"
#include "planner/data/samples/index_settings.h"

namespace planwright {
namespace {

bool SameFile(const IndexedFile& before, const NamedFile& now) {
  return before.path == now.path && before.bytes == now.bytes && before.changed == now.changed;
}

enum class SomeDocuments { kSame, kSameWithoutImages, kOther };

// Whether some documents of a shard, with their images, are those that an index has: the first, the last and one
// between. kSameWithoutImages: the shard has them, and images in files of their own are not there. `other`: the file of
// an image that is another one, where that is not the shard's own.
SomeDocuments CompareSome(const ShardSlice& slice, const std::string& base, std::string& other) {
  const auto open = [&](uint32_t number) {
    return PlainFile::Open(ResolvePath(base, std::string(slice.file(number).path)));
  };
  const absl::StatusOr<PlainFile> shard = open(slice.own_file);
  if (!shard.ok()) return SomeDocuments::kOther;  // the reading says why
  SomeDocuments result = SomeDocuments::kSame;
  const size_t count = slice.documents.size();
  for (const size_t i : std::set<size_t>{0, count / 2, count - 1}) {
    if (i >= count) continue;
    if (!ReadDocument(*shard, slice.documents[i], slice.checks[i]).ok()) return SomeDocuments::kOther;
    const size_t end = i + 1 < count ? slice.documents[i + 1].image : slice.images.size();
    for (size_t image = slice.documents[i].image; image < end; ++image) {
      const ImageRecord& record = slice.images[image];
      absl::StatusOr<PlainFile> elsewhere;
      if (record.file != slice.own_file) elsewhere = open(record.file);
      if (absl::IsNotFound(elsewhere.status())) {
        result = SomeDocuments::kSameWithoutImages;
        continue;
      }
      const PlainFile* file = record.file == slice.own_file ? &*shard : elsewhere.ok() ? &*elsewhere : nullptr;
      if (file != nullptr && CompareImage(*file, record, slice.image_checks[image]).ok()) continue;
      if (record.file != slice.own_file)
        other = PlainPath(ResolvePath(base, std::string(slice.file(record.file).path)));
      return SomeDocuments::kOther;
    }
  }
  return result;
}

// Of what ImageMeter and IndexShard say of a document.
std::string CauseOf(std::string_view why) {
  if (!why.starts_with("its image ")) return "a damaged text, mask or list";
  const auto says = [&](std::string_view words) { return why.find(words) != std::string_view::npos; };
  return says(": cannot read ") || says(": it has no member ") ? "an image that is missing" : "a damaged image";
}

std::vector<std::pair<std::string, std::string>> DamagedOf(const ShardSlice& slice) {
  std::vector<std::pair<std::string, std::string>> damaged;
  for (const LeftOutDocument& one : slice.left_out) damaged.emplace_back(one.name, one.why);
  return damaged;
}

}  // namespace

SourceUpdate::SourceUpdate(const DataPlan& data, const SourcePlan& source, SourceShards shards)
    : data_(data), source_(source), reading_(ReadingOf(data, source)), reading_digest_(reading_.Digest()),
      source_digest_(SourceDigest(data, source)), source_notes_(std::move(shards.notes)) {
  const std::string folder = IndexPartsFolder(data, source);
  for (size_t i = 0; i < shards.files.size(); ++i) {
    Shard shard;
    shard.file = std::move(shards.files[i]);
    shard.prepared = shards.prepared[i];
    shard.part = absl::StrCat(folder, "/", Sha256Hex(shard.file.path).substr(0, 24));
    shards_.push_back(std::move(shard));
  }
}

void SourceUpdate::Look(int jobs, bool anew) {
  fresh_ = false;
  old_.reset();
  tars_.clear();
  notes_.clear();
  // One that is damaged, of another version or read with other settings is made anew.
  const bool own = !anew && LookInto(IndexPath(data_, source_));
  if (!own && !anew) {
    for (const std::string& path : OtherIndexPaths(data_, source_)) {
      if (LookInto(path)) break;  // it may have some of the shards
    }
  }
  std::map<std::string_view, size_t> in_old;
  for (size_t i = 0; old_ && i < old_->shards().size(); ++i) in_old[old_->file(static_cast<uint32_t>(i)).path] = i;
  bool all_in_order = own && old_->header().source == source_digest_ && in_old.size() == shards_.size();
  for (size_t i = 0; i < shards_.size(); ++i) {
    Shard& shard = shards_[i];
    shard.known = false;
    shard.in_old.reset();
    const auto found = in_old.find(shard.file.path);
    if (found != in_old.end()) {
      const ShardSlice slice = old_->Slice(found->second);
      if (Unchanged(slice, shard.file)) {
        shard.known = true;
        shard.in_old = found->second;
        shard.counts = {};
        shard.counts.Add(slice);
        shard.damaged = DamagedOf(slice);
      }
    }
  }
  ForgetOtherDocuments(jobs);
  for (size_t i = 0; i < shards_.size(); ++i) {
    all_in_order = all_in_order && shards_[i].in_old == i;
    if (!shards_[i].known && !anew) LookForPart(shards_[i]);
  }
  fresh_ = all_in_order;
}

void SourceUpdate::ForgetOtherDocuments(int jobs) {
  constexpr size_t kMostLookedAt = 256;  // shards, unless one of them has other documents
  std::vector<size_t> known;
  for (size_t i = 0; i < shards_.size(); ++i) {
    if (shards_[i].in_old) known.push_back(i);
  }
  std::vector<char> other(known.size());
  std::vector<std::string> images(known.size());  // that are other ones, in files of their own
  const auto look = [&](size_t i) {
    const ShardSlice slice = old_->Slice(*shards_[known[i]].in_old);
    other[i] = CompareSome(slice, data_.base, images[i]) == SomeDocuments::kOther;
  };
  const size_t first = std::min(known.size(), kMostLookedAt);
  ForEachItem(jobs, static_cast<int64_t>(first), [&](int64_t item) { look(item * known.size() / first); });
  if (first < known.size() && std::find(other.begin(), other.end(), 1) != other.end())
    ForEachItem(jobs, static_cast<int64_t>(known.size()), [&](int64_t item) { look(static_cast<size_t>(item)); });
  for (size_t i = 0; i < known.size(); ++i) {
    if (other[i] == 0) continue;
    Shard& shard = shards_[known[i]];
    shard.known = false;
    shard.in_old.reset();
    const std::string path = ResolvePath(data_.base, shard.file.path);
    notes_.push_back(images[i].empty()
                         ? path + " has the size and the time that it had, and other documents: it is read again"
                         : images[i] + " is not what it was when the index was made: " + path +
                               ", which names it, is read again");
  }
}

OutsideImages SourceUpdate::LookForImagesOfKnown(int jobs) const {
  std::vector<ShardSlice> slices;
  for (const Shard& shard : shards_) {
    if (shard.in_old) slices.push_back(old_->Slice(*shard.in_old));
  }
  return LookForImages(slices, data_.base, jobs);
}

bool SourceUpdate::LookInto(const std::string& path) {
  absl::StatusOr<IndexFile> old = IndexFile::Open(path);
  if (absl::IsFailedPrecondition(old.status()))
    notes_.push_back(absl::StrCat(old.status().message(), ": all shards are read again"));
  if (!old.ok() || old->header().reading != reading_digest_) return false;
  old_ = *std::move(old);
  return true;
}

void SourceUpdate::LookForPart(Shard& shard) {
  const absl::StatusOr<IndexFile> part = IndexFile::Open(shard.part);
  if (!part.ok() || part->shards().size() != 1 || part->header().reading != reading_digest_) return;
  const ShardSlice slice = part->Slice(0);
  std::string other;
  if (!Unchanged(slice, shard.file) || CompareSome(slice, data_.base, other) != SomeDocuments::kSame) return;
  shard.known = true;
  shard.counts = {};
  shard.counts.Add(slice);
  shard.damaged = DamagedOf(slice);
}

bool SourceUpdate::Unchanged(const ShardSlice& slice, const NamedFile& shard) {
  if (!SameFile(slice.file(slice.own_file), shard)) return false;
  uint32_t before = slice.own_file;
  for (const ImageRecord& image : slice.images) {
    if (image.file == before) continue;
    before = image.file;
    const IndexedFile file = slice.file(image.file);
    // A million images in files of their own are not looked at: a file of another size is found when it is read.
    if (file.kind != IndexedFileKind::kTar) continue;
    auto now = tars_.find(file.path);
    if (now == tars_.end()) {
      const absl::StatusOr<NamedFile> about = StatFile(data_.base, std::string(file.path), file.kind);
      now = tars_.emplace(file.path, about.ok() ? *about : NamedFile{}).first;
    }
    if (!SameFile(file, now->second)) return false;
  }
  return true;
}

absl::Status SourceUpdate::Read(size_t number, size_t most_damaged, bool decode, TarMembersCache& tars,
                                absl::FunctionRef<void(int64_t documents, int64_t bytes)> progress) {
  Shard& shard = shards_[number];
  ReadingSettings reading = reading_;
  reading.decode_images = reading.decode_images || decode;
  absl::StatusOr<ShardTables> tables = IndexShard(data_.base, shard.file.path, reading, most_damaged, tars, progress);
  if (!tables.ok()) return tables.status();
  shard.damaged = tables->damaged;
  shard.of_settings = tables->of_settings;
  shard.outside = tables->outside;
  if (shard.outside.missing > 0) return absl::OkStatus();
  // The rest was not read, or is of no use: the command ends with these mistakes.
  const bool ends = tables->damaged.size() >= most_damaged || (data_.damaged != "skip" && !tables->damaged.empty());
  if (ends) return absl::OkStatus();
  const auto documents = static_cast<int64_t>(tables->documents.size() + tables->damaged.size() - tables->kept);
  if (shard.prepared && shard.prepared->documents != documents) {
    return absl::InvalidArgumentError(absl::StrCat(ResolvePath(data_.base, shard.file.path), ": it has ", documents,
                                                   " documents, and its prepared.json says ",
                                                   shard.prepared->documents));
  }
  const auto tokens = static_cast<int64_t>(tables->tokens);
  if (shard.prepared && tables->damaged.empty() && shard.prepared->tokens != tokens) {
    return absl::InvalidArgumentError(absl::StrCat(ResolvePath(data_.base, shard.file.path), ": it has ", tokens,
                                                   " tokens, and its prepared.json says ", shard.prepared->tokens));
  }
  const ShardSlice slice = tables->Slice();
  IndexCounts counts;
  counts.Add(slice);
  absl::StatusOr<IndexWriter> writer = IndexWriter::Begin(shard.part, counts);
  if (!writer.ok()) return writer.status();
  if (absl::Status status = writer->Add(slice); !status.ok()) return status;
  // Ten thousand parts that are waited for would take minutes.
  if (absl::Status status = writer->Finish(reading_digest_, source_digest_, false); !status.ok()) return status;
  shard.file = tables->files.front();  // as it was when it was read
  shard.counts = counts;
  shard.in_old.reset();
  shard.known = true;
  return absl::OkStatus();
}

absl::Status SourceUpdate::Merge() {
  IndexCounts counts;
  for (const Shard& shard : shards_) {
    counts.shards += shard.counts.shards;
    counts.documents += shard.counts.documents;
    counts.images += shard.counts.images;
    counts.left_out += shard.counts.left_out;
    counts.name_bytes += shard.counts.name_bytes;
  }
  if (counts.documents == 0)
    return absl::InvalidArgumentError(absl::StrCat("source ", source_.name, ": its shards have no documents"));
  absl::StatusOr<IndexWriter> writer = IndexWriter::Begin(IndexPath(data_, source_), counts);
  if (!writer.ok()) return writer.status();
  for (const Shard& shard : shards_) {
    absl::Status added;
    if (shard.in_old) {
      added = writer->Add(old_->Slice(*shard.in_old));
    } else {
      const absl::StatusOr<IndexFile> part = IndexFile::Open(shard.part);
      if (!part.ok()) return part.status();
      added = writer->Add(part->Slice(0));
    }
    if (!added.ok()) return added;
  }
  if (absl::Status status = WriteLeftOut(); !status.ok()) return status;
  if (absl::Status status = writer->Finish(reading_digest_, source_digest_, true); !status.ok()) return status;
  std::error_code error;
  std::filesystem::remove_all(IndexPartsFolder(data_, source_), error);  // what stays is of no harm
  return absl::OkStatus();
}

std::string SourceUpdate::DamageLine(const Shard& shard, const std::string& name, const std::string& why) const {
  return Printable(absl::StrCat(ResolvePath(data_.base, shard.file.path), ": document ", name, ": ", why));
}

absl::Status SourceUpdate::WriteLeftOut() const {
  std::string text;
  for (const Shard& shard : shards_) {
    for (const auto& [name, why] : shard.damaged) absl::StrAppend(&text, DamageLine(shard, name, why), "\n");
  }
  const std::string path = LeftOutPath(data_, source_);
  if (!text.empty()) return WriteFileAtomically(path, text);
  std::error_code error;
  std::filesystem::remove(path, error);
  return absl::OkStatus();
}

absl::StatusOr<IndexedSource> SourceUpdate::Summary() const {
  const std::string path = IndexPath(data_, source_);
  const absl::StatusOr<IndexFile> index = IndexFile::Open(path);
  if (!index.ok()) return index.status();
  const IndexHeader& header = index->header();
  IndexedSource summary;
  summary.name = source_.name;
  summary.kind = source_.kind;
  summary.path = path;
  summary.shards = static_cast<int64_t>(header.shards);
  summary.documents = static_cast<int64_t>(header.documents);
  summary.tokens = static_cast<int64_t>(header.tokens);
  summary.images = static_cast<int64_t>(header.images);
  summary.left_out = static_cast<int64_t>(header.left_out);
  if (summary.left_out > 0) summary.left_out_list = LeftOutPath(data_, source_);
  for (size_t shard = 0; summary.left_out > 0 && shard < index->shards().size(); ++shard) {
    for (const LeftOutDocument& one : index->Slice(shard).left_out) ++summary.causes[CauseOf(one.why)];
  }
  summary.padded = index->DamagedDocuments();
  summary.turned = index->TurnedImages();
  summary.notes = source_notes_;
  summary.digest = index->Digest(data_.orientation == "exif");
  summary.made = !fresh_;
  return summary;
}

}  // namespace planwright
