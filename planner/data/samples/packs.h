// Which documents of a source make which sample (docs/training/data.md#packing). Made once, when the source is opened,
// and the same in every epoch. Knows lengths of documents only, and reads no shard.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "planner/data/samples/documents.h"
#include "planner/data/samples/expanded_document.h"
#include "planner/data/samples/sample_origin.h"
#include "planner/plan/plan.h"

namespace planwright {

// A document in a sample, or a piece of one that was cut.
struct PackItem {
  int64_t document = 0;
  TokenRange piece;  // of the expanded document. end 0: all of it
};

class Packs {
 public:
  // Packs of `sequence_length` tokens. InvalidArgument, with the first of the documents and how many there are: longer
  // ones with `long: error`; with `damaged: error` those with an image that is longer; also if no document is left.
  static absl::StatusOr<Packs> Make(const DataPlan& data, const std::string& source, const Documents& documents,
                                    int64_t sequence_length);

  int64_t size() const { return static_cast<int64_t>(begins_.size()) - 1; }
  // Replaces `items` with what a pack consists of, in order.
  void Items(int64_t pack, std::vector<PackItem>& items) const;

  // The first pack of each stretch of documents that windows do not cross (DocumentOrder), and size() at the end.
  const std::vector<int64_t>& stretch_packs() const { return stretch_packs_; }
  const SourceCounts& counts() const { return counts_; }
  int64_t kept() const { return counts_.whole + counts_.cut; }  // documents that are in packs
  // The numbers of those that are padding, a line each.
  const std::string& padded() const { return padded_; }

 private:
  friend class Packer;
  struct Piece {
    uint32_t document = 0;
    TokenRange range;
  };

  std::vector<uint32_t> begins_{0};  // [packs + 1]: in items_
  std::vector<uint32_t> items_;      // a document, or kPieceBit and the number of a piece
  std::vector<Piece> pieces_;
  std::vector<int64_t> stretch_packs_;
  SourceCounts counts_;
  std::string padded_;
};

}  // namespace planwright
