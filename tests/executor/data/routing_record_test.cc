#include "executor/data/routing_record.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "executor/data/file_error.h"
#include "tests/data/samples/plans.h"

namespace planwright::executor {
namespace {

using ::testing::HasSubstr;

class RoutingRecordTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "choicesXXXXXX";
    folder_ = mkdtemp(pattern.data());
    plan_.modules[0].name = "language";
    plan_.modules[0].constants = {{"moe.experts", int64_t{600}}};
    // The choices of the first microbatch: 64 positions of 4 samples, two of 512 experts each.
    ids_ = at::arange(512, at::kLong).view({256, 2});
    RoutingRecord(folder_, RoutingRecord::Mode::kWrite, Slots()).Write(Call(0, 0), ids_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  CallContext Call(int64_t step, int microbatch) const {
    return {.plan = &plan_, .module = &plan_.modules[0], .layer = 3, .step = step, .microbatch = microbatch};
  }
  std::shared_ptr<SampleSlots> Slots() const { return std::make_shared<SampleSlots>(plan_, nullptr); }
  at::Tensor Read(const CallContext& call) const {
    return RoutingRecord(folder_, RoutingRecord::Mode::kRead, Slots()).Read(call, 4, 2);
  }
  std::string ErrorOf(const CallContext& call) const {
    try {
      Read(call);
    } catch (const FileError& error) {
      EXPECT_FALSE(error.of_storage());
      return error.what();
    }
    return "";
  }

  std::string folder_;
  Plan plan_ = MockPlan();
  at::Tensor ids_;
};

TEST_F(RoutingRecordTest, ReadsWhatWasWritten) { EXPECT_TRUE(at::equal(Read(Call(0, 0)), ids_)); }

// Ranks that share a sequence write their positions where one rank would have written them.
TEST_F(RoutingRecordTest, RanksThatShareASequenceWriteTheSameFile) {
  std::filesystem::remove(folder_ + "/language.layers.3.i16");
  constexpr int64_t kSamples = 4, kPositions = 64, kTopK = 2;
  const at::Tensor whole = ids_.view({kPositions, kSamples, kTopK});
  for (int cp_rank = 0; cp_rank < 2; ++cp_rank) {
    // Zigzag: of four chunks of 16 positions the first and the last, or those between.
    const at::Tensor first = whole.narrow(0, 16 * cp_rank, 16), last = whole.narrow(0, 16 * (3 - cp_rank), 16);
    for (int tp_rank = 0; tp_rank < 2; ++tp_rank) {
      CallContext call = Call(0, 0);
      call.cp = call.tp = 2, call.cp_rank = cp_rank, call.tp_rank = tp_rank;
      const at::Tensor part = (tp_rank == 0 ? first : last).reshape({16 * kSamples, kTopK});
      RoutingRecord(folder_, RoutingRecord::Mode::kWrite, Slots()).Write(call, part);
      EXPECT_TRUE(
          at::equal(RoutingRecord(folder_, RoutingRecord::Mode::kRead, Slots()).Read(call, kSamples, kTopK), part));
    }
  }
  EXPECT_TRUE(at::equal(Read(Call(0, 0)), ids_));
}

TEST_F(RoutingRecordTest, AStepThatWasNotRecordedIsNamed) {
  EXPECT_THAT(ErrorOf(Call(0, 1)),
              HasSubstr("cannot read " + folder_ + "/language.layers.3.i16: no choices for step 1"));
  EXPECT_THAT(ErrorOf(Call(2, 0)),
              HasSubstr("cannot read " + folder_ + "/language.layers.3.i16: no choices for step 3"));
}

TEST_F(RoutingRecordTest, ALayerThatWasNotRecordedIsNamed) {
  CallContext call = Call(0, 0);
  call.layer = 1;
  EXPECT_THAT(ErrorOf(call), HasSubstr("cannot read " + folder_ + "/language.layers.1.i16"));
}

TEST_F(RoutingRecordTest, AnExpertThatIsNotThereIsRefused) {
  plan_.modules[0].constants["moe.experts"] = int64_t{511};
  EXPECT_THAT(ErrorOf(Call(0, 0)), HasSubstr("language.layers.3.i16 names experts that language does not have"));
}

}  // namespace
}  // namespace planwright::executor
