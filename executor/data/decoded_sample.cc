#include "executor/data/decoded_sample.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "executor/data/file_error.h"
#include "planner/base/threads/threads.h"

namespace planwright::executor {
namespace {

constexpr int64_t kValuesOfItem = 1 << 16;  // that a thread rounds at a time

int64_t BytesOfText(const Sample& sample) {
  return static_cast<int64_t>(
      8 * (sample.tokens.size() + sample.labels.size() + sample.loss_mask.size() + sample.document_ends.size()));
}

}  // namespace

SampleParts SampleNeed::parts() const {
  const bool any = std::any_of(pixels.begin(), pixels.end(), [](const Pixels& of) { return of.reads > 0; });
  return any ? SampleParts::kAll : SampleParts::kText;
}

int64_t DecodedSample::bytes() const {
  int64_t bytes = BytesOfText(sample);
  for (const std::vector<Image>& images : sample.images) {
    for (const Image& image : images) bytes += static_cast<int64_t>(sizeof(double) * image.patches.size());
  }
  for (const std::vector<at::Tensor>& images : pixels) {
    for (const at::Tensor& image : images) bytes += static_cast<int64_t>(image.nbytes());
  }
  return bytes;
}

void DecodedSample::DropPixels(size_t encoder) {
  pixels[encoder].clear();
  for (Image& image : sample.images[encoder]) std::vector<double>().swap(image.patches);
}

int64_t BytesToDecode(const DataPlan& data, int64_t sequence_length, const SampleNeed& need, int64_t patches) {
  int64_t bytes = 8 * 3 * sequence_length;
  if (need.parts() == SampleParts::kText) return bytes;
  for (const EncoderData& encoder : data.encoders)
    bytes += patches * 3 * encoder.patch * encoder.patch * static_cast<int64_t>(sizeof(double));
  return bytes;
}

void Round(const double* values, int64_t count, const at::Tensor& into, int64_t first) {
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, into.scalar_type(), "read_images", [&] {
    scalar_t* const rounded = into.data_ptr<scalar_t>() + first;
    ForEachItem(ThreadsOfRank(), (count + kValuesOfItem - 1) / kValuesOfItem, [&](int64_t item) {
      const int64_t end = std::min((item + 1) * kValuesOfItem, count);
      for (int64_t i = item * kValuesOfItem; i < end; ++i) rounded[i] = static_cast<scalar_t>(values[i]);
    });
  });
}

DecodedSample Decode(const DataPlan& data, const SampleSource& source, const SampleNeed& need, at::ScalarType dtype) {
  absl::StatusOr<Sample> sample = source.Get(need.number, need.parts());
  if (!sample.ok()) {
    throw FileError(
        absl::Status(sample.status().code(), absl::StrCat("sample ", need.number, ": ", sample.status().message())));
  }
  DecodedSample decoded{*std::move(sample), {}};
  decoded.pixels.resize(data.encoders.size());
  for (size_t e = 0; e < need.pixels.size(); ++e) {
    if (need.pixels[e].bands && need.pixels[e].reads > 0) continue;
    const int64_t values = 3 * data.encoders[e].patch * data.encoders[e].patch;
    for (Image& image : decoded.sample.images[e]) {
      if (need.pixels[e].reads > 0) {
        at::Tensor& rounded = decoded.pixels[e].emplace_back(
            at::empty({image.rows * image.cols, values}, at::TensorOptions().dtype(dtype)));
        Round(image.patches.data(), rounded.numel(), rounded, 0);
      }
      std::vector<double>().swap(image.patches);
    }
  }
  return decoded;
}

}  // namespace planwright::executor
