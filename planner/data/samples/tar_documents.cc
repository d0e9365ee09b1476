#include "planner/data/samples/tar_documents.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "planner/base/files/file_io.h"
#include "planner/data/pictures/orientation.h"
#include "planner/data/samples/document_check.h"
#include "planner/data/samples/document_parts.h"
#include "planner/data/samples/file_window.h"
#include "planner/data/samples/open_files.h"
#include "planner/data/samples/outside_images.h"
#include "planner/data/samples/tar_file.h"

namespace planwright {
namespace {

class TarDocuments : public Documents {
 public:
  TarDocuments(IndexFile index, TarDocumentsSettings settings)
      : index_(std::move(index)), settings_(std::move(settings)), files_(settings_.open_files),
        digest_(index_.Digest(settings_.turned)) {
    for (const ShardRecord& shard : index_.shards()) shard_begins_.push_back(static_cast<int64_t>(shard.document));
    shard_begins_.push_back(size());
  }

  int64_t size() const override { return static_cast<int64_t>(index_.documents().size()); }
  const std::vector<int64_t>& shard_begins() const override { return shard_begins_; }
  int64_t tokens(int64_t document) const override { return index_.documents()[document].tokens; }
  std::string digest() const override { return digest_; }
  int64_t left_out() const override { return static_cast<int64_t>(index_.header().left_out); }

  void Pictures(int64_t document, std::vector<PictureRef>& into) const override {
    into.clear();
    const size_t shard = ShardOf(document);
    const std::span<const ImageRecord> images = index_.ImagesOf(shard, document);
    const std::span<const ImageCheck> checks = index_.ImageChecksOf(shard, document);
    for (size_t i = 0; i < images.size(); ++i) {
      PictureRef& ref = into.emplace_back(PictureRef{images[i].height, images[i].width, images[i].mark});
      if (settings_.turned) ref.orientation = checks[i].orientation();
      ref.damaged = checks[i].damaged();
      if (RowsAreColumns(ref.orientation)) std::swap(ref.height, ref.width);
    }
  }

  absl::StatusOr<Text> ReadText(int64_t document) const override {
    absl::StatusOr<Text> text = settings_.ids ? ReadIds(document) : ReadBytes(document);
    if (!text.ok()) return InDocument(document, text.status());
    return text;
  }

  absl::StatusOr<std::string> ReadPicture(int64_t document, int64_t index) const override {
    const size_t shard = ShardOf(document);
    const ImageRecord& image = index_.ImagesOf(shard, document)[index];
    const absl::StatusOr<std::shared_ptr<const PlainFile>> file = Open(image.file);
    if (!file.ok()) return InDocument(document, file.status());
    absl::StatusOr<std::string> bytes = ReadImage(**file, image, index_.ImageChecksOf(shard, document)[index]);
    if (!bytes.ok()) return InDocument(document, bytes.status());
    return bytes;
  }

  std::string PictureName(int64_t document, int64_t index) const override {
    const ImageRecord& image = index_.ImagesOf(ShardOf(document), document)[index];
    const std::string path = PathOf(image.file);
    if (index_.file(image.file).kind == IndexedFileKind::kPlain) return PlainPath(path);
    std::string member;
    const absl::StatusOr<std::shared_ptr<const PlainFile>> file = files_.Get(path);
    if (file.ok()) {
      FileWindow window(**file);
      // What is wrong with the tar is told by whoever reads it: here it only has no names.
      WalkTar(**file, window, [&](const TarMember& one) {
        if (one.offset != static_cast<int64_t>(image.offset())) return absl::OkStatus();
        member = one.name;
        return absl::CancelledError();
      }).IgnoreError();
    }
    return member.empty() ? absl::StrCat(path, ", byte ", image.offset()) : absl::StrCat(path, ": ", member);
  }

  std::string Where(int64_t document) const override {
    const size_t shard = ShardOf(document);
    return absl::StrCat(PathOf(static_cast<uint32_t>(shard)), ": document ",
                        std::string(index_.NameOf(shard, document)));
  }

 private:
  size_t ShardOf(int64_t document) const {
    // Shards without documents begin where the next one does: the last that begins here has the document.
    return std::upper_bound(shard_begins_.begin(), shard_begins_.end() - 1, document) - shard_begins_.begin() - 1;
  }

  std::string PathOf(uint32_t file) const { return ResolvePath(settings_.base, std::string(index_.file(file).path)); }

  absl::Status InDocument(int64_t document, const absl::Status& status) const {
    return absl::Status(status.code(), absl::StrCat(Where(document), ": ", status.message()));
  }

  absl::StatusOr<std::shared_ptr<const PlainFile>> Open(uint32_t number) const {
    const IndexedFile about = index_.file(number);
    const std::string path = PathOf(number);
    // A plain file is one image: nobody comes back to it soon.
    absl::StatusOr<std::shared_ptr<const PlainFile>> file;
    if (about.kind == IndexedFileKind::kPlain) {
      absl::StatusOr<PlainFile> opened = PlainFile::Open(path);
      if (!opened.ok()) opened = PlainFile::Open(PlainPath(path));  // which the message names
      if (!opened.ok()) return opened.status();
      file = std::make_shared<const PlainFile>(*std::move(opened));
    } else {
      file = files_.Get(path);
      if (!file.ok()) return file.status();
    }
    if ((*file)->bytes() != about.bytes) {
      return absl::FailedPreconditionError(absl::StrCat(PlainPath(path), " has ", (*file)->bytes(),
                                                        " bytes, and it had ", about.bytes,
                                                        " when the index was made: run `plan data index`"));
    }
    return file;
  }

  absl::StatusOr<DocumentBytes> ReadParts(int64_t document) const {
    const absl::StatusOr<std::shared_ptr<const PlainFile>> shard = Open(static_cast<uint32_t>(ShardOf(document)));
    if (!shard.ok()) return shard.status();
    return ReadDocument(**shard, index_.documents()[document], index_.checks()[document]);
  }

  absl::StatusOr<Text> ReadIds(int64_t document) const {
    const absl::StatusOr<DocumentBytes> parts = ReadParts(document);
    if (!parts.ok()) return parts.status();
    Text text;
    text.tokens.resize(parts->text.size() / 4);
    for (size_t i = 0; i < text.tokens.size(); ++i) {
      uint32_t id = 0;
      std::memcpy(&id, parts->text.data() + 4 * i, 4);
      text.tokens[i] = id == settings_.image_token ? kImageMark : int64_t{id};
    }
    text.learnt.assign(parts->mask.begin(), parts->mask.end());
    return text;
  }

  absl::StatusOr<Text> ReadBytes(int64_t document) const {
    const absl::StatusOr<DocumentBytes> parts = ReadParts(document);
    if (!parts.ok()) return parts.status();
    Text text;
    text.tokens.reserve(parts->text.size() + 1);
    const std::string_view left = parts->text;
    if (left.find(kImageMarkText) == std::string_view::npos)
      text.tokens.assign(index_.ImagesOf(ShardOf(document), document).size(), kImageMark);
    for (size_t i = 0; i < left.size();) {
      const bool mark = left.substr(i, kImageMarkText.size()) == kImageMarkText;
      text.tokens.push_back(mark ? kImageMark : static_cast<unsigned char>(left[i]));
      i += mark ? kImageMarkText.size() : 1;
    }
    text.tokens.push_back(settings_.end_token);
    return text;
  }

  const IndexFile index_;
  const TarDocumentsSettings settings_;
  mutable OpenFiles files_;
  const std::string digest_;
  std::vector<int64_t> shard_begins_;
};

}  // namespace

std::unique_ptr<Documents> MakeTarDocuments(IndexFile index, TarDocumentsSettings settings) {
  return std::make_unique<TarDocuments>(std::move(index), std::move(settings));
}

}  // namespace planwright
