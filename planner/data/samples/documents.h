// The documents of one source of a mixture, in the order of its shards and their members: how long each is, where its
// images stand and how large they are, without reading a shard; and their text and images, read when they are asked for
// (docs/training/data.md#index).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// What stands in the tokens of a document, before expansion, where an image is to be.
inline constexpr int64_t kImageMark = -1;

// An image of a document: its size in pixels, and the position of its mark among the document's tokens.
struct PictureRef {
  int64_t height = 0, width = 0;
  int64_t mark = 0;
  int orientation = 1;   // by which it is turned before it is resized (orientation.h); its size is that of after
  bool damaged = false;  // it cannot be decoded (`damaged: skip`): its document is padding
};

// Several threads may ask at once. `document` is in [0, size()).
class Documents {
 public:
  struct Text {
    std::vector<int64_t> tokens;  // complete, the end token too; an image is one kImageMark
    std::vector<uint8_t> learnt;  // [tokens]: 1 where this token is to be learnt, else 0. Empty: every token is
  };

  virtual ~Documents() = default;
  virtual int64_t size() const = 0;
  // The first document of each shard, ascending (a shard may have none), and size() at the end.
  virtual const std::vector<int64_t>& shard_begins() const = 0;

  // The following two read no shard.
  // How many tokens a document has before expansion: each image is one, and the end token counts. At least 1.
  virtual int64_t tokens(int64_t document) const = 0;
  // Replaces `into` with the images of a document, in their order; marks ascend.
  virtual void Pictures(int64_t document, std::vector<PictureRef>& into) const = 0;

  // As many tokens as tokens() says, and the file of an image (PNG, JPEG or WebP). Errors name the shard and the
  // document; a shard of another size than when the index was made, and a text or an image that is not the one that was
  // there then, are FailedPrecondition.
  virtual absl::StatusOr<Text> ReadText(int64_t document) const = 0;
  virtual absl::StatusOr<std::string> ReadPicture(int64_t document, int64_t index) const = 0;

  // "SHARD: document NAME", for messages.
  virtual std::string Where(int64_t document) const = 0;
  // What an image is called where it lies, for messages: "photos/8.png", "SHARD: 8.png". May read headers of a tar.
  virtual std::string PictureName(int64_t document, int64_t index) const;
  // SHA-256, 64 hex digits, of everything that the numbering of samples depends on.
  virtual std::string digest() const = 0;
  // Damaged documents (`damaged: skip`). Those with an image whose size is known are in size() all the same, so that no
  // other document has another place.
  virtual int64_t left_out() const = 0;
  // Documents without a token, which are not in size() either: those of empty texts in a .bin.
  virtual int64_t without_tokens() const { return 0; }
};

// The documents of data.sources' `source`: those of a webdataset from its index file, those of tokens from PATH.idx and
// their record (token_record.h). FailedPrecondition, with the command to run, if the index file is missing or was made
// with other settings or files; errors name the file.
absl::StatusOr<std::unique_ptr<Documents>> OpenDocuments(const DataPlan& data, const SourcePlan& source);

}  // namespace planwright
