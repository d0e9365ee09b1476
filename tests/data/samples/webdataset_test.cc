#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "planner/data/pictures/patches.h"
#include "planner/data/samples/sample_source.h"
#include "planner/data/samples/window_packer.h"
#include "tests/data/samples/plans.h"
#include "tests/data/samples/shard_files.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using ::testing::HasSubstr;

std::vector<int64_t> Lengths() {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 103; ++i) lengths.push_back(1 + i * 7 % 20);
  return lengths;
}

TEST(WindowPacker, EveryEpochHasEveryDocumentOnceWindowByWindow) {
  WindowPacker packer(7, Lengths(), 10, 20);
  int64_t sample = 0;
  std::vector<std::vector<int64_t>> epochs;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t>& order = epochs.emplace_back();
    std::set<int64_t> seen;
    while (order.size() < 103) {
      const std::vector<int64_t> documents = packer.Documents(sample++);
      int64_t tokens = 0;
      for (int64_t document : documents) {
        EXPECT_EQ(document / 10, static_cast<int64_t>(order.size()) / 10);  // no document leaves its window
        EXPECT_TRUE(seen.insert(document).second);
        order.push_back(document);
        tokens += Lengths()[document];
      }
      EXPECT_LE(tokens, 20);
      EXPECT_GE(documents.size(), 1u);
    }
    EXPECT_EQ(seen.size(), 103u);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

TEST(WindowPacker, OpensASampleOnlyWhenTheNextDocumentDoesNotFit) {
  WindowPacker packer(7, Lengths(), 200, 20);  // one window
  std::vector<int64_t> before = packer.Documents(0);
  for (int64_t sample = 1, documents = before.size(); documents < 103; ++sample) {
    const std::vector<int64_t> here = packer.Documents(sample);
    int64_t tokens = Lengths()[here.front()];
    for (int64_t document : before) tokens += Lengths()[document];
    EXPECT_GT(tokens, 20);
    documents += here.size();
    before = here;
  }
}

TEST(WindowPacker, SamplesDoNotDependOnTheOrderOfAsking) {
  WindowPacker forwards(7, Lengths(), 10, 20), jumping(7, Lengths(), 10, 20), other(8, Lengths(), 10, 20);
  std::vector<std::vector<int64_t>> samples, others;
  for (int64_t i = 0; i < 200; ++i) samples.push_back(forwards.Documents(i)), others.push_back(other.Documents(i));
  for (int64_t i : {150, 3, 199, 0, 77, 78, 2}) EXPECT_EQ(jumping.Documents(i), samples[i]);
  EXPECT_NE(samples, others);
}

std::vector<uint8_t> Solid(int pixels, uint8_t value) {
  std::vector<uint8_t> rgba(pixels * 4, value);
  for (int i = 0; i < pixels; ++i) rgba[4 * i + 3] = 255;
  return rgba;
}

Plan WebdatasetPlan(const std::vector<std::string>& shards) {
  Plan plan = MockPlan();
  plan.budget.sequence_length = 16;
  plan.data.kind = "webdataset";
  plan.data.base = testing::TempDir();
  plan.data.shards = shards;
  plan.data.image_token = plan.data.encoders[0].token = 256;
  plan.data.pad_token = 257;
  plan.data.end_token = 258;
  plan.data.vocabulary = 259;
  plan.data.window = 1;  // in shard order
  plan.data.min_patches = 4;
  plan.data.max_patches = 16;
  return plan;
}

std::string Shard(const std::string& name, const std::string& members) {
  WriteFile(name, members + kTarEnd);
  return name;
}

TEST(Webdataset, ADocumentIsItsImageItsTextAndTheEnd) {
  const Plan plan = WebdatasetPlan(
      {Shard("a.tar", TarMemberOf("d/one.png", PngOf(8, 16, Solid(128, 60))) + TarMemberOf("d/one.txt", "h\xff")),
       Shard("b.tar", TarMemberOf("two.txt", "hey"))});
  const auto source = OpenSampleSource(plan);
  ASSERT_TRUE(source.ok()) << source.status();
  const Sample one = *(*source)->Get(0, SampleParts::kAll), two = *(*source)->Get(1, SampleParts::kAll),
               again = *(*source)->Get(2, SampleParts::kAll);
  EXPECT_EQ(one.tokens,
            (std::vector<int64_t>{256, 256, 'h', 255, 258, 257, 257, 257, 257, 257, 257, 257, 257, 257, 257, 257}));
  EXPECT_EQ(one.loss_mask, (std::vector<double>{0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  ASSERT_EQ(one.images[0].size(), 1u);
  EXPECT_EQ(one.images[0][0].rows, 4);
  EXPECT_EQ(one.images[0][0].cols, 2);
  EXPECT_NEAR(one.images[0][0].patches[17], (60 / 255.0 - 0.4578275) / 0.26130258, 1e-12);  // patch 0, green
  EXPECT_EQ(std::vector<int64_t>(two.tokens.begin(), two.tokens.begin() + 5),
            (std::vector<int64_t>{'h', 'e', 'y', 258, 257}));
  EXPECT_TRUE(two.images[0].empty());
  EXPECT_EQ(again.tokens, one.tokens);
}

TEST(Webdataset, WithoutAnEncoderTheTextStays) {
  Plan plan = WebdatasetPlan(
      {Shard("c.tar", TarMemberOf("one.png", PngOf(8, 16, Solid(128, 60))) + TarMemberOf("one.txt", "hi"))});
  plan.data.encoders.clear();
  const auto source = OpenSampleSource(plan);
  ASSERT_TRUE(source.ok()) << source.status();
  const Sample sample = *(*source)->Get(0, SampleParts::kAll);
  EXPECT_TRUE(sample.images.empty());
  EXPECT_EQ(std::vector<int64_t>(sample.tokens.begin(), sample.tokens.begin() + 4),
            (std::vector<int64_t>{'h', 'i', 258, 257}));
}

TEST(Webdataset, PackedDocumentsEndWithTheEndToken) {
  Plan plan = WebdatasetPlan({Shard(
      "p.tar", TarMemberOf("a.txt", "abc") + TarMemberOf("b.txt", "de") + TarMemberOf("c.txt", std::string(15, 'x')))});
  plan.data.window = 3;
  plan.data.packed_documents = true;
  const auto source = OpenSampleSource(plan);
  ASSERT_TRUE(source.ok()) << source.status();
  // A window of three documents in an order of its own: of 4, 3 and 16 tokens.
  for (int64_t n = 0; n < 12; ++n) {
    const Sample sample = *(*source)->Get(n, SampleParts::kAll);
    size_t position = 0;
    for (int64_t end : sample.document_ends) {
      if (sample.tokens[position] == 257) {  // padding
        EXPECT_EQ(end, 16);
        break;
      }
      EXPECT_EQ(sample.tokens[end - 1], 258);
      EXPECT_EQ(std::count(sample.tokens.begin() + position, sample.tokens.begin() + end, 258), 1);
      EXPECT_EQ(sample.loss_mask[end - 1], 0);
      for (; position + 1 < static_cast<size_t>(end); ++position) {
        EXPECT_EQ(sample.labels[position], sample.tokens[position + 1]);
        EXPECT_EQ(sample.loss_mask[position], 1);
      }
      position = static_cast<size_t>(end);
    }
    EXPECT_EQ(sample.document_ends.back(), 16);
  }
}

TEST(Webdataset, WhatCannotBeReadIsNamed) {
  const std::string png = PngOf(8, 8, Solid(64, 1));
  const std::vector<std::pair<std::string, std::string>> cases = {
      {TarMemberOf("d/long.txt", std::string(16, 'x')), "d/long: its 17 tokens do not fit the sequence of 16"},
      {TarMemberOf("d.jpg", "x"), "neither png nor txt"},
      {TarMemberOf("d.txt", "x") + TarMemberOf("d.txt", "y"), "two members d.txt"},
      {TarMemberOf("d.png", "x"), "not a PNG"},
      {TarMemberOf("d.png", PngOf(400, 2, Solid(800, 1))), "too thin"},
      {"", "no documents"}};
  for (const auto& [members, message] : cases) {
    const absl::Status status = OpenSampleSource(WebdatasetPlan({Shard("bad_shard.tar", members)})).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
  Plan narrow = WebdatasetPlan({Shard("ok.tar", TarMemberOf("d.png", PngOf(32, 8, Solid(256, 1))))});
  EXPECT_TRUE(OpenSampleSource(narrow).ok());
  narrow.data.encoders[0].max_image = 16;
  EXPECT_THAT(std::string(OpenSampleSource(narrow).status().message()), HasSubstr("max_image"));
}

TEST(Webdataset, ThePlanSaysHowImagesAreResized) {
  // 3 by 5 patches of 4 pixels. Counted half to even they are 4 by 6, too many, and become 4 by 4.
  std::vector<uint8_t> rgba;
  for (int i = 0; i < 12 * 20 * 4; ++i) rgba.push_back(static_cast<uint8_t>(i * i / 7 + i % 4 * 50));
  const std::string png = PngOf(20, 12, rgba);
  Plan plan = WebdatasetPlan({Shard("resized.tar", TarMemberOf("d.png", png))});
  const auto image = [&](const std::string& resize, const std::string& grid) {
    plan.data.resize = resize;
    plan.data.grid = grid;
    return (*OpenSampleSource(plan))->Get(0, SampleParts::kAll)->images[0].at(0);
  };
  const Image today = image("bilinear", "ceil"), cubic = image("bicubic", "ceil"),
              even = image("bilinear", "round_half_even");
  EXPECT_EQ((std::pair{today.rows, today.cols}), (std::pair<int64_t, int64_t>{2, 6}));
  EXPECT_EQ((std::pair{cubic.rows, cubic.cols}), (std::pair<int64_t, int64_t>{2, 6}));
  EXPECT_EQ((std::pair{even.rows, even.cols}), (std::pair<int64_t, int64_t>{4, 4}));
  EXPECT_EQ(today.patches, PatchesOfPicture<Bilinear>(png, {2, 6}, 4)->patches);
  EXPECT_EQ(cubic.patches, PatchesOfPicture<Bicubic>(png, {2, 6}, 4)->patches);
  EXPECT_EQ(even.patches, PatchesOfPicture<Bilinear>(png, {4, 4}, 4)->patches);
  EXPECT_NE(today.patches, cubic.patches);
}

// The shard of recipes/icons_8r_toy.yaml, with its sizes.
TEST(Webdataset, TheIconsFitTheirRecipe) {
  if (!std::ifstream(InBuild("icons/icons-000000.tar"))) GTEST_SKIP() << "the target icons was not built";
  Plan plan = WebdatasetPlan({"icons/icons-000000.tar"});
  plan.data.base = InBuild();
  plan.budget.sequence_length = 192;
  plan.data.window = plan.data.max_patches = 64;
  plan.data.encoders[0].max_image = 256;
  const auto source = OpenSampleSource(plan);
  ASSERT_TRUE(source.ok()) << source.status();
  for (int64_t i = 0; i < 50; ++i) {
    const auto sample = (*source)->Get(i, SampleParts::kAll);
    ASSERT_TRUE(sample.ok()) << sample.status();
    EXPECT_GE(sample->images[0].size(), 3u);
    int64_t tokens = 0;
    for (const Image& image : sample->images[0]) tokens += ImageTokens(plan.data.encoders[0], image);
    EXPECT_EQ(std::count(sample->tokens.begin(), sample->tokens.end(), 256), tokens);
    EXPECT_EQ(std::count(sample->tokens.begin(), sample->tokens.end(), 258),
              static_cast<int64_t>(sample->images[0].size()));
  }
}

}  // namespace
}  // namespace planwright
