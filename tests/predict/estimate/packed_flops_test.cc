// FLOPs of attention over a packed file, beside a plain count: each pair of tokens of each sample is looked at.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/data/samples/count_samples.h"
#include "planner/data/samples/index_files.h"
#include "planner/data/samples/sample_source.h"
#include "planner/predict/estimate/step_time.h"
#include "tests/data/samples/shard_files.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

constexpr int64_t kTokens = 48;  // of a sample
constexpr int kDocuments = 120;

// A folder with a shard of ids: documents of 3 to 40 tokens, of which each gets one more at its end.
std::string PackedFolder() {
  const std::string folder = ::testing::TempDir() + "packed_flops";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::ofstream shard(folder + "/a.tar", std::ios::binary);
  std::mt19937 random(11);
  for (int i = 0; i < kDocuments; ++i) {
    const std::vector<uint32_t> ids(3 + random() % 38, 9);
    std::string bytes(4 * ids.size(), '\0');
    std::memcpy(bytes.data(), ids.data(), bytes.size());
    shard << TarMemberOf(absl::StrCat("d", 1000 + i, ".tok"), bytes);
  }
  shard << kTarEnd;
  return folder;
}

Plan PackedPlan(const std::string& folder, const std::vector<std::string>& layout) {
  std::vector<std::string> words = {
      absl::StrCat("data={kind: sources, tokenizer: ids, image_token: 5, pad_token: 6, end_token: 7, packed_documents: "
                   "true, index: ",
                   folder, "/index, sources: [{name: texts, kind: webdataset, shards: [", folder, "/a.tar]}]}"),
      absl::StrCat("batch.sequence_length=", kTokens)};
  words.insert(words.end(), layout.begin(), layout.end());
  return testing::CompiledFile(InSource("recipes/llama_tiny.yaml"), words);
}

double Executed(const Plan& plan) {
  double flops = 0;
  for (const RoleTime& role : TimeStep(plan).roles) flops += role.flops * static_cast<double>(role.count());
  return flops;
}

// Ordered pairs of tokens in one document, of which attention computes those whose first is not behind the second.
int64_t PairsOf(const Sample& sample) {
  std::vector<int> document(kTokens);
  for (size_t i = 0, at = 0; i < sample.document_ends.size(); ++i) {
    for (; at < static_cast<size_t>(sample.document_ends[i]); ++at) document[at] = static_cast<int>(i);
  }
  int64_t pairs = 0;
  for (int64_t query = 0; query < kTokens; ++query) {
    for (int64_t key = 0; key < kTokens; ++key)
      pairs += document[static_cast<size_t>(query)] == document[static_cast<size_t>(key)] ? 1 : 0;
  }
  return pairs;
}

TEST(PackedFlops, AreThoseOfThePairsInTheSamplesOfAFile) {
  const std::string folder = PackedFolder();
  const Plan plan = PackedPlan(folder, {});
  ASSERT_TRUE(UpdateIndex(plan.data, {}, {}).ok());
  const absl::StatusOr<std::unique_ptr<SampleSource>> source = OpenSampleSource(plan);
  ASSERT_TRUE(source.ok()) << source.status();
  ASSERT_EQ((*source)->Counts().size(), 1u);
  const int64_t samples = (*source)->Counts()[0].samples;
  ASSERT_GT(samples, 20);
  int64_t pairs = 0;
  for (int64_t number = 0; number < samples; ++number) {  // an epoch
    const absl::StatusOr<Sample> sample = (*source)->Get(number, SampleParts::kText);
    ASSERT_TRUE(sample.ok()) << sample.status();
    pairs += PairsOf(*sample);
  }
  ASSERT_TRUE(KeepCounted(plan.data, kTokens, **source).ok());
  // A head of 16 features multiplies two vectors for a score, and adds one for a value: 4 * 16 FLOPs of a pair, half of
  // which are computed. The backward has twice as many. Two layers have four heads each.
  constexpr double kOfPair = 3 * 4 * 16 / 2 * 4 * 2;
  const double mean = static_cast<double>(pairs) / static_cast<double>(samples);
  const std::vector<std::vector<std::string>> layouts = {
      {},
      {"modules.language.placement.ranks=2", "modules.language.parallel.tp=2", "cluster.gpus_per_node=2"},
      {"modules.language.placement.ranks=2", "modules.language.parallel.cp=2", "cluster.gpus_per_node=2"},
      {"modules.language.placement.ranks=2", "modules.language.parallel.pp=2", "cluster.gpus_per_node=2"}};
  for (const std::vector<std::string>& layout : layouts) {
    const Plan counted = PackedPlan(folder, layout);
    Plan whole = counted;
    whole.data.counted = {};
    const double samples_of_step = static_cast<double>(counted.budget.global_samples);
    const double left_out = kOfPair * (static_cast<double>(kTokens * kTokens) - mean) * samples_of_step;
    // More than a third of what samples of one document have.
    EXPECT_GT(3 * left_out, kOfPair * static_cast<double>(kTokens * kTokens) * samples_of_step);
    // Squares of a sample are kept as a whole number on average.
    EXPECT_NEAR(Executed(whole) - Executed(counted), left_out, kOfPair * samples_of_step)
        << (layout.empty() ? "one rank" : layout[1]);
  }
}

}  // namespace
}  // namespace planwright
