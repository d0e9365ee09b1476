// Reads documents of a source into a sample: tokens with images in place, what is learnt, and images
// (docs/training/data.md#expansion).
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <vector>

#include "planner/data/samples/documents.h"
#include "planner/data/samples/packs.h"
#include "planner/data/samples/sample_source.h"
#include "planner/plan/plan.h"

namespace planwright {

// Several threads may ask at once.
class DocumentReader {
 public:
  explicit DocumentReader(const DataPlan& data) : data_(data) {}

  // Appends a document, or a piece of one, to the sample, and to `learnt` a 1 for each of its tokens that is to be
  // learnt. Errors name shard and document: those of Documents and of images, with what to do about damaged ones; ids
  // that the model does not have, or that stand for images; and a text that is not as its index says.
  absl::Status Append(const Documents& documents, const PackItem& item, SampleParts parts, Sample& sample,
                      std::vector<uint8_t>& learnt) const;

 private:
  absl::Status CheckTokens(const Documents& documents, int64_t document, const Documents::Text& text) const;
  absl::Status AppendImages(const Documents& documents, int64_t document, int64_t index,
                            const ExpandedDocument& expanded, SampleParts parts, Sample& sample) const;
  absl::StatusOr<Image> Decode(const std::string& file, int orientation, const PatchGrid& grid,
                               const EncoderData& encoder) const;

  const DataPlan& data_;
};

}  // namespace planwright
