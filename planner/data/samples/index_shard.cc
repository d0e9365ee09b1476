#include "planner/data/samples/index_shard.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <tuple>

#include "planner/base/digest/sha256.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/data/samples/document_check.h"
#include "planner/data/samples/document_parts.h"
#include "planner/data/samples/file_window.h"
#include "planner/data/samples/image_meter.h"
#include "planner/data/samples/index_writer.h"

namespace planwright {
namespace {

constexpr uint64_t kMostOfRecord = std::numeric_limits<uint32_t>::max();
constexpr int64_t kToldEach = 1 << 8;  // documents
constexpr int kReadingVersion = 1;     // of what is made of a shard; names of index files have it

// The document that is being read: its members come one after the other.
struct OpenDocument {
  struct Placed {
    int64_t number = -1;  // that its name has
    std::string member;
    MeasuredImage image{};
  };
  std::string name;
  std::optional<TarMember> text, mask, list;
  uint32_t text_sum = 0, mask_sum = 0, list_sum = 0;
  std::vector<uint32_t> marks;
  std::vector<Placed> placed;
  std::optional<std::vector<ImageReference>> references;
  std::string text_bytes;     // bytes: kept for its marks, as images may come behind it
  std::string problem;        // the first one
  std::string damage;         // of its first image that is damaged: the document stays
  bool lacks_images = false;  // some that lie elsewhere are not there
};

// InvalidArgument is of the document; anything else ends the reading.
bool IsDamage(const absl::Status& status) { return absl::IsInvalidArgument(status); }

class ShardReader {
 public:
  ShardReader(std::string base, std::string path, const ReadingSettings& settings, size_t most_damaged,
              TarMembersCache& tars, absl::FunctionRef<void(int64_t, int64_t)> progress)
      : base_(std::move(base)), path_(std::move(path)), settings_(settings), most_damaged_(most_damaged),
        progress_(progress), images_(base_, path_, settings.decode_images, settings.decode_images && settings.turned,
                                     settings.keep_damaged, tars) {}

  absl::StatusOr<ShardTables> Read() {
    const absl::StatusOr<NamedFile> before = StatFile(base_, path_, IndexedFileKind::kShard);
    if (!before.ok()) return before.status();
    const absl::StatusOr<PlainFile> file = PlainFile::Open(ResolvePath(base_, path_));
    if (!file.ok()) return file.status();
    tables_.files.push_back(*before);
    FileWindow window(*file);
    window_ = &window;
    absl::Status walked = WalkTar(*file, window, [&](const TarMember& member) { return Visit(member); });
    if (walked.ok()) walked = Finish();
    if (!walked.ok() && !absl::IsCancelled(walked)) return walked;
    progress_(untold_, file->bytes() - told_bytes_);
    if (absl::IsCancelled(walked)) return std::move(tables_);  // enough are damaged
    const absl::StatusOr<NamedFile> after = StatFile(base_, path_, IndexedFileKind::kShard);
    if (!after.ok()) return after.status();
    if (after->bytes != before->bytes || after->changed != before->changed)
      return absl::UnavailableError(absl::StrCat(file->path(), ": it was changed while it was read"));
    if (absl::Status status = CheckNames(); !status.ok()) return status;
    tables_.content = BytesOfDigest(content_.Hex());
    return std::move(tables_);
  }

 private:
  absl::Status Visit(const TarMember& member) {
    if (IsNoteOfMacos(member.name)) return absl::OkStatus();
    auto [name, extension] = SplitMemberName(member.name);
    if (settings_.ignore.contains(extension)) return absl::OkStatus();
    if (!open_ || open_->name != name) {
      if (absl::Status status = Finish(); !status.ok()) return status;
      open_.emplace();
      open_->name = std::move(name);
    }
    const absl::Status status = Take(member, extension);
    if (status.ok()) return status;
    if (!IsDamage(status)) return OfDocument(status);
    if (open_->problem.empty()) open_->problem = std::string(status.message());
    return absl::OkStatus();
  }

  // Reads what an index needs of a member, as long as it is under the window.
  absl::Status Take(const TarMember& member, const std::string& extension) {
    int64_t number = -1;
    if (ReadImageExtension(extension, number)) return TakeImage(member, number);
    if (extension == "images") {
      if (open_->references) return Twice(member);
      const absl::StatusOr<std::string_view> json = Contents(member, static_cast<int64_t>(kImagesJson.bytes));
      if (!json.ok()) return json.status();
      absl::StatusOr<std::vector<ImageReference>> references = ReadImageReferences(*json);
      if (!references.ok()) return references.status();
      if (static_cast<uint64_t>(member.offset / kTarBlock) > kMostOfRecord)
        return absl::InvalidArgumentError(absl::StrCat(member.name, " lies more than 2 TB behind the shard's begin"));
      open_->references = *std::move(references);
      open_->list = TarMember{"", member.offset, member.bytes};
      open_->list_sum = CheckOfMember(*json, member.in_header);
      return absl::OkStatus();
    }
    const bool text = extension == (settings_.ids ? "tok" : "txt"), mask = settings_.ids && extension == "mask";
    if (!text && !mask) {
      tables_.of_settings = true;
      return absl::InvalidArgumentError(absl::StrCat(
          "its member ", member.name, " is not read: with the tokenizer ", settings_.ids ? "ids" : "bytes",
          settings_.ids ? " a document has tok, mask, images" : " a document has txt, images",
          ", jpg, jpeg, png and webp",
          extension.empty() ? ""
                            : absl::StrCat("; `ignore: [", extension, "]` in its source leaves such members out")));
    }
    std::optional<TarMember>& part = text ? open_->text : open_->mask;
    if (part) return Twice(member);
    const absl::StatusOr<std::string_view> contents = Contents(member, kMostTextBytes);
    if (!contents.ok()) return contents.status();
    part = TarMember{"", member.offset, member.bytes};
    const std::string_view kind = text ? "text" : "mask";
    content_.Add(kind.data(), kind.size());
    content_.Add(&member.bytes, sizeof member.bytes);
    content_.Add(contents->data(), contents->size());
    (text ? open_->text_sum : open_->mask_sum) = CheckOfMember(*contents, member.in_header);
    if (mask) return CheckMask(*contents);
    if (!settings_.ids) {
      open_->text_bytes = *contents;
      return absl::OkStatus();
    }
    return CheckIds(*contents, settings_.vocabulary, settings_.image_token, settings_.other_image_tokens, open_->marks);
  }

  absl::StatusOr<std::string_view> Contents(const TarMember& member, int64_t most) {
    if (member.bytes > most) {
      return absl::InvalidArgumentError(
          absl::StrCat("its member ", member.name, " has ", member.bytes, " bytes; at most ", most, " are read"));
    }
    return window_->Read(member.offset, member.bytes);
  }

  static absl::Status Twice(const TarMember& member) {
    return absl::InvalidArgumentError(absl::StrCat("it has two members ", member.name));
  }

  absl::Status TakeImage(const TarMember& member, int64_t number) {
    const auto read = [&](int64_t offset, int64_t count) -> absl::StatusOr<std::string> {
      offset = std::min(offset, member.bytes);
      const absl::StatusOr<std::string_view> bytes =
          window_->Read(member.offset + offset, std::min(count, member.bytes - offset));
      if (!bytes.ok()) return bytes.status();
      return std::string(*bytes);
    };
    const absl::StatusOr<MeasuredImage> image =
        images_.Measure(absl::StrCat("its image ", member.name), read, member.offset, member.bytes);
    if (!image.ok()) return image.status();
    open_->placed.push_back({number, member.name, *image});
    return absl::OkStatus();
  }

  // All members of the open document have come.
  absl::Status Finish() {
    if (!open_) return absl::OkStatus();
    if (open_->problem.empty()) {
      const absl::Status status = Append();
      if (!status.ok() && !IsDamage(status)) return OfDocument(status);
      if (!status.ok()) open_->problem = std::string(status.message());
    }
    if (open_->lacks_images) {
      open_.reset();
      return absl::OkStatus();
    }
    const bool damaged = !open_->problem.empty();
    if (tables_.documents.size() + tables_.damaged.size() >= kMostOfRecord ||
        tables_.names.size() + open_->name.size() > kMostOfRecord || tables_.images.size() > kMostOfRecord)
      return absl::InvalidArgumentError(absl::StrCat(ResolvePath(base_, path_), ": too many documents for one shard"));
    names_.push_back({std::hash<std::string>()(open_->name), damaged,
                      static_cast<uint32_t>(damaged ? tables_.damaged.size() : tables_.documents.size() - 1)});
    if (damaged) tables_.damaged.emplace_back(open_->name, open_->problem);
    if (!damaged) tables_.names += open_->name;
    if (!damaged && !open_->damage.empty()) {
      tables_.damaged.emplace_back(open_->name, open_->damage);
      ++tables_.kept;
    }
    open_.reset();
    if (++untold_ == kToldEach) Tell();
    return tables_.damaged.size() >= most_damaged_ ? absl::CancelledError() : absl::OkStatus();
  }

  void Tell() {
    const uint64_t at = tables_.documents.empty() ? 0 : tables_.documents.back().text_offset;
    const int64_t bytes = std::max(static_cast<int64_t>(at), told_bytes_);
    progress_(untold_, bytes - told_bytes_);
    untold_ = 0;
    told_bytes_ = bytes;
  }

  // Checks what needs all members of a document, and adds it to the tables.
  absl::Status Append() {
    OpenDocument& document = *open_;
    const size_t first_image = tables_.images.size(), first_file = tables_.files.size();
    absl::Status status = AppendImages(document);
    uint64_t tokens = 0;
    if (status.ok()) status = Match(document, tables_.images.size() - first_image, tokens);
    if (!status.ok()) {
      tables_.images.resize(first_image);
      tables_.image_checks.resize(first_image);
      tables_.files.resize(first_file);
      images_.Forget(first_file);
      return status;
    }
    for (size_t i = first_image; i < tables_.images.size(); ++i)
      tables_.images[i].mark = document.marks[i - first_image];
    const auto offset_of = [](const std::optional<TarMember>& part) {
      return static_cast<uint64_t>(part ? part->offset : 0);
    };
    tables_.documents.push_back({offset_of(document.text), offset_of(document.mask),
                                 static_cast<uint32_t>(document.text ? document.text->bytes : 0),
                                 static_cast<uint32_t>(tokens), static_cast<uint32_t>(first_image),
                                 static_cast<uint32_t>(tables_.names.size())});
    DocumentCheck check{CheckOfParts(document.text_sum, document.mask_sum, document.list_sum), 0, 0};
    if (document.list) {
      check.list_block = static_cast<uint32_t>(document.list->offset / kTarBlock);
      check.list_bytes = static_cast<uint32_t>(document.list->bytes);
    }
    tables_.checks.push_back(check);
    tables_.tokens += tokens;
    return absl::OkStatus();
  }

  void AppendImage(const MeasuredImage& image) {
    if (open_->damage.empty()) open_->damage = image.damage;
    tables_.images.push_back(image.record);
    tables_.image_checks.push_back(image.check);
  }

  absl::Status AppendImages(OpenDocument& document) {
    std::vector<OpenDocument::Placed>& placed = document.placed;
    if (document.references && !placed.empty())
      return absl::InvalidArgumentError("it has .images, and images beside its text");
    for (size_t i = 0; document.references && i < document.references->size(); ++i) {
      const ImageReference& reference = (*document.references)[i];
      const absl::StatusOr<MeasuredImage> image = images_.Refer(reference, i, tables_.files);
      ++tables_.outside.named, ++tables_.outside.looked;
      if (absl::IsNotFound(image.status())) {
        tables_.outside.AddMissing(images_.PathOf(reference));
        document.lacks_images = true;
        continue;
      }
      if (!image.ok()) return image.status();
      AppendImage(*image);
    }
    if (document.lacks_images) return absl::InvalidArgumentError("it lacks images");
    std::sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
    for (size_t i = 0; i < placed.size(); ++i) {
      if (i > 0 && (placed[i].number == placed[i - 1].number || placed[i - 1].number < 0)) {
        return absl::InvalidArgumentError(absl::StrCat("its images ", placed[i - 1].member, " and ", placed[i].member,
                                                       " have no order: several are called ", document.name, ".0.jpg, ",
                                                       document.name, ".1.png ..."));
      }
      AppendImage(placed[i].image);
    }
    return absl::OkStatus();
  }

  // Whether text, mask and images belong together. Fills the marks, and the number of tokens.
  absl::Status Match(OpenDocument& document, size_t images, uint64_t& tokens) {
    if (!settings_.ids) {
      const std::string& text = document.text_bytes;
      if (absl::Status status = FindTextMarks(text, static_cast<int64_t>(images), document.marks); !status.ok())
        return status;
      const bool marked = text.find(kImageMarkText) != std::string::npos;
      tokens = text.size() + 1 + (marked ? 0 : images) - (marked ? images * (kImageMarkText.size() - 1) : 0);
      return absl::OkStatus();
    }
    if (!document.text) return absl::InvalidArgumentError("it has no .tok");
    tokens = static_cast<uint64_t>(document.text->bytes) / 4;
    if (document.mask && static_cast<uint64_t>(document.mask->bytes) != tokens) {
      return absl::InvalidArgumentError(
          absl::StrCat("its .mask has ", document.mask->bytes, " bytes, and its .tok ", tokens, " tokens"));
    }
    if (settings_.image_token < 0 && images > 0) {
      tables_.of_settings = true;
      return absl::InvalidArgumentError(
          absl::StrCat("it has ", images, " images, and nothing says which id marks them: `data.image_token` does, ",
                       "or the prepared.json of the shards; without an encoder images and their marks are left out"));
    }
    if (document.marks.size() != images) {
      return absl::InvalidArgumentError(absl::StrCat("its .tok has ", document.marks.size(), " image tokens (id ",
                                                     settings_.image_token, "), and it has ", images, " images"));
    }
    return absl::OkStatus();
  }

  // The members of a document must be next to each other: else it would be read as two.
  absl::Status CheckNames() {
    const auto name_of = [&](const NamedDocument& one) {
      if (one.damaged) return std::string_view(tables_.damaged[one.number].first);
      const size_t begin = tables_.documents[one.number].name;
      const bool last = one.number + 1 == tables_.documents.size();
      const size_t end = last ? tables_.names.size() : tables_.documents[one.number + 1].name;
      return std::string_view(tables_.names).substr(begin, end - begin);
    };
    std::sort(names_.begin(), names_.end(), [](const NamedDocument& a, const NamedDocument& b) {
      return std::tie(a.hash, a.damaged, a.number) < std::tie(b.hash, b.damaged, b.number);
    });
    for (size_t i = 1; i < names_.size(); ++i) {
      for (size_t j = i; j > 0 && names_[j - 1].hash == names_[i].hash; --j) {
        if (name_of(names_[j - 1]) != name_of(names_[i])) continue;
        return absl::InvalidArgumentError(
            absl::StrCat(ResolvePath(base_, path_), ": document ", std::string(name_of(names_[i])),
                         ": it comes twice: the members of a document must be next to each other"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status OfDocument(const absl::Status& status) const {
    return absl::Status(status.code(),
                        absl::StrCat(ResolvePath(base_, path_), ": document ", open_->name, ": ", status.message()));
  }

  struct NamedDocument {
    size_t hash = 0;
    bool damaged = false;
    uint32_t number = 0;  // among those that are damaged, or that are not
  };

  const std::string base_, path_;
  const ReadingSettings& settings_;
  const size_t most_damaged_;
  absl::FunctionRef<void(int64_t, int64_t)> progress_;
  FileWindow* window_ = nullptr;
  ImageMeter images_;
  ShardTables tables_;
  std::optional<OpenDocument> open_;
  std::vector<NamedDocument> names_;
  Sha256 content_;
  int64_t untold_ = 0, told_bytes_ = 0;
};

}  // namespace

DigestBytes ReadingSettings::Digest() const {
  return BytesOfDigest(Sha256Hex(absl::StrCat("index ", kReadingVersion, "\n", ids ? "ids" : "bytes", "\n", vocabulary,
                                              "\n", image_token, "\n", absl::StrJoin(other_image_tokens, " "), "\n",
                                              absl::StrJoin(ignore, " "), "\n",
                                              !decode_images ? "headers"
                                              : turned       ? "decoded, turned"
                                                             : "decoded",
                                              keep_damaged ? ", with those that are damaged" : "")));
}

ShardSlice ShardTables::Slice() const {
  ShardSlice slice;
  slice.documents = documents;
  slice.images = images;
  slice.checks = checks;
  slice.image_checks = image_checks;
  slice.names = names;
  for (const auto& [name, why] : damaged) slice.left_out.push_back({name, why});
  slice.tokens = tokens;
  slice.content = content;
  slice.own_file = 0;
  slice.file = [this](uint32_t number) {
    const NamedFile& file = files[number];
    return IndexedFile{file.path, file.bytes, file.changed, file.kind};
  };
  return slice;
}

absl::StatusOr<ShardTables> IndexShard(const std::string& base, const std::string& path,
                                       const ReadingSettings& settings, size_t most_damaged, TarMembersCache& tars,
                                       absl::FunctionRef<void(int64_t documents, int64_t bytes)> progress) {
  return ShardReader(base, path, settings, most_damaged, tars, progress).Read();
}

}  // namespace planwright
