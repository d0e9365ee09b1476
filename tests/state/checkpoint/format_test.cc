#include "planner/state/checkpoint/format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "planner/base/digest/sha256.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Strides = std::vector<ElementStride>;
using Shape = std::vector<int64_t>;

const std::string kDigest(64, 'a');

Manifest SomeManifest() {
  Manifest manifest;
  manifest.name = "tiny \"quoted\"\n\xc3\xbc";
  manifest.plan_digest = kDigest;
  manifest.recipe_digest = std::string(64, 'b');
  manifest.precision = "bf16";
  manifest.world_size = 5;
  manifest.run_id = std::string(32, '7');
  manifest.life = 3;
  manifest.counters = {100, 97, 3, 6400};
  manifest.plan_bytes = 12345;
  manifest.plan_sha256 = std::string(64, 'c');
  manifest.data = {{"a \"quoted\" one", kDigest}, {"text", std::string(64, 'd')}};
  manifest.notes = {.recent_losses = {5.5, 1.0 / 3, 4},
                    .skipped_in_a_row = 2,
                    .evaluation = {{"held out", {0.1, "5f"}}, {"text", {std::nullopt, ""}}}};
  manifest.shards = {{0, 1000, 200, kDigest}, {1, 1001, 201, kDigest}, {4, 0, 3, kDigest}};
  return manifest;
}

ShardIndex SomeIndex() {
  ShardIndex index;
  index.rank = 3;
  index.of = {std::string(32, '7'), 3, {100, 97, 3, 6400}};
  index.bytes = 4096;
  index.header_sha256 = kDigest;
  index.tensors["a.weight"] = {DType::kFp32, {4, 8}, {{0, 4, 8, 4}}, kDigest};
  index.tensors["b.exp_avg"] = {DType::kFp64, {}, {{0, 1, 0, 1}}, kDigest};
  index.tensors["c"] = {DType::kBf16, {3, 7}, {{0, 2, 0, 1}, {5, 1, 3, 2}}, kDigest};
  index.tensors["empty"] = {DType::kInt64, {0, 7}, {}, kDigest};
  return index;
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string Problem(const std::string& manifest) { return std::string(ReadManifest(manifest).status().message()); }

TEST(Strides, OfRunsAreFew) {
  EXPECT_EQ(StridesOf({}), Strides{});
  EXPECT_EQ(StridesOf({{7, 0, 10}}), (Strides{{0, 10, 0, 1}}));
  // Neighbours in the whole tensor are joined wherever the storage has them.
  EXPECT_EQ(StridesOf({{50, 3, 2}, {10, 5, 4}}), (Strides{{3, 6, 0, 1}}));
  // A cut along dim 1.
  EXPECT_EQ(StridesOf({{0, 4, 4}, {4, 12, 4}, {8, 20, 4}, {12, 28, 4}}), (Strides{{4, 4, 8, 4}}));
  // A flat range of it: the first and the last run are shorter.
  EXPECT_EQ(StridesOf({{0, 5, 3}, {3, 12, 4}, {7, 20, 4}, {11, 28, 1}}),
            (Strides{{5, 3, 0, 1}, {12, 4, 8, 2}, {28, 1, 0, 1}}));
  // Another distance begins another stride.
  EXPECT_EQ(StridesOf({{0, 0, 1}, {1, 2, 1}, {2, 4, 1}, {3, 7, 1}, {4, 10, 1}}), (Strides{{0, 1, 2, 3}, {7, 1, 3, 2}}));
}

TEST(Strides, GiveTheRunsBack) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<ElementRun> runs, joined;
    int64_t whole = 0, local = 0;
    const int count = static_cast<int>(random() % 12);
    for (int i = 0; i < count; ++i) {
      whole += random() % 3;
      const int64_t elements = 1 + random() % 3;
      runs.push_back({static_cast<int64_t>(random() % 100), whole, elements});
      if (!joined.empty() && joined.back().whole + joined.back().count == whole) {
        joined.back().count += elements;
      } else {
        joined.push_back({local, whole, elements});
      }
      whole += elements, local += elements;
    }
    const Strides strides = StridesOf(runs);
    EXPECT_EQ(RunsOf(strides), joined);
    const auto checked = CheckShardTensor("a", {whole}, strides);
    ASSERT_TRUE(checked.ok()) << checked.status();
    EXPECT_EQ(*checked, local);
  }
}

TEST(ShardTensors, MustFitTheWholeOne) {
  EXPECT_EQ(*CheckShardTensor("a", {4, 8}, {{0, 4, 8, 4}}), 16);
  EXPECT_EQ(*CheckShardTensor("a", {4, 8}, {{0, 4, 8, 3}, {31, 1, 0, 1}}), 13);
  EXPECT_EQ(*CheckShardTensor("a", {}, {{0, 1, 0, 1}}), 1);
  EXPECT_EQ(*CheckShardTensor("a", {0}, {}), 0);
  const int64_t large = int64_t{1} << 62;
  const std::vector<std::pair<Shape, Strides>> wrong = {
      {{4, 8}, {}},                            // nothing
      {{4, 8}, {{0, 33, 0, 1}}},               // too long
      {{4, 8}, {{0, 4, 8, 5}}},                // too often
      {{4, 8}, {{8, 4, 0, 1}, {0, 4, 0, 1}}},  // descends
      {{4, 8}, {{0, 4, 0, 1}, {3, 4, 0, 1}}},  // overlaps the one before
      {{4, 8}, {{0, 4, 3, 2}}},                // overlaps itself
      {{4, 8}, {{-1, 4, 0, 1}}},
      {{4, 8}, {{0, 0, 0, 1}}},
      {{4, 8}, {{0, 4, 8, 0}}},
      {{4, 8}, {{0, 1, large, 9}}},
      {{4, 8}, {{large, large, 0, 1}}},
      {{4, 8}, {{1, INT64_MAX, 0, 1}}},
      {{0}, {{0, 1, 0, 1}}},
      {{-1}, {{0, 1, 0, 1}}},
      {{large, 4}, {{0, 1, 0, 1}}},
      {Shape(9, 1), {{0, 1, 0, 1}}},
  };
  for (const auto& [shape, strides] : wrong) {
    const absl::Status status = CheckShardTensor("key", shape, strides).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << ::testing::PrintToString(shape);
    EXPECT_THAT(std::string(status.message()), HasSubstr("tensor key: "));
  }
  for (const std::string key : {"", "__metadata__", "a b", "a\n", "\xff"})
    EXPECT_FALSE(CheckShardTensor(key, {1}, {{0, 1, 0, 1}}).ok()) << key;
}

TEST(ShardTensors, AreWholeInTheirOwnShape) {
  EXPECT_THAT(ShapeInShard({4, 8}, 32), ElementsAre(4, 8));
  EXPECT_THAT(ShapeInShard({4, 8}, 16), ElementsAre(16));
  EXPECT_THAT(ShapeInShard({}, 1), ElementsAre());
}

TEST(ShardIndex, IsReadAsItWasWritten) {
  const ShardIndex index = SomeIndex();
  const std::string text = WriteShardIndex(index);
  const auto read = ReadShardIndex(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->rank, index.rank);
  EXPECT_EQ(read->bytes, index.bytes);
  EXPECT_EQ(read->header_sha256, index.header_sha256);
  EXPECT_TRUE(read->of == index.of);
  ASSERT_EQ(read->tensors.size(), index.tensors.size());
  for (const auto& [key, tensor] : index.tensors) {
    const ShardTensor& other = read->tensors.at(key);
    EXPECT_EQ(other.dtype, tensor.dtype) << key;
    EXPECT_EQ(other.shape, tensor.shape) << key;
    EXPECT_EQ(other.elements, tensor.elements) << key;
    EXPECT_EQ(other.sha256, tensor.sha256) << key;
  }
  EXPECT_EQ(WriteShardIndex(*read), text);
  EXPECT_TRUE(ReadShardIndex(WriteShardIndex({})).ok());
}

TEST(ShardIndex, IsRefusedWithWhatIsWrong) {
  const std::string text = WriteShardIndex(SomeIndex());
  const std::vector<std::vector<std::string>> cases = {
      {"\"format\": 2", "\"format\": 3", "its format is version 3; this version reads 1 and 2"},
      {"\"format\": 2", "\"format\": 1", "it has an unknown field \"applied_steps\""},
      {"\"format\": 2", "\"form\": 1", "it has no format"},
      {"\"run_id\": \"7", "\"run_id\": \"", "its run_id \"7777777777777777777777777777777\" is not 32 hex digits"},
      {"\"rank\": 3", "\"rank\": -3", "rank is not a number from 0 to"},
      {"\"rank\": 3", "\"rank\": 3000000000", "rank is not a number from 0 to"},
      {"\"rank\": 3", "\"rank\": 3.0", "rank is not a number"},
      {"\"rank\": 3", "\"rank\": 3, \"more\": 1", "it has an unknown field \"more\""},
      {"\"bytes\": 4096", "\"bytes\": 18446744073709551615", "bytes is not a number"},
      {"\"header_sha256\": \"", "\"header_sha256\": 5, \"x\": \"", "header_sha256 is not a text"},
      {"\"tensors\": {", "\"tensors\": [], \"x\": {", "tensors are not an object"},
      {"\"fp32\"", "\"fp31\"", "tensor a.weight: its type \"fp31\" is unknown"},
      {"[4, 8]", "[4, 3]", "do not ascend in a tensor of 12"},
      {"[4, 8]", "\"4\"", "its shape is not a list of sizes"},
      {"[0, 4, 8, 4]", "[0, 4, 8]", "elements are not four numbers"},
      {"[0, 4, 8, 4]", "7", "elements are not four numbers"},
      {"[[0, 4, 8, 4]]", "7", "elements is not a list"},
      {"\"a.weight\": {", "\"a.weight\": 7, \"x\": {", "tensor a.weight: it is not an object"},
      {"\"a.weight\"", "\"a\\nweight\"", "\"a\\nweight\" cannot be the key of a tensor"},
      {"}\n}", "}\n}x", "it is not JSON"},
  };
  for (const auto& one : cases) {
    const absl::Status status = ReadShardIndex(Replaced(text, one[0], one[1])).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << one[2];
    EXPECT_THAT(std::string(status.message()), HasSubstr(one[2]));
  }
  for (size_t end = 0; end + 1 < text.size(); ++end) EXPECT_FALSE(ReadShardIndex(text.substr(0, end)).ok()) << end;
}

// Sanitizers make this test sharper.
TEST(ShardIndex, OfAnyBytesIsRefusedOrGood) {
  const std::string text = WriteShardIndex(SomeIndex()), pieces = "0123456789-[]{},:\".eE nt\\u\x80\xff";
  std::mt19937 random(13);
  int good = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = text;
    for (int change = 0; change <= round % 4; ++change) {
      const size_t at = random() % damaged.size();
      if (random() % 3 == 0) {
        damaged.insert(at, 1 + random() % 20, pieces[random() % pieces.size()]);
      } else {
        damaged[at] = pieces[random() % pieces.size()];
      }
    }
    const auto index = ReadShardIndex(damaged);
    if (!index.ok()) continue;
    ++good;
    const auto again = ReadShardIndex(WriteShardIndex(*index));
    ASSERT_TRUE(again.ok()) << again.status() << damaged;
    for (const auto& [key, tensor] : index->tensors) {
      EXPECT_EQ(again->tensors.at(key).elements, tensor.elements);
      EXPECT_TRUE(CheckShardTensor(key, tensor.shape, tensor.elements).ok());
    }
  }
  EXPECT_GT(good, 100);
}

TEST(Manifests, AreReadAsTheyWereWritten) {
  const Manifest manifest = SomeManifest();
  const std::string text = WriteManifest(manifest);
  const auto read = ReadManifest(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->name, manifest.name);
  EXPECT_EQ(read->plan_digest, manifest.plan_digest);
  EXPECT_EQ(read->recipe_digest, manifest.recipe_digest);
  EXPECT_EQ(read->precision, manifest.precision);
  EXPECT_EQ(read->world_size, manifest.world_size);
  EXPECT_TRUE(read->identity() == manifest.identity());
  EXPECT_EQ(read->counters, manifest.counters);
  EXPECT_EQ(read->plan_bytes, manifest.plan_bytes);
  EXPECT_EQ(read->plan_sha256, manifest.plan_sha256);
  EXPECT_EQ(read->data, manifest.data);
  EXPECT_EQ(read->notes, manifest.notes);
  ASSERT_EQ(read->shards.size(), manifest.shards.size());
  for (size_t i = 0; i < manifest.shards.size(); ++i) {
    EXPECT_EQ(read->shards[i].rank, manifest.shards[i].rank);
    EXPECT_EQ(read->shards[i].bytes, manifest.shards[i].bytes);
    EXPECT_EQ(read->shards[i].index_bytes, manifest.shards[i].index_bytes);
    EXPECT_EQ(read->shards[i].index_sha256, manifest.shards[i].index_sha256);
  }
  EXPECT_EQ(WriteManifest(*read), text);
  EXPECT_TRUE(ReadManifest(WriteManifest({})).ok());
}

TEST(Manifests, WithAnyBitChangedAreRefused) {
  const std::string text = WriteManifest(SomeManifest());
  for (size_t at = 0; at < text.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      EXPECT_THAT(Problem(damaged), HasSubstr("damaged")) << at << " " << bit;
    }
  }
  for (size_t end = 0; end < text.size(); ++end) EXPECT_FALSE(ReadManifest(text.substr(0, end)).ok()) << end;
  for (const std::string more : {" ", "\n", "}", "x", text.c_str()}) {
    EXPECT_FALSE(ReadManifest(text + more).ok()) << more;
    EXPECT_FALSE(ReadManifest(more + text).ok()) << more;
  }
}

// Losses of programs that did not say of which samples they are.
TEST(Manifests, OfOlderProgramsHaveLossesAlone) {
  Manifest manifest = SomeManifest();
  manifest.notes.evaluation = {{"text", {2.5, "5f"}}};
  std::string text = Replaced(WriteManifest(manifest), "{\"loss\": 2.5, \"samples_digest\": \"5f\"}", "2.5");
  const size_t last = text.rfind("  \"sha256\": \"");
  text = text.substr(0, last) + "  \"sha256\": \"" + Sha256Hex(text.substr(0, last)) + "\"\n}\n";
  const auto read = ReadManifest(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->notes.evaluation, (std::map<std::string, SetLoss>{{"text", {2.5, ""}}}));
}

TEST(Manifests, AreRefusedWithWhatIsWrong) {
  const std::string text = WriteManifest(SomeManifest());
  const std::vector<std::vector<std::string>> cases = {
      {"\"format\": 2", "\"format\": 3", "its format is version 3; this version reads 1 and 2"},
      {"\"format\": 2", "\"format\": 1", "it has an unknown field \"run_id\""},
      {"\"run_id\": \"7", "\"run_id\": \"F", "is not 32 hex digits"},
      {"\"life\": 3", "\"life\": 0", "life is not a number from 1 to"},
      {"\"life\": 3", "\"lives\": 3", "it has no life"},
      {"\"step\": 100", "\"step\": 100, \"new\": 0", "it has an unknown field \"new\""},
      {"\"step\": 100", "\"step\": -100", "step is not a number from 0 to"},
      {"\"rank\": 4", "\"rank\": 1", "shards[2]: ranks do not ascend"},
      {"\"rank\": 4", "\"rank\": 5", "shards[2]: rank 5 is not in the world"},
      {"\"data\": {", "\"data\": [], \"more\": {", "data is not an object"},
      {"\"text\": \"d", "\"text\": 7, \"more\": \"d", "data.\"text\" is not a text"},
      {"\"recent_losses\": [", "\"recent_losses\": [\"a\", ", "an item of recent_losses is not a number"},
      {"\"skipped_in_a_row\": 2", "\"skipped_in_a_row\": 4", "skipped_in_a_row is not a number from 0 to 3"},
      {"\"recent_losses\": [", "\"recent_losses\": 1, \"more\": [", "recent_losses is not a list"},
      {"\"evaluation\": {", "\"evaluation\": [], \"more\": {", "evaluation is not an object"},
      {"\"held out\": ", "\"held out\": null, \"x\": ", "evaluation.\"held out\" is not a number"},
      {"\"loss\": null", "\"loss\": \"a\"", "evaluation.\"text\": its loss is not a number"},
      {"\"loss\": null", "\"losses\": null", "evaluation.\"text\": it has no loss"},
      {"\"loss\": null", "\"loss\": null, \"x\": 1", "evaluation.\"text\": it has an unknown field \"x\""},
      {"\"shards\": [", "\"shards\": [7,", "shards[0]: it is not an object"},
      {"{\n", "\n", "it is not JSON"},
  };
  for (const auto& one : cases) {
    std::string changed = Replaced(text, one[0], one[1]);
    const size_t last = changed.rfind("  \"sha256\": \"");
    changed = changed.substr(0, last) + "  \"sha256\": \"" + Sha256Hex(changed.substr(0, last)) + "\"\n}\n";
    EXPECT_THAT(Problem(changed), HasSubstr(one[2]));
  }
}

TEST(Names, OfFilesHaveFiveDigitsAndOfFoldersEight) {
  EXPECT_EQ(CheckpointFolder(100, 1), "step-00000100.life-1");
  EXPECT_EQ(CheckpointFolder(12345678901, 12), "step-12345678901.life-12");
  EXPECT_EQ(ShardFile(3), "rank-00003.safetensors");
  EXPECT_EQ(IndexFile(123456), "rank-123456.json");
}

}  // namespace
}  // namespace planwright
