#include "executor/data/batch_reader.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include "planner/run_files/safetensors.h"
#include "tests/executor/data/plans.h"

namespace planwright::executor {
namespace {

std::unique_ptr<BatchReader> Reader(const Plan& plan) {
  auto reader = BatchReader::Open(plan);
  EXPECT_TRUE(reader.ok()) << reader.status();
  return reader.ok() ? *std::move(reader) : nullptr;
}

CallContext Call(const Plan& plan, int64_t step, int microbatch, int lanes, int lane) {
  return {.plan = &plan, .lanes = lanes, .lane = lane, .step = step, .microbatch = microbatch};
}

at::Tensor FromFile(const SafetensorsFile& file, const std::string& name) {
  const TensorView view = *file.Find(name);
  const at::ScalarType type = view.dtype == DType::kInt64 ? at::kLong : at::kDouble;
  return at::from_blob(const_cast<std::byte*>(view.data), view.shape, at::TensorOptions().dtype(type)).clone();
}

TEST(BatchReader, LanesTogetherReadWhatOneLaneReads) {
  const Plan plan = MockPlan();
  for (int lanes : {2, 3, 4}) {
    auto whole = Reader(plan);
    for (int microbatch : {0, 1}) {
      const CallContext all = Call(plan, 5, microbatch, 1, 0);
      const Tensors tokens = whole->ReadTokens(all, at::kCPU, at::kDouble),
                    images = whole->ReadImages(all, at::kCPU, at::kDouble);
      std::vector<Tensors> token_parts(5), image_parts(4);
      for (int lane = 0; lane < lanes; ++lane) {
        auto reader = Reader(plan);
        const CallContext call = Call(plan, 5, microbatch, lanes, lane);
        const Tensors t = reader->ReadTokens(call, at::kCPU, at::kDouble),
                      i = reader->ReadImages(call, at::kCPU, at::kDouble);
        for (int k = 0; k < 5; ++k) token_parts[k].push_back(t[k]);
        for (int k = 0; k < 4; ++k) image_parts[k].push_back(i[k]);
      }
      for (int k : {0, 1, 2, 4}) EXPECT_TRUE(at::equal(at::cat(token_parts[k]), tokens[k])) << k;
      for (int k = 0; k < 4; ++k) EXPECT_TRUE(at::equal(at::cat(image_parts[k]), images[k])) << k;
      EXPECT_EQ(at::cat(token_parts[3]).sum().item<int64_t>(), tokens[3].item<int64_t>());
      EXPECT_EQ(tokens[3].item<int64_t>(), tokens[2].sum().item<double>());
      EXPECT_TRUE(at::equal(tokens[4], images[3]));
      EXPECT_EQ(tokens[0].eq(255).sum().item<int64_t>(), tokens[4].sum().item<int64_t>());
    }
  }
}

TEST(BatchReader, BlocksFollowEachOther) {
  const Plan plan = MockPlan();
  auto reader = Reader(plan), source = Reader(plan);
  // Step 1, microbatch 1 of 2, lane 1 of 2: samples 8 + 4 + 2 and the next.
  auto samples = OpenSampleSource(plan);
  const Tensors read = reader->ReadTokens(Call(plan, 1, 1, 2, 1), at::kCPU, at::kFloat);
  ASSERT_EQ(read[0].size(0), 2);
  for (int i = 0; i < 2; ++i) {
    const Sample sample = *(*samples)->Get(14 + i);
    for (int64_t p = 0; p < 64; ++p) ASSERT_EQ(read[0][i][p].item<int64_t>(), sample.tokens[p]);
  }
  EXPECT_EQ(read[2].scalar_type(), at::kFloat);
}

TEST(BatchReader, NoImagesMakeEmptyTensors) {
  Plan plan = MockPlan();
  plan.data.max_images = 0;
  const Tensors images = Reader(plan)->ReadImages(Call(plan, 0, 0, 2, 0), at::kCPU, at::kFloat);
  EXPECT_EQ(images[0].sizes(), (at::IntArrayRef{0, 48}));
  EXPECT_EQ(images[1].sizes(), (at::IntArrayRef{0, 2}));
  EXPECT_EQ(images[2].sizes(), (at::IntArrayRef{0, 2}));
  EXPECT_EQ(images[3].sum().item<int64_t>(), 0);
}

TEST(BatchReader, RecordedBatchIsTheFileAgainAndAgain) {
  Plan plan = RecordedPlan();
  plan.budget.global_samples = 2;
  plan.budget.microbatches = 1;
  plan.budget.block_samples = 2;
  const auto file = SafetensorsFile::Open(plan.data.base + "/" + plan.data.path);
  ASSERT_TRUE(file.ok()) << file.status();
  auto reader = Reader(plan);
  ASSERT_NE(reader, nullptr);
  for (int step : {0, 7}) {
    const Tensors tokens = reader->ReadTokens(Call(plan, step, 0, 1, 0), at::kCPU, at::kDouble);
    const Tensors images = reader->ReadImages(Call(plan, step, 0, 1, 0), at::kCPU, at::kDouble);
    EXPECT_TRUE(at::equal(tokens[0], FromFile(*file, "token_ids")));
    EXPECT_TRUE(at::equal(tokens[1], FromFile(*file, "labels")));
    EXPECT_TRUE(at::equal(tokens[2], FromFile(*file, "loss_mask")));
    EXPECT_EQ(tokens[3].item<int64_t>(), 78);  // tokens_in_loss of the recording
    EXPECT_TRUE(at::equal(images[0], FromFile(*file, "patches")));
    EXPECT_TRUE(at::equal(images[1], FromFile(*file, "image_grid")));
    EXPECT_EQ(images[2][1][1].item<int64_t>(), 1);
    EXPECT_EQ(images[2][2][0].item<int64_t>(), 2 * step + 1);
  }
}

TEST(BatchReader, ABatchThatDoesNotFitThePlanIsRefused) {
  Plan plan = RecordedPlan();
  plan.budget.sequence_length = 64;
  EXPECT_EQ(BatchReader::Open(plan).status().code(), absl::StatusCode::kInvalidArgument);
  plan = RecordedPlan();
  plan.data.image_token = 6;
  EXPECT_EQ(BatchReader::Open(plan).status().code(), absl::StatusCode::kInvalidArgument);
  plan = RecordedPlan();
  plan.data.path = "none.safetensors";
  EXPECT_EQ(BatchReader::Open(plan).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace planwright::executor
