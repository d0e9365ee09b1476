// The webdataset source (docs/training/data.md#webdataset): documents in tar shards. Members NAME.png and NAME.txt next
// to each other are one document: the tokens of its image, the bytes of its text as tokens, and the end token. Without
// an encoder images are left out; there is at most one encoder, as the tokenizer has one image token. All headers are
// read when the source is opened; images are decoded when a sample is read.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "planner/data/pictures/orientation.h"
#include "planner/data/pictures/patches.h"
#include "planner/data/pictures/picture_end.h"
#include "planner/data/samples/expanded_document.h"
#include "planner/data/samples/sample_source.h"
#include "planner/data/samples/tar_file.h"
#include "planner/data/samples/window_packer.h"

namespace planwright {
namespace {

struct Document {
  std::string name;
  size_t shard = 0;
  std::optional<TarMember> image, text;
  PatchGrid grid;       // of the image
  int orientation = 1;  // by which it is turned
  int64_t tokens = 0;
};

// The document and the extension of a member: its name is cut at the first dot after the last slash.
std::pair<std::string, std::string> SplitName(const std::string& name) {
  const size_t slash = name.rfind('/');
  const size_t dot = name.find('.', slash == std::string::npos ? 0 : slash + 1);
  if (dot == std::string::npos) return {name, ""};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

std::string NameDocument(const TarFile& shard, const std::string& document) {
  return absl::StrCat(shard.path(), ": document ", document);
}

// `status` with the shard and the document before its message.
absl::Status InDocument(const TarFile& shard, const std::string& document, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(NameDocument(shard, document), ": ", status.message()));
}

class WebdatasetSource : public SampleSource {
 public:
  explicit WebdatasetSource(const Plan& plan) : data_(plan.data), length_(plan.budget.sequence_length) {}

  absl::Status Open() {
    // The order of shards and members is part of the numbering of samples.
    for (const std::string& path : data_.shards) {
      absl::StatusOr<TarFile> shard = TarFile::Open(ResolvePath(data_.base, path));
      if (!shard.ok()) return shard.status();
      shards_.push_back(*std::move(shard));
      if (absl::Status status = FindDocuments(shards_.size() - 1); !status.ok()) return status;
    }
    if (documents_.empty()) return absl::InvalidArgumentError("the shards contain no documents");
    std::vector<int64_t> lengths;
    for (Document& document : documents_) {
      // A document that cannot be used fails now, not hours later in the middle of a run.
      if (absl::Status status = Measure(document); !status.ok())
        return InDocument(shards_[document.shard], document.name, status);
      lengths.push_back(document.tokens);
    }
    packer_.emplace(data_.seed, std::move(lengths), data_.window, length_);
    return absl::OkStatus();
  }

  absl::StatusOr<Sample> Get(int64_t number, SampleParts parts) const override {
    Sample sample;
    sample.images.resize(data_.encoders.size());
    for (int64_t index : DocumentsOf(number)) {
      const Document& document = documents_[index];
      if (absl::Status status = Append(document, parts, sample); !status.ok())
        return InDocument(shards_[document.shard], document.name, status);
    }
    FinishSample(data_, length_, data_.pad_token, sample);
    return sample;
  }

  absl::StatusOr<int64_t> Patches(int64_t number) const override {
    int64_t patches = 0;
    for (int64_t index : DocumentsOf(number)) patches += documents_[index].grid.rows * documents_[index].grid.cols;
    return patches;
  }

  SampleOrigin Origin(int64_t number) const override {
    SampleOrigin origin;
    for (int64_t index : DocumentsOf(number)) {
      const Document& document = documents_[index];
      origin.documents.push_back(
          {.where = NameDocument(shards_[document.shard], document.name), .first = 0, .end = document.tokens});
    }
    return origin;
  }

 private:
  // The packer remembers where windows begin.
  std::vector<int64_t> DocumentsOf(int64_t number) const {
    const std::lock_guard lock(packing_);
    return packer_->Documents(number);
  }

  absl::Status FindDocuments(size_t shard) {
    const size_t first = documents_.size();
    for (const TarMember& member : shards_[shard].members()) {
      // Members of one document are next to each other, so only the last document can grow.
      const auto [name, extension] = SplitName(member.name);
      if (documents_.size() == first || documents_.back().name != name)
        documents_.push_back({.name = name, .shard = shard});
      Document& document = documents_.back();
      const bool image = extension == "png";
      if (!image && extension != "txt") {
        return InDocument(
            shards_[shard], name,
            absl::InvalidArgumentError(absl::StrCat("its member ", member.name, " is neither png nor txt")));
      }
      std::optional<TarMember>& part = image ? document.image : document.text;
      if (part)
        return InDocument(shards_[shard], name,
                          absl::InvalidArgumentError(absl::StrCat("there are two members ", member.name)));
      part = member;
    }
    return absl::OkStatus();
  }

  absl::Status Measure(Document& document) const {
    if (data_.encoders.empty()) document.image.reset();
    // The end token, and one token for each byte of text.
    document.tokens = 1 + (document.text ? document.text->bytes : 0);
    if (document.image) {
      // The header has the size, which gives the number of image tokens: nothing is decoded here.
      const absl::StatusOr<std::string> header = shards_[document.shard].Read(*document.image, kPngHeaderBytes);
      if (!header.ok()) return header.status();
      if (const auto format = ReadPictureFormat(*header); !format.ok() || *format != PictureFormat::kPng)
        return absl::InvalidArgumentError("not a PNG file");
      const absl::StatusOr<PictureSize> size = ReadPictureSize(*header);
      if (!size.ok()) return size.status();
      if (absl::Status status = LookAtEnds(document); !status.ok()) return status;
      const bool columns = RowsAreColumns(document.orientation);
      const EncoderData& encoder = data_.encoders.front();
      const absl::StatusOr<PatchGrid> grid =
          GridOfPicture(data_, encoder, columns ? size->width : size->height, columns ? size->height : size->width);
      if (!grid.ok()) return grid.status();
      document.grid = *grid;
      document.tokens += encoder.TokensOf(grid->rows * grid->cols);
    }
    if (document.tokens > length_) {
      return absl::InvalidArgumentError(
          absl::StrCat("its ", document.tokens, " tokens do not fit the sequence of ", length_));
    }
    return absl::OkStatus();
  }

  // Whether the image is whole, as far as that can be seen without decoding it, and how it is to be turned.
  absl::Status LookAtEnds(Document& document) const {
    const TarFile& shard = shards_[document.shard];
    const int64_t bytes = document.image->bytes, last = std::min(bytes, kPictureEnd);
    const auto read = [&](int64_t offset, int64_t count) -> absl::StatusOr<std::string> {
      offset = std::min(offset, bytes);
      const TarMember part{"", document.image->offset + offset, bytes - offset};
      return shard.Read(part, count);
    };
    const absl::StatusOr<std::string> end = read(bytes - last, last);
    if (!end.ok()) return end.status();
    if (MayBeCut(PictureFormat::kPng, "", *end, bytes)) {
      const absl::StatusOr<std::string> file = shard.Read(*document.image);
      if (!file.ok()) return file.status();
      if (absl::Status status = CheckPicture(*file); !status.ok()) return status;
    }
    if (data_.orientation != "exif") return absl::OkStatus();
    const absl::StatusOr<int> orientation = ReadOrientation(PictureFormat::kPng, read, bytes, false);
    if (!orientation.ok()) return orientation.status();
    document.orientation = *orientation;
    return absl::OkStatus();
  }

  absl::Status Append(const Document& document, SampleParts parts, Sample& sample) const {
    const TarFile& shard = shards_[document.shard];
    if (document.image) {
      const EncoderData& encoder = data_.encoders.front();
      std::vector<Image>& images = sample.images.front();
      if (parts == SampleParts::kAll) {
        absl::StatusOr<Image> image = ReadImage(shard, document);
        if (!image.ok()) return image.status();
        images.push_back(*std::move(image));
      } else {
        images.push_back({document.grid.rows, document.grid.cols, {}});
      }
      sample.tokens.insert(sample.tokens.end(), ImageTokens(encoder, images.back()), encoder.token);
    }
    if (document.text) {
      const absl::StatusOr<std::string> text = shard.Read(*document.text);
      if (!text.ok()) return text.status();
      for (unsigned char byte : *text) sample.tokens.push_back(byte);
    }
    sample.tokens.push_back(data_.end_token);
    EndDocument(data_, sample);
    return absl::OkStatus();
  }

  absl::StatusOr<Image> ReadImage(const TarFile& shard, const Document& document) const {
    const absl::StatusOr<std::string> file = shard.Read(*document.image);
    if (!file.ok()) return file.status();
    if (data_.orientation == "exif") {
      const absl::Status same = CompareOrientation(PictureFormat::kPng, *file, document.orientation);
      if (!same.ok()) return same;
    }
    const int64_t patch = data_.encoders.front().patch;
    return data_.resize == "bicubic" ? PatchesOfPicture<Bicubic>(*file, document.grid, patch, document.orientation)
                                     : PatchesOfPicture<Bilinear>(*file, document.grid, patch, document.orientation);
  }

  const DataPlan data_;
  const int64_t length_;
  std::vector<TarFile> shards_;
  std::vector<Document> documents_;
  mutable std::mutex packing_;
  mutable std::optional<WindowPacker> packer_;  // guarded by packing_
};

}  // namespace

absl::StatusOr<std::unique_ptr<SampleSource>> OpenWebdataset(const Plan& plan) {
  auto source = std::make_unique<WebdatasetSource>(plan);
  if (absl::Status status = source->Open(); !status.ok()) return status;
  return source;
}

}  // namespace planwright
