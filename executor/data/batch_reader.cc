#include "executor/data/batch_reader.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>

#include "executor/data/file_error.h"
#include "planner/plan/image_bands.h"
#include "planner/threads/threads.h"

namespace planwright::executor {
namespace {

constexpr int64_t kValuesOfItem = 1 << 16;  // that a thread rounds at a time

at::Tensor HostIntegers(at::IntArrayRef shape) { return at::empty(shape, at::TensorOptions().dtype(at::kLong)); }

// Sources give fp64. Rounds it once, to the dtype of `into`, from its value `first` on.
void Round(const double* values, int64_t count, int threads, const at::Tensor& into, int64_t first) {
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, into.scalar_type(), "read_images", [&] {
    scalar_t* const rounded = into.data_ptr<scalar_t>() + first;
    ForEachItem(threads, (count + kValuesOfItem - 1) / kValuesOfItem, [&](int64_t item) {
      const int64_t end = std::min((item + 1) * kValuesOfItem, count);
      for (int64_t i = item * kValuesOfItem; i < end; ++i) rounded[i] = static_cast<scalar_t>(values[i]);
    });
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchReader>> BatchReader::Open(const Plan& plan) {
  absl::StatusOr<std::unique_ptr<SampleSource>> source = OpenSampleSource(plan);
  if (!source.ok()) return source.status();
  return std::unique_ptr<BatchReader>(new BatchReader(plan, *std::move(source)));
}

BatchReader::BatchReader(const Plan& plan, std::unique_ptr<SampleSource> source)
    : data_(plan.data), length_(plan.budget.sequence_length), source_(std::move(source)), threads_(ThreadsOfRank()) {
  // On a colocated rank the encoder reads its lane's samples of a microbatch, then the language model reads its own
  // lane's. The cache holds both, so that no sample is read twice: two parts of the largest size, that with the fewest
  // lanes.
  const int64_t block = plan.budget.block_samples;
  int64_t lanes = block;
  for (const Module& module : plan.modules) lanes = std::min<int64_t>(lanes, module.grid.dp);
  cache_samples_ = 2 * ((block + std::max<int64_t>(1, lanes) - 1) / std::max<int64_t>(1, lanes));
}

const Sample& BatchReader::Get(int64_t number, SampleParts parts) {
  const auto found = cache_.find(number);
  if (found != cache_.end() && found->second.parts >= parts) return found->second.sample;
  absl::StatusOr<Sample> sample = source_->Get(number, parts);
  if (!sample.ok()) {
    throw FileError(
        absl::Status(sample.status().code(), absl::StrCat("sample ", number, ": ", sample.status().message())));
  }
  TORCH_CHECK(static_cast<int64_t>(sample->tokens.size()) == length_, "sample ", number, " has ", sample->tokens.size(),
              " tokens, the sequence has ", length_);
  // Sample numbers ascend over a run, so the smallest number is the one that nobody will ask for again.
  if (found == cache_.end()) {
    while (!cache_.empty() && cache_.size() >= cache_samples_) cache_.erase(cache_.begin());
  }
  return (cache_[number] = {parts, *std::move(sample)}).sample;
}

size_t BatchReader::EncoderOf(std::string_view module) const {
  const EncoderData* encoder = data_.FindEncoder(module);
  TORCH_CHECK(encoder != nullptr, "module ", module, " sees no images");
  return static_cast<size_t>(encoder - data_.encoders.data());
}

at::Tensor BatchReader::SampleRows(const LaneSamples& lane, size_t encoder) {
  at::Tensor rows = HostIntegers({lane.end - lane.first});
  for (int64_t i = lane.first; i < lane.end; ++i) {
    int64_t count = 0;
    for (const Image& image : Get(i, SampleParts::kText).images[encoder])
      count += ImageTokens(data_.encoders[encoder], image);
    rows.data_ptr<int64_t>()[i - lane.first] = count;
  }
  return rows;
}

at::Tensor BatchReader::DocumentEnds(const LaneSamples& lane) {
  // One list for a microbatch; the planner sees to it that a lane has one sample (PW0604).
  TORCH_CHECK(lane.end - lane.first == 1, "packed documents of ", lane.end - lane.first, " samples in one microbatch");
  const std::vector<int64_t>& ends = Get(lane.first, SampleParts::kText).document_ends;
  at::Tensor result = HostIntegers({static_cast<int64_t>(ends.size())});
  std::copy(ends.begin(), ends.end(), result.data_ptr<int64_t>());
  return result;
}

Tensors BatchReader::ReadTokens(const CallContext& call, at::ScalarType dtype) {
  const LaneSamples lane = call.lane_samples();
  const int64_t samples = lane.end - lane.first;
  at::Tensor tokens = HostIntegers({samples, length_}), labels = HostIntegers({samples, length_});
  at::Tensor mask = at::empty({samples, length_}, at::TensorOptions().dtype(at::kDouble));
  at::Tensor loss_tokens = HostIntegers({1});
  int64_t counted = 0;
  for (int64_t i = 0; i < samples; ++i) {
    const Sample& sample = Get(lane.first + i, SampleParts::kText);
    std::copy(sample.tokens.begin(), sample.tokens.end(), tokens.data_ptr<int64_t>() + i * length_);
    std::copy(sample.labels.begin(), sample.labels.end(), labels.data_ptr<int64_t>() + i * length_);
    std::copy(sample.loss_mask.begin(), sample.loss_mask.end(), mask.data_ptr<double>() + i * length_);
    counted += std::count(sample.loss_mask.begin(), sample.loss_mask.end(), 1.0);
  }
  loss_tokens.data_ptr<int64_t>()[0] = counted;
  Tensors read = {tokens, labels, mask.to(dtype), loss_tokens};
  for (size_t encoder = 0; encoder < data_.encoders.size(); ++encoder) read.push_back(SampleRows(lane, encoder));
  if (data_.encoders.empty()) read.push_back(at::zeros({samples}, at::TensorOptions().dtype(at::kLong)));
  if (data_.packed_documents) read.push_back(DocumentEnds(lane));
  return read;
}

at::Tensor BatchReader::ImageGrid(const LaneSamples& lane, size_t encoder) {
  std::vector<int64_t> sizes;
  for (int64_t i = lane.first; i < lane.end; ++i) {
    for (const Image& image : Get(i, SampleParts::kText).images[encoder])
      sizes.insert(sizes.end(), {image.rows, image.cols});
  }
  at::Tensor grid = HostIntegers({static_cast<int64_t>(sizes.size()) / 2, 2});
  std::copy(sizes.begin(), sizes.end(), grid.data_ptr<int64_t>());
  return grid;
}

Tensors BatchReader::ReadImageSizes(const CallContext& call) {
  const LaneSamples lane = call.lane_samples();
  const size_t encoder = EncoderOf(call.module->name);
  return {ImageGrid(lane, encoder), SampleRows(lane, encoder)};
}

Tensors BatchReader::ReadImages(const CallContext& call, at::ScalarType dtype) {
  const LaneSamples lane = call.lane_samples();
  const size_t encoder = EncoderOf(call.module->name);
  const EncoderData& seen = data_.encoders[encoder];
  const int64_t values = 3 * seen.patch * seen.patch;
  for (int64_t i = lane.first; i < lane.end; ++i) Get(i, SampleParts::kAll);  // once, and not first without pixels
  const at::Tensor grid = ImageGrid(lane, encoder);
  std::vector<std::array<int64_t, 2>> grids;
  for (int64_t i = 0; i < grid.size(0); ++i) {
    const int64_t *size = grid.const_data_ptr<int64_t>() + 2 * i, factor = call.cp > 1 ? seen.pixel_shuffle : 1;
    TORCH_CHECK(size[0] % factor == 0 && size[1] % factor == 0, "image ", i, " of a lane has ", size[0], " x ", size[1],
                " patches, which pixel_shuffle ", factor, " does not divide");
    grids.push_back({size[0], size[1]});
  }
  const std::vector<ImageRows> mine = DealBands(grids, seen.pixel_shuffle, call.cp).at(call.cp_rank);
  int64_t patches = 0;
  for (const ImageRows& rows : mine) patches += rows.count * grids[rows.image][1];
  const at::Tensor pixels = at::empty({patches, values}, at::TensorOptions().dtype(dtype));
  at::Tensor ids = HostIntegers({grid.size(0), 2});
  int64_t next_value = 0;
  int64_t* next_id = ids.data_ptr<int64_t>();
  auto next_rows = mine.begin();
  int64_t lane_image = 0;
  for (int64_t i = lane.first; i < lane.end; ++i) {
    int64_t index = 0;
    for (const Image& image : Get(i, SampleParts::kAll).images[encoder]) {
      if (next_rows != mine.end() && next_rows->image == lane_image) {
        const int64_t count = next_rows->count * image.cols * values;
        Round(image.patches.data() + next_rows->first * image.cols * values, count, threads_, pixels, next_value);
        next_value += count;
        ++next_rows;
      }
      ++lane_image;
      *next_id++ = i;
      *next_id++ = index++;
    }
  }
  return {pixels, grid, ids, SampleRows(lane, encoder)};
}

Tensors BatchReader::Read(const Instruction& instruction, const CallContext& call, at::ScalarType dtype) {
  switch (instruction.kind) {
    case OpKind::kReadTokens: return ReadTokens(call, dtype);
    case OpKind::kReadImages: return ReadImages(call, dtype);
    case OpKind::kReadImageSizes: return ReadImageSizes(call);
    default: TORCH_CHECK(false, OpName(instruction.kind), " reads no samples");
  }
}

size_t ReadForDevice(OpKind kind) {
  switch (kind) {
    case OpKind::kReadTokens: return 4;
    case OpKind::kReadImages: return 1;
    default: return 0;
  }
}

}  // namespace planwright::executor
