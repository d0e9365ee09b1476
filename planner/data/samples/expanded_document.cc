#include "planner/data/samples/expanded_document.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

namespace planwright {

namespace {

GridRule RuleOf(const DataPlan& data) {
  return data.grid == "round_half_even" ? GridRule::kRoundHalfEven
         : data.grid == "smart_resize"  ? GridRule::kSmartResize
                                        : GridRule::kCeil;
}

}  // namespace

PatchGrid GridOfPicture(const DataPlan& data, const EncoderData& encoder, int64_t height, int64_t width) {
  if (data.grid == "square") return {encoder.side(), encoder.side()};
  return DynamicResolution(height, width, encoder.patch, data.min_patches, data.max_patches, encoder.pixel_shuffle,
                           RuleOf(data));
}

PictureScale ScaleOfPicture(const DataPlan& data, const EncoderData& encoder, int64_t height, int64_t width) {
  if (data.grid == "square") {
    const int64_t pixels = height * width, all = encoder.max_image * encoder.max_image;
    return pixels > all ? PictureScale::kSmaller : pixels < all ? PictureScale::kLarger : PictureScale::kAsItIs;
  }
  const GridRule rule = RuleOf(data);
  const PatchGrid covering = CoveringGrid(height, width, encoder.patch, encoder.pixel_shuffle, rule);
  const int64_t patches = covering.rows * covering.cols;
  if (patches > data.max_patches) return PictureScale::kSmaller;
  const bool grows = rule != GridRule::kRoundHalfEven || data.min_patches != data.max_patches;
  return patches < data.min_patches && grows ? PictureScale::kLarger : PictureScale::kAsItIs;
}

bool ExpandedDocument::damaged() const {
  return std::any_of(refs.begin(), refs.end(), [](const PictureRef& ref) { return ref.damaged; });
}

void ExpandDocument(const DataPlan& data, const Documents& documents, int64_t document, ExpandedDocument& into) {
  documents.Pictures(document, into.refs);
  into.tokens = documents.tokens(document);
  if (data.encoders.empty()) {
    into.tokens -= static_cast<int64_t>(into.refs.size());
    into.pictures.clear();
    return;
  }
  into.pictures.resize(into.refs.size());
  int64_t more = 0;  // tokens than before expansion, of the images so far
  for (size_t i = 0; i < into.refs.size(); ++i) {
    ExpandedPicture& picture = into.pictures[i];
    picture.first = picture.end = into.refs[i].mark + more;
    picture.grids.clear();
    for (const EncoderData& encoder : data.encoders) {
      const PatchGrid grid = GridOfPicture(data, encoder, into.refs[i].height, into.refs[i].width);
      picture.grids.push_back(grid);
      picture.end += encoder.TokensOf(grid.rows * grid.cols);
    }
    more += picture.end - picture.first - 1;
  }
  into.tokens += more;
}

absl::Status CutDocument(const ExpandedDocument& document, int64_t most, std::vector<TokenRange>& pieces) {
  pieces.clear();
  auto picture = document.pictures.begin();  // the first that does not end before the piece's end
  for (int64_t first = 0; first < document.tokens;) {
    int64_t end = std::min(first + most, document.tokens);
    while (picture != document.pictures.end() && picture->end <= end) ++picture;
    // The piece would end within this image: it ends before it.
    if (picture != document.pictures.end() && picture->first < end) end = picture->first;
    if (end == first) {
      return absl::InvalidArgumentError(
          absl::StrCat("image ", picture - document.pictures.begin() + 1, ": its ", picture->end - picture->first,
                       " tokens do not fit the sequence of ", most, ", and images are not cut"));
    }
    pieces.push_back({first, end});
    first = end;
  }
  return absl::OkStatus();
}

}  // namespace planwright
