#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "planner/data/samples/sample_source.h"
#include "planner/plan/sample_documents.h"
#include "tests/data/samples/plans.h"

namespace planwright {
namespace {

std::vector<Sample> Samples(const Plan& plan, int count) {
  auto source = OpenSampleSource(plan);
  EXPECT_TRUE(source.ok()) << source.status();
  std::vector<Sample> samples;
  for (int i = 0; i < count; ++i) samples.push_back(*(*source)->Get(i, SampleParts::kAll));
  return samples;
}

// The signs of the pattern that all patches of an image share; the noise is averaged out.
std::vector<int> Signature(const Image& image, int64_t values) {
  const int64_t patches = image.rows * image.cols;
  std::vector<int> signature;
  for (int64_t v = 0; v < values; ++v) {
    double mean = 0;
    for (int64_t p = 0; p < patches; ++p) mean += image.patches[p * values + v] / patches;
    signature.push_back(mean > 0);
  }
  return signature;
}

// The nearest of the known patterns, or a new one: different patterns differ in about half of their signs.
int ClassOf(const std::vector<int>& signature, std::vector<std::vector<int>>& known) {
  for (size_t i = 0; i < known.size(); ++i) {
    int differences = 0;
    for (size_t v = 0; v < signature.size(); ++v) differences += signature[v] != known[i][v];
    if (differences < 8) return i;
  }
  known.push_back(signature);
  return known.size() - 1;
}

TEST(MockSource, SamplesDependOnlyOnSeedAndNumber) {
  const Plan plan = MockPlan();
  const std::vector<Sample> forwards = Samples(plan, 12);
  auto source = OpenSampleSource(plan);
  for (int i = 11; i >= 0; --i) {
    const Sample sample = *(*source)->Get(i, SampleParts::kAll);
    EXPECT_EQ(sample.tokens, forwards[i].tokens);
    ASSERT_EQ(sample.images[0].size(), forwards[i].images[0].size());
    for (size_t image = 0; image < sample.images[0].size(); ++image)
      EXPECT_EQ(sample.images[0][image].patches, forwards[i].images[0][image].patches);
  }
  Plan other = plan;
  other.data.seed = 1235;
  const std::vector<Sample> others = Samples(other, 12);
  int same = 0;
  for (int i = 0; i < 12; ++i) same += others[i].tokens == forwards[i].tokens;
  EXPECT_LT(same, 3);
}

// What a model learns in the training holds for an evaluation set with another seed.
TEST(MockSource, ASetHasOtherSamplesOfTheSameTask) {
  const Plan plan = MockPlan();
  EvaluationSet set{.name = "held_out", .samples = 60, .data = plan.data};
  set.data.seed = 4711;
  const auto source = OpenEvaluatedSource(plan, set);
  ASSERT_TRUE(source.ok()) << source.status();
  const std::vector<Sample> trained = Samples(plan, 60);
  std::vector<std::vector<int>> patterns;
  std::map<size_t, std::vector<int64_t>> text_of;  // of each class; only samples with one image are looked at
  const auto text = [](const Sample& sample) {
    return std::vector<int64_t>(
        std::find_if(sample.tokens.begin(), sample.tokens.end(), [](auto id) { return id != 255; }),
        std::find(sample.tokens.begin(), sample.tokens.end(), 254));
  };
  for (const Sample& sample : trained) {
    if (sample.images[0].size() == 1) text_of[ClassOf(Signature(sample.images[0][0], 48), patterns)] = text(sample);
  }
  int same = 0;
  for (int i = 0; i < 60; ++i) {
    const Sample sample = *(*source)->Get(i, SampleParts::kAll);
    same += sample.tokens == trained[static_cast<size_t>(i)].tokens;
    if (sample.images[0].size() != 1) continue;
    EXPECT_EQ(text(sample), text_of[ClassOf(Signature(sample.images[0][0], 48), patterns)]);
  }
  EXPECT_EQ(text_of.size(), 4U) << "the set has no other classes";
  EXPECT_LT(same, 15) << "other samples";
}

TEST(MockSource, TextIsAFunctionOfTheSamplesOwnImagesInOrder) {
  const Plan plan = MockPlan();
  std::vector<std::vector<int>> patterns;
  std::map<std::vector<int>, std::vector<int64_t>> text_of;  // classes of the images -> text
  std::map<std::vector<int64_t>, std::vector<int>> classes_of;
  std::set<size_t> image_counts;
  for (const Sample& sample : Samples(plan, 200)) {
    image_counts.insert(sample.images[0].size());
    int64_t image_tokens = 0;
    std::vector<int> classes;
    for (const Image& image : sample.images[0]) {
      ASSERT_EQ(image.patches.size(), image.rows * image.cols * 48u);
      image_tokens += image.rows * image.cols / 4;
      classes.push_back(ClassOf(Signature(image, 48), patterns));
    }
    ASSERT_EQ(sample.tokens.size(), 64u);
    EXPECT_TRUE(
        std::all_of(sample.tokens.begin(), sample.tokens.begin() + image_tokens, [](int64_t id) { return id == 255; }));
    const std::vector<int64_t> text(sample.tokens.begin() + image_tokens,
                                    std::find(sample.tokens.begin() + image_tokens, sample.tokens.end(), 254));
    EXPECT_EQ(text.size(), 8 * std::max<size_t>(1, classes.size()));
    EXPECT_EQ(std::count(text.begin(), text.end(), 255), 0);
    EXPECT_EQ(text_of.try_emplace(classes, text).first->second, text);
    EXPECT_EQ(classes_of.try_emplace(text, classes).first->second, classes);
  }
  EXPECT_EQ(patterns.size(), 4u);
  EXPECT_EQ(image_counts, (std::set<size_t>{0, 1, 2, 3}));
}

TEST(MockSource, LabelsAreTheNextTokensAndTextAloneCounts) {
  for (const Sample& sample : Samples(MockPlan(), 20)) {
    double counted = 0;
    for (size_t i = 0; i < sample.tokens.size(); ++i) {
      const bool last = i + 1 == sample.tokens.size();
      EXPECT_EQ(sample.labels[i], last ? 254 : sample.tokens[i + 1]);
      EXPECT_EQ(sample.loss_mask[i], !last && sample.tokens[i + 1] < 254);
      counted += sample.loss_mask[i];
    }
    EXPECT_GE(counted, 7);
  }
}

// Every number from min_images to max_images is drawn, and no other. Sample n owns the same draws of images whatever
// min_images is.
TEST(MockSource, NumbersOfImagesAreWithinBothLimits) {
  for (int64_t least : {0, 1, 2, 3}) {
    Plan plan = MockPlan();
    plan.data.min_images = least;
    std::set<size_t> numbers;
    const std::vector<Sample> samples = Samples(plan, 60), free = Samples(MockPlan(), 60);
    for (size_t n = 0; n < samples.size(); ++n) {
      const std::vector<Image>&images = samples[n].images[0], &of_free = free[n].images[0];
      numbers.insert(images.size());
      for (size_t i = 0; i < std::min(images.size(), of_free.size()); ++i)
        EXPECT_EQ(images[i].patches, of_free[i].patches);
    }
    EXPECT_EQ(*numbers.begin(), static_cast<size_t>(least));
    EXPECT_EQ(*numbers.rbegin(), 3u);
    EXPECT_EQ(numbers.size(), static_cast<size_t>(4 - least));
  }
}

// An image and its text are a document; so are the padding, and a text without image.
TEST(MockSource, PackedDocumentsAreImagesWithTheirOwnTexts) {
  const Plan plan = MockPlan();
  Plan packing = plan;
  packing.data.packed_documents = true;
  const std::vector<Sample> samples = Samples(plan, 40), packed = Samples(packing, 40);
  for (size_t n = 0; n < samples.size(); ++n) {
    const Sample &one = samples[n], &many = packed[n];
    const std::vector<Image>& images = one.images[0];
    ASSERT_EQ(images.size(), many.images[0].size());
    EXPECT_TRUE(one.document_ends.empty());
    // The texts of the unpacked sample follow all its images.
    int64_t text = 0, at = 0;
    for (const Image& image : images) text += image.rows * image.cols / 4;
    const size_t documents = std::max<size_t>(1, images.size());
    ASSERT_EQ(many.document_ends.size(), documents + (many.document_ends[documents - 1] < 64 ? 1 : 0));
    for (size_t i = 0; i < documents; ++i) {
      const int64_t image_tokens = images.empty() ? 0 : images[i].rows * images[i].cols / 4;
      for (int64_t k = 0; k < image_tokens; ++k) EXPECT_EQ(many.tokens[at++], 255);
      for (int64_t k = 0; k < 8; ++k) EXPECT_EQ(many.tokens[at++], one.tokens[text++]);
      EXPECT_EQ(many.document_ends[i], at);
      EXPECT_EQ(many.labels[at - 1], 254);
      EXPECT_EQ(many.loss_mask[at - 1], 0);
      EXPECT_EQ(std::accumulate(many.loss_mask.begin() + at - 8 - image_tokens, many.loss_mask.begin() + at, 0.0),
                image_tokens > 0 ? 8 : 7);
    }
    EXPECT_EQ(many.document_ends.back(), 64);
    EXPECT_TRUE(std::all_of(many.tokens.begin() + at, many.tokens.end(), [](int64_t id) { return id == 254; }));
  }
}

// What times take of them before any is drawn.
TEST(MockSource, PackedDocumentsAreAsLongAsThePlanSays) {
  constexpr int kSamples = 4000;
  Plan plan = MockPlan();
  plan.data.packed_documents = true;
  const auto expect_near = [&](double most) {
    const auto source = OpenSampleSource(plan);
    ASSERT_TRUE(source.ok()) << source.status();
    double documents = 0, squares = 0;
    for (int number = 0; number < kSamples; ++number) {
      const absl::StatusOr<Sample> sample = (*source)->Get(number, SampleParts::kText);
      ASSERT_TRUE(sample.ok()) << sample.status();
      int64_t begin = 0;
      for (const int64_t end : sample->document_ends) {
        squares += static_cast<double>((end - begin) * (end - begin));
        begin = end, ++documents;
      }
    }
    const SampleDocuments expected = DocumentsOfSample(plan.data, 64);
    EXPECT_TRUE(expected.known);
    EXPECT_NEAR(expected.mean / (documents / kSamples), 1, most);
    EXPECT_NEAR(expected.share / (squares / kSamples / (64 * 64)), 1, most);
  };
  expect_near(0.03);  // a mean of 4,000 draws
  plan.data.encoders.clear();
  plan.data.max_images = 0, plan.data.text_tokens = 24;
  expect_near(1e-12);
}

TEST(MockSource, PackedTextsAreDocuments) {
  Plan plan = MockPlan();
  plan.data.encoders.clear();
  plan.data.max_images = 0;
  plan.data.packed_documents = true;
  plan.data.text_tokens = 24;
  const Sample sample = Samples(plan, 1)[0];
  EXPECT_EQ(sample.document_ends, (std::vector<int64_t>{24, 48, 64}));
  EXPECT_EQ(std::accumulate(sample.loss_mask.begin(), sample.loss_mask.end(), 0.0), 46);
  plan.data.text_tokens = 100;  // longer than the sequence
  EXPECT_EQ(Samples(plan, 1)[0].document_ends, (std::vector<int64_t>{64}));
}

TEST(MockSource, WithoutAnEncoderTheSequenceIsText) {
  Plan plan = MockPlan();
  plan.data.encoders.clear();
  plan.data.max_images = 0;
  const std::vector<Sample> samples = Samples(plan, 10);
  for (const Sample& sample : samples) {
    EXPECT_TRUE(sample.images.empty());
    EXPECT_EQ(std::count(sample.tokens.begin(), sample.tokens.end(), 255), 0);
    EXPECT_EQ(std::count(sample.loss_mask.begin(), sample.loss_mask.end(), 1.0), 63);
  }
  EXPECT_NE(samples[0].tokens, samples[1].tokens);
}

// Without an image token, every id except pad is text, and every label counts.
TEST(MockSource, WithoutAnImageTokenEveryOtherIdIsText) {
  Plan plan = MockPlan();
  plan.data.encoders.clear();
  plan.data.max_images = 0;
  plan.data.image_token = -1;
  plan.data.vocabulary = 5;
  std::set<int64_t> ids;
  for (const Sample& sample : Samples(plan, 50)) {
    ids.insert(sample.tokens.begin(), sample.tokens.end());
    EXPECT_EQ(std::count(sample.loss_mask.begin(), sample.loss_mask.end(), 1.0), 63);
  }
  EXPECT_EQ(ids, (std::set<int64_t>{0, 1, 2, 3}));
  plan.data.vocabulary = 2;
  EXPECT_TRUE(OpenSampleSource(plan).ok());
  plan.data.vocabulary = 1;
  EXPECT_FALSE(OpenSampleSource(plan).ok());
}

}  // namespace
}  // namespace planwright
