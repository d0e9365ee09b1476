// Samples of kind `sources` on documents in memory, compared with the plain implementation of plain_samples.h.
#include "planner/data/samples/mixed_source.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "planner/base/threads/threads.h"
#include "planner/data/pictures/patches.h"
#include "tests/data/samples/memory_documents.h"
#include "tests/data/samples/plain_samples.h"
#include "tests/data/samples/plans.h"
#include "tests/data/samples/shard_files.h"

namespace planwright {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kPad = 90, kEnd = 91, kVocabulary = 100;

Plan MixedPlan(const std::vector<std::pair<std::string, int64_t>>& sources) {
  Plan plan = MockPlan();
  plan.budget.sequence_length = 16;
  plan.data = DataPlan();
  plan.data.kind = DataKind::kSources;
  plan.data.seed = 1234;
  plan.data.tokenizer = "ids";
  plan.data.pad_token = kPad;
  plan.data.end_token = kEnd;
  plan.data.vocabulary = kVocabulary;
  plan.data.window = 128;
  plan.data.min_patches = 4;
  plan.data.max_patches = 16;
  for (const auto& [name, weight] : sources)
    plan.data.sources.push_back(
        {.name = name, .kind = SourceKind::kWebdataset, .shards = {}, .ignore = {}, .path = "", .weight = weight});
  return plan;
}

EncoderData FirstEncoder() { return {"encoder", 95, 4, 2, 32}; }
EncoderData SecondEncoder() { return {"other", 96, 2, 1, 24}; }

MemoryDocument TextOf(std::vector<int64_t> tokens, std::vector<uint8_t> learnt = {}) {
  return {{std::move(tokens), std::move(learnt)}, {}, {}};
}

std::string PictureFile(int64_t height, int64_t width, int seed) {
  static std::map<std::array<int64_t, 3>, std::string> made;
  std::string& file = made[{height, width, seed}];
  if (!file.empty()) return file;
  std::vector<uint8_t> rgba;
  for (int64_t i = 0; i < height * width * 4; ++i) rgba.push_back(i % 4 == 3 ? 255 : (i * seed + 13 * seed) % 251);
  return file = PngOf(static_cast<int>(width), static_cast<int>(height), rgba);
}

struct Mixed {
  std::vector<const MemoryDocuments*> documents;
  absl::StatusOr<std::unique_ptr<SampleSource>> source;
};

Mixed Open(const Plan& plan, const std::vector<PlainShards>& sources, int64_t left_out = 0) {
  std::vector<std::unique_ptr<Documents>> documents;
  Mixed mixed;
  for (size_t i = 0; i < sources.size(); ++i) {
    auto opened = std::make_unique<MemoryDocuments>(plan.data.sources[i].name, sources[i], left_out);
    mixed.documents.push_back(opened.get());
    documents.push_back(std::move(opened));
  }
  mixed.source = MixSources(plan, std::move(documents));
  return mixed;
}

// --- random configurations

class RandomCase {
 public:
  explicit RandomCase(uint64_t seed) : random_(seed) {
    const int64_t count = 1 + Below(4);
    plan = MixedPlan({});
    for (int64_t i = 0; i < count; ++i) {
      plan.data.sources.push_back(MixedPlan({{absl::StrCat("s", i), 1 + Below(9)}}).data.sources.front());
      PlainShards& shards = sources.emplace_back(1 + Below(4));
      for (std::vector<MemoryDocument>& shard : shards) {
        for (int64_t documents = Below(12); documents > 0; --documents) shard.push_back(RandomDocument());
      }
      shards.back().push_back(TextOf({7, kEnd}));  // one at least can be used
    }
    plan.budget.sequence_length = 8 + Below(40);
    DataPlan& data = plan.data;
    data.seed = Below(1000);
    data.window = 1 + Below(12);
    data.shuffle = std::vector<std::string>{"all", "none", absl::StrCat(1 + Below(9)), "1000000000000"}[Below(4)];
    data.packing = Below(4) == 0 ? "none" : "first_fit";
    data.long_documents = std::vector<std::string>{"cut", "cut", "skip", "error"}[Below(4)];
    data.damaged = Below(4) == 0 ? "error" : "skip";
    data.most_damaged = 1000;
    data.packed_documents = Below(2) == 0;
    data.grid = std::vector<std::string>{"ceil", "round_half_even", "smart_resize", "square"}[Below(4)];
    data.resize = std::vector<std::string>{"bilinear", "bicubic", "bicubic_8bit"}[Below(3)];
    const int64_t encoders = Below(3);
    if (encoders > 0) data.encoders.push_back(FirstEncoder());
    if (encoders > 1) data.encoders.push_back(SecondEncoder());
  }

  Plan plan;
  std::vector<PlainShards> sources;

 private:
  int64_t Below(int64_t count) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(count)); }

  MemoryDocument RandomDocument() {
    MemoryDocument document;
    const int64_t tokens = 1 + Below(Below(6) == 0 ? 80 : 14);
    const bool images = Below(2) == 0, masked = Below(2) == 0;
    for (int64_t i = 0; i < tokens; ++i) {
      const bool image = images && Below(5) == 0;
      document.text.tokens.push_back(image ? kImageMark : Below(90));
      if (masked) document.text.learnt.push_back(!image && Below(3) > 0);
      if (!image) continue;
      const bool thin = Below(40) == 0;
      const int64_t height = thin ? 1 : 4 * (1 + Below(9)), width = thin ? 200 : 1 + Below(40);
      document.sizes.push_back({height, width, 0});
      document.files.push_back(PictureFile(height, width, 1 + static_cast<int>(Below(3))));
    }
    if (Below(10) > 0) {
      document.text.tokens.push_back(kEnd);
      if (masked) document.text.learnt.push_back(1);
    }
    return document;
  }

  std::mt19937_64 random_;
};

void ExpectSame(const Sample& sample, const Sample& plain) {
  EXPECT_EQ(sample.tokens, plain.tokens);
  EXPECT_EQ(sample.labels, plain.labels);
  EXPECT_EQ(sample.loss_mask, plain.loss_mask);
  EXPECT_EQ(sample.document_ends, plain.document_ends);
  ASSERT_EQ(sample.images.size(), plain.images.size());
  for (size_t e = 0; e < plain.images.size(); ++e) {
    ASSERT_EQ(sample.images[e].size(), plain.images[e].size());
    for (size_t i = 0; i < plain.images[e].size(); ++i) {
      EXPECT_EQ(sample.images[e][i].rows, plain.images[e][i].rows);
      EXPECT_EQ(sample.images[e][i].cols, plain.images[e][i].cols);
    }
  }
}

void ExpectPixels(const RandomCase& random, const PlainSamples& plain, int64_t number, const Sample& sample) {
  const std::vector<PlainSamples::Picture> pictures = plain.PicturesOf(number);
  for (size_t e = 0; e < sample.images.size(); ++e) {
    for (size_t i = 0; i < pictures.size(); ++i) {
      std::vector<MemoryDocument> documents;
      for (const auto& shard : random.sources[pictures[i].source])
        documents.insert(documents.end(), shard.begin(), shard.end());
      const std::string& file = documents[pictures[i].document].files[pictures[i].index];
      const Image& image = sample.images[e][i];
      const PatchGrid grid{image.rows, image.cols};
      const int64_t patch = random.plan.data.encoders[e].patch;
      const std::string& resize = random.plan.data.resize;
      const int64_t square = random.plan.data.grid == "square" ? random.plan.data.encoders[e].max_image : 0;
      const auto made = resize == "bicubic"        ? PatchesOfPicture<Bicubic>
                        : resize == "bicubic_8bit" ? PatchesOfPicture<BicubicBytes>
                                                   : PatchesOfPicture<Bilinear>;
      EXPECT_EQ(image.patches, made(file, grid, patch, 1, kClipNorm, square)->patches);
    }
  }
}

TEST(MixedSource, AgreesWithAPlainImplementation) {
  int64_t refused = 0, compared = 0, with_images = 0, cut = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const RandomCase random(seed);
    const PlainSamples plain(random.plan, random.sources);
    const Mixed mixed = Open(random.plan, random.sources);
    ASSERT_EQ(mixed.source.ok(), !plain.refused()) << mixed.source.status();
    if (plain.refused()) {
      ++refused;
      continue;
    }
    const SampleSource& source = **mixed.source;
    const std::vector<SourceCounts> counts = source.Counts();
    for (size_t i = 0; i < counts.size(); ++i) {
      EXPECT_EQ(counts[i].whole + counts[i].cut, plain.kept(i));
      EXPECT_EQ(counts[i].samples, plain.samples(i));
      EXPECT_EQ(counts[i].documents,
                counts[i].whole + counts[i].cut + counts[i].skipped + counts[i].without_tokens + counts[i].misfit);
      cut += counts[i].cut;
    }
    // From the first epoch, from its end, and far behind.
    for (int64_t n : {0, 1, 2, 3, 4, 5, 17, 18, 19, 40, 41, 99, 1000, 1001, 123'456, 123'457}) {
      SCOPED_TRACE(n);
      const Sample expected = plain.At(n);
      const absl::StatusOr<Sample> sample = source.Get(n, SampleParts::kText);
      ASSERT_TRUE(sample.ok()) << sample.status();
      ExpectSame(*sample, expected);
      int64_t patches = 0;
      if (!expected.images.empty()) {
        for (const Image& image : expected.images.front()) patches += image.rows * image.cols;
      }
      EXPECT_EQ(*source.Patches(n), patches);
      if (seed % 8 == 0 && n < 5) {
        const absl::StatusOr<Sample> all = source.Get(n, SampleParts::kAll);
        ASSERT_TRUE(all.ok()) << all.status();
        ExpectSame(*all, expected);
        ExpectPixels(random, plain, n, *all);
        with_images += patches > 0;
      }
      ++compared;
    }
    if (testing::Test::HasFailure()) return;
  }
  // The cases are what they should be.
  EXPECT_GT(refused, 30);
  EXPECT_GT(compared, 3000);
  EXPECT_GT(with_images, 20);
  EXPECT_GT(cut, 200);
}

// --- counts

struct PlainCount {
  int64_t samples = 0, images = 0, patches = 0, max_images = 0, max_patches = 0;
  std::vector<int64_t> all;  // patches of each image
};

// Sums over the samples of the first epoch of each source, read one after the other; by encoder, then by source.
std::vector<PlainCount> CountPlainly(const Plan& plan, const SampleSource& source, const PlainSamples& plain) {
  const size_t sources = plan.data.sources.size();
  std::vector<PlainCount> counts(plan.data.encoders.size() * sources);
  std::vector<int64_t> left;
  for (size_t i = 0; i < sources; ++i) left.push_back(plain.samples(i));
  for (int64_t n = 0; std::any_of(left.begin(), left.end(), [](int64_t samples) { return samples > 0; }); ++n) {
    const SampleOrigin origin = source.Origin(n);
    if (origin.epoch > 0) continue;
    const auto named = [&](const SourcePlan& one) { return one.name == origin.source; };
    const size_t i =
        std::find_if(plan.data.sources.begin(), plan.data.sources.end(), named) - plan.data.sources.begin();
    --left[i];
    const Sample sample = plain.At(n);
    for (size_t e = 0; e < plan.data.encoders.size(); ++e) {
      PlainCount& count = counts[e * sources + i];
      int64_t patches = 0;
      for (const Image& image : sample.images[e]) {
        count.all.push_back(image.rows * image.cols);
        patches += image.rows * image.cols;
      }
      const auto images = static_cast<int64_t>(sample.images[e].size());
      ++count.samples, count.images += images, count.patches += patches;
      count.max_images = std::max(count.max_images, images);
      count.max_patches = std::max(count.max_patches, patches);
    }
  }
  return counts;
}

TEST(MixedSource, CountsTheImagesOfAnEpoch) {
  int64_t compared = 0, many = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const RandomCase random(seed);
    const PlainSamples plain(random.plan, random.sources);
    if (plain.refused()) continue;
    const Mixed mixed = Open(random.plan, random.sources);
    ASSERT_TRUE(mixed.source.ok());
    const absl::StatusOr<std::vector<CountedImages>> counted = (*mixed.source)->CountImages();
    ASSERT_TRUE(counted.ok()) << counted.status();
    const std::vector<PlainCount> expected = CountPlainly(random.plan, **mixed.source, plain);
    ASSERT_EQ(counted->size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const CountedImages& one = (*counted)[i];
      EXPECT_EQ(one.encoder, random.plan.data.encoders[i / random.plan.data.sources.size()].module);
      EXPECT_EQ(one.source, random.plan.data.sources[i % random.plan.data.sources.size()].name);
      EXPECT_EQ(one.samples, expected[i].samples);
      EXPECT_EQ(one.images, expected[i].images);
      EXPECT_EQ(one.patches, expected[i].patches);
      EXPECT_EQ(one.max_images, expected[i].max_images);
      EXPECT_EQ(one.max_patches, expected[i].max_patches);
      // Each image is in one group, and its group's mean is the size.
      std::vector<int64_t> all = expected[i].all;
      std::sort(all.begin(), all.end());
      const auto groups = static_cast<int64_t>(one.sizes.size()), images = static_cast<int64_t>(all.size());
      ASSERT_EQ(groups, std::min<int64_t>(32, images));
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t begin = g * images / groups, end = (g + 1) * images / groups;
        double sum = 0;
        for (int64_t image = begin; image < end; ++image) sum += static_cast<double>(all[image]);
        EXPECT_NEAR(static_cast<double>(one.sizes[g]), sum / static_cast<double>(end - begin), 0.5);
      }
      ++compared, many += images > 32;
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(compared, 200);
  EXPECT_GT(many, 10);
}

// Documents as samples say where they end.
TEST(MixedSource, CountsTheDocumentsOfAnEpoch) {
  int64_t packed = 0, several = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const RandomCase random(seed);
    const PlainSamples plain(random.plan, random.sources);
    if (plain.refused()) continue;
    const Mixed mixed = Open(random.plan, random.sources);
    ASSERT_TRUE(mixed.source.ok());
    const SampleSource& source = **mixed.source;
    const std::vector<CountedDocuments> counted = source.CountDocuments();
    if (!random.plan.data.packed_documents) {
      EXPECT_TRUE(counted.empty());
      EXPECT_EQ(source.DocumentSquares(0), 0);
      continue;
    }
    const size_t sources = random.plan.data.sources.size();
    ASSERT_EQ(counted.size(), sources);
    std::vector<int64_t> left, documents(sources), squares(sources);
    for (size_t i = 0; i < sources; ++i) left.push_back(plain.samples(i));
    for (int64_t n = 0; std::any_of(left.begin(), left.end(), [](int64_t samples) { return samples > 0; }); ++n) {
      int64_t begin = 0, of_sample = 0, ends = 0;
      for (const int64_t end : plain.At(n).document_ends) {
        of_sample += (end - begin) * (end - begin);
        begin = end, ++ends;
      }
      EXPECT_EQ(source.DocumentSquares(n), of_sample) << n;
      const SampleOrigin origin = source.Origin(n);
      if (origin.epoch > 0) continue;
      const auto named = [&](const SourcePlan& one) { return one.name == origin.source; };
      const auto& all = random.plan.data.sources;
      const size_t i = std::find_if(all.begin(), all.end(), named) - all.begin();
      --left[i], documents[i] += ends, squares[i] += of_sample;
      several += ends > 2;
    }
    for (size_t i = 0; i < sources; ++i) {
      EXPECT_EQ(counted[i].source, random.plan.data.sources[i].name);
      EXPECT_EQ(counted[i].samples, plain.samples(i));
      EXPECT_EQ(counted[i].documents, documents[i]);
      EXPECT_NEAR(static_cast<double>(counted[i].mean_squares),
                  static_cast<double>(squares[i]) / static_cast<double>(plain.samples(i)), 0.5);
    }
    ++packed;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(packed, 80);
  EXPECT_GT(several, 100);
}

// --- epochs

TEST(MixedSource, AnEpochHasEveryDocumentOnce) {
  for (const std::string shuffle : {"all", "none", "7", "1000"}) {
    Plan plan = MixedPlan({{"a", 1}});
    plan.data.shuffle = shuffle;
    PlainShards shards(5);
    for (int64_t i = 0; i < 200; ++i) shards[i * i % 5].push_back(TextOf(std::vector<int64_t>(1 + i * 7 % 16, i % 90)));
    const Mixed mixed = Open(plan, {shards});
    ASSERT_TRUE(mixed.source.ok()) << mixed.source.status();
    const int64_t samples = (*mixed.source)->Counts().front().samples;
    std::vector<std::vector<int64_t>> packs;
    for (int64_t epoch : {0, 1, 1000}) {
      std::map<std::string, int64_t> seen;
      packs.emplace_back();
      for (int64_t i = 0; i < samples; ++i) {
        const SampleOrigin origin = (*mixed.source)->Origin(epoch * samples + i);
        EXPECT_EQ(origin.source, "a");
        EXPECT_EQ(origin.epoch, epoch);
        packs.back().push_back(origin.pack);
        for (const DocumentPart& part : origin.documents) ++seen[part.where];
      }
      EXPECT_EQ(seen.size(), 200u);
      for (const auto& [where, times] : seen) EXPECT_EQ(times, 1) << where;
    }
    EXPECT_EQ(packs[0] == packs[1], shuffle == "none");
    EXPECT_EQ(packs[1] == packs[2], shuffle == "none");
  }
}

// With `shuffle: N` an epoch goes from shard to shard: few of them are open at a time.
TEST(MixedSource, RunsKeepShardsTogether) {
  Plan plan = MixedPlan({{"a", 1}});
  plan.data.shuffle = "10";
  plan.data.window = 10;
  PlainShards shards(20);
  for (std::vector<MemoryDocument>& shard : shards) {
    for (int64_t i = 0; i < 50; ++i) shard.push_back(TextOf(std::vector<int64_t>(8, i)));
  }
  const Mixed mixed = Open(plan, {shards});
  ASSERT_TRUE(mixed.source.ok()) << mixed.source.status();
  std::vector<int64_t> order;  // of shards, each where its last sample stands
  for (int64_t n = 0; n < 500; ++n) {
    for (const DocumentPart& part : (*mixed.source)->Origin(n).documents) {
      const int64_t shard = std::stoll(part.where.substr(part.where.rfind(' '))) / 50;
      std::erase(order, shard);
      order.push_back(shard);
    }
    // So far whole shards and at most two in part: a run holds 5 samples, a shard 25.
    EXPECT_LE(order.size(), static_cast<size_t>(n / 25 + 2));
  }
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
}

TEST(MixedSource, ASampleOfAFarEpochIsFoundAsFast) {
  for (const std::string shuffle : {"all", "none", "50"}) {
    Plan plan = MixedPlan({{"a", 3}, {"b", 2}});
    plan.data.shuffle = shuffle;
    std::vector<PlainShards> sources(2, PlainShards(3));
    for (int64_t i = 0; i < 3000; ++i)
      for (PlainShards& shards : sources) shards[i / 1000].push_back(TextOf(std::vector<int64_t>(16, i % 90)));
    const Mixed mixed = Open(plan, sources);
    ASSERT_TRUE(mixed.source.ok()) << mixed.source.status();
    const auto asked = [&](int64_t n) {
      const int64_t before = mixed.documents[0]->asked() + mixed.documents[1]->asked();
      EXPECT_TRUE((*mixed.source)->Get(n, SampleParts::kAll).ok());
      return mixed.documents[0]->asked() + mixed.documents[1]->asked() - before;
    };
    // Every sample has one document; what it costs is one look at it, in whatever order samples are asked for.
    const int64_t once = asked(0);
    EXPECT_LE(once, 5);
    for (int64_t n : {5'000'000, 7, 5'000'001, 4999, 123'456'789}) EXPECT_EQ(asked(n), once);
  }
}

TEST(MixedSource, ThreadsGetTheSameSamples) {
  Plan plan = MixedPlan({{"a", 3}, {"b", 2}});
  plan.data.shuffle = "5";
  std::vector<PlainShards> sources(2, PlainShards(4));
  for (int64_t i = 0; i < 40; ++i)
    for (PlainShards& shards : sources) shards[i / 10].push_back(TextOf(std::vector<int64_t>(1 + i % 13, i)));
  const Mixed one = Open(plan, sources), many = Open(plan, sources);
  ASSERT_TRUE(one.source.ok()) << one.source.status();
  std::vector<Sample> samples(400);
  ForEachItem(4, 400, [&](int64_t n) { samples[n] = *(*many.source)->Get(n * 37, SampleParts::kAll); });
  for (int64_t n = 0; n < 400; ++n)
    EXPECT_EQ(samples[n].tokens, (*one.source)->Get(n * 37, SampleParts::kAll)->tokens) << n;
}

// --- documents that do not fit

TEST(MixedSource, PiecesOfACutDocumentAreNamed) {
  Plan plan = MixedPlan({{"a", 1}});
  plan.data.long_documents = "cut";
  plan.data.shuffle = "none";
  plan.data.encoders = {FirstEncoder()};
  MemoryDocument document = TextOf({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, kImageMark, 15, kEnd});
  document.sizes = {{16, 16, 0}};  // 4 x 4 patches, 4 tokens
  document.files = {PictureFile(16, 16, 1)};
  const Mixed mixed = Open(plan, {{{document, TextOf({20, kEnd})}}});
  ASSERT_TRUE(mixed.source.ok()) << mixed.source.status();
  const SampleOrigin first = (*mixed.source)->Origin(0), second = (*mixed.source)->Origin(1);
  ASSERT_EQ(first.documents.size(), 2u);  // the image goes on in the next sample; another document fills the rest
  EXPECT_EQ(first.documents[0].where, "a: document 0");
  EXPECT_EQ(first.documents[0].end, 14);
  EXPECT_EQ(first.documents[1].end, 2);
  ASSERT_EQ(second.documents.size(), 1u);
  EXPECT_EQ(second.documents[0].first, 14);
  EXPECT_EQ(second.documents[0].end, 20);
  EXPECT_EQ(*(*mixed.source)->Patches(0), 0);
  EXPECT_EQ(*(*mixed.source)->Patches(1), 16);
  const SourceCounts counts = (*mixed.source)->Counts().front();
  EXPECT_EQ(counts.cut, 1);
  EXPECT_EQ(counts.pieces, 2);
  EXPECT_EQ(counts.whole, 1);
  EXPECT_EQ(counts.tokens, 22);
}

TEST(MixedSource, WhatDoesNotFitIsNamed) {
  const MemoryDocument fine = TextOf({1, kEnd}), longer = TextOf(std::vector<int64_t>(17, 1));
  MemoryDocument image = TextOf({1, kImageMark, kEnd});
  const auto refused = [](const Plan& plan, const std::vector<PlainShards>& sources, int64_t left_out = 0) {
    const Mixed mixed = Open(plan, sources, left_out);
    return std::string(mixed.source.status().message());
  };
  Plan plan = MixedPlan({{"a", 1}, {"b", 1}});
  plan.data.encoders = {FirstEncoder()};
  EXPECT_EQ(refused(plan, {{{fine, longer}}, {{fine}}}),
            "a: document 1: its 17 tokens do not fit the sequence of 16\n"
            "`long: cut` divides such documents, `long: skip` leaves them out");
  // All sources in one message, and of many documents the first.
  const std::string many = refused(plan, {{std::vector<MemoryDocument>(9, longer)}, {{longer}}});
  EXPECT_THAT(many, HasSubstr("a: document 4: its 17"));
  EXPECT_THAT(many, HasSubstr("\nand 4 more documents\n"));
  EXPECT_THAT(many, HasSubstr("\nb: document 0: its 17"));
  plan.data.long_documents = "skip";
  EXPECT_EQ(refused(plan, {{{longer}}, {{fine}}}), "source a: none of its 1 documents can be used");
  EXPECT_EQ(refused(plan, {{}, {{fine}}}), "source a: none of its 0 documents can be used");
  plan.data.damaged = "skip";
  plan.data.most_damaged = 3;
  EXPECT_EQ(refused(plan, {{{fine, longer}}, {{fine}}}, 2),
            "4 documents are damaged or have images that do not fit (a 2, b 2), but most_damaged is 3");
  plan.data.most_damaged = 4;
  const Mixed taken = Open(plan, {{{fine, longer}}, {{fine}}}, 2);
  ASSERT_TRUE(taken.source.ok()) << taken.source.status();
  EXPECT_EQ((*taken.source)->Counts()[0].skipped, 1);
  EXPECT_EQ((*taken.source)->Counts()[0].damaged, 2);
  // An image is not cut.
  plan = MixedPlan({{"a", 1}});
  plan.data.encoders = {FirstEncoder(), SecondEncoder()};
  plan.data.long_documents = "cut";
  plan.budget.sequence_length = 4;
  image.sizes = {{16, 16, 0}};
  EXPECT_THAT(refused(plan, {{{image}}}),
              HasSubstr("a: document 0: image 1: its 20 tokens do not fit the sequence of 4, and images are not cut"));
}

// No image is refused for its size: it becomes as small as max_patches asks for, and its sides may be longer than those
// of the position table.
TEST(MixedSource, ImagesOfEverySizeFit) {
  MemoryDocument one = TextOf({1, kImageMark, kEnd});
  PlainShards shards = {{}};
  for (const auto& [height, width] :
       std::vector<std::pair<int64_t, int64_t>>{{8, 8}, {3024, 4032}, {2000, 8000}, {1, 400}, {1, 65500}, {400, 1}}) {
    one.sizes = {{height, width, 0}};
    shards[0].push_back(one);
  }
  Plan plan = MixedPlan({{"a", 1}});
  plan.data.encoders = {FirstEncoder()};
  plan.data.encoders[0].max_image = 16;
  plan.data.min_patches = 4, plan.data.max_patches = 16;
  plan.data.packing = "none", plan.data.shuffle = "none";
  const Mixed mixed = Open(plan, {shards});
  ASSERT_TRUE(mixed.source.ok()) << mixed.source.status();
  std::vector<std::pair<int64_t, int64_t>> grids;
  for (int64_t i = 0; i < 6; ++i) {
    const absl::StatusOr<Sample> sample = (*mixed.source)->Get(i, SampleParts::kText);
    ASSERT_TRUE(sample.ok()) << sample.status();
    const Image& seen = sample->images[0].at(0);
    grids.emplace_back(seen.rows, seen.cols);
    EXPECT_EQ(*(*mixed.source)->Patches(i), seen.rows * seen.cols);
  }
  using Grid = std::pair<int64_t, int64_t>;
  EXPECT_EQ(grids, (std::vector<Grid>{{2, 2}, {4, 4}, {2, 8}, {2, 8}, {2, 8}, {8, 2}}));
  const SourceCounts counts = (*mixed.source)->Counts().front();
  EXPECT_EQ(std::vector<int64_t>({counts.whole, counts.images, counts.smaller, counts.larger}),
            std::vector<int64_t>({6, 6, 5, 0}));
  EXPECT_EQ(std::vector<int64_t>({counts.largest_document, counts.largest_width, counts.largest_height}),
            std::vector<int64_t>({2, 8000, 2000}));
  EXPECT_EQ(counts.largest, "a: document 2: image 1");
}

TEST(MixedSource, ATextThatCannotBeUsedIsNamed) {
  const auto message = [](const Plan& plan, const MemoryDocument& document) {
    const Mixed mixed = Open(plan, {{{document}}});
    EXPECT_TRUE(mixed.source.ok()) << mixed.source.status();
    return std::string((*mixed.source)->Get(0, SampleParts::kAll).status().message());
  };
  Plan plan = MixedPlan({{"a", 1}});
  EXPECT_EQ(message(plan, TextOf({1, 100, kEnd})),
            "a: document 0: token 1 has the id 100; the model's vocabulary ends at 99");
  EXPECT_EQ(message(plan, TextOf({-2})), "a: document 0: token 0 has the id -2; the model's vocabulary ends at 99");
  EXPECT_THAT(message(plan, TextOf({1, 2}, {1})), HasSubstr("a: document 0: its text is not what the index says"));
  plan.data.encoders = {FirstEncoder(), SecondEncoder()};
  EXPECT_EQ(message(plan, TextOf({1, 96})),
            "a: document 0: token 1 has the id 96, which stands for images of other, but there is no image");
  plan.budget.sequence_length = 32;
  MemoryDocument damaged = TextOf({kImageMark, kEnd});
  damaged.sizes = {{8, 8, 0}};
  damaged.files = {PictureFile(8, 8, 1).substr(0, 60)};
  EXPECT_THAT(message(plan, damaged), HasSubstr("a: document 0: image 1 (a: document 0): "));
}

// One id for padding and for the end of a text, as some tokenizers have it.
TEST(MixedSource, TheEndIsLearntWhereItHasTheIdOfPadding) {
  Plan plan = MixedPlan({{"a", 1}});
  plan.data.pad_token = kEnd;
  const Mixed mixed = Open(plan, {{{TextOf({1, 2, kEnd})}}});
  ASSERT_TRUE(mixed.source.ok()) << mixed.source.status();
  const Sample sample = *(*mixed.source)->Get(0, SampleParts::kAll);
  EXPECT_EQ(sample.loss_mask, (std::vector<double>{1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(MixedSource, TheDigestIsThatOfAllSources) {
  const Plan plan = MixedPlan({{"a", 1}, {"b", 1}}), renamed = MixedPlan({{"a", 1}, {"c", 1}});
  const std::vector<PlainShards> sources = {{{TextOf({1})}}, {{TextOf({1})}}};
  std::vector<PlainShards> longer = sources;
  longer[1][0].push_back(TextOf({1}));
  const std::string digest = (*Open(plan, sources).source)->digest();
  EXPECT_EQ(digest.size(), 64u);
  EXPECT_EQ((*Open(plan, sources).source)->digest(), digest);
  EXPECT_NE((*Open(renamed, sources).source)->digest(), digest);
  EXPECT_NE((*Open(plan, longer).source)->digest(), digest);
}

}  // namespace
}  // namespace planwright
