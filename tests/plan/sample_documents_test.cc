#include "planner/plan/sample_documents.h"

#include <gtest/gtest.h>

#include "planner/plan/plan_ranges.h"

namespace planwright {
namespace {

// Two sources of packed documents, of which the second has thrice the weight.
DataPlan Packed() {
  DataPlan data;
  data.kind = DataKind::kSources;
  data.packed_documents = true;
  data.sources = {{.name = "a", .weight = 1}, {.name = "b", .weight = 3}};
  data.counted.digest = std::string(64, 'a');
  data.counted.documents = {{"a", 10, 40, 1200}, {"b", 5, 5, 6400}};
  return data;
}

TEST(DocumentsOfSample, AreThoseThatTheIndexHasCountedBySharesOfSources) {
  const SampleDocuments documents = DocumentsOfSample(Packed(), 80);
  EXPECT_TRUE(documents.known);
  // Of four samples one is of a, with 4 documents, and three of b, with one each.
  EXPECT_DOUBLE_EQ(documents.mean, 7.0 / 4);
  EXPECT_DOUBLE_EQ(documents.share, (1200.0 + 3 * 6400) / 4 / 6400);
}

TEST(DocumentsOfSample, OfMockDataAreItsTextsAndImages) {
  DataPlan data;
  data.packed_documents = true;
  data.text_tokens = 24;
  SampleDocuments documents = DocumentsOfSample(data, 64);  // 24, 24, and 16 of padding
  EXPECT_TRUE(documents.known);
  EXPECT_EQ(documents.mean, 3);
  EXPECT_DOUBLE_EQ(documents.share, (2 * 576 + 256) / 4096.0);
  EXPECT_EQ(DocumentsOfSample(data, 20).share, 1);  // one text, and not all of it
  // An image of 8 or 16 tokens with its text, or a text alone, and padding of 48, 40 or 56 tokens.
  data.text_tokens = 8;
  data.encoders = {{"encoder", 255, 4, 2, 64}};
  data.image_grids = {{4, 8}, {8, 8}};
  data.min_images = 0, data.max_images = 1;
  documents = DocumentsOfSample(data, 64);
  EXPECT_EQ(documents.mean, 2);
  const double of_text = 64 + 56 * 56, of_small = 256 + 48 * 48, of_large = 576 + 40 * 40;
  EXPECT_DOUBLE_EQ(documents.share, (of_text / 2 + of_small / 4 + of_large / 4) / 4096);
}

TEST(DocumentsOfSample, AreOneWhereNobodyCountedThem) {
  const auto unknown = [](const DataPlan& data) {
    const SampleDocuments documents = DocumentsOfSample(data, 80);
    return !documents.known && documents.mean == 1 && documents.share == 1;
  };
  EXPECT_FALSE(unknown(Packed()));
  DataPlan data = Packed();
  data.counted = {};
  EXPECT_TRUE(unknown(data));
  data = Packed();
  data.packed_documents = false;  // documents see each other
  EXPECT_TRUE(unknown(data));
  data = Packed();
  data.sources[1].name = "c";  // counted for other sources
  EXPECT_TRUE(unknown(data));
  EXPECT_TRUE(unknown(DataPlan()));
}

TEST(DocumentsOfSample, ThatCannotBeAreRefused) {
  const auto problem = [](const auto& damage) {
    DataPlan data = Packed();
    data.image_token = 256, data.pad_token = 257, data.end_token = 258, data.vocabulary = 259;
    data.window = data.min_patches = data.max_patches = 1;
    for (SourcePlan& source : data.sources) source.kind = SourceKind::kWebdataset, source.shards = {"a.tar"};
    damage(data);
    return RangeProblem(data);
  };
  EXPECT_EQ(problem([](DataPlan&) {}), "");
  EXPECT_EQ(problem([](DataPlan& data) { data.packed_documents = false; }),
            "counted documents of samples whose documents see each other");
  EXPECT_EQ(problem([](DataPlan& data) { data.counted.documents.pop_back(); }), "counted documents of other sources");
  EXPECT_EQ(problem([](DataPlan& data) { data.counted.documents[1].source = "a"; }),
            "counted documents of other sources");
  EXPECT_EQ(problem([](DataPlan& data) { data.counted.documents[1].samples = 0; }),
            "a number of counted documents out of range");
  EXPECT_EQ(problem([](DataPlan& data) { data.counted.documents[1].documents = 4; }),
            "a number of counted documents out of range");
  EXPECT_EQ(problem([](DataPlan& data) { data.counted.documents[1].mean_squares = 0; }),
            "a number of counted documents out of range");
  EXPECT_EQ(problem([](DataPlan& data) {
              data.counted.first_squares = {3, -1};
            }),
            "a number of counted squares out of range");
}

}  // namespace
}  // namespace planwright
