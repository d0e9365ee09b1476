// Counts of an index that an evaluation set needs.
#include "planner/data/samples/count_samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "planner/data/samples/mixture.h"
#include "tests/data/samples/data_folder.h"

namespace planwright {
namespace {

// Text of one source, whose samples have documents; nothing of it is read.
class CountedText : public SampleSource {
 public:
  absl::StatusOr<Sample> Get(int64_t, SampleParts) const override {
    return absl::UnimplementedError("nothing is read");
  }
  absl::StatusOr<int64_t> Patches(int64_t) const override { return 0; }
  SampleOrigin Origin(int64_t) const override { return {}; }
  std::string digest() const override { return std::string(64, 'a'); }
  std::vector<SourceCounts> Counts() const override {
    SourceCounts counts;
    counts.source = "captions", counts.samples = 10;
    return {counts};
  }
  std::vector<CountedDocuments> CountDocuments() const override {
    return packed ? std::vector<CountedDocuments>{{"captions", 10, 30, 500}} : std::vector<CountedDocuments>();
  }
  int64_t DocumentSquares(int64_t number) const override { return first + number % 10; }

  bool packed = true;
  int64_t first = 400;
};

TEST(Counted, DocumentsAreKeptBesideTheIndex) {
  DataFolder folder("counted_documents");
  DataPlan& data = folder.data;
  data.window = data.min_patches = data.max_patches = 1;
  data.packed_documents = true;
  std::filesystem::create_directories(IndexFolder(data));
  EXPECT_EQ(CountedAtHand(data, 64), std::nullopt);
  CountedText source;
  ASSERT_TRUE(KeepCounted(data, 64, source).ok());
  std::optional<CountedSamples> counted = CountedAtHand(data, 64);
  ASSERT_TRUE(counted);
  EXPECT_EQ(counted->digest, source.digest());
  EXPECT_TRUE(counted->images.empty());
  EXPECT_EQ(counted->documents, source.CountDocuments());
  ASSERT_EQ(counted->first_squares.size(), 4096u);
  EXPECT_EQ(counted->first_squares[13], 403);
  EXPECT_EQ(EpochAtHand(data, 64), std::vector<int64_t>{10});
  // Other weights of sources change which samples come first.
  source.first = 450;
  ASSERT_TRUE(KeepCounted(data, 64, source).ok());
  counted = CountedAtHand(data, 64);
  ASSERT_TRUE(counted);
  EXPECT_EQ(counted->first_squares[13], 453);
  // Where documents see each other they are not counted, in a file of its own.
  data.packed_documents = source.packed = false;
  EXPECT_EQ(CountedAtHand(data, 64), std::nullopt);
  ASSERT_TRUE(KeepCounted(data, 64, source).ok());
  counted = CountedAtHand(data, 64);
  ASSERT_TRUE(counted);
  EXPECT_TRUE(counted->documents.empty());
  EXPECT_TRUE(counted->first_squares.empty());
  // Another file in its place, or a part of it, is as none.
  std::ofstream(CountedPath(data, 64)) << R"({"digest": ")" << source.digest() << R"(", "samples": [10]})";
  EXPECT_EQ(CountedAtHand(data, 64), std::nullopt);
  data.packed_documents = true;
  std::filesystem::remove(CountedPath(data, 64));
  EXPECT_EQ(CountedAtHand(data, 64), std::nullopt);
}

TEST(SamplesOnce, AreThoseBeforeTheFirstThatComesAgain) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    DataPlan data;
    std::vector<int64_t> samples, weights;
    for (uint64_t i = 0; i < 1 + random() % 5; ++i) {
      weights.push_back(1 + static_cast<int64_t>(random() % 40));
      samples.push_back(1 + static_cast<int64_t>(random() % 200));
      data.sources.push_back({.name = "s" + std::to_string(i), .weight = weights.back()});
    }
    const Mixture mixture(weights);
    int64_t n = 0;
    std::vector<int64_t> read(samples.size());
    for (Mixture::Turn turn = mixture.At(0); read[turn.source] < samples[turn.source]; turn = mixture.At(++n))
      ++read[turn.source];
    EXPECT_EQ(SamplesOnce(data, samples), n) << testing::PrintToString(weights) << testing::PrintToString(samples);
  }
}

TEST(SamplesOnce, AreAllOfOneSource) {
  DataPlan data;
  data.sources = {{.name = "a", .weight = 3}};
  EXPECT_EQ(SamplesOnce(data, {1}), 1);
  EXPECT_EQ(SamplesOnce(data, {123'456'789}), 123'456'789);
}

// Of sources with weights as their samples nothing is left over.
TEST(SamplesOnce, AreAllOfSourcesWithFittingWeights) {
  DataPlan data;
  data.sources = {{.name = "a", .weight = 1}, {.name = "b", .weight = 7}, {.name = "c", .weight = 992}};
  EXPECT_EQ(SamplesOnce(data, {1000, 7000, 992000}), 1'000'000);
}

}  // namespace
}  // namespace planwright
