// A document with its images in place: how many tokens each image takes for each encoder, and where they stand
// (docs/training/data.md#expansion). Knows sizes only, and reads no shard.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <vector>

#include "planner/data/pictures/patch_grid.h"
#include "planner/data/samples/documents.h"
#include "planner/plan/plan.h"

namespace planwright {

// The grid of patches that an encoder sees of an image of so many pixels. Its sides may be longer than those of the
// encoder's position table, which is resized to it. With grid square it is that of its largest image, whatever these
// are.
PatchGrid GridOfPicture(const DataPlan& data, const EncoderData& encoder, int64_t height, int64_t width);

// What becomes of the size of an image for an encoder: with more than max_patches it becomes smaller, with fewer than
// min_patches larger. With grid square its pixels count, and those of the square.
enum class PictureScale { kAsItIs, kSmaller, kLarger };
PictureScale ScaleOfPicture(const DataPlan& data, const EncoderData& encoder, int64_t height, int64_t width);

// An image's tokens are [first, end) of the document: those for the first encoder, then those for the next.
struct ExpandedPicture {
  int64_t first = 0, end = 0;
  std::vector<PatchGrid> grids;  // by DataPlan::encoders
};

struct ExpandedDocument {
  int64_t tokens = 0;
  std::vector<ExpandedPicture> pictures;  // without an encoder empty: images and their marks are left out
  std::vector<PictureRef> refs;           // of the index, without an encoder too

  bool damaged() const;  // an image is: it has its place, and is padding
};

// Replaces `into`.
void ExpandDocument(const DataPlan& data, const Documents& documents, int64_t document, ExpandedDocument& into);

// Tokens [first, end) of an expanded document.
struct TokenRange {
  int64_t first = 0, end = 0;
};

// Replaces `pieces` with the pieces of a document, in order, of at most `most` tokens each: each takes as many as it
// can, but no image is cut. InvalidArgument if an image alone has more.
absl::Status CutDocument(const ExpandedDocument& document, int64_t most, std::vector<TokenRange>& pieces);

}  // namespace planwright
