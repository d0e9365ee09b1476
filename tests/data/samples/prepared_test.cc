// prepared.json beside shards.
#include "planner/data/samples/prepared.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kDigest(64, 'a'), kOther(64, 'b');

std::string PreparedText() {
  return R"({"format": "planwright_prepared", "version": 1, "tokenizer": {"name": "tokenizer.json", "sha256": ")" +
         kDigest + R"("}, "template": {"sha256": ")" + kOther + R"("}, "ids": {"image": 5, "pad": 6, "end": 7},)" +
         R"("vocabulary": 100, "documents": 2, "tokens": 9, "learnt": 4, "images": 1,)" +
         R"("shards": [{"file": "a-000000.tar", "documents": 2, "tokens": 9, "bytes": 4096}]})";
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

DataPlan PlanOfIds() {
  DataPlan data;
  data.image_token = 5;
  data.pad_token = 6;
  data.end_token = 7;
  data.vocabulary = 128;
  return data;
}

TEST(Prepared, ReadsAllThatItSays) {
  const absl::StatusOr<Prepared> prepared = ReadPrepared(PreparedText());
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_EQ(prepared->tokenizer, "tokenizer.json");
  EXPECT_EQ(prepared->tokenizer_digest, kDigest);
  EXPECT_EQ(prepared->template_digest, kOther);
  EXPECT_EQ(prepared->image, 5);
  EXPECT_EQ(prepared->pad, 6);
  EXPECT_EQ(prepared->end, 7);
  EXPECT_EQ(prepared->vocabulary, 100);
  ASSERT_TRUE(prepared->shards.contains("a-000000.tar"));
  EXPECT_EQ(prepared->shards.at("a-000000.tar").bytes, 4096);
  EXPECT_THAT(ComparePrepared(*prepared, PlanOfIds()), IsEmpty());

  const absl::StatusOr<Prepared> text_only = ReadPrepared(Replaced(
      Replaced(PreparedText(), R"({"sha256": ")" + kOther + R"("})", "null"), R"("image": 5)", R"("image": null)"));
  ASSERT_TRUE(text_only.ok()) << text_only.status();
  EXPECT_EQ(text_only->image, -1);
  EXPECT_EQ(text_only->template_digest, "");
  EXPECT_THAT(ComparePrepared(*text_only, PlanOfIds()), IsEmpty());
}

TEST(Prepared, NamesTheFieldThatIsWrong) {
  const std::vector<std::vector<std::string>> cases = {
      {R"("planwright_prepared")", R"("other")", R"(format is "other"; it must be "planwright_prepared")"},
      {R"("version": 1)", R"("version": 2)", "version is 2; this program reads 1"},
      {R"("name": "tokenizer.json")", R"("name": 3)", "tokenizer.name is 3; it must be a name"},
      {kDigest, "short", "tokenizer.sha256 is \"short\"; it must be 64 lower-case hex digits"},
      {R"({"sha256": ")" + kOther + R"("})", "[]", "template.sha256 is nothing; it must be 64 lower-case hex digits"},
      {R"("end": 7)", R"("end": -7)", "ids.end is -7; it must be a whole number of 0 or more"},
      {R"("pad": 6)", R"("pad": 100)", "ids.pad is 100; it must be below the vocabulary of 100"},
      {R"("vocabulary": 100)", R"("vocabulary": 1.5)", "vocabulary is 1.5; it must be a whole number of 0 or more"},
      {R"("shards": [)", R"("shards": [7, )", "shards[0].file is nothing; it must be a name"},
      {R"("bytes": 4096)", R"("bytes": {})", "shards[0].bytes is an object; it must be a whole number of 0 or more"}};
  for (const std::vector<std::string>& one : cases) {
    EXPECT_EQ(std::string(ReadPrepared(Replaced(PreparedText(), one[0], one[1])).status().message()), one[2]);
  }
}

TEST(Prepared, ComparesWithThePlan) {
  DataPlan data = PlanOfIds();
  data.tokenizer_digest = kOther;
  data.template_digest = kDigest;
  data.image_token = 1;
  data.pad_token = 2;
  data.end_token = 3;
  data.vocabulary = 99;
  EXPECT_THAT(
      ComparePrepared(*ReadPrepared(PreparedText()), data),
      ElementsAre("its tokenizer tokenizer.json has the digest " + kDigest + ", and tokenizer_digest is " + kOther,
                  "its template has the digest " + kOther + ", and template_digest is " + kDigest,
                  "its id of the image token is 5, and that of the recipe 1",
                  "its id of the pad token is 6, and that of the recipe 2",
                  "its id of the end token is 7, and that of the recipe 3",
                  "its ids are below 100, and the model's vocabulary is 99"));
}

TEST(Prepared, IsFoundBesideItsShards) {
  const std::string folder = testing::TempDir() + "prepared_folder";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  EXPECT_FALSE((*FindPrepared(folder + "/a-000000.tar")).has_value());
  std::ofstream(folder + "/prepared.json") << PreparedText();
  EXPECT_EQ((*FindPrepared(folder + "/a-000000.tar"))->path, folder + "/prepared.json");
  std::ofstream(folder + "/prepared.json") << "{";
  EXPECT_EQ(std::string(FindPrepared(folder + "/a-000000.tar").status().message()).substr(0, folder.size() + 16),
            folder + "/prepared.json: ");
}

}  // namespace
}  // namespace planwright
