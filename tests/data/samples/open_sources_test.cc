// Data of kind `sources`, from shards on disk through their indexes to samples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "planner/data/pictures/patches.h"
#include "planner/data/samples/index_files.h"
#include "planner/data/samples/sample_source.h"
#include "tests/data/samples/data_folder.h"
#include "tests/data/samples/plans.h"

namespace planwright {
namespace {

using ::testing::HasSubstr;

std::string GrayPng(int pixels, uint8_t value) {
  std::vector<uint8_t> rgba(static_cast<size_t>(pixels) * pixels * 4, value);
  for (size_t i = 3; i < rgba.size(); i += 4) rgba[i] = 255;
  return PngOf(pixels, pixels, rgba);
}

// Two sources with tokenizer bytes in a folder of this test's own.
Plan BytesPlan(const std::string& folder) {
  std::filesystem::remove_all(testing::TempDir() + folder);
  std::filesystem::create_directories(testing::TempDir() + folder);
  Plan plan = MockPlan();
  plan.budget.sequence_length = 16;
  DataPlan data = OneSource(testing::TempDir() + folder, "");
  data.seed = 5;
  data.window = 4;
  data.min_patches = 4;
  data.max_patches = 16;
  data.shuffle = "none";
  data.encoders = {{"encoder", 256, 4, 2, 64}};
  data.sources = {{"pictures", SourceKind::kWebdataset, {"p-{0..1}.tar"}, {}, "", 2},
                  {"texts", SourceKind::kWebdataset, {"t*.tar"}, {}, "", 1}};
  plan.data = data;
  WriteFile(folder + "/p-0.tar", TarMemberOf("one.0.png", GrayPng(8, 10)) + TarMemberOf("one.1.png", GrayPng(16, 20)) +
                                     TarMemberOf("one.txt", "a<image>b<image>") + kTarEnd);
  WriteFile(folder + "/p-1.tar", TarMemberOf("two.png", GrayPng(8, 30)) + TarMemberOf("two.txt", "hi") + kTarEnd);
  WriteFile(folder + "/t.tar", TarMemberOf("x.txt", "xyz") + TarMemberOf("y.txt", "long text, all of it") + kTarEnd);
  return plan;
}

TEST(OpenSources, SamplesComeFromShardsByTheirIndexes) {
  Plan plan = BytesPlan("open_sources");
  plan.data.long_documents = "cut";
  EXPECT_THAT(std::string(OpenSampleSource(plan).status().message()), HasSubstr("plan data index"));
  const auto indexed = UpdateIndex(plan.data, {}, {});
  ASSERT_TRUE(indexed.ok()) << indexed.status();
  const auto source = OpenSampleSource(plan);
  ASSERT_TRUE(source.ok()) << source.status();
  // Samples 0 and 2 are of the pictures, 1 of the texts.
  const Sample pictures = *(*source)->Get(0, SampleParts::kAll), texts = *(*source)->Get(1, SampleParts::kAll);
  EXPECT_EQ(pictures.tokens,
            (std::vector<int64_t>{'a', 256, 'b', 256, 256, 256, 256, 258, 256, 'h', 'i', 258, 257, 257, 257, 257}));
  EXPECT_EQ(pictures.loss_mask, (std::vector<double>{0, 1, 0, 0, 0, 0, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0}));
  ASSERT_EQ(pictures.images[0].size(), 3u);
  EXPECT_EQ(pictures.images[0][1].patches, PatchesOfPicture<Bilinear>(GrayPng(16, 20), {4, 4}, 4)->patches);
  EXPECT_EQ(pictures.images[0][2].patches, PatchesOfPicture<Bilinear>(GrayPng(8, 30), {2, 2}, 4)->patches);
  EXPECT_EQ(*(*source)->Patches(0), 4 + 16 + 4);
  EXPECT_EQ(std::string(texts.tokens.begin(), texts.tokens.begin() + 3), "xyz");
  EXPECT_EQ(texts.tokens[3], 258);
  // The first piece, of 16 tokens, has a sample of its own; the rest went beside the first document.
  EXPECT_EQ(std::string(texts.tokens.begin() + 4, texts.tokens.begin() + 8), "f it");
  const SampleOrigin origin = (*source)->Origin(1);
  ASSERT_EQ(origin.documents.size(), 2u);
  EXPECT_THAT(origin.documents[1].where, HasSubstr("t.tar: document y"));
  EXPECT_EQ(origin.documents[1].first, 16);
  EXPECT_EQ(origin.documents[1].end, 21);
  EXPECT_EQ((*source)->digest().size(), 64u);
}

TEST(OpenSources, WithoutAnEncoderImagesAreLeftOut) {
  Plan plan = BytesPlan("open_text");
  plan.data.encoders.clear();
  plan.data.long_documents = "skip";
  ASSERT_TRUE(UpdateIndex(plan.data, {}, {}).ok());
  const auto source = OpenSampleSource(plan);
  ASSERT_TRUE(source.ok()) << source.status();
  const Sample sample = *(*source)->Get(0, SampleParts::kAll);
  EXPECT_TRUE(sample.images.empty());
  EXPECT_EQ(std::vector<int64_t>(sample.tokens.begin(), sample.tokens.begin() + 7),
            (std::vector<int64_t>{'a', 'b', 258, 'h', 'i', 258, 257}));
  EXPECT_EQ((*source)->Counts()[1].skipped, 1);
}

TEST(OpenSources, ADamagedImageIsNamedWhenItIsRead) {
  Plan plan = BytesPlan("open_damaged");
  plan.data.long_documents = "skip";
  std::string broken = GrayPng(8, 30);
  broken.replace(broken.find("IDAT") + 6, 6, "xxxxxx");
  WriteFile("open_damaged/p-1.tar", TarMemberOf("two.png", broken) + TarMemberOf("two.txt", "hi") + kTarEnd);
  ASSERT_TRUE(UpdateIndex(plan.data, {}, {}).ok());
  const auto source = OpenSampleSource(plan);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_TRUE((*source)->Get(0, SampleParts::kText).ok());
  const std::string message((*source)->Get(0, SampleParts::kAll).status().message());
  EXPECT_THAT(message, HasSubstr("p-1.tar: two.png ("));
  EXPECT_THAT(message, HasSubstr("p-1.tar: document two): "));
  // With `skip` the index decodes images, and the document is padding in its place.
  plan.data.damaged = "skip";
  plan.data.most_damaged = 1;
  ASSERT_TRUE(UpdateIndex(plan.data, {}, {}).ok());
  const auto skipped = OpenSampleSource(plan);
  ASSERT_TRUE(skipped.ok()) << skipped.status();
  EXPECT_EQ((*skipped)->Get(0, SampleParts::kAll)->images[0].size(), 2u);
  EXPECT_EQ((*skipped)->Counts()[0].padded, 1);
  EXPECT_NE((*skipped)->digest(), (*source)->digest());
}

// The shard of recipes/icons_8r_toy.yaml, with its sizes.
TEST(OpenSources, TheIconsFitTheirRecipe) {
  if (!std::filesystem::exists(InBuild("icons/icons-000000.tar"))) GTEST_SKIP() << "the target icons was not built";
  Plan plan = BytesPlan("open_icons");
  plan.data.sources = {{"icons", SourceKind::kWebdataset, {InBuild("icons/icons-000000.tar")}, {}, "", 1}};
  plan.budget.sequence_length = 192;
  plan.data.window = 128, plan.data.max_patches = 64, plan.data.shuffle = "all";
  plan.data.encoders[0].max_image = 256;
  ASSERT_TRUE(UpdateIndex(plan.data, {}, {}).ok());
  const auto source = OpenSampleSource(plan);
  ASSERT_TRUE(source.ok()) << source.status();
  for (int64_t i = 0; i < 50; ++i) {
    const auto sample = (*source)->Get(i, SampleParts::kAll);
    ASSERT_TRUE(sample.ok()) << sample.status();
    EXPECT_GE(sample->images[0].size(), 1u);
    int64_t tokens = 0;
    for (const Image& image : sample->images[0]) tokens += ImageTokens(plan.data.encoders[0], image);
    EXPECT_EQ(std::count(sample->tokens.begin(), sample->tokens.end(), 256), tokens);
    EXPECT_EQ(std::count(sample->tokens.begin(), sample->tokens.end(), 258),
              static_cast<int64_t>(sample->images[0].size()));
  }
}

}  // namespace
}  // namespace planwright
