#include "executor/data/sample_source.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

namespace planwright::executor {

absl::StatusOr<std::unique_ptr<SampleSource>> OpenSampleSource(const Plan& plan) {
  if (plan.data.kind == "mock") return OpenMock(plan);
  if (plan.data.kind == "recorded") return OpenRecorded(plan);
  if (plan.data.kind == "webdataset") return OpenWebdataset(plan);
  return absl::UnimplementedError(absl::StrCat("this executor cannot read data of kind ", plan.data.kind));
}

int64_t ImageTokens(const DataPlan& data, const Image& image) {
  return image.rows * image.cols / (data.pixel_shuffle * data.pixel_shuffle);
}

std::string ResolvePath(const std::string& base, const std::string& path) {
  if (base.empty() || absl::StartsWith(path, "/")) return path;
  return absl::StrCat(base, "/", path);
}

void SetLabels(int64_t image_token, int64_t pad_token, Sample& sample) {
  const size_t length = sample.tokens.size();
  sample.labels.assign(length, pad_token);
  sample.loss_mask.assign(length, 0);
  // The last position has no next token, so it never counts.
  for (size_t i = 0; i + 1 < length; ++i) {
    sample.labels[i] = sample.tokens[i + 1];
    sample.loss_mask[i] = sample.labels[i] != image_token && sample.labels[i] != pad_token;
  }
}

}  // namespace planwright::executor
