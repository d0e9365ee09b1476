#include "executor/data/batch_reader.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>

#include "executor/data/file_error.h"
#include "planner/base/threads/threads.h"
#include "planner/data/samples/token_positions.h"
#include "planner/plan/image_bands.h"

namespace planwright::executor {
namespace {

at::Tensor HostIntegers(at::IntArrayRef shape) { return at::empty(shape, at::TensorOptions().dtype(at::kLong)); }

// The sums of an evaluation have the parts of the sets one after the other.
int64_t FirstPartOf(const Plan& plan, size_t set) {
  int64_t parts = 0;
  for (size_t i = 0; i < set; ++i) parts += plan.evaluation.sets[i].parts();
  return parts;
}

// Whether positions are wanted by rows and columns of image tokens too.
bool HasImageAxes(const Instruction& read) {
  const std::vector<Dim>& dims = read.outputs.front().type.dims;
  return !dims.empty() && dims.front() == Dim(int64_t{3});
}

}  // namespace

ReadingLimits ReadingLimits::OfRank() {
  constexpr int64_t kLeast = int64_t{64} << 20, kMost = int64_t{1} << 30;
  constexpr int64_t kShare = 64;  // a 64th of the machine
  const char* const text = std::getenv("LOCAL_WORLD_SIZE");
  const int64_t ranks = std::max(1, text == nullptr ? 1 : std::atoi(text));
  const int64_t machine = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  // The walker's thread launches the step meanwhile, so one core is left to it.
  return {std::max(1, ThreadsOfRank() - 1), std::clamp(machine / kShare / ranks, kLeast, kMost)};
}

BatchReader::BatchReader(const Plan& plan, at::ScalarType dtype, std::shared_ptr<const SampleSource> source,
                         std::shared_ptr<SampleSlots> slots, ReadingLimits limits)
    : BatchReader(plan, plan.data, dtype, std::move(source), std::move(slots), INT64_MAX, 0, limits) {}

BatchReader::BatchReader(const Plan& plan, size_t set, at::ScalarType dtype, std::shared_ptr<const SampleSource> source,
                         ReadingLimits limits)
    : BatchReader(plan, plan.evaluation.sets[set].data, dtype, std::move(source), nullptr,
                  plan.evaluation.sets[set].samples, FirstPartOf(plan, set), limits) {}

BatchReader::BatchReader(const Plan& plan, DataPlan data, at::ScalarType dtype,
                         std::shared_ptr<const SampleSource> source, std::shared_ptr<SampleSlots> slots,
                         int64_t samples, int64_t first_part, ReadingLimits limits)
    : data_(std::move(data)), length_(plan.budget.sequence_length), dtype_(dtype), source_(std::move(source)),
      slots_(std::move(slots)), samples_(samples), first_part_(first_part),
      ahead_(limits.threads, limits.bytes,
             {.needs = [this](int64_t step) { return NeedsOf(step); },
              .bytes = [this](const SampleNeed& need) { return BytesOf(need); },
              .decode = [this](const SampleNeed& need) { return DecodeOf(need); }}) {}

// Without a size the sample cannot be read either, and says so to the read that needs it.
int64_t BatchReader::BytesOf(const SampleNeed& need) const {
  const bool text = need.parts() == SampleParts::kText;
  return BytesToDecode(data_, length_, need, text ? 0 : source_->Patches(need.number % samples_).value_or(0));
}

DecodedSample BatchReader::DecodeOf(const SampleNeed& need) const {
  SampleNeed from = need;
  from.number %= samples_;
  DecodedSample decoded = Decode(data_, *source_, from, dtype_);
  TORCH_CHECK(static_cast<int64_t>(decoded.sample.tokens.size()) == length_, "sample ", from.number, " has ",
              decoded.sample.tokens.size(), " tokens, the sequence has ", length_);
  if (FillsUp(need.number)) std::fill(decoded.sample.loss_mask.begin(), decoded.sample.loss_mask.end(), 0.0);
  return decoded;
}

void BatchReader::Begin(std::vector<DataRead> reads, int64_t first_step, int64_t last_step) {
  reads_ = std::move(reads);
  if (!reads_.empty()) ahead_.Begin(first_step, last_step);
}

std::vector<SampleNeed> BatchReader::NeedsOf(int64_t step) {
  std::vector<SampleNeed> needs;
  std::map<int64_t, size_t> found;  // by slot
  for (const DataRead& read : reads_) {
    CallContext call = read.call;
    call.step = step;
    const LaneSamples lane = call.lane_samples();
    for (int64_t slot = lane.first; slot < lane.end; ++slot) {
      const auto [at, fresh] = found.try_emplace(slot, needs.size());
      if (fresh) {
        needs.push_back({.number = NumberOf(slot)});
        needs.back().pixels.resize(data_.encoders.size());
      }
      SampleNeed& need = needs[at->second];
      ++need.reads;
      if (read.instruction->kind != OpKind::kReadImages) continue;
      SampleNeed::Pixels& pixels = need.pixels[EncoderOf(call.module->name)];
      ++pixels.reads;
      pixels.bands = call.cp > 1;
    }
  }
  return needs;
}

size_t BatchReader::EncoderOf(std::string_view module) const {
  const EncoderData* encoder = data_.FindEncoder(module);
  TORCH_CHECK(encoder != nullptr, "module ", module, " sees no images");
  return static_cast<size_t>(encoder - data_.encoders.data());
}

BatchReader::Lane BatchReader::LaneOf(const CallContext& call) {
  Lane lane;
  const LaneSamples slots = call.lane_samples();
  for (int64_t slot = slots.first; slot < slots.end; ++slot) {
    const int64_t number = NumberOf(slot);
    const DecodedSample& decoded = ahead_.Get(number);
    lane.push_back({number, &decoded.sample, &decoded});
  }
  return lane;
}

Tensors BatchReader::Read(const Instruction& instruction, const CallContext& call) {
  const Lane lane = LaneOf(call);
  Tensors values;
  int encoder = -1;
  switch (instruction.kind) {
    case OpKind::kReadTokens: values = ReadTokens(lane); break;
    case OpKind::kReadPositions: values = {Positions(lane, HasImageAxes(instruction))}; break;
    case OpKind::kReadImages:
      values = ReadImages(lane, call);
      encoder = static_cast<int>(EncoderOf(call.module->name));
      break;
    case OpKind::kReadImageSizes: values = ReadImageSizes(lane, call); break;
    case OpKind::kReadSources: values = ReadSourceParts(lane); break;
    default: TORCH_CHECK(false, OpName(instruction.kind), " reads no samples");
  }
  for (const LaneSample& sample : lane) ahead_.Done(sample.number, encoder);
  return values;
}

SamplesAhead::Held BatchReader::held() const { return ahead_.held(); }

at::Tensor BatchReader::SampleRows(const Lane& lane, size_t encoder) const {
  at::Tensor rows = HostIntegers({static_cast<int64_t>(lane.size())});
  int64_t* next = rows.data_ptr<int64_t>();
  for (const LaneSample& of : lane) {
    int64_t count = 0;
    for (const Image& image : of.sample->images[encoder]) count += ImageTokens(data_.encoders[encoder], image);
    *next++ = count;
  }
  return rows;
}

at::Tensor BatchReader::DocumentEnds(const Lane& lane) const {
  // One list for a microbatch; the planner sees to it that a lane has one sample (PW0604).
  TORCH_CHECK(lane.size() == 1, "packed documents of ", lane.size(), " samples in one microbatch");
  const std::vector<int64_t>& ends = lane[0].sample->document_ends;
  at::Tensor result = HostIntegers({static_cast<int64_t>(ends.size())});
  std::copy(ends.begin(), ends.end(), result.data_ptr<int64_t>());
  return result;
}

at::Tensor BatchReader::Positions(const Lane& lane, bool of_images) const {
  const auto samples = static_cast<int64_t>(lane.size());
  if (of_images) {
    at::Tensor all = HostIntegers({3, length_, samples});
    for (int64_t i = 0; i < samples; ++i) {
      const std::vector<std::array<int64_t, 3>> found = TokenPositions(data_, *lane[i].sample);
      for (int64_t axis = 0; axis < 3; ++axis) {
        for (int64_t at = 0; at < length_; ++at)
          all.data_ptr<int64_t>()[(axis * length_ + at) * samples + i] = found[at][axis];
      }
    }
    return all;
  }
  at::Tensor positions = HostIntegers({1, length_, samples});
  for (int64_t i = 0; i < samples; ++i) {
    int64_t begin = 0;
    const auto fill = [&](int64_t end) {
      for (int64_t at = begin; at < end; ++at) positions.data_ptr<int64_t>()[at * samples + i] = at - begin;
      begin = end;
    };
    if (data_.packed_documents)
      std::for_each(lane[i].sample->document_ends.begin(), lane[i].sample->document_ends.end(), fill);
    fill(length_);
  }
  return positions;
}

Tensors BatchReader::ReadTokens(const Lane& lane) const {
  const auto samples = static_cast<int64_t>(lane.size());
  at::Tensor tokens = HostIntegers({samples, length_}), labels = HostIntegers({samples, length_});
  at::Tensor mask = at::empty({samples, length_}, at::TensorOptions().dtype(at::kDouble));
  at::Tensor loss_tokens = HostIntegers({1});
  int64_t counted = 0;
  for (int64_t i = 0; i < samples; ++i) {
    const Sample& sample = *lane[i].sample;
    std::copy(sample.tokens.begin(), sample.tokens.end(), tokens.data_ptr<int64_t>() + i * length_);
    std::copy(sample.labels.begin(), sample.labels.end(), labels.data_ptr<int64_t>() + i * length_);
    std::copy(sample.loss_mask.begin(), sample.loss_mask.end(), mask.data_ptr<double>() + i * length_);
    counted += std::count(sample.loss_mask.begin(), sample.loss_mask.end(), 1.0);
  }
  loss_tokens.data_ptr<int64_t>()[0] = counted;
  Tensors read = {tokens, labels, mask.to(dtype_), loss_tokens};
  for (size_t encoder = 0; encoder < data_.encoders.size(); ++encoder) read.push_back(SampleRows(lane, encoder));
  if (data_.encoders.empty()) read.push_back(at::zeros({samples}, at::TensorOptions().dtype(at::kLong)));
  if (data_.packed_documents) read.push_back(DocumentEnds(lane));
  return read;
}

at::Tensor BatchReader::ImageGrid(const Lane& lane, size_t encoder) const {
  std::vector<int64_t> sizes;
  for (const LaneSample& of : lane) {
    for (const Image& image : of.sample->images[encoder]) sizes.insert(sizes.end(), {image.rows, image.cols});
  }
  at::Tensor grid = HostIntegers({static_cast<int64_t>(sizes.size()) / 2, 2});
  std::copy(sizes.begin(), sizes.end(), grid.data_ptr<int64_t>());
  return grid;
}

Tensors BatchReader::ReadImageSizes(const Lane& lane, const CallContext& call) const {
  const size_t encoder = EncoderOf(call.module->name);
  return {ImageGrid(lane, encoder), SampleRows(lane, encoder)};
}

Tensors BatchReader::ReadImages(const Lane& lane, const CallContext& call) const {
  const size_t encoder = EncoderOf(call.module->name);
  const EncoderData& seen = data_.encoders[encoder];
  const int64_t values = 3 * seen.patch * seen.patch;
  const at::Tensor grid = ImageGrid(lane, encoder);
  // Recorded images may have any size.
  const auto fixed = call.module->constants.find("fixed_positions");
  const bool whole = fixed != call.module->constants.end() && fixed->second == Attribute(int64_t{1});
  std::vector<std::array<int64_t, 2>> grids;
  for (int64_t i = 0; i < grid.size(0); ++i) {
    const int64_t *size = grid.const_data_ptr<int64_t>() + 2 * i, factor = call.cp > 1 ? seen.pixel_shuffle : 1;
    TORCH_CHECK(size[0] % factor == 0 && size[1] % factor == 0, "image ", i, " of a lane has ", size[0], " x ", size[1],
                " patches, which pixel_shuffle ", factor, " does not divide");
    if (whole && (size[0] != seen.side() || size[1] != seen.side())) {
      throw FileError(absl::InvalidArgumentError(absl::StrCat(
          "image ", i, " of a lane has ", size[0], " x ", size[1], " patches, but the encoder ", call.module->name,
          " has positions for ", seen.side(), " x ", seen.side(), " alone (positions: fixed)")));
    }
    grids.push_back({size[0], size[1]});
  }
  const std::vector<ImageRows> mine = DealBands(grids, seen.pixel_shuffle, call.cp).at(call.cp_rank);
  int64_t patches = 0;
  for (const ImageRows& rows : mine) patches += rows.count * grids[rows.image][1];
  const at::Tensor pixels = at::empty({patches, values}, at::TensorOptions().dtype(dtype_));
  at::Tensor ids = HostIntegers({grid.size(0), 2});
  int64_t next_value = 0;
  int64_t* next_id = ids.data_ptr<int64_t>();
  auto next_rows = mine.begin();
  int64_t lane_image = 0;
  for (const LaneSample& of : lane) {
    const std::vector<Image>& images = of.sample->images[encoder];
    for (size_t i = 0; i < images.size(); ++i) {
      if (next_rows != mine.end() && next_rows->image == lane_image) {
        const int64_t first = next_rows->first * images[i].cols * values;
        const int64_t count = next_rows->count * images[i].cols * values;
        if (call.cp > 1) {
          Round(images[i].patches.data() + first, count, pixels, next_value);
        } else {
          const auto size = static_cast<int64_t>(pixels.element_size());
          std::memcpy(static_cast<char*>(pixels.data_ptr()) + next_value * size,
                      static_cast<const char*>(of.decoded->pixels[encoder][i].const_data_ptr()) + first * size,
                      count * size);
        }
        next_value += count;
        ++next_rows;
      }
      ++lane_image;
      *next_id++ = of.number;
      *next_id++ = static_cast<int64_t>(i);
    }
  }
  return {pixels, grid, ids, SampleRows(lane, encoder)};
}

// Which source a sample is of stands in the index, so no file is read for it.
int64_t BatchReader::PartOf(int64_t number) const {
  if (data_.sources.empty() || FillsUp(number)) return first_part_;
  const std::string name = source_->Origin(number).source;
  const auto of_name = [&name](const SourcePlan& source) { return source.name == name; };
  const auto source = std::find_if(data_.sources.begin(), data_.sources.end(), of_name);
  TORCH_CHECK(source != data_.sources.end(), "sample ", number, " is of source '", name, "', which the plan lacks");
  return first_part_ + (source - data_.sources.begin());
}

Tensors BatchReader::ReadSourceParts(const Lane& lane) const {
  const auto samples = static_cast<int64_t>(lane.size());
  at::Tensor rows = HostIntegers({samples}), counts = HostIntegers({samples});
  for (int64_t i = 0; i < samples; ++i) {
    const std::vector<double>& mask = lane[i].sample->loss_mask;
    rows.data_ptr<int64_t>()[i] = PartOf(lane[i].number);
    counts.data_ptr<int64_t>()[i] = std::count(mask.begin(), mask.end(), 1.0);
  }
  return {rows, counts};
}

size_t ReadForDevice(OpKind kind) {
  switch (kind) {
    case OpKind::kReadTokens: return 4;
    case OpKind::kReadSources: return 2;
    case OpKind::kReadPositions:
    case OpKind::kReadImages: return 1;
    default: return 0;
  }
}

}  // namespace planwright::executor
