#include "planner/plan/sample_images.h"

#include <gtest/gtest.h>

#include "planner/plan/lane_fullness.h"

namespace planwright {
namespace {

DataPlan Data(DataKind kind, std::vector<std::vector<int64_t>> grids) {
  DataPlan data;
  data.kind = kind;
  data.image_grids = std::move(grids);
  return data;
}

TEST(OneImageSize, IsThatOfMockDataOfOneSize) {
  EXPECT_TRUE(OneImageSize(Data(DataKind::kMock, {{64, 96}})));
  EXPECT_TRUE(OneImageSize(Data(DataKind::kMock, {{64, 96}, {64, 96}})));
  EXPECT_FALSE(OneImageSize(Data(DataKind::kMock, {{64, 96}, {96, 64}})));  // as many patches, but not the same image
  EXPECT_FALSE(OneImageSize(Data(DataKind::kMock, {{4, 6}, {2, 4}, {4, 6}})));
  EXPECT_FALSE(OneImageSize(Data(DataKind::kMock, {})));
}

TEST(OneImageSize, IsUnknownOfFiles) {
  EXPECT_FALSE(OneImageSize(Data(DataKind::kSources, {{64, 96}})));
  EXPECT_FALSE(OneImageSize(Data(DataKind::kRecorded, {})));
  EXPECT_FALSE(OneImageSize(DataPlan{}));
}

// The images of a sample are at most its tokens, shared by images of the fewest patches. Between 1 and 2 times
// min_patches, round_half_even makes smaller ones, and with equal limits it does not grow small images at all.
// smart_resize makes smaller ones up to 4 times min_patches.
TEST(ImagesOfSample, OfShardsAreAsManyAsTheSmallestImagesThatFit) {
  const EncoderData encoder{"encoder", 256, 16, 2, 2048};
  const auto most = [&](const std::string& grid, int64_t min_patches, int64_t max_patches) {
    DataPlan data = Data(DataKind::kSources, {});
    data.grid = grid;
    data.min_patches = min_patches;
    data.max_patches = max_patches;
    return ImagesOfSample(data, encoder, 8192).max_images;
  };
  EXPECT_EQ(most("ceil", 1024, 13312), 32);
  EXPECT_EQ(most("round_half_even", 1024, 13312), 32);
  EXPECT_EQ(most("round_half_even", 1024, 1280), 51);  // of 640 patches
  EXPECT_EQ(most("round_half_even", 1024, 1024), 8192);
  EXPECT_EQ(most("smart_resize", 1024, 13312), 32);
  EXPECT_EQ(most("smart_resize", 1024, 1280), 102);  // of 320 patches
  EXPECT_EQ(most("smart_resize", 1024, 1024), 128);
  EXPECT_EQ(most("square", 4, 256), 2);  // 128 x 128 patches, whatever the limits say
}

// Sources of one encoder, with so many samples, images and patches each.
DataPlan Counted(std::vector<CountedImages> images) {
  DataPlan data = Data(DataKind::kSources, {});
  data.min_patches = 4, data.max_patches = 64;
  data.counted.digest = std::string(64, 'a');
  for (CountedImages& one : images) {
    one.encoder = "encoder";
    data.sources.push_back({.name = one.source, .shards = {}, .ignore = {}, .path = ""});
  }
  data.counted.images = std::move(images);
  return data;
}

const EncoderData kEncoder{"encoder", 256, 16, 2, 2048};

TEST(ImagesOfSample, AreThoseThatTheIndexHasCountedBySharesOfSources) {
  DataPlan data = Counted(
      {{.source = "a",
        .samples = 10,
        .images = 40,
        .patches = 640,
        .max_images = 6,
        .max_patches = 100,
        .sizes = {8, 24}},
       {.source = "b", .samples = 5, .images = 5, .patches = 320, .max_images = 2, .max_patches = 128, .sizes = {64}}});
  data.sources[0].weight = 1, data.sources[1].weight = 3;
  const SampleImages images = ImagesOfSample(data, kEncoder, 8192);
  EXPECT_TRUE(images.known);
  EXPECT_EQ(images.max_images, 6);
  EXPECT_EQ(images.max_rows, 32);  // 128 patches of b
  // Of four samples one is of a, with 4 images, and three of b, with one each.
  EXPECT_DOUBLE_EQ(images.mean_images, 7.0 / 4);
  EXPECT_DOUBLE_EQ(images.mean_patches(), (2 * 8.0 + 2 * 24 + 3 * 64) / 7);
  EXPECT_DOUBLE_EQ(images.patches_around(), (2 * 64.0 + 2 * 576 + 3 * 4096) / (2 * 8.0 + 2 * 24 + 3 * 64));
}

TEST(ImagesOfSample, OfSourcesWithoutImagesAreNone) {
  const SampleImages images = ImagesOfSample(Counted({{.source = "a", .samples = 10}}), kEncoder, 8192);
  EXPECT_TRUE(images.known);
  EXPECT_EQ(images.mean_images, 0);
  EXPECT_EQ(images.max_rows, 0);
  EXPECT_EQ(images.mean_patches(), 0);
}

TEST(ImagesOfRun, HaveRoomForTheLargestSampleOfAnEvaluation) {
  const auto counted = [](int64_t images, int64_t patches) {
    return Counted({{.source = "a",
                     .samples = 1,
                     .images = images,
                     .patches = patches,
                     .max_images = images,
                     .max_patches = patches,
                     .sizes = {patches / images}}});
  };
  const DataPlan data = counted(2, 64);
  EvaluationPlan evaluation;
  evaluation.sets.push_back({.name = "held_out", .samples = 1, .data = counted(8, 256)});
  evaluation.sets[0].data.encoders = {kEncoder};
  const SampleImages images = ImagesOfRun(data, evaluation, kEncoder, 8192);
  EXPECT_EQ(images.max_images, 8);
  EXPECT_EQ(images.max_rows, 64);
  EXPECT_EQ(images.mean_images, 2);  // of the training
  // A set that is not counted may be full of images.
  evaluation.sets[0].data.counted = {};
  EXPECT_EQ(ImagesOfRun(data, evaluation, kEncoder, 8192).max_rows, 8192);
}

// Two lanes, microbatches of two samples, steps of four.
TEST(CountedFullness, IsThatOfTheFullestLane) {
  Plan plan;
  plan.budget.global_samples = 4, plan.budget.block_samples = 2, plan.budget.steps = 10;
  plan.data.counted.digest = std::string(64, 'a');
  EXPECT_EQ(CountedFullness(plan, 2).step, 1);
  plan.data.counted.first_patches = {10, 30, 30, 10, 50, 10, 20, 20, 99};  // two steps, and a part of one
  const Fullness fullness = CountedFullness(plan, 2);
  EXPECT_DOUBLE_EQ(fullness.step, (40.0 + 70) / (180.0 / 2));
  EXPECT_DOUBLE_EQ(fullness.microbatch, (30.0 + 30 + 50 + 20) / (180.0 / 2));
  plan.data.balance = "images";  // (10, 10) and (30, 30) would not be even; (10, 30) and (30, 10) are, over a step
  EXPECT_LE(CountedFullness(plan, 2).step, fullness.step);
  // As far as the samples go where a step has more.
  plan.data.balance = "none";
  plan.budget.global_samples = 100;
  EXPECT_DOUBLE_EQ(CountedFullness(plan, 2).microbatch, fullness.microbatch);
}

// Samples are dealt by their patches, also where the squares of their documents are asked for.
TEST(DocumentFullness, IsOfTheSamplesAsTheyAreDealt) {
  Plan plan;
  plan.budget.global_samples = 4, plan.budget.block_samples = 2, plan.budget.steps = 10;
  plan.data.counted.digest = std::string(64, 'a');
  EXPECT_EQ(DocumentFullness(plan, 2).microbatch, 1);
  plan.data.counted.first_squares = {10, 30, 30, 10, 50, 10, 20, 20};
  const Fullness fullness = DocumentFullness(plan, 2);
  EXPECT_DOUBLE_EQ(fullness.step, (40.0 + 70) / (180.0 / 2));
  EXPECT_DOUBLE_EQ(fullness.microbatch, (30.0 + 30 + 50 + 20) / (180.0 / 2));
  EXPECT_EQ(CountedFullness(plan, 2).microbatch, 1);  // no image
  // Without patches there is nothing to balance.
  plan.data.balance = "images";
  EXPECT_DOUBLE_EQ(DocumentFullness(plan, 2).step, fullness.step);
  // Where squares are as patches, both are dealt alike.
  plan.data.counted.first_patches = plan.data.counted.first_squares;
  EXPECT_DOUBLE_EQ(DocumentFullness(plan, 2).step, CountedFullness(plan, 2).step);
  EXPECT_DOUBLE_EQ(DocumentFullness(plan, 2).microbatch, CountedFullness(plan, 2).microbatch);
}

}  // namespace
}  // namespace planwright
