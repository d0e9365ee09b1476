#include "executor/data/routing_record.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "executor/data/file_error.h"
#include "tests/samples/plans.h"

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
