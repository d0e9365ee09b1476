// Files of logits come from elsewhere: what is wrong with each is said, and the batch of ours has exactly its tokens.
#include "planner/exchange/logits/reference_logits.h"

#include <gmock/gmock.h>

#include <fstream>
#include <limits>

#include "planner/exchange/logits/logits_batch.h"
#include "tests/exchange/logits_file.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two sequences, of three and of two tokens, of a vocabulary of 4.
const std::vector<int64_t> kIds = {1, 3, 0, 2, 1, 99};
std::vector<double> Numbers() {
  std::vector<double> numbers(24);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = 0.5 * static_cast<double>(i % 5);
  return numbers;
}

class ReferenceLogitsTest : public LogitsFolder {
 protected:
  // The message for a file of these tensors, which is refused; the path is left out.
  std::string Problem(const std::vector<TensorBytes>& tensors,
                      const std::map<std::string, std::string>& metadata = {}) {
    const std::string path = Write("logits.safetensors", tensors, metadata);
    const absl::Status status = ReferenceLogits::Open(path).status();
    EXPECT_FALSE(status.ok());
    const std::string message(status.message());
    EXPECT_THAT(message, HasSubstr(path));
    return message.starts_with(path + ": ") ? message.substr(path.size() + 2) : message;
  }
  static TensorBytes Lengths(const std::vector<int64_t>& lengths) {
    return Ids({static_cast<int64_t>(lengths.size())}, lengths, "lengths");
  }
};

TEST_F(ReferenceLogitsTest, ReadsWhatScriptsWrite) {
  std::vector<double> numbers = Numbers();
  numbers.back() = std::numeric_limits<double>::quiet_NaN();  // of padding
  const auto logits = ReferenceLogits::Open(
      Write("l", {Ids({2, 3}, kIds), Lengths({3, 2}), Fp64({2, 3, 4}, numbers)},
            {{"program", "transformers 5\x1b"}, {"model", "toy"}, {"dtype", "bfloat16"}, {"device", "cpu"}}));
  ASSERT_TRUE(logits.ok()) << logits.status();
  EXPECT_EQ(logits->sequences(), 2);
  EXPECT_EQ(logits->longest(), 3);
  EXPECT_EQ(logits->positions(), 5);
  EXPECT_EQ(logits->vocabulary(), 4);
  EXPECT_THAT(logits->tokens(1), ElementsAre(2, 1));
  EXPECT_EQ(logits->computed_in(), ComputedIn::kBf16);
  EXPECT_EQ(logits->said(), "transformers 5\\x1b; toy");
  const auto row = logits->Row(1, 1);
  ASSERT_TRUE(row.ok());
  EXPECT_THAT(*row, ElementsAre(0.5, 1, 1.5, 2));
}

TEST_F(ReferenceLogitsTest, ReadsAllFloatTypes) {
  const std::vector<float> fp32 = {0.5F, -2, 1, 3};
  const std::vector<uint16_t> bf16 = {0x3f00, 0xc000, 0x3f80, 0x4040};
  const std::vector<TensorBytes> all = {LogitsTensor("logits", DType::kFp32, {1, 1, 4}, fp32),
                                        LogitsTensor("logits", DType::kBf16, {1, 1, 4}, bf16)};
  const std::vector<ComputedIn> computed = {ComputedIn::kFp32, ComputedIn::kBf16};
  for (size_t i = 0; i < all.size(); ++i) {
    // Who stores bf16 has rounded, whatever it says of the computation.
    const auto logits = ReferenceLogits::Open(Write("l", {Ids({1, 1}, {3}), all[i]}, {{"dtype", "float32"}}));
    ASSERT_TRUE(logits.ok()) << logits.status();
    EXPECT_EQ(logits->computed_in(), computed[i]);
    EXPECT_THAT(*logits->Row(0, 0), ElementsAre(0.5, -2, 1, 3));
  }
}

TEST_F(ReferenceLogitsTest, RefusesOtherFiles) {
  const std::string text = folder_ + "/text";
  std::ofstream(text) << "token_ids: 1, 2";
  EXPECT_THAT(std::string(ReferenceLogits::Open(text).status().message()), HasSubstr(text));
  EXPECT_THAT(std::string(ReferenceLogits::Open(folder_ + "/none").status().message()), HasSubstr("/none"));

  const TensorBytes ids = Ids({2, 3}, kIds), lengths = Lengths({3, 2}), good = Fp64({2, 3, 4}, Numbers());
  EXPECT_THAT(Problem({good}), HasSubstr("has no tensor token_ids"));
  EXPECT_THAT(Problem({ids, lengths}), HasSubstr("has no tensor logits"));
  EXPECT_EQ(Problem({ids, lengths, good, Ids({2, 3}, {1, 1, 1, 1, 1, 0}, "attention_mask")}),
            "has a tensor \"attention_mask\"; a file of logits has token_ids, logits and, if its sequences are not "
            "equally long, lengths");
  EXPECT_EQ(Problem({Fp64({2, 3}, {1, 3, 0, 2, 1, 1}, "token_ids"), good}), "token_ids is F64, expected I64");
  EXPECT_EQ(Problem({Ids({6}, kIds), good}), "token_ids is [6], expected [sequences, positions]");
  EXPECT_EQ(Problem({Ids({0, 3}, {}), good}), "token_ids is [0, 3], expected [sequences, positions]");
  EXPECT_EQ(Problem({ids, Ids({2, 3, 4}, std::vector<int64_t>(24), "logits"), lengths}),
            "logits is I64, expected F64, F32 or BF16");
  EXPECT_EQ(Problem({ids, lengths, Fp64({2, 12}, Numbers())}),
            "logits is [2, 12], expected [2, 3, vocabulary], as token_ids has 2 sequences of 3 positions");
  EXPECT_EQ(Problem({ids, lengths, Fp64({3, 2, 4}, Numbers())}),
            "logits is [3, 2, 4], expected [2, 3, vocabulary], as token_ids has 2 sequences of 3 positions");
  EXPECT_EQ(Problem({ids, Lengths({3}), good}),
            "lengths is I64 [1], expected I64 [2], one for each sequence of token_ids");
  EXPECT_EQ(Problem({ids, Lengths({4, 2}), good}), "lengths has 4 for sequence 0, expected 1 to 3");
  EXPECT_EQ(Problem({ids, Lengths({3, 0}), good}), "lengths has 0 for sequence 1, expected 1 to 3");
}

TEST_F(ReferenceLogitsTest, RefusesOtherNumbers) {
  const TensorBytes lengths = Lengths({3, 2}), good = Fp64({2, 3, 4}, Numbers());
  EXPECT_EQ(Problem({Ids({2, 3}, kIds), good}), "token_ids has 99 in sequence 1, and logits has 4 token ids");
  EXPECT_EQ(Problem({Ids({2, 3}, {1, 3, -100, 2, 1, 0}), lengths, good}),
            "token_ids has -100 in sequence 0, and logits has 4 token ids");
  std::vector<double> numbers = Numbers();
  numbers[9] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Problem({Ids({2, 3}, kIds), lengths, Fp64({2, 3, 4}, numbers)}),
            "logits of sequence 0, position 2, token id 1 is NaN: what computed it has failed, so there is nothing to "
            "compare with");
  numbers[9] = -std::numeric_limits<double>::infinity();
  EXPECT_THAT(Problem({Ids({2, 3}, kIds), lengths, Fp64({2, 3, 4}, numbers)}), HasSubstr("token id 1 is infinite"));
  EXPECT_EQ(Problem({Ids({2, 3}, kIds), lengths, good}, {{"dtype", "int8"}}),
            "its metadata says dtype \"int8\", expected float64, float32, float16 or bfloat16: what the logits were "
            "computed in");
}

// A plan of a model with a vocabulary of 4 and sequences of 4, with an encoder.
Plan PlanOfTokens() {
  Plan plan;
  plan.data.vocabulary = 4, plan.budget.sequence_length = 4;
  plan.data.encoders = {{.module = "eye", .token = 2, .patch = 2}};
  return plan;
}

TEST_F(ReferenceLogitsTest, AnotherModelIsToldBeforeARankStarts) {
  const auto logits =
      ReferenceLogits::Open(Write("l", {Ids({2, 3}, kIds), Lengths({3, 2}), Fp64({2, 3, 4}, Numbers())}));
  ASSERT_TRUE(logits.ok());
  const auto problem = [&](const Plan& plan) { return std::string(logits->CheckFits(plan).message()); };
  Plan plan = PlanOfTokens();
  EXPECT_THAT(problem(plan), HasSubstr("sequence 1 has the image token 2 at position 0; images are not compared"));
  plan.data.encoders.clear();
  EXPECT_EQ(problem(plan), "");
  plan.data.vocabulary = 5;
  EXPECT_THAT(problem(plan), HasSubstr("logits has 4 token ids, and the model of the recipe has a vocabulary of 5"));
  plan.data.vocabulary = 4, plan.budget.sequence_length = 2;
  EXPECT_THAT(problem(plan), HasSubstr("has a sequence of 3 tokens, and batch.sequence_length is 2"));
}

// What is behind the tokens of a sequence is no earlier position's business; it must only be tokens of the model.
TEST_F(ReferenceLogitsTest, TheBatchHasTheTokensAndNoImages) {
  const auto logits =
      ReferenceLogits::Open(Write("l", {Ids({2, 3}, kIds), Lengths({3, 2}), Fp64({2, 3, 4}, Numbers())}));
  ASSERT_TRUE(logits.ok());
  const std::string path = folder_ + "/batch";
  ASSERT_TRUE(WriteLogitsBatch(*logits, PlanOfTokens(), 4, path).ok());
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto read = [&](const std::string& name) {
    const std::string bytes = *file->Read(*file->Find(name));
    std::vector<int64_t> ids(bytes.size() / sizeof(int64_t));
    std::memcpy(ids.data(), bytes.data(), bytes.size());
    return ids;
  };
  EXPECT_THAT(read("token_ids"), ElementsAre(1, 3, 0, 1, 2, 1, 2, 1));
  EXPECT_THAT(read("labels"), ElementsAre(3, 0, 1, 3, 1, 2, 1, 2));
  EXPECT_THAT(AsDoubles(DType::kFp64, *file->Read(*file->Find("loss_mask"))), ElementsAre(1, 1, 0, 0, 1, 0, 0, 0));
  EXPECT_THAT(read("images_per_sample"), ElementsAre(0, 0));
  EXPECT_THAT(file->Find("patches")->shape, ElementsAre(0, 12));
  EXPECT_THAT(file->Find("image_grid")->shape, ElementsAre(0, 2));
}

}  // namespace
}  // namespace planwright
