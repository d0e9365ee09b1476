// What two files of a checkpoint say alike is compared. Each number and text is changed by itself, in a checkpoint
// whose digests are made for the change: neither a resume nor `plan checkpoint verify` may take it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "planner/wire/records/safetensors.h"
#include "tests/state/checkpoint/changed_numbers.h"
#include "tests/state/checkpoint/small_checkpoint.h"

namespace planwright {
namespace {

using testing::Change;
using testing::ChangesOf;
using testing::FreshFolder;
using ::testing::HasSubstr;
using testing::RefusedByResume;
using testing::RefusedByVerify;
using testing::Slurp;
using testing::SmallTensors;
using testing::Spill;
using testing::WriteCheckpoint;

TEST(Identity, ASmallCheckpointWithAnyNumberChangedIsRefused) {
  const std::string folder = FreshFolder("numbers");
  WriteCheckpoint(folder, 3, SmallTensors());
  ASSERT_EQ(RefusedByResume(folder) + RefusedByVerify(folder), "");
  // Its plan is of an older release. So what stands only there and in the manifest is not compared.
  const std::vector<std::string> only_in_plan = {"/name", "/plan_digest", "/recipe_digest", "/precision",
                                                 "/world_size"};
  std::map<std::string, std::string> whole;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) whole[entry.path()] = Slurp(entry.path());
  int changes = 0;
  for (const Change& change : ChangesOf(folder)) {
    const std::string leaf = change.what.substr(change.what.find(' ') + 1);
    if (std::find(only_in_plan.begin(), only_in_plan.end(), leaf) != only_in_plan.end()) continue;
    ++changes;
    change.make();
    EXPECT_NE(RefusedByVerify(folder), "") << change.what;
    EXPECT_NE(RefusedByResume(folder), "") << change.what;
    for (const auto& [path, bytes] : whole) Spill(path, bytes);
  }
  EXPECT_GT(changes, 120);
  EXPECT_EQ(RefusedByResume(folder) + RefusedByVerify(folder), "");
}

// The shard and the index of another step or life, in the place of those of this one.
TEST(Identity, FilesOfAnotherCheckpointAreNamed) {
  const std::string folder = FreshFolder("mixed"), other = FreshFolder("mixed_other");
  const Manifest manifest = WriteCheckpoint(folder, 3, SmallTensors());
  CheckpointIdentity of = testing::SmallIdentity();
  of.counters.step = 98;
  const std::string bytes(5 * 2, '\0');
  const auto shard =
      WriteShard(other, 1, of, {{"language.norm", DType::kBf16, {5}, {{0, 5, 0, 1}}, {testing::Span(bytes)}}});
  ASSERT_TRUE(shard.ok()) << shard.status();
  for (const std::string& name : {ShardFile(1), IndexFile(1)}) Spill(folder + "/" + name, Slurp(other + "/" + name));
  Manifest mended = manifest;
  mended.shards[1] = *shard;
  ASSERT_TRUE(PublishManifest(folder, mended).ok());
  EXPECT_THAT(RefusedByVerify(folder), HasSubstr("rank-00001.json: its step is 98; the manifest says 100"));
  EXPECT_THAT(RefusedByResume(folder), HasSubstr("rank-00001.json: its step is 98; the manifest says 100"));
  // The index says what the manifest says, and the shard does not.
  ShardIndex index = *ReadShardIndex(Slurp(folder + "/" + IndexFile(1)));
  index.of = testing::SmallIdentity();
  const std::string text = WriteShardIndex(index);
  Spill(folder + "/" + IndexFile(1), text);
  mended.shards[1].index_bytes = static_cast<int64_t>(text.size());
  mended.shards[1].index_sha256 = Sha256Hex(text);
  ASSERT_TRUE(PublishManifest(folder, mended).ok());
  EXPECT_THAT(
      RefusedByVerify(folder),
      HasSubstr("rank-00001.safetensors: its header says that it is checkpoint step-00000098.life-1, rank 1, "));
  EXPECT_THAT(RefusedByResume(folder),
              HasSubstr("its index says checkpoint step-00000100.life-1, rank 1, run_id aaaa"));
}

TEST(Identity, AWeightThatIsNoNumberIsDamageAndAMomentIsNot) {
  const std::string folder = FreshFolder("nan");
  Manifest manifest = WriteCheckpoint(folder, 1, {});
  const auto found = [&](const std::string& key, DType dtype, const std::string& bytes) {
    // Elements 2, 3, 6, 7, 10 and 11 of a whole tensor of 12.
    const auto shard =
        WriteShard(folder, 0, testing::SmallIdentity(), {{key, dtype, {3, 4}, {{2, 2, 4, 3}}, {testing::Span(bytes)}}});
    EXPECT_TRUE(shard.ok()) << shard.status();
    manifest.shards = {*shard};
    EXPECT_TRUE(PublishManifest(folder, manifest).ok());
    return RefusedByVerify(folder);
  };
  std::string floats(6 * 4, '\0');
  floats.replace(3 * 4, 4, "\x00\x00\xc0\x7f", 4);
  const std::string bad = "rank-00000.safetensors: tensor a.w";
  EXPECT_THAT(found("a.w", DType::kFp32, floats), HasSubstr(bad + ": element 7 is infinite or no number (NaN)"));
  EXPECT_THAT(found("a.w.master", DType::kFp32, floats), HasSubstr(bad + ".master: element 7 is infinite"));
  EXPECT_EQ(found("a.w.exp_avg", DType::kFp32, floats),
            "manifest.json: no shard has element 0 of tensor a.w.exp_avg\n");
  std::string halves(6 * 2, '\0');
  halves.replace(5 * 2, 2, "\x80\x7f", 2);
  EXPECT_THAT(found("a.w", DType::kBf16, halves), HasSubstr(bad + ": element 11 is infinite"));
}

}  // namespace
}  // namespace planwright
