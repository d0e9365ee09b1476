#include "planner/data/samples/sample_source.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/plan/sample_images.h"

namespace planwright {

absl::StatusOr<std::unique_ptr<SampleSource>> OpenSampleSource(const Plan& plan) {
  switch (plan.data.kind) {
    case DataKind::kMock: return OpenMock(plan, plan.data.seed);
    case DataKind::kRecorded: return OpenRecorded(plan);
    case DataKind::kSources: break;
  }
  return OpenSources(plan);
}

absl::StatusOr<std::unique_ptr<SampleSource>> OpenEvaluatedSource(const Plan& plan, const EvaluationSet& set) {
  Plan of_set;  // what sources of samples look at
  of_set.data = set.data, of_set.budget = plan.budget;
  return RowOf(set.data.kind).drawn ? OpenMock(of_set, plan.data.seed) : OpenSampleSource(of_set);
}

absl::StatusOr<std::vector<int64_t>> PatchesOfSamples(const SampleSource& source, int64_t first, int64_t count) {
  std::vector<int64_t> patches;
  for (int64_t number = first; number < first + count; ++number) {
    const absl::StatusOr<int64_t> of_sample = source.Patches(number);
    if (!of_sample.ok()) {
      const absl::Status& status = of_sample.status();
      return absl::Status(status.code(), absl::StrCat("sample ", number, ": ", status.message()));
    }
    patches.push_back(*of_sample);
  }
  return patches;
}

int64_t ImageTokens(const EncoderData& encoder, const Image& image) {
  return encoder.TokensOf(image.rows * image.cols);
}

void EndDocument(const DataPlan& data, Sample& sample) {
  if (data.packed_documents) sample.document_ends.push_back(static_cast<int64_t>(sample.tokens.size()));
}

void FinishSample(const DataPlan& data, int64_t sequence_length, int64_t pad_token, Sample& sample,
                  const std::vector<uint8_t>& learnt) {
  const int64_t used = std::min(static_cast<int64_t>(sample.tokens.size()), sequence_length);
  const size_t length = static_cast<size_t>(sequence_length);
  sample.tokens.resize(length, pad_token);
  if (data.packed_documents) {
    // A text may be longer than the sequence: it is cut.
    while (!sample.document_ends.empty() && sample.document_ends.back() >= used) sample.document_ends.pop_back();
    if (used > 0) sample.document_ends.push_back(used);
    if (used < sequence_length) sample.document_ends.push_back(sequence_length);
  }
  const std::vector<int64_t> image_tokens = ImageTokenIds(data);
  sample.labels.assign(length, pad_token);
  sample.loss_mask.assign(length, 0);
  // The last position of a document has no next token, so it never counts.
  auto end = sample.document_ends.begin();
  for (size_t i = 0; i + 1 < length; ++i) {
    if (end != sample.document_ends.end() && *end == static_cast<int64_t>(i + 1)) {
      ++end;
      continue;
    }
    sample.labels[i] = sample.tokens[i + 1];
    const int64_t label = sample.labels[i];
    const bool image = std::find(image_tokens.begin(), image_tokens.end(), label) != image_tokens.end();
    // By the place, not by the id: some tokenizers have one id for padding and for the end of a text.
    const bool padding = static_cast<int64_t>(i + 1) >= used;
    sample.loss_mask[i] = !image && !padding && (learnt.empty() || learnt[i + 1] != 0);
  }
}

}  // namespace planwright
