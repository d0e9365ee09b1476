// The devices of a recipe as the plan has them: figures of one's own, and a profile of measured times.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "planner/plan/plan_json.h"
#include "planner/predict/rates/rates.h"
#include "planner/verify/verify.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using testing::CompiledFile;
using ::testing::ElementsAre;

const std::string kTiny = InSource("recipes/nemotron_moe_vlm_tiny.yaml");

// The messages of a recipe that does not compile.
std::vector<std::string> Refusals(const std::vector<std::string>& overrides) {
  Diagnostics problems;
  const std::optional<Recipe> recipe = ReadRecipe(kTiny, overrides, problems);
  EXPECT_FALSE(recipe && CompileRecipe(*recipe, problems));
  std::vector<std::string> messages;
  for (const Diagnostic& problem : problems.sorted()) messages.push_back(problem.message);
  return messages;
}

class Profile : public ::testing::Test {
 protected:
  // Writes the profile and returns the override that names it.
  std::string Named(const DeviceProfile& profile) {
    std::ofstream(path_) << WriteProfile(profile);
    return "cluster.profile=" + path_;
  }
  const std::string path_ = ::testing::TempDir() + "/profile.json";
  const MeasuredTime took_ = {1e-3, 9e-4, 2e-3, 5};
  const DeviceProfile measured_ = {.gpu = "none",
                                   .device = "a processor",
                                   .compute = {{OpKind::kLinear, DType::kFp32, 1e6, 1e4, "", took_},
                                               {OpKind::kLinear, DType::kBf16, 1e6, 1e4, "", took_},
                                               {OpKind::kCausalAttentionAllKv, DType::kFp32, 1e6, 1e4, "", took_}},
                                   .communication = {{OpKind::kAllToAll, 1e6, 8, 8, 1, took_}},
                                   .launch = {{OpKind::kLinear, took_}, {OpKind::kCausalAttentionAllKv, took_}}};
};

TEST_F(Profile, IsInThePlanAsFarAsThePlanAsksForIt) {
  const Plan without = CompiledFile(kTiny), plan = CompiledFile(kTiny, {Named(measured_)});
  ASSERT_EQ(plan.precision, "fp32");
  const DeviceProfile& kept = plan.cluster.profile;
  EXPECT_EQ(kept.device, "a processor");
  EXPECT_THAT(kept.compute, ElementsAre(measured_.compute[0]));
  EXPECT_TRUE(kept.communication.empty());
  EXPECT_THAT(kept.launch, ElementsAre(measured_.launch[0]));
  EXPECT_EQ(plan.digest, without.digest);  // what ranks do is the same
  const absl::StatusOr<Plan> read = ReadPlan(WritePlan(plan));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->cluster.profile, kept);
  EXPECT_TRUE(VerifyPlan(*read).empty());
  EXPECT_EQ(RatesOf(read->cluster).Compute({OpKind::kLinear, 1e6, 1e4, DType::kFp32}).seconds, 1e-3);
}

TEST_F(Profile, OfTooManyPointsIsRefused) {
  DeviceProfile large = measured_;
  for (int i = 0; i < 2000; ++i) large.compute.push_back({OpKind::kLinear, DType::kFp32, 1e7 + i, 1e4, "", took_});
  EXPECT_THAT(Refusals({Named(large)}),
              ElementsAre("the profile " + path_ +
                          " has 2001 points of instructions that this plan has, and a plan has room for 2000"));
}

TEST_F(Profile, OfAnotherPrecisionIsRefused) {
  EXPECT_THAT(Refusals({Named(measured_), "precision.params=fp64"}),
              ElementsAre("the profile " + path_ + " has no time of an instruction in fp64"));
}

TEST_F(Profile, OfAnotherDeviceIsRefused) {
  EXPECT_THAT(
      Refusals({Named(measured_), "cluster.gpu=h200_sxm"}),
      ElementsAre("the profile " + path_ + " was measured on CPU ranks (a processor), and cluster.gpu is h200_sxm"));
}

TEST_F(Profile, ThatIsNoneIsRefused) {
  std::ofstream(path_) << "{}";
  EXPECT_THAT(Refusals({"cluster.profile=" + path_}),
              ElementsAre("the profile " + path_ +
                          " is damaged or of another version: not a profile: it has no format_version"));
  std::filesystem::remove(path_);
  EXPECT_THAT(Refusals({"cluster.profile=" + path_}),
              ElementsAre(::testing::HasSubstr("the profile cannot be read: ")));
}

TEST(OwnDevice, HasItsFiguresInThePlanOutsideTheDigest) {
  const Plan named = CompiledFile(kTiny, {"cluster.gpu=h200_sxm"});
  const Plan own = CompiledFile(kTiny, {"cluster.gpu=h200_sxm", "cluster.device={memory: 96, peak: 500.5}"});
  EXPECT_EQ(own.digest, named.digest);
  const absl::StatusOr<Plan> read = ReadPlan(WritePlan(own));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->cluster.device, (DeviceFigures{.memory = 96, .peak = 500.5}));
}

TEST(OwnDevice, DecidesWhatFits) {
  EXPECT_THAT(Refusals({"cluster.gpu=h200_sxm", "cluster.device.memory=0.5"}),
              ElementsAre(::testing::HasSubstr("has 0.50 GB")));
}

TEST(OwnDevice, OfAnUnknownKindNeedsAllFigures) {
  const std::vector<std::string> one_node = {"cluster.gpu=other", "cluster.gpus_per_node=1"};
  EXPECT_THAT(Refusals(one_node), ElementsAre("`gpu: other` says nothing about the device, and `cluster.device` lacks "
                                              "memory, peak and bandwidth"));
  const Plan plan = CompiledFile(kTiny, {"cluster.gpu=other", "cluster.gpus_per_node=1",
                                         "cluster.device={memory: 24, peak: 165, bandwidth: 1008}"});
  EXPECT_TRUE(VerifyPlan(plan).empty());
  EXPECT_TRUE(RatesOf(plan.cluster).known());
}

TEST(OwnDevice, OfCpuRanksHasAllSpeedsOrNone) {
  EXPECT_THAT(Refusals({"cluster.gpus_per_node=2", "cluster.device={bandwidth: 20}"}),
              ElementsAre("`gpu: none` says nothing about the device, and `cluster.device` lacks peak and link"));
  EXPECT_FALSE(RatesOf(CompiledFile(kTiny, {"cluster.device={memory: 24}"}).cluster).known());
  EXPECT_TRUE(RatesOf(CompiledFile(kTiny, {"cluster.device={peak: 1, bandwidth: 20}"}).cluster).known());
}

}  // namespace
}  // namespace planwright
