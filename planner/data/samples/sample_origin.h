// Where the content of a sample comes from, and what a source did not take: for `plan data trace` and `plan data
// stats`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace planwright {

// The tokens [first, end) of a document, counted after its images' marks have become tokens. A whole document but for
// pieces of one that was cut.
struct DocumentPart {
  std::string where;  // "SHARD: document NAME"; of a recorded batch "FILE: row N"
  int64_t first = 0, end = 0;
  int64_t whole = 0;  // all tokens of the document
};

struct SampleOrigin {
  std::string source;                   // the name of a source of a mixture, else empty
  int64_t epoch = -1, pack = -1;        // of that source, both from 0; -1: this kind of data does not number them
  std::vector<DocumentPart> documents;  // in the order of their tokens; empty for mock samples, which are drawn
};

// The documents of one source of a mixture, and what became of them. documents = whole + cut + skipped + without_tokens
// + misfit.
struct SourceCounts {
  std::string source;
  int64_t damaged = 0;         // left out by the index (`damaged: skip`), and not in `documents`
  int64_t padded = 0;          // of `documents`, with a damaged image (`damaged: skip`): padding in their place
  int64_t documents = 0;       // of the index, and those of a .bin that have no tokens
  int64_t whole = 0;           // in one sample
  int64_t cut = 0;             // longer than a sample, and cut in pieces (`long: cut`)
  int64_t pieces = 0;          // of those
  int64_t skipped = 0;         // longer than a sample, and left out (`long: skip`)
  int64_t without_tokens = 0;  // left out: a .bin has none of them, or nothing stays where images are left out
  int64_t misfit = 0;          // left out (`damaged: skip`): an image of more tokens than a sample, which is not cut
  int64_t samples = 0;         // of one epoch
  int64_t tokens = 0;          // of one epoch, without padding

  // Of the first encoder; without one there are no images.
  int64_t images = 0;
  int64_t smaller = 0, larger = 0;  // of those, with more than max_patches, or fewer than min_patches
  // Of those that become smaller the one of most pixels; document -1: none becomes.
  int64_t largest_document = -1, largest_image = 0, largest_height = 0, largest_width = 0;
  std::string largest;  // its name, where somebody has asked for it
};

}  // namespace planwright
