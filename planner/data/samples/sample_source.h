// Numbered samples. What sample n contains depends on the data section of the plan and on n alone, not on ranks, lanes
// or the order of reading (docs/training/data.md#samples).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "planner/base/files/file_io.h"
#include "planner/data/pictures/patches.h"
#include "planner/data/samples/sample_origin.h"
#include "planner/plan/plan.h"

namespace planwright {

struct Sample {
  std::vector<int64_t> tokens, labels;  // [sequence_length]
  std::vector<double> loss_mask;        // 1 where the position counts in the loss
  // What each encoder sees of the sample's images, by DataPlan::encoders; each list in the order of the images.
  std::vector<std::vector<Image>> images;
  // With packed documents (docs/training/data.md#packed-documents): where each document ends, ascending; the last is
  // sequence_length. Else empty.
  std::vector<int64_t> document_ends;
};

// What is wanted of a sample. kText: images have their grids, and no patches, so nothing is decoded.
enum class SampleParts { kText, kAll };

// Several threads may ask at once.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  // Sample `number`, from 0, in any order. Errors come from the files: a shard that cannot be read, a damaged image.
  virtual absl::StatusOr<Sample> Get(int64_t number, SampleParts parts) const = 0;
  // The patches of all images of a sample for the first encoder, without reading a file. 0 without an encoder.
  virtual absl::StatusOr<int64_t> Patches(int64_t number) const = 0;
  // What a sample is made of, without reading a file.
  virtual SampleOrigin Origin(int64_t number) const = 0;
  // SHA-256, 64 hex digits, of what the files say about the numbering of samples; ranks compare it before the first
  // step. Empty for kinds of data that do not depend on an index.
  virtual std::string digest() const { return ""; }
  // Documents::digest() of each source of a mixture, by its name; nothing for other kinds of data.
  virtual std::map<std::string, std::string> SourceDigests() const { return {}; }
  // What became of the documents of each source of a mixture; nothing for other kinds of data.
  virtual std::vector<SourceCounts> Counts() const { return {}; }
  // What an epoch of each source of a mixture brings to each encoder, without reading a file; nothing for other kinds
  // of data.
  virtual absl::StatusOr<std::vector<CountedImages>> CountImages() const { return std::vector<CountedImages>(); }
  // How long the documents of an epoch of each source of a mixture are, and the sum of the squares of the tokens of
  // each document of a sample, padding too; neither reads a file. Nothing for other kinds of data, and where documents
  // see each other.
  virtual std::vector<CountedDocuments> CountDocuments() const { return {}; }
  virtual int64_t DocumentSquares(int64_t /*number*/) const { return 0; }
};

// SampleSource::Patches of the samples [first, first + count). An error names its sample.
absl::StatusOr<std::vector<int64_t>> PatchesOfSamples(const SampleSource& source, int64_t first, int64_t count);

// The source that Plan::data names, with its files opened. Errors name the file.
absl::StatusOr<std::unique_ptr<SampleSource>> OpenSampleSource(const Plan& plan);
// The same for an evaluation set of the plan. The seed of a mock set draws other samples of the same task: classes look
// and read as in the training.
absl::StatusOr<std::unique_ptr<SampleSource>> OpenEvaluatedSource(const Plan& plan, const EvaluationSet& set);

// The kinds of source, one file each. mock: images of drawn classes, and text that follows from them; needs no file.
// recorded: the rows of a safetensors batch, again and again. sources: a mixture of sources of documents, in tar shards
// or .bin files, by their indexes. `task_seed`: draws pattern and text of each class, and Plan::data.seed all else.
absl::StatusOr<std::unique_ptr<SampleSource>> OpenMock(const Plan& plan, int64_t task_seed);
absl::StatusOr<std::unique_ptr<SampleSource>> OpenRecorded(const Plan& plan);
absl::StatusOr<std::unique_ptr<SampleSource>> OpenSources(const Plan& plan);

// Tokens that an image takes in the sequence for one encoder: its patches divided by pixel_shuffle^2.
int64_t ImageTokens(const EncoderData& encoder, const Image& image);

// The tokens of a document of the sample are complete. Does nothing without packed documents.
void EndDocument(const DataPlan& data, Sample& sample);

// Makes a whole sample from its tokens: fills the sequence with pad tokens, which are a document of their own, and sets
// labels and loss mask. The label of a position is the next token of its document; that of the document's last position
// is the pad token. A position counts if its label is to be learnt, and neither an image token nor of the padding.
// `learnt`: for each token of the sample, 1 if it is to be learnt, else 0; empty: all are.
void FinishSample(const DataPlan& data, int64_t sequence_length, int64_t pad_token, Sample& sample,
                  const std::vector<uint8_t>& learnt = {});

}  // namespace planwright
