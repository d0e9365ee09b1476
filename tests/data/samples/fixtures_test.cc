// Data sets as public programs write them (tests/golden/data_fixtures): the webdataset package, megatron-energon and
// megatron-core; and a folder as prepare_data writes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/data/pictures/decode_picture.h"
#include "planner/data/samples/documents.h"
#include "planner/data/samples/index_files.h"
#include "tests/data/samples/data_folder.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;

// The text of a document, with < for an image and > for the end token. Ids are bytes, `first` added.
std::string TextOf(const Documents& documents, int64_t document, int64_t first, int64_t end) {
  const absl::StatusOr<Documents::Text> text = documents.ReadText(document);
  EXPECT_TRUE(text.ok()) << text.status();
  std::string shown;
  for (int64_t token : text.ok() ? text->tokens : std::vector<int64_t>())
    shown += token == kImageMark ? '<' : token == end ? '>' : static_cast<char>(token - first);
  EXPECT_EQ(documents.tokens(document), static_cast<int64_t>(shown.size()));
  return shown;
}

// The tokens that are learnt, as TextOf shows them.
std::string LearntOf(const Documents& documents, int64_t document, int64_t first, int64_t end) {
  const std::string all = TextOf(documents, document, first, end);
  const std::vector<uint8_t> learnt = documents.ReadText(document)->learnt;
  if (learnt.empty()) return all;
  EXPECT_EQ(learnt.size(), all.size());
  std::string shown;
  for (size_t i = 0; i < all.size(); ++i) shown += learnt[i] == 1 ? std::string(1, all[i]) : "";
  return shown;
}

// "64x48@0 ..." of all images, width first; each is decoded.
std::string ImagesOf(const Documents& documents, int64_t document) {
  std::vector<PictureRef> pictures;
  documents.Pictures(document, pictures);
  std::string shown;
  for (size_t i = 0; i < pictures.size(); ++i) {
    shown += (i > 0 ? " " : "") + std::to_string(pictures[i].width) + "x" + std::to_string(pictures[i].height) + "@" +
             std::to_string(pictures[i].mark);
    const absl::StatusOr<std::string> file = documents.ReadPicture(document, static_cast<int64_t>(i));
    EXPECT_TRUE(file.ok() && CheckPicture(*file).ok()) << shown;
  }
  return shown;
}

// Indexes shards of the fixtures into a folder of tests.
class FixtureIndex : public ::testing::Test {
 protected:
  FixtureIndex() : folder_("fixture_index") {
    folder_.data.base = InSource("tests/golden/data_fixtures");
    folder_.data.index = folder_.path("data_index");
  }

  std::unique_ptr<Documents> Index(const std::string& shards, bool damage_is_left_out = false) {
    folder_.data.sources[0].shards = {shards};
    folder_.data.damaged = damage_is_left_out ? "skip" : "error";
    const absl::StatusOr<std::vector<IndexedSource>> made = UpdateIndex(folder_.data, {}, {});
    EXPECT_TRUE(made.ok()) << made.status();
    absl::StatusOr<std::unique_ptr<Documents>> documents = OpenDocuments(folder_.data, folder_.data.sources[0]);
    EXPECT_TRUE(documents.ok()) << documents.status();
    return documents.ok() ? *std::move(documents) : nullptr;
  }

  DataFolder folder_;
};

TEST_F(FixtureIndex, ReadsShardsOfTheWebdatasetPackage) {
  for (bool decodes : {false, true}) {
    const auto documents = Index("webdataset/shard-{000000..000001}.tar", decodes);
    ASSERT_NE(documents, nullptr);
    ASSERT_EQ(documents->size(), 5);
    EXPECT_EQ(documents->left_out(), 0);
    EXPECT_THAT(documents->shard_begins(), ElementsAre(0, 3, 5));
    EXPECT_EQ(TextOf(*documents, 0, 0, 258), "<slow waves>");
    EXPECT_EQ(TextOf(*documents, 1, 0, 258), "steeper < waves, seen upright>");
    EXPECT_EQ(TextOf(*documents, 2, 0, 258), "no picture here: žluťoučký kůň>");
    EXPECT_EQ(TextOf(*documents, 3, 0, 258), "<wide waves>");
    EXPECT_EQ(TextOf(*documents, 4, 0, 258), "first <, then <>");
    EXPECT_EQ(ImagesOf(*documents, 0), "64x48@0");
    EXPECT_EQ(ImagesOf(*documents, 1), "48x64@8");
    EXPECT_EQ(ImagesOf(*documents, 2), "");
    EXPECT_EQ(ImagesOf(*documents, 3), "96x32@0");
    EXPECT_EQ(ImagesOf(*documents, 4), "32x32@6 40x24@14");
    EXPECT_TRUE(documents->Where(3).ends_with("webdataset/shard-000001.tar: document more/waves_3"));
  }
}

TEST_F(FixtureIndex, ReadsTheShardsOfEnergonsFolders) {
  const auto captions = Index("energon/captions/*.tar");
  ASSERT_NE(captions, nullptr);
  ASSERT_EQ(captions->size(), 5);
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(TextOf(*captions, i, 0, 258), "<waves number " + std::to_string(i) + ">");
    EXPECT_EQ(ImagesOf(*captions, i), i < 3 ? "48x32@0" : "32x48@0");
  }
  folder_.data.sources[0].ignore = {"json"};  // conversations are for prepare_data
  const auto questions = Index("energon/questions/*.tar");
  ASSERT_NE(questions, nullptr);
  ASSERT_EQ(questions->size(), 3);
  EXPECT_EQ(TextOf(*questions, 0, 0, 258), "<>");
  EXPECT_EQ(ImagesOf(*questions, 2), "40x40@0");
}

TEST_F(FixtureIndex, ReadsAPreparedFolder) {
  folder_.data.tokenizer = "ids";
  folder_.data.image_token = 2;
  folder_.data.pad_token = 0;
  folder_.data.end_token = 1;
  const auto documents = Index("prepared/*.tar", true);
  ASSERT_NE(documents, nullptr);
  ASSERT_EQ(documents->size(), 6);
  EXPECT_EQ(TextOf(*documents, 0, 3, 1), "<\nWhat is it?A wave.>");
  EXPECT_EQ(LearntOf(*documents, 0, 3, 1), "A wave.>");
  EXPECT_EQ(ImagesOf(*documents, 0), "64x48@0");
  EXPECT_EQ(TextOf(*documents, 1, 3, 1), "Compare < with <, and <.Alike.>");
  EXPECT_EQ(LearntOf(*documents, 1, 3, 1), "Alike.>");
  EXPECT_EQ(ImagesOf(*documents, 1), "56x40@8 96x32@15 64x48@22");
  EXPECT_EQ(LearntOf(*documents, 2, 3, 1), "Text alone, all of it learnt.>");
  EXPECT_EQ(ImagesOf(*documents, 3), "40x24@6 24x40@15");
  EXPECT_EQ(LearntOf(*documents, 4, 3, 1), "One in place.>");
  EXPECT_EQ(ImagesOf(*documents, 4), "32x48@0");
  EXPECT_EQ(LearntOf(*documents, 5, 3, 1), "Answer.>");
}

TEST_F(FixtureIndex, ReadsFilesOfMegatronsBuilder) {
  folder_.data.sources[0].kind = SourceKind::kTokens;
  for (const auto& [name, vocabulary, special] : {std::tuple("uint16", 65500, 11), std::tuple("int32", 131072, 11)}) {
    folder_.data.sources[0].path = std::string("megatron/") + name + "_text_document";
    folder_.data.vocabulary = vocabulary;
    const absl::StatusOr<std::vector<IndexedSource>> made = UpdateIndex(folder_.data, {}, {});
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ((*made)[0].left_out, 1);
    const auto documents = *OpenDocuments(folder_.data, folder_.data.sources[0]);
    ASSERT_EQ(documents->size(), 5);  // the fourth has no token
    const int64_t large = vocabulary == 65500 ? 10 : 70000;
    EXPECT_THAT(documents->ReadText(1)->tokens, ElementsAre(8, 9, large, special, 2));
    EXPECT_THAT(documents->ReadText(2)->tokens, ElementsAre(65499, 0, 2));
    EXPECT_THAT(documents->ReadText(3)->tokens, ElementsAre(12, 2));
    EXPECT_TRUE(documents->Where(3).ends_with(".bin: document 4"));
    EXPECT_EQ(documents->tokens(4), vocabulary == 65500 ? 201 : 73);
    const std::vector<int64_t> last = documents->ReadText(4)->tokens;
    EXPECT_EQ(last[70], vocabulary == 65500 ? 170 : 131070);
  }
}

}  // namespace
}  // namespace planwright
