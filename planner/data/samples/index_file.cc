#include "planner/data/samples/index_file.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "planner/base/digest/sha256.h"
#include "planner/data/samples/index_writer.h"
#include "planner/data/samples/tar_file.h"

namespace planwright {
namespace {

absl::Status Damaged(const std::string& what) { return absl::DataLossError(what); }

// Takes records from the front of what is left of a file.
class Sections {
 public:
  explicit Sections(std::string_view left) : left_(left) {}

  template <typename Record>
  bool Take(uint64_t count, std::span<const Record>& into) {
    if (count > left_.size() / sizeof(Record)) return false;
    const size_t bytes = static_cast<size_t>(count) * sizeof(Record), padded = (bytes + 7) / 8 * 8;
    if (padded > left_.size()) return false;
    into = {reinterpret_cast<const Record*>(left_.data()), static_cast<size_t>(count)};
    left_.remove_prefix(padded);
    return true;
  }
  bool Take(uint64_t count, std::string_view& into) {
    std::span<const char> bytes;
    if (!Take(count, bytes)) return false;
    into = {bytes.data(), bytes.size()};
    return true;
  }
  bool empty() const { return left_.empty(); }

 private:
  std::string_view left_;
};

bool Within(uint64_t begin, uint64_t count, uint64_t end) { return begin <= end && count <= end - begin; }

}  // namespace

uint64_t IndexChecksum(uint64_t sum, const void* data, size_t bytes) {
  // Four sums at a time: one would wait for its own products. Each step is a bijection of the sum, so a word that
  // differs always leaves another sum.
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
  uint64_t lanes[4] = {sum, sum + 1, sum + 2, sum + 3};
  const char* at = static_cast<const char*>(data);
  const auto step = [&](uint64_t& lane, size_t word) {
    uint64_t value = 0;
    std::memcpy(&value, at + 8 * word, 8);
    lane = std::rotl((lane ^ value) * kFactor, 29);
  };
  for (; bytes >= 32; bytes -= 32, at += 32) {
    for (size_t i = 0; i < 4; ++i) step(lanes[i], i);
  }
  for (size_t i = 0; bytes >= 8; bytes -= 8, ++i) step(lanes[i], i);
  for (size_t i = 1; i < 4; ++i) lanes[0] = std::rotl((lanes[0] ^ lanes[i]) * kFactor, 29);
  return lanes[0];
}

absl::StatusOr<IndexFile> IndexFile::Open(const std::string& path) {
  absl::StatusOr<MappedFile> mapped = MappedFile::Open(path);
  if (!mapped.ok()) return mapped.status();
  IndexFile file;
  file.mapped_ = *std::move(mapped);
  const absl::Status checked = file.Check();
  if (!checked.ok()) return absl::Status(checked.code(), absl::StrCat(path, ": ", checked.message()));
  return file;
}

absl::Status IndexFile::Check() {
  const std::string_view bytes = mapped_.bytes();
  if (bytes.size() < sizeof(IndexHeader) || std::memcmp(bytes.data(), kIndexMagic.data(), kIndexMagic.size()) != 0)
    return Damaged("not an index of documents");
  header_ = reinterpret_cast<const IndexHeader*>(bytes.data());
  if (header_->version != kIndexVersion || header_->header_bytes != sizeof(IndexHeader)) {
    return absl::FailedPreconditionError(
        absl::StrCat("an index of version ", header_->version, "; this program reads version ", kIndexVersion));
  }
  if (header_->file_bytes != bytes.size())
    return Damaged(absl::StrCat("it has ", bytes.size(), " bytes, and its header says ", header_->file_bytes));
  IndexHeader without_sum = *header_;
  without_sum.checksum = 0;
  if (bytes.size() % 8 != 0) return Damaged(absl::StrCat("its ", bytes.size(), " bytes are no whole words"));
  uint64_t sum = IndexChecksum(0, &without_sum, sizeof without_sum);
  for (std::string_view left = bytes.substr(sizeof(IndexHeader)); !left.empty();) {
    const std::string_view part = left.substr(0, kChecksumPart);
    sum = IndexChecksum(sum, part.data(), part.size());
    left.remove_prefix(part.size());
  }
  if (sum != header_->checksum) return Damaged("its checksum does not fit: some of its bytes are damaged");
  if (absl::Status status = CheckSections(); !status.ok()) return status;
  if (absl::Status status = CheckFiles(); !status.ok()) return status;
  uint64_t tokens = 0;
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    if (absl::Status status = CheckShard(shard); !status.ok())
      return absl::Status(status.code(), absl::StrCat("shard ", shard, ": ", status.message()));
    tokens += shards_[shard].tokens;
  }
  if (tokens != header_->tokens)
    return Damaged(absl::StrCat("its shards have ", tokens, " tokens, and its header says ", header_->tokens));
  return absl::OkStatus();
}

absl::Status IndexFile::CheckSections() {
  Sections sections(mapped_.bytes().substr(sizeof(IndexHeader)));
  if (!sections.Take(header_->shards, shards_) || !sections.Take(header_->documents, documents_) ||
      !sections.Take(header_->images, images_) || !sections.Take(header_->left_out, left_out_) ||
      !sections.Take(header_->name_bytes, names_) || !sections.Take(header_->documents, checks_) ||
      !sections.Take(header_->images, image_checks_) || !sections.Take(header_->files, files_) ||
      !sections.Take(header_->text_bytes, texts_) || !sections.empty()) {
    return Damaged("the counts in its header do not fit its size");
  }
  if (header_->files < header_->shards) return Damaged("it has fewer files than shards");
  // Sums of positions below cannot overflow: each is at most the size of the file.
  ShardRecord before{};
  for (size_t shard = 0; shard <= shards_.size(); ++shard) {
    const ShardRecord at = shard == 0 ? before : EndOf(shard - 1);
    const bool begins =
        shard > 0 || shards_.empty() ||
        (shards_[0].document == 0 && shards_[0].image == 0 && shards_[0].left_out == 0 && shards_[0].name == 0);
    if (!begins || at.document < before.document || at.image < before.image || at.left_out < before.left_out ||
        at.name < before.name || at.document > header_->documents || at.image > header_->images ||
        at.left_out > header_->left_out || at.name > header_->name_bytes) {
      return Damaged(absl::StrCat("where shard ", shard, " begins does not follow from the shards before it"));
    }
    before = at;
  }
  if (shards_.empty() && (!documents_.empty() || !images_.empty() || !left_out_.empty() || !names_.empty()))
    return Damaged("it has documents and no shards");
  return absl::OkStatus();
}

absl::Status IndexFile::CheckFiles() const {
  for (size_t i = 0; i < files_.size(); ++i) {
    const FileRecord& file = files_[i];
    const bool is_shard = file.kind == static_cast<uint32_t>(IndexedFileKind::kShard);
    if (!Within(file.text, file.path_bytes, texts_.size()) || file.path_bytes == 0 ||
        file.kind > static_cast<uint32_t>(IndexedFileKind::kPlain) || is_shard != (i < shards_.size()) ||
        file.bytes > static_cast<uint64_t>(INT64_MAX)) {
      return Damaged(absl::StrCat("its file ", i, " is none"));
    }
  }
  for (size_t i = 0; i < left_out_.size(); ++i) {
    const uint64_t bytes = uint64_t{left_out_[i].name_bytes} + left_out_[i].why_bytes;
    if (!Within(left_out_[i].text, bytes, texts_.size()))
      return Damaged(absl::StrCat("document ", i, " of those left out has no name"));
  }
  return absl::OkStatus();
}

absl::Status IndexFile::CheckShard(size_t shard) const {
  const ShardSlice slice = Slice(shard);
  const uint64_t bytes = files_[shard].bytes;
  uint64_t tokens = 0, image = 0, name = 0;
  for (size_t i = 0; i < slice.documents.size(); ++i) {
    const DocumentRecord& one = slice.documents[i];
    const bool last = i + 1 == slice.documents.size();
    const uint64_t next_image = last ? slice.images.size() : slice.documents[i + 1].image;
    const uint64_t next_name = last ? slice.names.size() : slice.documents[i + 1].name;
    if (one.image != image || next_image < image || next_image > slice.images.size() || one.name != name ||
        next_name < name || next_name > slice.names.size()) {
      return Damaged(absl::StrCat("where document ", i, " begins does not follow from those before it"));
    }
    if (one.tokens == 0 || !Within(one.text_offset, one.text_bytes, bytes) ||
        (one.mask_offset != 0 && !Within(one.mask_offset, one.tokens, bytes)) ||
        !Within(uint64_t{slice.checks[i].list_block} * kTarBlock, slice.checks[i].list_bytes, bytes)) {
      return Damaged(absl::StrCat("document ", i, " is not inside its shard"));
    }
    int64_t mark = -1;
    for (; image < next_image; ++image) {
      const ImageRecord& picture = slice.images[image];
      if (picture.file >= files_.size() || (picture.file < shards_.size() && picture.file != shard) ||
          !Within(picture.offset(), picture.bytes, files_[picture.file].bytes) || picture.height == 0 ||
          picture.width == 0 || picture.mark <= mark || picture.mark >= one.tokens ||
          slice.image_checks[image].orientation() < 1 || slice.image_checks[image].orientation() > 8 ||
          slice.image_checks[image].state >= 2 * ImageCheck::kDamagedImage) {
        return Damaged(absl::StrCat("an image of document ", i, " is none"));
      }
      mark = picture.mark;
    }
    name = next_name;
    tokens += one.tokens;
  }
  if (image != slice.images.size() || name != slice.names.size() || tokens != slice.tokens)
    return Damaged("its documents do not add up");
  return absl::OkStatus();
}

ShardRecord IndexFile::EndOf(size_t shard) const {
  if (shard + 1 < shards_.size()) return shards_[shard + 1];
  return {documents_.size(), images_.size(), left_out_.size(), names_.size(), 0, {}};
}

IndexedFile IndexFile::file(uint32_t number) const {
  const FileRecord& file = files_[number];
  return {texts_.substr(file.text, file.path_bytes), static_cast<int64_t>(file.bytes), file.changed,
          static_cast<IndexedFileKind>(file.kind)};
}

ShardSlice IndexFile::Slice(size_t shard) const {
  const ShardRecord& begin = shards_[shard];
  const ShardRecord end = EndOf(shard);
  ShardSlice slice;
  slice.documents = documents_.subspan(begin.document, end.document - begin.document);
  slice.images = images_.subspan(begin.image, end.image - begin.image);
  slice.checks = checks_.subspan(begin.document, end.document - begin.document);
  slice.image_checks = image_checks_.subspan(begin.image, end.image - begin.image);
  slice.names = names_.substr(begin.name, end.name - begin.name);
  for (uint64_t i = begin.left_out; i < end.left_out; ++i) {
    const LeftOutRecord& one = left_out_[i];
    slice.left_out.push_back(
        {texts_.substr(one.text, one.name_bytes), texts_.substr(one.text + one.name_bytes, one.why_bytes)});
  }
  slice.tokens = begin.tokens;
  slice.content = begin.content;
  slice.own_file = static_cast<uint32_t>(shard);
  slice.file = [this](uint32_t number) { return file(number); };
  return slice;
}

std::string_view IndexFile::NameOf(size_t shard, size_t document) const {
  const ShardRecord& begin = shards_[shard];
  const ShardRecord end = EndOf(shard);
  const uint64_t next = document + 1 < end.document ? begin.name + documents_[document + 1].name : end.name;
  const uint64_t first = begin.name + documents_[document].name;
  return names_.substr(first, next - first);
}

std::pair<uint64_t, uint64_t> IndexFile::ImageRange(size_t shard, size_t document) const {
  const ShardRecord& begin = shards_[shard];
  const ShardRecord end = EndOf(shard);
  const uint64_t next = document + 1 < end.document ? begin.image + documents_[document + 1].image : end.image;
  const uint64_t first = begin.image + documents_[document].image;
  return {first, next - first};
}

std::span<const ImageRecord> IndexFile::ImagesOf(size_t shard, size_t document) const {
  const auto [first, count] = ImageRange(shard, document);
  return images_.subspan(first, count);
}

std::span<const ImageCheck> IndexFile::ImageChecksOf(size_t shard, size_t document) const {
  const auto [first, count] = ImageRange(shard, document);
  return image_checks_.subspan(first, count);
}

int64_t IndexFile::TurnedImages() const {
  return std::count_if(image_checks_.begin(), image_checks_.end(),
                       [](const ImageCheck& check) { return check.orientation() != 1; });
}

int64_t IndexFile::DamagedDocuments() const {
  if (std::none_of(image_checks_.begin(), image_checks_.end(), [](const ImageCheck& check) { return check.damaged(); }))
    return 0;
  int64_t damaged = 0;
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    const size_t end = EndOf(shard).document;
    for (size_t document = shards_[shard].document; document < end; ++document) {
      const std::span<const ImageCheck> checks = ImageChecksOf(shard, document);
      damaged += std::any_of(checks.begin(), checks.end(), [](const ImageCheck& check) { return check.damaged(); });
    }
  }
  return damaged;
}

std::string IndexFile::Digest(bool turned) const {
  const std::string digest = HexOfDigest(header_->digest);
  if (!turned || TurnedImages() == 0) return digest;
  std::string orientations;
  for (const ImageCheck& check : image_checks_) orientations += static_cast<char>('0' + check.orientation());
  return Sha256Hex(absl::StrCat("turned\n", digest, "\n", orientations));
}

}  // namespace planwright
