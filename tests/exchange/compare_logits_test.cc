// The numbers of a comparison, against ones that were computed by hand.
#include "planner/exchange/logits/compare_logits.h"

#include <gmock/gmock.h>

#include <cmath>

#include "planner/exchange/logits/logits_text.h"
#include "tests/exchange/logits_file.h"

namespace planwright {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CompareLogitsTest : public LogitsFolder {
 protected:
  // Of one sequence of two tokens, 1 and 0, of a vocabulary of 2.
  absl::StatusOr<LogitsComparison> Compare(const std::vector<double>& ours, const std::vector<double>& theirs,
                                           double tolerance = 0.1) {
    absl::StatusOr<ReferenceLogits> logits =
        ReferenceLogits::Open(Write("theirs", {Ids({1, 2}, {1, 0}), Fp64({1, 2, 2}, theirs)}));
    EXPECT_TRUE(logits.ok()) << logits.status();
    theirs_ = *std::move(logits);
    // A run fills up its last round, and its samples may be longer.
    std::vector<double> padded = ours;
    padded.insert(padded.end(), {7, 8});
    padded.resize(12);
    return CompareLogits(theirs_, Write("ours", {Fp64({2, 3, 2}, padded, "outputs/logits")}), tolerance);
  }
  std::string Text(const LogitsComparison& comparison) const {
    Plan plan;
    plan.precision = "bf16", plan.world_size = 2, plan.budget.sequence_length = 3;
    return LogitsText(theirs_, plan, comparison, 1000);
  }
  ReferenceLogits theirs_;
};

TEST_F(CompareLogitsTest, EqualLogits) {
  const auto same = Compare({1, 3, 0, 4}, {1, 3, 0, 4});
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_TRUE(same->good());
  EXPECT_EQ(same->positions, 2);
  EXPECT_EQ(same->same_top, 2);
  EXPECT_EQ(same->difference, 0);
  EXPECT_EQ(same->kl_largest, 0);
  // Deviations of 1 and of 2 from the means: sqrt((1 + 1 + 4 + 4) / 4).
  EXPECT_DOUBLE_EQ(same->spread, std::sqrt(2.5));
  EXPECT_EQ(*same->ours_loss, *same->theirs_loss);
  // The token after the first is 0, whose logit is 2 below the other.
  EXPECT_DOUBLE_EQ(*same->theirs_loss, std::log(1 + std::exp(2)));
  EXPECT_THAT(Text(*same),
              HasSubstr("verdict: the same model. The median position differs by 0, none of 2 by more than 2."));
}

// The tokens have no images, so nothing is known of an encoder.
TEST_F(CompareLogitsTest, TheVerdictNamesEncodersThatAreNotCompared) {
  const auto same = Compare({1, 3, 0, 4}, {1, 3, 0, 4}), other = Compare({1, 3, 4, 0}, {1, 3, 0, 4});
  ASSERT_TRUE(same.ok() && other.ok());
  Plan plan;
  plan.precision = "fp64";
  plan.modules.resize(2);
  plan.modules[0].name = "eye", plan.modules[0].has_images = true;
  plan.modules[1].name = "language", plan.modules[1].carries_loss = true;
  EXPECT_THAT(LogitsText(theirs_, plan, *same, 1000),
              HasSubstr("verdict: the same language model; the encoder (eye) is not compared, as the tokens have no "
                        "images. The median position differs by 0,"));
  EXPECT_THAT(LogitsText(theirs_, plan, *other, 1000), HasSubstr("verdict: not the same model."));
  EXPECT_EQ(LogitsJson(theirs_, plan, *same)["not_compared"], nlohmann::ordered_json::array({"eye"}));
  plan.modules[1].has_images = true;
  EXPECT_THAT(LogitsText(theirs_, plan, *same, 1000), HasSubstr("the encoders (eye, language) are not compared"));
}

// With the same token everywhere attention is its value, whatever positions turn: RoPE with another theta would pass.
TEST_F(CompareLogitsTest, TheVerdictNamesPositionsThatNoTokenShows) {
  const std::vector<std::pair<std::vector<int64_t>, bool>> cases = {
      {{1, 1, 0, 0}, false}, {{1, 1, 1, 0}, true}, {{0, 1, 1, 1}, true}};
  for (const auto& [tokens, shown] : cases) {
    const std::vector<double> numbers = {1, 3, 1, 3, 0, 4, 0, 4};
    absl::StatusOr<ReferenceLogits> theirs =
        ReferenceLogits::Open(Write("theirs", {Ids({2, 2}, tokens), Fp64({2, 2, 2}, numbers)}));
    ASSERT_TRUE(theirs.ok()) << theirs.status();
    const auto same = CompareLogits(*theirs, Write("ours", {Fp64({2, 2, 2}, numbers, "outputs/logits")}), 0.1);
    ASSERT_TRUE(same.ok()) << same.status();
    Plan plan;
    plan.precision = "fp64";
    EXPECT_THAT(
        LogitsText(*theirs, plan, *same, 1000),
        HasSubstr(shown ? "verdict: the same model. The median"
                        : "verdict: as far as single tokens show, the same model; how a token sees earlier ones "
                          "(positions, q and k) is not compared, as no sequence has two different tokens. The "
                          "median"));
    const nlohmann::ordered_json not_compared = LogitsJson(*theirs, plan, *same)["not_compared"];
    EXPECT_EQ(not_compared.dump(), shown ? "[]" : R"(["positions"])");
  }
}

TEST_F(CompareLogitsTest, NumbersByHand) {
  // Position 0 is the same; at position 1 the logits are exchanged: differences of 4.
  const auto other = Compare({1, 3, 4, 0}, {1, 3, 0, 4});
  ASSERT_TRUE(other.ok());
  const double spread = std::sqrt(2.5);
  EXPECT_FALSE(other->good());
  EXPECT_DOUBLE_EQ(other->largest, 4 / spread);
  EXPECT_DOUBLE_EQ(other->mean, 2 / spread);
  EXPECT_DOUBLE_EQ(other->difference, 4 / spread);
  EXPECT_DOUBLE_EQ(other->worst.difference, 4 / spread);
  EXPECT_EQ(other->at_begin, 0);
  EXPECT_EQ(other->beyond, 1);
  EXPECT_EQ(other->same_top, 1);
  // Two tokens that are exchanged: KL = (p - q) * 4 with p = 1 / (1 + exp(-4)).
  const double likely = 1 / (1 + std::exp(-4.0));
  EXPECT_NEAR(other->kl_largest, (2 * likely - 1) * 4, 1e-12);
  EXPECT_NEAR(other->kl_mean, (2 * likely - 1) * 2, 1e-12);
  EXPECT_EQ(other->worst.position, 1);
  EXPECT_EQ(other->worst.token, 0);
  EXPECT_EQ(other->worst.ours_top.id, 0);
  EXPECT_EQ(other->worst.theirs_top.id, 1);
  const std::string text = Text(*other);
  EXPECT_THAT(text,
              AllOf(HasSubstr("worst position: sequence 0, position 1 (token 0)\n"),
                    HasSubstr("most likely token of ours 0: 4 ours, 0 theirs"), HasSubstr("at 1 of 2 positions"),
                    HasSubstr("verdict: not the same model."), HasSubstr("differs by 2.5, 1 of 2 by more than 2."),
                    HasSubstr("The first tokens of sequences agree."), HasSubstr("compare in fp32")));
  Plan plan;
  plan.precision = "fp64";
  const nlohmann::ordered_json json = LogitsJson(theirs_, plan, *other);
  EXPECT_EQ(json["same"], false);
  EXPECT_EQ(json["worst"]["logit"]["ours"], 4.0);
}

TEST_F(CompareLogitsTest, BothLimitsCount) {
  // The second position is off by 1 in each logit, and the larger of two is the median.
  const std::vector<double> theirs = {1, 3, 0, 4};
  const double apart = 1 / std::sqrt(2.5);
  EXPECT_TRUE(Compare({1, 3, 1, 5}, theirs, apart * 1.001)->good());
  const auto median = Compare({1, 3, 1, 5}, theirs, apart * 0.999);
  EXPECT_FALSE(median->good());
  EXPECT_EQ(median->beyond, 0);
  EXPECT_THAT(Text(*median), HasSubstr("verdict: not the same model. The median position differs by 0.63, none of 2"));
  // A shift of all logits is the same distribution, but another model all the same.
  EXPECT_NEAR(median->kl_largest, 0, 1e-12);
  const auto begins = Compare({2, 4, 0, 4}, theirs, 0.1);
  EXPECT_GT(begins->at_begin, 0.1);
  EXPECT_THAT(Text(*begins), AllOf(HasSubstr("Already the first tokens of sequences differ"),
                                   Not(HasSubstr("The first tokens of sequences agree"))));
}

TEST_F(CompareLogitsTest, OnePositionMayBeFurtherApartButNotAsFarAsItLikes) {
  // Three sequences of one token; one of them is off by 2 in each logit.
  const std::string path = Write("theirs", {Ids({3, 1}, {1, 0, 1}), Fp64({3, 1, 2}, {1, 3, 1, 3, 1, 3})});
  auto logits = ReferenceLogits::Open(path);
  ASSERT_TRUE(logits.ok()) << logits.status();
  theirs_ = *std::move(logits);
  const std::string ours = Write("ours", {Fp64({3, 1, 2}, {1, 3, 3, 5, 1, 3}, "outputs/logits")});
  EXPECT_TRUE(CompareLogits(theirs_, ours, 0.11)->good()) << "20 times 0.11 is more than 2";
  const auto far = CompareLogits(theirs_, ours, 0.09);
  EXPECT_FALSE(far->good());
  EXPECT_EQ(far->difference, 0);
  EXPECT_FALSE(far->ours_loss) << "no token follows another";
  EXPECT_THAT(Text(*far), AllOf(HasSubstr("1 of 3 by more than 1.8."), HasSubstr("Most positions agree.")));
}

TEST_F(CompareLogitsTest, OneOfOursThatIsNotFinite) {
  const auto wrong = Compare({1, 3, 0, std::nan("")}, {1, 3, 0, 4});
  ASSERT_TRUE(wrong.ok());
  EXPECT_FALSE(wrong->good());
  EXPECT_EQ(Text(*wrong).find("all positions"), std::string::npos);
  EXPECT_THAT(Text(*wrong), HasSubstr("verdict: not the same model. At sequence 0, position 1 (token 0) our logit of "
                                      "token 1 is nan, theirs is 4.\n"));
  const nlohmann::ordered_json json = LogitsJson(theirs_, {}, *wrong);
  EXPECT_TRUE(json["worst"]["logit"]["ours"].is_null());
  EXPECT_FALSE(json.contains("difference"));
}

TEST_F(CompareLogitsTest, OursAreOfTheseTokens) {
  const auto logits = ReferenceLogits::Open(Write("theirs", {Ids({1, 2}, {1, 0}), Fp64({1, 2, 2}, {1, 3, 0, 4})}));
  ASSERT_TRUE(logits.ok());
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{1, 1, 4}, {1, 4, 1}, {0, 2, 2}, {4}, {1, 1, 2, 2}}) {
    int64_t elements = 1;
    for (const int64_t size : shape) elements *= size;
    const std::string ours =
        Write("ours", {Fp64(shape, std::vector<double>(static_cast<size_t>(elements)), "outputs/logits")});
    EXPECT_EQ(CompareLogits(*logits, ours, 1).status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST_F(CompareLogitsTest, TheCoarserPrecisionDecides) {
  EXPECT_EQ(LogitsTolerance(ComputedIn::kFp64, ComputedIn::kFp64), 1e-9);
  EXPECT_EQ(LogitsTolerance(ComputedIn::kFp64, ComputedIn::kFp32), 1e-4);
  EXPECT_EQ(LogitsTolerance(ComputedIn::kBf16, ComputedIn::kFp32), 5e-2);
  EXPECT_EQ(LogitsTolerance(ComputedIn::kFp32, ComputedIn::kFp16), 1e-2);
}

}  // namespace
}  // namespace planwright
