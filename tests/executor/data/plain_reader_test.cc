// What many threads read ahead in little memory is, bit for bit, what a plain loop over the samples gives, for every
// kind of data.
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <ostream>

#include "executor/data/batch_reader.h"
#include "executor/data/read_ahead.h"
#include "planner/data/samples/index_files.h"
#include "planner/plan/image_bands.h"
#include "tests/data/samples/plans.h"
#include "tests/data/samples/shard_files.h"

namespace planwright::executor {
namespace {

constexpr int64_t kFirst = 2, kLast = 4;

struct Case {
  std::string name;
  DataKind kind;
  at::ScalarType dtype;
  int cp = 1, encoder_lanes = 1, language_lanes = 2;
  std::string balance = "none";
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

// One of several sources, which are packed and mixed: five documents of a picture and a text, a text alone and a
// picture alone.
Plan SourcesPlan() {
  Plan plan = MockPlan();
  plan.budget.sequence_length = 32;
  DataPlan& data = plan.data;
  data.kind = DataKind::kSources;
  data.base = ::testing::TempDir();
  data.image_token = data.encoders[0].token = 256;
  data.pad_token = 257, data.end_token = 258, data.vocabulary = 259;
  data.window = 3, data.min_patches = 4, data.max_patches = 24;
  data.resize = "bicubic";
  std::string members;
  for (int i = 0; i < 7; ++i) {
    const std::string name = "document" + std::to_string(i);
    const int width = 20 + 13 * i, height = 50 - 3 * i;
    std::vector<uint8_t> rgba(static_cast<size_t>(4 * width * height));
    for (size_t k = 0; k < rgba.size(); ++k) rgba[k] = static_cast<uint8_t>(k % 4 == 3 ? 255 : k * (i + 3) / 5);
    if (i != 2) members += TarMemberOf(name + ".png", PngOf(width, height, rgba));
    if (i != 5) members += TarMemberOf(name + ".txt", std::string(static_cast<size_t>(1 + 2 * i), 'a' + i));
  }
  WriteFile("plain_reader.tar", members + kTarEnd);
  data.index = "plain_reader_index", data.packing = "first_fit", data.long_documents = "cut";
  SourcePlan pictures, texts;
  pictures.name = "pictures", texts.name = "texts";
  pictures.kind = texts.kind = SourceKind::kWebdataset;
  pictures.shards = {"plain_reader.tar"}, texts.shards = {"plain_texts.tar"};
  pictures.weight = 3, texts.weight = 1;
  data.sources = {pictures, texts};
  WriteFile("plain_texts.tar", TarMemberOf("a.txt", "one") + TarMemberOf("b.txt", "two texts") + kTarEnd);
  const auto indexed = UpdateIndex(data, {}, {});
  EXPECT_TRUE(indexed.ok()) << indexed.status();
  return plan;
}

Plan PlanOf(const Case& c) {
  Plan plan = c.kind == DataKind::kMock ? MockPlan() : c.kind == DataKind::kRecorded ? RecordedPlan() : SourcesPlan();
  plan.data.balance = c.balance;
  plan.modules.push_back(plan.modules[0]);
  plan.modules[1].name = "language";
  return plan;
}

// The reads of a rank that is in both modules, in an order that a pipeline could have: the text of a microbatch comes
// after the images of the next one.
struct ColocatedStep {
  Instruction images, sizes, tokens;
  std::vector<DataRead> reads;

  ColocatedStep(const Plan& plan, const Case& c) {
    images.kind = OpKind::kReadImages, sizes.kind = OpKind::kReadImageSizes, tokens.kind = OpKind::kReadTokens;
    CallContext encoder = {.plan = &plan,
                           .module = &plan.modules[0],
                           .cp = c.cp,
                           .cp_rank = c.cp - 1,
                           .lanes = c.encoder_lanes,
                           .lane = c.encoder_lanes - 1};
    CallContext language = {
        .plan = &plan, .module = &plan.modules[1], .lanes = c.language_lanes, .lane = c.language_lanes - 1};
    for (int microbatch : {0, 1}) {
      encoder.microbatch = microbatch;
      reads.push_back({&images, encoder});
      reads.push_back({&sizes, encoder});
    }
    for (int microbatch : {0, 1}) {
      language.microbatch = microbatch;
      reads.push_back({&tokens, language});
    }
  }
};

at::Tensor Integers(const std::vector<int64_t>& values) { return at::tensor(values, at::kLong); }

// The plain loop.
Tensors Plain(const Plan& plan, const SampleSource& source, SampleSlots& slots, const DataRead& read,
              at::ScalarType dtype) {
  const LaneSamples lane = read.call.lane_samples();
  const EncoderData& encoder = plan.data.encoders[0];
  const int64_t values = 3 * encoder.patch * encoder.patch, length = plan.budget.sequence_length;
  std::vector<at::Tensor> pixels, tokens, labels, masks;
  std::vector<int64_t> grid, ids, rows;
  std::vector<std::array<int64_t, 2>> grids;
  for (int64_t slot = lane.first; slot < lane.end; ++slot) {
    const int64_t number = slots.NumberOf(slot);
    const Sample sample = *source.Get(number, SampleParts::kAll);
    tokens.push_back(Integers(sample.tokens).view({1, length}));
    labels.push_back(Integers(sample.labels).view({1, length}));
    masks.push_back(at::tensor(sample.loss_mask, at::kDouble).view({1, length}));
    int64_t of_sample = 0;
    for (size_t i = 0; i < sample.images[0].size(); ++i) {
      const Image& image = sample.images[0][i];
      pixels.push_back(at::tensor(image.patches, at::kDouble).to(dtype).view({image.rows, image.cols * values}));
      grid.insert(grid.end(), {image.rows, image.cols});
      grids.push_back({image.rows, image.cols});
      ids.insert(ids.end(), {number, static_cast<int64_t>(i)});
      of_sample += image.rows * image.cols / (encoder.pixel_shuffle * encoder.pixel_shuffle);
    }
    rows.push_back(of_sample);
  }
  const at::Tensor shapes = Integers(grid).view({-1, 2});
  if (read.instruction->kind == OpKind::kReadImageSizes) return {shapes, Integers(rows)};
  if (read.instruction->kind == OpKind::kReadTokens) {
    const at::Tensor mask = at::cat(masks);
    return {at::cat(tokens), at::cat(labels), mask.to(dtype), mask.sum().to(at::kLong).view({1}), Integers(rows)};
  }
  std::vector<at::Tensor> mine = {at::empty({0, values}, at::TensorOptions().dtype(dtype))};
  const auto parts = DealBands(grids, encoder.pixel_shuffle, read.call.cp);
  for (const ImageRows& part : parts.at(read.call.cp_rank))
    mine.push_back(pixels[part.image].narrow(0, part.first, part.count).reshape({-1, values}));
  return {at::cat(mine), shapes, Integers(ids).view({-1, 2}), Integers(rows)};
}

class PlainReader : public ::testing::TestWithParam<Case> {};

TEST_P(PlainReader, GivesTheSameBits) {
  const Case& c = GetParam();
  const Plan plan = PlanOf(c);
  const auto opened = OpenSampleSource(plan);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const std::shared_ptr<const SampleSource> source = *OpenSampleSource(plan);
  const auto slots = std::make_shared<SampleSlots>(plan, source);
  // Two bytes: nothing is decoded but what is waited for. A megabyte: all threads are at work.
  for (int64_t bytes : {2, 1 << 20}) {
    const ColocatedStep step(plan, c);
    BatchReader reader(plan, c.dtype, source, slots, {.threads = 8, .bytes = bytes});
    ReadAhead ahead([&](const Instruction& i, const CallContext& call) { return reader.Read(i, call); });
    reader.Begin(step.reads, kFirst, kLast);
    ahead.Begin(step.reads, kFirst, kLast);
    int64_t images = 0;
    for (int64_t number = kFirst; number <= kLast; ++number) {
      for (DataRead read : step.reads) {
        read.call.step = number;
        const Tensors values = ahead.Take(*read.instruction, read.call);
        const Tensors expected = Plain(plan, **opened, *slots, read, c.dtype);
        ASSERT_EQ(values.size(), expected.size());
        for (size_t k = 0; k < values.size(); ++k) {
          EXPECT_EQ(values[k].scalar_type(), expected[k].scalar_type());
          EXPECT_TRUE(at::equal(values[k], expected[k])) << OpName(read.instruction->kind) << " output " << k;
        }
        if (read.instruction->kind == OpKind::kReadImages) images += values[2].size(0);
      }
    }
    EXPECT_GT(images, 3);
    EXPECT_EQ(reader.held().now, 0);
    if (bytes > 2) {
      EXPECT_LE(reader.held().most, bytes);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Reading, PlainReader,
                         ::testing::Values(Case{"mock", DataKind::kMock, at::kDouble},
                                           Case{"mock_bf16", DataKind::kMock, at::kBFloat16},
                                           Case{"mock_cp2", DataKind::kMock, at::kBFloat16, 2},
                                           Case{"mock_lanes", DataKind::kMock, at::kFloat, 1, 2, 4},
                                           Case{"mock_balanced", DataKind::kMock, at::kDouble, 1, 1, 4, "images"},
                                           Case{"mock_balanced_cp3", DataKind::kMock, at::kFloat, 3, 2, 2, "images"},
                                           Case{"recorded", DataKind::kRecorded, at::kFloat},
                                           Case{"sources", DataKind::kSources, at::kBFloat16},
                                           Case{"sources_balanced", DataKind::kSources, at::kFloat, 2, 2, 2, "images"}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace planwright::executor
