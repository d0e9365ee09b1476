#include "executor/data/batch_reader.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "executor/tensors.h"

namespace planwright::executor {
namespace {

at::Tensor HostIntegers(at::IntArrayRef shape) { return at::empty(shape, at::TensorOptions().dtype(at::kLong)); }

}  // namespace

absl::StatusOr<std::unique_ptr<BatchReader>> BatchReader::Open(const Plan& plan) {
  absl::StatusOr<std::unique_ptr<SampleSource>> source = OpenSampleSource(plan);
  if (!source.ok()) return source.status();
  return std::unique_ptr<BatchReader>(new BatchReader(plan, *std::move(source)));
}

BatchReader::BatchReader(const Plan& plan, std::unique_ptr<SampleSource> source)
    : data_(plan.data), length_(plan.budget.sequence_length), source_(std::move(source)) {
  // On a colocated rank the encoder reads its lane's samples of a microbatch, then the language model reads its own
  // lane's. The cache holds both, so that no sample is read twice: two parts of the largest size, that with the fewest
  // lanes.
  const int64_t block = plan.budget.block_samples;
  int64_t lanes = block;
  for (const Module& module : plan.modules) lanes = std::min<int64_t>(lanes, module.grid.dp);
  cache_samples_ = 2 * ((block + std::max<int64_t>(1, lanes) - 1) / std::max<int64_t>(1, lanes));
}

const Sample& BatchReader::Get(int64_t number) {
  const auto found = cache_.find(number);
  if (found != cache_.end()) return found->second;
  absl::StatusOr<Sample> sample = source_->Get(number);
  TORCH_CHECK(sample.ok(), "sample ", number, ": ", sample.status().ToString());
  TORCH_CHECK(static_cast<int64_t>(sample->tokens.size()) == length_, "sample ", number, " has ", sample->tokens.size(),
              " tokens, the sequence has ", length_);
  // Sample numbers ascend over a run, so the smallest number is the one that nobody will ask for again.
  while (!cache_.empty() && cache_.size() >= cache_samples_) cache_.erase(cache_.begin());
  return cache_[number] = *std::move(sample);
}

at::Tensor BatchReader::SampleRows(const LaneSamples& lane) {
  at::Tensor rows = HostIntegers({lane.end - lane.first});
  for (int64_t i = lane.first; i < lane.end; ++i) {
    int64_t count = 0;
    for (const Image& image : Get(i).images) count += ImageTokens(data_, image);
    rows.data_ptr<int64_t>()[i - lane.first] = count;
  }
  return rows;
}

Tensors BatchReader::ReadTokens(const CallContext& call, at::Device device, at::ScalarType dtype) {
  const LaneSamples lane = call.lane_samples();
  const int64_t samples = lane.end - lane.first;
  at::Tensor tokens = HostIntegers({samples, length_}), labels = HostIntegers({samples, length_});
  at::Tensor mask = at::empty({samples, length_}, at::TensorOptions().dtype(at::kDouble));
  at::Tensor loss_tokens = HostIntegers({1});
  int64_t counted = 0;
  for (int64_t i = 0; i < samples; ++i) {
    const Sample& sample = Get(lane.first + i);
    std::copy(sample.tokens.begin(), sample.tokens.end(), tokens.data_ptr<int64_t>() + i * length_);
    std::copy(sample.labels.begin(), sample.labels.end(), labels.data_ptr<int64_t>() + i * length_);
    std::copy(sample.loss_mask.begin(), sample.loss_mask.end(), mask.data_ptr<double>() + i * length_);
    counted += std::count(sample.loss_mask.begin(), sample.loss_mask.end(), 1.0);
  }
  loss_tokens.data_ptr<int64_t>()[0] = counted;
  return {ToDevice(tokens, device), ToDevice(labels, device), ToDevice(mask.to(dtype), device),
          ToDevice(loss_tokens, device), SampleRows(lane)};
}

Tensors BatchReader::ReadImages(const CallContext& call, at::Device device, at::ScalarType dtype) {
  const LaneSamples lane = call.lane_samples();
  const int64_t values = 3 * data_.patch * data_.patch;
  int64_t patches = 0, images = 0;
  for (int64_t i = lane.first; i < lane.end; ++i) {
    for (const Image& image : Get(i).images) ++images, patches += image.rows * image.cols;
  }
  // Collected in fp64 as the source has them, and rounded once to the dtype of the run.
  at::Tensor pixels = at::empty({patches, values}, at::TensorOptions().dtype(at::kDouble));
  at::Tensor grid = HostIntegers({images, 2}), ids = HostIntegers({images, 2});
  double* pixel = pixels.data_ptr<double>();
  int64_t *next_grid = grid.data_ptr<int64_t>(), *next_id = ids.data_ptr<int64_t>();
  for (int64_t i = lane.first; i < lane.end; ++i) {
    int64_t index = 0;
    for (const Image& image : Get(i).images) {
      pixel = std::copy(image.patches.begin(), image.patches.end(), pixel);
      *next_grid++ = image.rows;
      *next_grid++ = image.cols;
      *next_id++ = i;
      *next_id++ = index++;
    }
  }
  // Sizes and numbers of images stay on the host: handlers plan their work by them, and must not wait for the device.
  return {ToDevice(pixels.to(dtype), device), grid, ids, SampleRows(lane)};
}

}  // namespace planwright::executor
