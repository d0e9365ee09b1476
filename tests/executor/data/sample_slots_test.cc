#include "executor/data/sample_slots.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "executor/data/file_error.h"
#include "planner/plan/balanced_slots.h"
#include "tests/data/samples/plans.h"
#include "tests/executor/data/reads.h"

namespace planwright::executor {
namespace {

// Passes on what another source says, and counts how often it is asked for sizes.
class Counting : public SampleSource {
 public:
  explicit Counting(const Plan& plan) : source_(*OpenSampleSource(plan)) {}
  absl::StatusOr<Sample> Get(int64_t number, SampleParts parts) const override { return source_->Get(number, parts); }
  absl::StatusOr<int64_t> Patches(int64_t number) const override {
    ++asked;
    if (number >= broken) return absl::DataLossError("the index is cut off");
    return source_->Patches(number);
  }
  SampleOrigin Origin(int64_t number) const override { return source_->Origin(number); }
  mutable int asked = 0;
  int64_t broken = 1 << 30;

 private:
  const std::unique_ptr<SampleSource> source_;
};

Plan Balanced() {
  Plan plan = MockPlan();
  plan.data.balance = "images";
  return plan;
}

TEST(SampleSlots, WithoutBalanceASlotHasTheSampleOfItsNumber) {
  const Plan plan = MockPlan();
  const auto source = std::make_shared<Counting>(plan);
  SampleSlots slots(plan, source);
  for (int64_t slot = 0; slot < 20; ++slot) EXPECT_EQ(slots.NumberOf(slot), slot);
  EXPECT_EQ(source->asked, 0);
}

TEST(SampleSlots, AStepKeepsItsSamplesInTheOrderOfBalance) {
  const Plan plan = Balanced();
  const auto source = std::make_shared<Counting>(plan);
  SampleSlots slots(plan, source);
  bool moved = false;
  for (int64_t step : {0, 1, 2, 7, 1}) {
    std::vector<int64_t> patches;
    for (int64_t i = 0; i < 8; ++i) patches.push_back(*source->Patches(8 * step + i));
    const std::vector<int64_t> order = BalancedSlots(patches);
    std::set<int64_t> seen;
    for (int64_t j = 0; j < 8; ++j) {
      const int64_t number = slots.NumberOf(8 * step + j);
      EXPECT_EQ(number, 8 * step + order[j]);
      moved |= number != 8 * step + j;
      seen.insert(number);
    }
    EXPECT_EQ(seen.size(), 8u);
    EXPECT_EQ(*seen.begin(), 8 * step);
    EXPECT_EQ(*seen.rbegin(), 8 * step + 7);
  }
  EXPECT_TRUE(moved);
  EXPECT_EQ(source->asked, (4 + 5) * 8) << "a step is asked for once";
}

TEST(SampleSlots, StepsThatWereForgottenComeAgain) {
  const Plan plan = Balanced();
  SampleSlots slots(plan, std::make_shared<Counting>(plan));
  std::vector<int64_t> first;
  for (int64_t slot = 0; slot < 200; ++slot) first.push_back(slots.NumberOf(slot));
  for (int64_t slot = 199; slot >= 0; --slot) EXPECT_EQ(slots.NumberOf(slot), first[slot]);
}

TEST(SampleSlots, ASizeThatIsNotKnownNamesItsSample) {
  const Plan plan = Balanced();
  const auto source = std::make_shared<Counting>(plan);
  source->broken = 13;
  SampleSlots slots(plan, source);
  EXPECT_NO_THROW(slots.NumberOf(7));
  try {
    slots.NumberOf(8);
    ADD_FAILURE() << "did not throw";
  } catch (const FileError& error) {
    EXPECT_STREQ(error.what(), "sample 13: the index is cut off");
  }
}

// Lanes together read the samples of the step, whatever their number; ids of images have the numbers of the samples.
TEST(SampleSlots, ReadsOfAllLanesAreTheStep) {
  const Plan plan = Balanced();
  const auto source = *OpenSampleSource(plan);
  for (int lanes : {1, 3, 4}) {
    std::multiset<int64_t> patches, expected;
    std::set<int64_t> with_images, expected_with_images;
    for (int microbatch : {0, 1}) {
      for (int lane = 0; lane < lanes; ++lane) {
        const CallContext call = {.plan = &plan,
                                  .module = &plan.modules[0],
                                  .lanes = lanes,
                                  .lane = lane,
                                  .step = 5,
                                  .microbatch = microbatch};
        const Tensors images = Reads(plan).Images(call, at::kDouble), tokens = Reads(plan).Tokens(call, at::kDouble);
        EXPECT_TRUE(at::equal(images[3], tokens[4])) << "both modules have the same samples";
        int64_t first = 0;
        for (int64_t i = 0; i < images[2].size(0); ++i) {
          const int64_t number = images[2][i][0].item<int64_t>(), index = images[2][i][1].item<int64_t>();
          with_images.insert(number);
          const Sample sample = *source->Get(number, SampleParts::kAll);
          const Image& image = sample.images[0].at(index);
          const at::Tensor pixels = images[0].narrow(0, first, image.rows * image.cols).contiguous();
          EXPECT_TRUE(std::equal(image.patches.begin(), image.patches.end(), pixels.const_data_ptr<double>()));
          first += image.rows * image.cols;
          patches.insert(image.rows * image.cols);
        }
        EXPECT_EQ(first, images[0].size(0));
      }
    }
    for (int64_t number = 40; number < 48; ++number) {
      const Sample sample = *source->Get(number, SampleParts::kText);
      for (const Image& image : sample.images[0]) {
        expected.insert(image.rows * image.cols);
        expected_with_images.insert(number);
      }
    }
    EXPECT_EQ(patches, expected);
    EXPECT_EQ(with_images, expected_with_images);
  }
}

}  // namespace
}  // namespace planwright::executor
