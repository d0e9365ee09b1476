#include "planner/data/samples/document_reader.h"

#include <absl/strings/str_cat.h>

#include <string>

#include "planner/data/pictures/orientation.h"
#include "planner/data/pictures/patches.h"
#include "planner/data/samples/outside_images.h"

namespace planwright {
namespace {

absl::Status InDocument(const Documents& documents, int64_t document, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(documents.Where(document), ": ", what));
}

// Behind what is wrong with an image that the index did not decode, or that was whole then.
std::string WhatToDo(const DataPlan& data) {
  if (data.damaged == "skip") return "; it was whole when the index was made: run `plan data index --anew`";
  return "; `plan data index --decode` names all such images, and with `data.damaged: skip` their documents are "
         "padding: no other sample changes, and a launch goes on with --accept-changes";
}

}  // namespace

absl::Status DocumentReader::Append(const Documents& documents, const PackItem& item, SampleParts parts, Sample& sample,
                                    std::vector<uint8_t>& learnt) const {
  const int64_t document = item.document;
  ExpandedDocument expanded;
  ExpandDocument(data_, documents, document, expanded);
  const TokenRange range = item.piece.end == 0 ? TokenRange{0, expanded.tokens} : item.piece;
  if (expanded.damaged()) {
    sample.tokens.insert(sample.tokens.end(), range.end - range.first, data_.pad_token);
    learnt.resize(sample.tokens.size(), 0);
    EndDocument(data_, sample);
    return absl::OkStatus();
  }
  absl::StatusOr<Documents::Text> text = documents.ReadText(document);
  if (!text.ok()) return text.status();
  if (absl::Status status = CheckTokens(documents, document, *text); !status.ok()) return status;
  int64_t place = 0;  // in the expanded document
  int64_t mark = 0;   // of the next image
  for (size_t i = 0; i < text->tokens.size() && place < range.end; ++i) {
    if (text->tokens[i] != kImageMark) {
      if (place++ < range.first) continue;
      sample.tokens.push_back(text->tokens[i]);
      learnt.push_back(text->learnt.empty() || text->learnt[i] != 0);
      continue;
    }
    if (data_.encoders.empty()) continue;
    const ExpandedPicture& picture = expanded.pictures[mark];
    // A piece begins and ends beside an image, never within it.
    if (place >= range.first) {
      if (absl::Status status = AppendImages(documents, document, mark, expanded, parts, sample); !status.ok())
        return status;
      learnt.resize(sample.tokens.size(), 0);
    }
    place = picture.end;
    ++mark;
  }
  EndDocument(data_, sample);
  return absl::OkStatus();
}

absl::Status DocumentReader::CheckTokens(const Documents& documents, int64_t document,
                                         const Documents::Text& text) const {
  std::vector<PictureRef> pictures;
  documents.Pictures(document, pictures);
  const auto changed = [&] {
    return InDocument(documents, document, "its text is not what the index says; `plan data index` makes it anew");
  };
  if (static_cast<int64_t>(text.tokens.size()) != documents.tokens(document) ||
      (!text.learnt.empty() && text.learnt.size() != text.tokens.size()))
    return changed();
  size_t marks = 0;
  for (size_t i = 0; i < text.tokens.size(); ++i) {
    const int64_t token = text.tokens[i];
    if (token == kImageMark) {
      if (marks == pictures.size() || pictures[marks++].mark != static_cast<int64_t>(i)) return changed();
      continue;
    }
    // On a GPU an id outside the table would stop the device in the middle of a step.
    if (token < 0 || token >= data_.vocabulary) {
      return InDocument(
          documents, document,
          absl::StrCat("token ", i, " has the id ", token, "; the model's vocabulary ends at ", data_.vocabulary - 1));
    }
    for (const EncoderData& encoder : data_.encoders) {
      if (token != encoder.token) continue;
      return InDocument(documents, document,
                        absl::StrCat("token ", i, " has the id ", token, ", which stands for images of ",
                                     encoder.module, ", but there is no image"));
    }
  }
  return marks == pictures.size() ? absl::OkStatus() : changed();
}

absl::Status DocumentReader::AppendImages(const Documents& documents, int64_t document, int64_t index,
                                          const ExpandedDocument& expanded, SampleParts parts, Sample& sample) const {
  const std::vector<PatchGrid>& grids = expanded.pictures[index].grids;
  std::string file;
  if (parts == SampleParts::kAll) {
    absl::StatusOr<std::string> read = documents.ReadPicture(document, index);
    if (absl::IsNotFound(read.status()))
      return absl::NotFoundError(absl::StrCat(read.status().message(), kImageIsGone));
    if (!read.ok()) return read.status();
    file = *std::move(read);
  }
  for (size_t e = 0; e < data_.encoders.size(); ++e) {
    const EncoderData& encoder = data_.encoders[e];
    Image image{grids[e].rows, grids[e].cols, {}};
    if (parts == SampleParts::kAll) {
      absl::StatusOr<Image> decoded = Decode(file, expanded.refs[index].orientation, grids[e], encoder);
      if (!decoded.ok()) {
        return absl::Status(decoded.status().code(),
                            absl::StrCat(documents.PictureName(document, index), " (", documents.Where(document),
                                         "): ", decoded.status().message(), WhatToDo(data_)));
      }
      image = *std::move(decoded);
    }
    sample.tokens.insert(sample.tokens.end(), ImageTokens(encoder, image), encoder.token);
    sample.images[e].push_back(std::move(image));
  }
  return absl::OkStatus();
}

absl::StatusOr<Image> DocumentReader::Decode(const std::string& file, int orientation, const PatchGrid& grid,
                                             const EncoderData& encoder) const {
  if (data_.orientation == "exif") {
    const absl::StatusOr<PictureFormat> format = ReadPictureFormat(file);
    if (!format.ok()) return format.status();
    if (absl::Status status = CompareOrientation(*format, file, orientation); !status.ok()) return status;
  }
  const auto patches = data_.resize == "bicubic"         ? PatchesOfPicture<Bicubic>
                       : data_.resize == "bicubic_8bit"  ? PatchesOfPicture<BicubicBytes>
                       : data_.resize == "bilinear_8bit" ? PatchesOfPicture<BilinearBytes>
                                                         : PatchesOfPicture<Bilinear>;
  return patches(file, grid, encoder.patch, orientation, encoder.norm(),
                 data_.grid == "square" ? encoder.max_image : 0);
}

}  // namespace planwright
