#include "planner/data/samples/token_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "planner/data/pictures/patch_picture.h"
#include "tests/data/samples/shard_files.h"

namespace planwright {
namespace {

using ::testing::HasSubstr;

DataPlan IdsIn(const std::string& folder, const std::string& pieces) {
  std::filesystem::remove_all(testing::TempDir() + folder);
  std::filesystem::create_directories(testing::TempDir() + folder);
  WriteFile(folder + "/a-0.tar", kTarEnd);
  if (!pieces.empty()) WriteFile(folder + "/pieces.json", pieces);
  DataPlan data;
  data.kind = DataKind::kSources;
  data.tokenizer = "ids";
  data.base = testing::TempDir();
  data.sources = {{"a", SourceKind::kWebdataset, {folder + "/*.tar"}, {}, "", 1},
                  {"b", SourceKind::kTokens, {}, {}, folder + "/text", 1}};
  return data;
}

TEST(TokenTexts, PiecesAreBytes) {
  const DataPlan data = IdsIn("pieces", "[\"<pad>\", \"a\\u0000\", \"\\u00e2\\u0082\\u00ac\"]");
  for (const std::string source : {"a", "b"}) {
    const auto texts = TokenTexts::Open(data, source);
    ASSERT_TRUE(texts.ok()) << texts.status();
    EXPECT_EQ(texts->Bytes(0), "<pad>");
    EXPECT_EQ(texts->Bytes(1), std::string("a\0", 2));
    EXPECT_EQ(texts->Bytes(2), "\xe2\x82\xac");  // the euro sign, as UTF-8
    EXPECT_EQ(texts->Bytes(3), "");
  }
}

TEST(TokenTexts, WithTokenizerBytesAnIdIsAByte) {
  DataPlan data = IdsIn("no_pieces", "");
  data.tokenizer = "bytes";
  const auto texts = TokenTexts::Open(data, "a");
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_EQ(texts->Bytes('x'), "x");
  EXPECT_EQ(texts->Bytes(258), "");
}

TEST(TokenTexts, FilesThatAreNoPiecesAreNamed) {
  EXPECT_EQ(TokenTexts::Open(IdsIn("no_pieces", ""), "a").status().code(), absl::StatusCode::kNotFound);
  const std::pair<const char*, const char*> cases[] = {{"{}", "pieces.json: is not a list"},
                                                       {"[1]", "pieces.json: entry 0 is not a text"},
                                                       {"[\"a\", \"\\u20ac\"]", "entry 1 has a character above U+00FF"},
                                                       {"[", "pieces.json: "}};
  for (const auto& [file, message] : cases) {
    const absl::Status status = TokenTexts::Open(IdsIn("bad_pieces", file), "a").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << file;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

TEST(PatchPicture, IsWhatTheEncoderSees) {
  // Each pixel has a color of its own; 2 x 3 patches of 4 pixels, so that nothing is resized.
  std::vector<uint8_t> rgba;
  for (int i = 0; i < 8 * 12; ++i) {
    for (int c = 0; c < 3; ++c) rgba.push_back(static_cast<uint8_t>(2 * i + 7 * c));
    rgba.push_back(255);
  }
  const auto patches = PatchesOfPicture<Bilinear>(PngOf(12, 8, rgba), {2, 3}, 4);
  ASSERT_TRUE(patches.ok()) << patches.status();
  const auto png = PngOfPatches(*patches, 4, kClipNorm);
  ASSERT_TRUE(png.ok()) << png.status();
  const auto pixels = DecodePicture<Bilinear>(*png, 8, 12);
  ASSERT_TRUE(pixels.ok()) << pixels.status();
  for (int i = 0; i < 8 * 12; ++i) {
    for (int c = 0; c < 3; ++c) EXPECT_EQ(pixels->values[3 * i + c], 2 * i + 7 * c);
  }
}

}  // namespace
}  // namespace planwright
