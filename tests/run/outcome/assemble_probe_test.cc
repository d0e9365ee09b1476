// Writes parts as ranks do and joins them. Elements are numbered, so that a misplaced one is seen.
#include "planner/run/outcome/assemble_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <numeric>

#include "planner/run/outcome/tensor_file.h"
#include "planner/wire/records/probe_format.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Bytes(const std::vector<double>& numbers) {
  return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double));
}

RawTensor Tensor(std::vector<int64_t> shape, const std::vector<double>& numbers) {
  return {DType::kFp64, shape, Bytes(numbers)};
}

std::vector<double> Numbers(const RawTensor& tensor) {
  std::vector<double> numbers(tensor.bytes.size() / sizeof(double));
  std::memcpy(numbers.data(), tensor.bytes.data(), tensor.bytes.size());
  return numbers;
}

class AssembleProbeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "probeXXXXXX";
    folder_ = mkdtemp(pattern.data());
    std::filesystem::create_directories(folder_ + "/parts");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void Leave(const std::string& kind, int rank, TensorFile part) {
    ASSERT_TRUE(WriteTensorFile(ProbePartPath(folder_, kind, rank), std::move(part)).ok());
  }
  TensorFile Assembled(const std::string& kind) {
    absl::StatusOr<TensorFile> file = ReadTensorFile(folder_ + "/" + kind + ".safetensors");
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *file : TensorFile{};
  }
  std::string folder_;
};

// tp2 x dp2; "w" [4,2] is cut by rows over tp, "v" [2] is whole on every rank, "bias" is a buffer. One bucket each for
// w and v, w's has 2 elements of padding; each is owned in halves by the two dp ranks.
Plan WeightPlan() {
  Plan plan;
  plan.world_size = 4;
  Module module;
  module.name = "language";
  module.grid = {0, 2, 1, 2, 1, 1, 1, 4};
  module.parameters.resize(3);
  module.parameters[0] = {"language.w", "language_model.w", {4, 2}, 0, 0};
  module.parameters[1] = {"language.v", "language_model.v", {2}};
  module.parameters[2] = {"language.bias", "language_model.bias", {2}};
  module.parameters[2].trained = false;
  module.storages = {
      {"language", "w", {2, 2}, {0}, 0, 0}, {"language", "v", {2}, {1}, 1, 0}, {"language", "bias", {2}, {2}}};
  module.buckets = {{"sharded", View::kDense, TpGradient::kSharded, 6, "language.dp", "", 2},
                    {"partial", View::kDense, TpGradient::kPartial, 2, "language.dp", "", 2}};
  plan.modules = {module};
  plan.groups = {{"language.dp", "dp", "language", View::kDense, {Axis::kDp}}};
  return plan;
}

// w = 0..7: tp rank t holds rows 2t and 2t+1, that is 4t..4t+3, then padding; dp rank 0 owns the first 3 elements of
// the bucket.
TensorFile WeightPart(int tp, int dp) {
  const double first = 4.0 * tp;
  TensorFile part;
  part.tensors["language/bucket/0"] =
      Tensor({3}, dp == 0 ? std::vector<double>{first, first + 1, first + 2} : std::vector<double>{first + 3, -1, -1});
  part.tensors["language/bucket/1"] = Tensor({1}, {10.0 + dp});
  part.tensors["language/buffer/language/bias"] = Tensor({2}, {20, 21});
  return part;
}

TEST_F(AssembleProbeTest, JoinsShardsCutsAndPadding) {
  for (int rank = 0; rank < 4; ++rank) Leave("parameters", rank, WeightPart(rank % 2, rank / 2));
  ASSERT_EQ(AssembleWeights(WeightPlan(), folder_, "parameters"), absl::OkStatus());
  const TensorFile whole = Assembled("parameters");
  ASSERT_EQ(whole.tensors.size(), 3u);
  EXPECT_THAT(whole.tensors.at("language_model.w").shape, ElementsAre(4, 2));
  EXPECT_THAT(Numbers(whole.tensors.at("language_model.w")), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(Numbers(whole.tensors.at("language_model.v")), ElementsAre(10, 11));
  EXPECT_THAT(Numbers(whole.tensors.at("language_model.bias")), ElementsAre(20, 21));
}

// After the last step buckets have master weights, and a frozen weight has the precision of the run.
TEST_F(AssembleProbeTest, LastParametersAreMasters) {
  for (int rank = 0; rank < 4; ++rank) {
    TensorFile part = WeightPart(rank % 2, rank / 2);
    part.tensors["language/buffer/language/bias"] = {DType::kBf16, {2}, std::string("\x80\x3f\x00\x40", 4)};
    Leave("parameters_last", rank, part);
  }
  ASSERT_EQ(AssembleWeights(WeightPlan(), folder_, "parameters_last"), absl::OkStatus());
  const TensorFile whole = Assembled("parameters_last");
  ASSERT_EQ(whole.tensors.size(), 3u);
  EXPECT_THAT(Numbers(whole.tensors.at("language_model.w")), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(whole.tensors.at("language_model.bias").dtype, DType::kBf16);
  EXPECT_EQ(whole.tensors.at("language_model.bias").bytes, std::string("\x80\x3f\x00\x40", 4));
}

TEST_F(AssembleProbeTest, GradientsHaveNoBuffers) {
  for (int rank = 0; rank < 4; ++rank) {
    TensorFile part = WeightPart(rank % 2, rank / 2);
    part.tensors.erase("language/buffer/language/bias");
    Leave("gradients_first", rank, part);
  }
  ASSERT_EQ(AssembleWeights(WeightPlan(), folder_, "gradients_first"), absl::OkStatus());
  EXPECT_EQ(Assembled("gradients_first").tensors.size(), 2u);
}

TEST_F(AssembleProbeTest, APartThatIsMissingOrTooShortIsNamed) {
  for (int rank = 0; rank < 3; ++rank) Leave("parameters", rank, WeightPart(rank % 2, rank / 2));
  EXPECT_THAT(std::string(AssembleWeights(WeightPlan(), folder_, "parameters").message()), HasSubstr("rank0003"));
  TensorFile part = WeightPart(1, 1);
  part.tensors["language/bucket/0"] = Tensor({2}, {7, -1});
  Leave("parameters", 3, part);
  EXPECT_THAT(std::string(AssembleWeights(WeightPlan(), folder_, "parameters").message()),
              HasSubstr("rank 3: language/bucket/0 has 2 elements; expected 3"));
}

TEST_F(AssembleProbeTest, AnElementThatNobodyOwnsIsNamed) {
  Plan plan = WeightPlan();
  plan.modules[0].buckets[0].elements = 4;  // shards of 2: no rank writes the storage's last elements
  plan.modules[0].storages[0].offset = 1;
  for (int rank = 0; rank < 4; ++rank) {
    TensorFile part = WeightPart(rank % 2, rank / 2);
    part.tensors["language/bucket/0"] = Tensor({2}, {0, 0});
    Leave("parameters", rank, part);
  }
  EXPECT_THAT(std::string(AssembleWeights(plan, folder_, "parameters").message()),
              HasSubstr("language_model.w: element 3 is in no"));
}

// Encoder: rank 0 (tp1 dp1). Language: ranks 1-4 (tp2 dp2), two microbatches of 4 samples, 2 samples a lane, 4
// positions, width 3.
Plan ValuePlan(OpKind router = OpKind::kRoute) {
  Plan plan;
  plan.world_size = 5;
  plan.budget.microbatches = 2;
  plan.budget.micro_samples = 2;
  plan.budget.global_samples = 8;
  plan.budget.block_samples = 4;
  plan.modules.resize(2);
  plan.modules[0].name = "encoder";
  plan.modules[0].kind = "radio_vit";
  plan.modules[0].grid = {0};
  plan.modules[1].name = "language";
  plan.modules[1].kind = "hybrid_lm";
  plan.modules[1].carries_loss = true;
  plan.modules[1].grid = {1, 2, 1, 2, 1, 1, 1, 4};
  const Layout cut = {{Axis::kTp, {AxisLayout::State::kSharded, 0}}};
  auto output = [](std::string name, std::vector<Dim> dims, Layout layout = {}) {
    return Output{name, {DType::kFp64, std::move(dims), std::move(layout)}};
  };
  Instruction add, route;
  add.kind = OpKind::kAdd;
  add.outputs = {output("x", {int64_t{2}, int64_t{2}, int64_t{3}}, cut), output("loss", {int64_t{1}})};
  route.kind = router;
  route.outputs = {output("weights", {int64_t{4}, int64_t{1}}, cut)};
  Block layer, image;
  layer.name = "language.layer";
  layer.module = "language";
  layer.body = {add, route};
  image.name = "encoder.layer";
  image.module = "encoder";
  image.body.resize(1);
  image.body[0].outputs = {output("x", {std::string("encoder.tokens"), int64_t{2}}),
                           output("rows", {std::string("encoder.rows"), int64_t{1}})};
  plan.blocks = {layer, image};
  return plan;
}

// The value of an element is its place: sample * 100 + position * 10 + column.
TensorFile LanguagePart(int tp, int lane) {
  TensorFile part;
  for (int m = 0; m < 2; ++m) {
    std::vector<double> x, weights;
    for (int s = 0; s < 2; ++s) {
      for (int b = 0; b < 2; ++b) {
        const int position = tp * 2 + s, sample = m * 4 + lane * 2 + b;
        for (int column = 0; column < 3; ++column) x.push_back(sample * 100 + position * 10 + column);
        weights.push_back(sample * 4 + position);
      }
    }
    const std::string prefix = "language/" + std::to_string(m) + "/";
    part.tensors[prefix + "x"] = Tensor({2, 2, 3}, x);
    part.tensors[prefix + "weights"] = Tensor({4, 1}, weights);
    part.tensors[prefix + "loss"] = Tensor({1}, {m + 10.0 * lane});
    part.metadata[prefix + "x"] = "language.layer/x";
    part.metadata[prefix + "weights"] = "language.layer/weights";
    part.metadata[prefix + "loss"] = "language.layer/loss";
  }
  return part;
}

TEST_F(AssembleProbeTest, PutsValuesInSampleOrder) {
  TensorFile encoder;
  for (int m = 0; m < 2; ++m) {
    const std::string prefix = "encoder/" + std::to_string(m) + "/";
    encoder.tensors[prefix + "vision.x"] =
        Tensor({1 + m, 2}, m == 0 ? std::vector<double>{0, 1} : std::vector<double>{2, 3, 4, 5});
    encoder.tensors[prefix + "rows"] = Tensor({1, 1}, {m + 0.5});
    encoder.metadata[prefix + "vision.x"] = "encoder.layer/x";
    encoder.metadata[prefix + "rows"] = "encoder.layer/rows";
  }
  Leave("values_first", 0, encoder);
  for (int rank = 1; rank < 5; ++rank) Leave("values_first", rank, LanguagePart((rank - 1) % 2, (rank - 1) / 2));
  ASSERT_EQ(AssembleValues(ValuePlan(), folder_, "values_first"), absl::OkStatus());
  const TensorFile whole = Assembled("values_first");
  ASSERT_EQ(whole.tensors.size(), 5u);
  const RawTensor& x = whole.tensors.at("outputs/x");
  EXPECT_THAT(x.shape, ElementsAre(8, 4, 3));
  std::vector<double> expected;
  for (int sample = 0; sample < 8; ++sample) {
    for (int position = 0; position < 4; ++position) {
      for (int column = 0; column < 3; ++column) expected.push_back(sample * 100 + position * 10 + column);
    }
  }
  EXPECT_EQ(Numbers(x), expected);
  EXPECT_THAT(whole.tensors.at("outputs/weights").shape, ElementsAre(32, 1));
  std::vector<double> in_order(32);
  std::iota(in_order.begin(), in_order.end(), 0);
  EXPECT_EQ(Numbers(whole.tensors.at("outputs/weights")), in_order);
  EXPECT_THAT(Numbers(whole.tensors.at("outputs/loss")), ElementsAre(0 + 10 + 1 + 11));
  EXPECT_THAT(whole.tensors.at("outputs/vision.x").shape, ElementsAre(1, 3, 2));
  EXPECT_THAT(Numbers(whole.tensors.at("outputs/vision.x")), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(whole.tensors.at("outputs/rows").shape, ElementsAre(2, 1));
  // Each router has rows of tokens.
  ASSERT_EQ(AssembleValues(ValuePlan(OpKind::kRouteSoftmax), folder_, "values_first"), absl::OkStatus());
  EXPECT_EQ(Numbers(Assembled("values_first").tensors.at("outputs/weights")), in_order);
}

TEST_F(AssembleProbeTest, AValueThatARankDidNotLeaveIsNamed) {
  Leave("values_first", 0, {});
  for (int rank = 1; rank < 5; ++rank)
    Leave("values_first", rank, rank == 4 ? TensorFile{} : LanguagePart((rank - 1) % 2, (rank - 1) / 2));
  EXPECT_THAT(std::string(AssembleValues(ValuePlan(), folder_, "values_first").message()),
              HasSubstr("no rank of lane 1 at tp 1, cp 0 wrote language/0/"));
}

}  // namespace
}  // namespace planwright
