// Whether a plan can go on from a checkpoint: tensors, steps, and how much ranks load.
#include "planner/state/checkpoint/plan_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/numerics/layouts.h"
#include "tests/state/checkpoint/plan_checkpoint.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using std::string;
using testing::CompiledFile;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Join;

Plan PlanOf(const std::vector<string>& overrides) { return CompiledFile(InSource(testing::kTinyRecipe), overrides); }

int64_t PieceBytes(const Plan& plan, int rank) {
  int64_t bytes = 0;
  for (const Module& module : plan.modules) {
    for (const CheckpointPiece& piece : PiecesToLoad(plan, module, rank)) {
      for (const ElementRun& run : piece.runs) bytes += run.count * DTypeBytes(piece.dtype);
    }
  }
  return bytes;
}

TEST(BytesToLoad, AreThoseOfThePiecesAndOfPadding) {
  for (const testing::Layout& layout : testing::AllLayouts()) {
    for (const char* precision : {"bf16", "fp32"}) {
      SCOPED_TRACE(layout.name + " " + precision);
      const Plan plan = CompiledFile(
          InSource(layout.recipe), Join(layout.overrides, layout.training, {string("precision.params=") + precision}));
      for (const Role& role : plan.roles) {
        const int64_t told = BytesToLoad(plan, role);
        int64_t padding =
            0;  // of all buckets that its ranks have a shard of, and of storages, in weights and three states
        for (const string& name : role.modules) {
          const Module& module = *plan.FindModule(name);
          for (size_t i = 0; i < module.buckets.size(); ++i) {
            int64_t used = 0;
            for (const Storage& storage : module.storages) {
              if (storage.bucket == static_cast<int>(i)) used += ElementsOf(storage.shape);
            }
            padding += (module.buckets[i].elements - used) * 3 * 4;
          }
          for (const Storage& storage : module.storages) {  // rows that belong to no tensor
            const Parameter& parameter = module.parameters[static_cast<size_t>(storage.parameters[0])];
            if (parameter.padded)
              padding += (ElementsOf(storage.shape) * module.grid.tp - ElementsOf(parameter.shape)) * 4 * 4;
          }
        }
        for (const RankRange& range : role.ranks) {
          for (int rank : Expand({range})) {
            const int64_t needed = PieceBytes(plan, rank);
            EXPECT_LE(needed, told) << "rank " << rank;
            EXPECT_GE(needed, told - padding) << "rank " << rank;
          }
        }
      }
    }
  }
}

class Fit : public ::testing::Test {
 protected:
  void SetUp() override {
    string pattern = ::testing::TempDir() + "/plan_fitXXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    auto opened = CheckpointReader::Open(testing::WriteCheckpointOf(PlanOf({}), folder_, 3, 1));
    ASSERT_TRUE(opened.ok()) << opened.status();
    checkpoint_ = *std::move(opened);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::vector<string> Misfits(const std::vector<string>& overrides) const {
    return TensorMisfits(PlanOf(overrides), *checkpoint_);
  }

  string folder_;
  std::unique_ptr<CheckpointReader> checkpoint_;
};

TEST_F(Fit, EveryLayoutHasTheSameTensors) {
  for (const testing::Layout& layout : testing::TinyLayouts()) EXPECT_THAT(Misfits(layout.overrides), IsEmpty());
}

TEST_F(Fit, MissingTensorsOnesTooManyAndOtherShapesAreTold) {
  const std::vector<string> deeper = Misfits({"models.hybrid_moe_tiny.pattern=ME*EM"});
  EXPECT_THAT(deeper, Contains("the checkpoint has no language.backbone.layers.4.mixer.A_log"));
  EXPECT_THAT(deeper, Contains("the checkpoint has no language.backbone.layers.4.mixer.A_log.exp_avg"));
  EXPECT_THAT(Misfits({"models.hybrid_moe_tiny.pattern=ME*"}),
              Contains("the plan has no language.backbone.layers.3.norm.weight"));
  EXPECT_THAT(Misfits({"models.hybrid_moe_tiny.vocabulary=260"}),
              Contains("language.lm_head.weight is fp32[256,64] in the checkpoint, and fp32[260,64] in the plan"));
  // Frozen weights have no moments.
  EXPECT_THAT(Misfits({"modules.language.train.backbone=frozen"}),
              Contains("the plan has no language.lm_head.weight.exp_avg"));
  EXPECT_THAT(Misfits({"precision.params=bf16"}),
              ElementsAre("the checkpoint is of a run in fp32, and the plan is in bf16"));
}

TEST_F(Fit, StepsAreCountedBySamples) {
  const CheckpointCounters& counters = checkpoint_->manifest().counters;  // 24 samples
  const auto steps = [&](const string& samples) {
    return StepsDone(PlanOf({"batch.global_samples=" + samples}), "FOLDER", counters);
  };
  EXPECT_EQ(*steps("8"), 3);
  EXPECT_EQ(*steps("4"), 6);
  EXPECT_EQ(steps("16").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(string(steps("16").status().message()), HasSubstr("FOLDER is after 24 samples"));
}

}  // namespace
}  // namespace planwright
