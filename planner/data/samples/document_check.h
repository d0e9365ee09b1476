// How a document that is read is known to be the one that was indexed. Size and time of a shard do not say it: tar
// files are padded, so shards that are made anew often have the size that they had, and copies and stores of objects
// often the time (docs/training/data.md#index).
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "planner/base/files/file_io.h"
#include "planner/data/samples/index_format.h"

namespace planwright {

// The checksum of a member: of its contents, and of the size that its header says, so that a longer one that begins as
// this is another one.
uint32_t CheckOfMember(std::string_view contents, int64_t in_header);

// DocumentCheck::parts, of the checksums of text, mask and list; those that a document does not have are 0.
uint32_t CheckOfParts(uint32_t text, uint32_t mask, uint32_t list);

// ImageCheck::ends, of an image's first kPictureBegin and last kPictureEnd bytes (picture_end.h), or all of fewer.
uint32_t CheckOfEnds(std::string_view begin, std::string_view end);

struct DocumentBytes {
  std::string text, mask;
};

// The text and the mask of a document of `shard`. FailedPrecondition, a sentence for a message that names the document:
// it is not the one that was indexed. Errors of PlainFile.
absl::StatusOr<DocumentBytes> ReadDocument(const PlainFile& shard, const DocumentRecord& document,
                                           const DocumentCheck& check);

// The file of an image of a document, which is in `file`. Errors as above.
absl::StatusOr<std::string> ReadImage(const PlainFile& file, const ImageRecord& image, const ImageCheck& check);

// Whether the image is the one that was indexed, by the bytes that its check is of. Errors as above.
absl::Status CompareImage(const PlainFile& file, const ImageRecord& image, const ImageCheck& check);

}  // namespace planwright
