#include "executor/data/batch_reader.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "executor/data/file_error.h"
#include "planner/wire/records/safetensors.h"
#include "tests/data/samples/plans.h"
#include "tests/executor/data/reads.h"

namespace planwright::executor {
namespace {

CallContext Call(const Plan& plan, int64_t step, int microbatch, int lanes, int lane) {
  return {
      .plan = &plan, .module = &plan.modules[0], .lanes = lanes, .lane = lane, .step = step, .microbatch = microbatch};
}

at::Tensor FromFile(const SafetensorsFile& file, const std::string& name) {
  const StoredTensor stored = *file.Find(name);
  std::string bytes = *file.Read(stored);
  const at::ScalarType type = stored.dtype == DType::kInt64 ? at::kLong : at::kDouble;
  return at::from_blob(bytes.data(), stored.shape, at::TensorOptions().dtype(type)).clone();
}

TEST(BatchReader, LanesTogetherReadWhatOneLaneReads) {
  const Plan plan = MockPlan();
  for (int lanes : {2, 3, 4}) {
    Reads whole(plan);
    for (int microbatch : {0, 1}) {
      const CallContext all = Call(plan, 5, microbatch, 1, 0);
      const Tensors tokens = whole.Tokens(all, at::kDouble), images = whole.Images(all, at::kDouble);
      std::vector<Tensors> token_parts(5), image_parts(4);
      for (int lane = 0; lane < lanes; ++lane) {
        Reads reader(plan);
        const CallContext call = Call(plan, 5, microbatch, lanes, lane);
        const Tensors t = reader.Tokens(call, at::kDouble), i = reader.Images(call, at::kDouble);
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

TEST(BatchReader, ContextParallelRanksTogetherReadTheImagesOfTheLane) {
  const Plan plan = MockPlan();
  for (int cp : {2, 3, 4}) {
    for (int microbatch : {0, 1}) {
      CallContext call = Call(plan, 5, microbatch, 2, 1);
      const Tensors whole = Reads(plan).Images(call, at::kDouble);
      call.cp = cp;
      std::vector<at::Tensor> patches;
      for (call.cp_rank = 0; call.cp_rank < cp; ++call.cp_rank) {
        const Tensors part = Reads(plan).Images(call, at::kDouble);
        patches.push_back(part[0]);
        for (int k : {1, 2, 3}) EXPECT_TRUE(at::equal(part[k], whole[k])) << k;
      }
      EXPECT_TRUE(at::equal(at::cat(patches), whole[0]));
      EXPECT_LT(patches[0].size(0), whole[0].size(0));
    }
  }
}

// Rounds of 4 samples: of the second one only sample 4 is of the set; then the set begins again, and nothing counts.
TEST(BatchReader, FillsTheLastRoundOfAnEvaluationUp) {
  Plan plan = MockPlan();
  EvaluationSet set{.name = "held_out", .samples = 5, .rounds = 2, .data = plan.data};
  set.data.seed = plan.data.seed + 1;
  plan.evaluation.sets = {set, set};  // the second one adds to part 1
  plan.budget.block_samples = 4;
  Plan of_set = plan;
  of_set.data = set.data;
  const std::shared_ptr<const SampleSource> source = *OpenSampleSource(of_set);
  Instruction tokens, parts;
  tokens.kind = OpKind::kReadTokens, parts.kind = OpKind::kReadSources;
  CallContext call = Call(plan, 0, 0, 1, 0);
  call.evaluation = 1;
  BatchReader reader(plan, 1, at::kDouble, source);
  reader.Begin({{&tokens, call}, {&parts, call}}, 0, 1);
  Tensors first, first_parts, second, second_parts;
  for (call.step = 0; call.step < 2; ++call.step) {
    (call.step == 0 ? first : second) = reader.Read(tokens, call);
    (call.step == 0 ? first_parts : second_parts) = reader.Read(parts, call);
  }
  EXPECT_EQ(reader.held().now, 0);
  for (int64_t place = 0; place < 8; ++place) {
    const Tensors &read = place < 4 ? first : second, &read_parts = place < 4 ? first_parts : second_parts;
    const absl::StatusOr<Sample> sample = source->Get(place % 5, SampleParts::kText);
    const int64_t at = place % 4;
    const auto counted = std::count(sample->loss_mask.begin(), sample->loss_mask.end(), 1.0);
    ASSERT_GT(counted, 0);
    EXPECT_TRUE(at::equal(read[0][at], at::tensor(sample->tokens))) << place;
    EXPECT_EQ(read[2][at].sum().item<double>(), place < 5 ? static_cast<double>(counted) : 0) << place;
    EXPECT_EQ(read_parts[0][at].item<int64_t>(), 1);
    EXPECT_EQ(read_parts[1][at].item<int64_t>(), place < 5 ? counted : 0) << place;
  }
  EXPECT_EQ(second[3].item<int64_t>(), second_parts[1].sum().item<int64_t>());
}

TEST(BatchReader, BlocksFollowEachOther) {
  const Plan plan = MockPlan();
  Reads reader(plan);
  // Step 1, microbatch 1 of 2, lane 1 of 2: samples 8 + 4 + 2 and the next.
  auto samples = OpenSampleSource(plan);
  const Tensors read = reader.Tokens(Call(plan, 1, 1, 2, 1), at::kFloat);
  ASSERT_EQ(read[0].size(0), 2);
  for (int i = 0; i < 2; ++i) {
    const Sample sample = *(*samples)->Get(14 + i, SampleParts::kAll);
    for (int64_t p = 0; p < 64; ++p) ASSERT_EQ(read[0][i][p].item<int64_t>(), sample.tokens[p]);
  }
  EXPECT_EQ(read[2].scalar_type(), at::kFloat);
}

// Two encoders with other patches and other pixel shuffles see every image, each in its own pieces and rows.
TEST(BatchReader, EveryEncoderSeesEveryImage) {
  Plan plan = MockPlan();
  plan.budget.sequence_length = 96;
  plan.modules.push_back(plan.modules[0]);
  plan.modules[1].name = "fine";
  plan.data.encoders.push_back({"fine", 254, 2, 1, 64});
  Reads reader(plan);
  CallContext call = Call(plan, 0, 0, 1, 0);
  const Tensors tokens = reader.Tokens(call, at::kDouble), images = reader.Images(call, at::kDouble);
  call.module = &plan.modules[1];
  const Tensors fine = reader.Images(call, at::kDouble), sizes = reader.Sizes(call);
  ASSERT_EQ(tokens.size(), 6u);
  EXPECT_TRUE(at::equal(images[1], fine[1])) << "the same grids, in patches";
  EXPECT_EQ(images[0].size(1), 48);
  EXPECT_EQ(fine[0].size(1), 12);
  EXPECT_TRUE(at::equal(tokens[4], images[3]));
  EXPECT_TRUE(at::equal(tokens[5], fine[3]));
  EXPECT_TRUE(at::equal(tokens[4].mul(4), tokens[5]));
  EXPECT_TRUE(at::equal(sizes[0], fine[1]));
  EXPECT_TRUE(at::equal(sizes[1], fine[3]));
  EXPECT_EQ(tokens[0].eq(255).sum().item<int64_t>(), tokens[4].sum().item<int64_t>());
  EXPECT_EQ(tokens[0].eq(254).sum().item<int64_t>(), tokens[5].sum().item<int64_t>());
  // No label is an image token or the pad token, which is the largest id that is left.
  for (int64_t id : {253, 254, 255}) {
    EXPECT_EQ(tokens[1].eq(id).mul(tokens[2]).sum().item<double>(), 0) << id;
  }
}

TEST(BatchReader, NoImagesMakeEmptyTensors) {
  Plan plan = MockPlan();
  plan.data.max_images = 0;
  const Tensors images = Reads(plan).Images(Call(plan, 0, 0, 2, 0), at::kFloat);
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
  Reads reader(plan);
  for (int step : {0, 7}) {
    const Tensors tokens = reader.Tokens(Call(plan, step, 0, 1, 0), at::kDouble);
    const Tensors images = reader.Images(Call(plan, step, 0, 1, 0), at::kDouble);
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

// Of an encoder whose table of positions is not resized.
TEST(BatchReader, RecordedImagesOfAnotherSizeThanTheTableAreRefused) {
  Plan plan = RecordedPlan();
  plan.modules[0].constants["fixed_positions"] = int64_t{0};
  Reads(plan).Images(Call(plan, 0, 0, 1, 0), at::kDouble);
  plan.modules[0].constants["fixed_positions"] = int64_t{1};
  Instruction read;
  read.kind = OpKind::kReadImages;
  const std::shared_ptr<SampleSource> source = *OpenSampleSource(plan);
  BatchReader reader(plan, at::kDouble, source, std::make_shared<SampleSlots>(plan, source));
  const CallContext call = Call(plan, 0, 0, 1, 0);
  reader.Begin({{&read, call}}, 0, 0);
  try {
    reader.Read(read, call);
    ADD_FAILURE() << "they were read";
  } catch (const FileError& error) {
    EXPECT_TRUE(std::string(error.what()).ends_with("alone (positions: fixed)")) << error.what();
  }
}

Plan PackedPlan(const std::string& path) {
  Plan plan = RecordedPlan();
  plan.data.encoders.clear();
  plan.data.image_token = -1;
  plan.data.packed_documents = true;
  plan.data.base = testing::TempDir();
  plan.data.path = path;
  plan.budget.sequence_length = 6;
  plan.budget.global_samples = plan.budget.microbatches = 2;
  plan.budget.block_samples = 1;
  return plan;
}

template <typename T>
TensorBytes Bytes(const std::string& name, DType dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  return {name, dtype, std::move(shape),
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T))};
}

// Two rows of six tokens, with `ends`, if there are any.
void WritePacked(const std::string& path, const std::vector<int64_t>& per_sample, const std::vector<int64_t>& ends) {
  std::vector<TensorBytes> file = {
      Bytes<int64_t>("token_ids", DType::kInt64, {2, 6}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}),
      Bytes<int64_t>("labels", DType::kInt64, {2, 6}, std::vector<int64_t>(12, 1)),
      Bytes<double>("loss_mask", DType::kFp64, {2, 6}, std::vector<double>(12, 1.0))};
  if (!per_sample.empty()) file.push_back(Bytes<int64_t>("documents_per_sample", DType::kInt64, {2}, per_sample));
  if (!ends.empty())
    file.push_back(Bytes<int64_t>("document_ends", DType::kInt64, {static_cast<int64_t>(ends.size())}, ends));
  ASSERT_TRUE(WriteSafetensors(testing::TempDir() + "/" + path, file, {}).ok());
}

TEST(BatchReader, RecordedDocumentsAreThoseOfTheFile) {
  WritePacked("packed.safetensors", {3, 1}, {2, 3, 6, 6});
  const Plan plan = PackedPlan("packed.safetensors");
  Reads reader(plan);
  for (int row : {0, 1}) {
    const Tensors tokens = reader.Tokens(Call(plan, 0, row, 1, 0), at::kDouble);
    ASSERT_EQ(tokens.size(), 6u);
    EXPECT_TRUE(tokens[5].is_cpu());
    EXPECT_TRUE(at::equal(tokens[5], row == 0 ? at::tensor({2, 3, 6}, at::kLong) : at::tensor({6}, at::kLong)));
    EXPECT_EQ(tokens[3].item<int64_t>(), 6) << "the mask of a recording is used as it is";
  }
  WritePacked("whole.safetensors", {}, {});
  const Plan whole = PackedPlan("whole.safetensors");
  EXPECT_TRUE(at::equal(Reads(whole).Tokens(Call(whole, 0, 0, 1, 0), at::kDouble)[5], at::tensor({6}, at::kLong)));
}

TEST(BatchReader, RecordedDocumentsThatDoNotFitAreRefused) {
  const std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>> wrong = {
      {{1, 1}, {6, 5}}, {{2, 1}, {3, 3, 6}}, {{2, 1}, {0, 6, 6}}, {{0, 1}, {6}}, {{1, 1}, {6, 6, 6}}, {{}, {6, 6}}};
  for (const auto& [per_sample, ends] : wrong) {
    WritePacked("wrong.safetensors", per_sample, ends);
    EXPECT_FALSE(OpenSampleSource(PackedPlan("wrong.safetensors")).ok());
  }
}

// One image in the first row. The coarse encoder sees it as 2 x 2 patches and one token, the fine one as four tokens.
TEST(BatchReader, ARecordingForTwoEncodersHasWhatEachSees) {
  const auto numbers = [](size_t count) {
    std::vector<double> values(count);
    std::iota(values.begin(), values.end(), 0.0);
    return values;
  };
  const std::vector<TensorBytes> file = {
      Bytes<int64_t>("token_ids", DType::kInt64, {2, 6}, {20, 21, 21, 21, 21, 1, 2, 3, 4, 5, 6, 7}),
      Bytes<int64_t>("labels", DType::kInt64, {2, 6}, std::vector<int64_t>(12, 1)),
      Bytes<double>("loss_mask", DType::kFp64, {2, 6}, std::vector<double>(12, 1.0)),
      Bytes<int64_t>("images_per_sample", DType::kInt64, {2}, {1, 0}),
      Bytes<int64_t>("coarse.image_grid", DType::kInt64, {1, 2}, {2, 2}),
      Bytes<double>("coarse.patches", DType::kFp64, {4, 48}, numbers(4 * 48)),
      Bytes<int64_t>("fine.image_grid", DType::kInt64, {1, 2}, {1, 4}),
      Bytes<double>("fine.patches", DType::kFp64, {4, 12}, numbers(4 * 12))};
  Plan plan = PackedPlan("two_encoders.safetensors");
  ASSERT_TRUE(WriteSafetensors(plan.data.base + "/" + plan.data.path, file, {}).ok());
  plan.data.packed_documents = false;
  plan.data.encoders = {{"coarse", 20, 4, 2, 64}, {"fine", 21, 2, 1, 64}};
  plan.modules.push_back(plan.modules[0]);
  plan.modules[0].name = "coarse", plan.modules[1].name = "fine";
  Reads reader(plan);
  CallContext call = Call(plan, 0, 0, 1, 0);
  const Tensors tokens = reader.Tokens(call, at::kDouble), coarse = reader.Images(call, at::kDouble);
  call.module = &plan.modules[1];
  const Tensors fine = reader.Images(call, at::kDouble);
  EXPECT_EQ(coarse[0].sizes(), (at::IntArrayRef{4, 48}));
  EXPECT_EQ(fine[0].sizes(), (at::IntArrayRef{4, 12}));
  EXPECT_EQ(fine[0][3][11].item<double>(), 47);
  EXPECT_EQ(tokens[4].sum().item<int64_t>(), 1);
  EXPECT_EQ(tokens[5].sum().item<int64_t>(), 4);
  plan.data.encoders[1].token = 22;  // no position has it
  EXPECT_FALSE(OpenSampleSource(plan).ok());
}

TEST(BatchReader, ABatchThatDoesNotFitThePlanIsRefused) {
  Plan plan = RecordedPlan();
  plan.budget.sequence_length = 64;
  EXPECT_EQ(OpenSampleSource(plan).status().code(), absl::StatusCode::kInvalidArgument);
  plan = RecordedPlan();
  plan.data.encoders[0].token = 6;
  EXPECT_EQ(OpenSampleSource(plan).status().code(), absl::StatusCode::kInvalidArgument);
  plan = RecordedPlan();
  plan.data.path = "none.safetensors";
  EXPECT_EQ(OpenSampleSource(plan).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace planwright::executor
