#include "planner/state/checkpoint/check_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/wire/records/safetensors.h"
#include "tests/state/checkpoint/small_checkpoint.h"

namespace planwright {
namespace {

using testing::DealtTensor;
using testing::FilesOf;
using testing::FreshFolder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Slurp;
using testing::SmallTensors;
using testing::Spill;
using testing::WriteCheckpoint;

bool IsProven(const Plan&) { return true; }

// "FILE: WHAT", one a line.
std::string Found(const std::string& folder, int threads = 1) {
  std::string text;
  for (const CheckpointProblem& problem : CheckCheckpointFiles(folder, threads, IsProven))
    text += problem.file + ": " + problem.what + "\n";
  return text;
}

// Writes a manifest with the sizes and digests that the indices now have.
void PublishAgain(const std::string& folder, Manifest manifest) {
  for (ManifestShard& shard : manifest.shards) {
    const std::string index = Slurp(folder + "/" + IndexFile(shard.rank));
    shard.index_bytes = static_cast<int64_t>(index.size());
    shard.index_sha256 = Sha256Hex(index);
    shard.bytes = static_cast<int64_t>(std::filesystem::file_size(folder + "/" + ShardFile(shard.rank)));
  }
  ASSERT_TRUE(PublishManifest(folder, manifest).ok());
}

TEST(CheckFiles, FindsNothingInAGoodCheckpoint) {
  const std::string folder = FreshFolder("good");
  WriteCheckpoint(folder, 3, SmallTensors());
  for (int threads : {0, 1, 2, 7}) {
    std::vector<std::pair<int64_t, int64_t>> reports;
    const auto problems = CheckCheckpointFiles(folder, threads, IsProven,
                                               [&](int64_t done, int64_t all) { reports.emplace_back(done, all); });
    EXPECT_THAT(problems, IsEmpty());
    ASSERT_FALSE(reports.empty());
    EXPECT_TRUE(std::is_sorted(reports.begin(), reports.end()));
    EXPECT_EQ(reports.back().first, reports.back().second);
    int64_t bytes = 0;
    for (const std::string& name : FilesOf(folder)) {
      if (name != kManifestFile) bytes += static_cast<int64_t>(std::filesystem::file_size(folder + "/" + name));
    }
    EXPECT_EQ(reports.back().second, bytes);
  }
}

TEST(CheckFiles, FindsEveryBitThatIsChanged) {
  const std::string folder = FreshFolder("bits");
  WriteCheckpoint(folder, 3, SmallTensors());
  for (const std::string& name : FilesOf(folder)) {
    const std::string path = folder + "/" + name, bytes = Slurp(path);
    // In place: a file that is emptied and written again goes to the disk each time.
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    const auto set = [&](size_t at, char byte) {
      file.seekp(static_cast<std::streamoff>(at)).put(byte).flush();
      ASSERT_TRUE(file.good());
    };
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        set(at, static_cast<char>(bytes[at] ^ (1 << bit)));
        const std::vector<CheckpointProblem> problems = CheckCheckpointFiles(folder, 1, IsProven);
        ASSERT_EQ(problems.size(), 1u) << name << " byte " << at << " bit " << bit;
        ASSERT_EQ(problems[0].file, name) << problems[0].what << " byte " << at << " bit " << bit;
      }
      set(at, bytes[at]);
    }
    ASSERT_EQ(Found(folder), "");
  }
}

TEST(CheckFiles, FindsFilesThatAreShorterLongerOrGone) {
  const std::string folder = FreshFolder("sizes");
  WriteCheckpoint(folder, 3, SmallTensors());
  for (const std::string& name : FilesOf(folder)) {
    const std::string path = folder + "/" + name, bytes = Slurp(path);
    const auto problem = [&] {
      const std::vector<CheckpointProblem> problems = CheckCheckpointFiles(folder, 2, IsProven);
      EXPECT_EQ(problems.size(), 1u) << name;
      EXPECT_TRUE(problems.empty() || problems[0].file == name) << problems[0].file;
      return problems.empty() ? "" : problems[0].what;
    };
    for (const std::string& damaged : {bytes.substr(0, bytes.size() - 1), bytes.substr(0, 7), std::string(),
                                       bytes + "x", bytes + std::string(4096, '\0')}) {
      Spill(path, damaged);
      const std::string what = problem();
      if (name != kManifestFile) {
        EXPECT_EQ(what,
                  "it has " + std::to_string(damaged.size()) + " bytes instead of " + std::to_string(bytes.size()));
      }
    }
    std::filesystem::remove(path);
    EXPECT_THAT(problem(), HasSubstr("No such file or directory")) << name;
    std::filesystem::create_directory(path);
    EXPECT_THAT(problem(), ::testing::AnyOf(HasSubstr("not a plain file"), HasSubstr("Is a directory"))) << name;
    std::filesystem::remove(path);
    Spill(path, bytes);
    ASSERT_EQ(Found(folder), "");
  }
}

TEST(CheckFiles, FindsFilesOfAnotherRankOrCheckpoint) {
  const std::string folder = FreshFolder("swapped"), other = FreshFolder("swapped_other");
  std::vector<DealtTensor> tensors = {{"w", DType::kFp32, {8}, {{0, {{0, 4, 0, 1}}}, {1, {{4, 4, 0, 1}}}}}};
  WriteCheckpoint(folder, 2, tensors);
  const auto path = [&](const std::string& name) { return folder + "/" + name; };
  const auto swap = [&](const std::string& a, const std::string& b) {
    std::filesystem::rename(path(a), path("aside"));
    std::filesystem::rename(path(b), path(a));
    std::filesystem::rename(path("aside"), path(b));
  };
  // The headers name their ranks.
  swap(ShardFile(0), ShardFile(1));
  EXPECT_THAT(Found(folder), HasSubstr("rank-00000.safetensors: its header has another SHA-256 than"));
  EXPECT_THAT(Found(folder), HasSubstr("rank-00001.safetensors: its header has another SHA-256 than"));
  // With its index: the manifest shows it.
  swap(IndexFile(0), IndexFile(1));
  EXPECT_THAT(Found(folder), HasSubstr("rank-00000.json: its SHA-256 is "));
  // Even if the manifest is made for it.
  PublishAgain(folder, *ReadManifest(Slurp(path(kManifestFile))));
  EXPECT_THAT(Found(folder), HasSubstr("rank-00000.json: it is the index of rank 1, not of rank 0\n"));
  swap(ShardFile(0), ShardFile(1));
  swap(IndexFile(0), IndexFile(1));
  PublishAgain(folder, *ReadManifest(Slurp(path(kManifestFile))));
  ASSERT_EQ(Found(folder), "");
  // The index, the shard, and the manifest of another checkpoint.
  tensors[0].key = "v";
  WriteCheckpoint(other, 2, tensors);
  for (const std::string& name : {IndexFile(1), ShardFile(1), std::string(kManifestFile)}) {
    const std::string bytes = Slurp(path(name));
    Spill(path(name), Slurp(other + "/" + name));
    EXPECT_NE(Found(folder), "") << name;
    Spill(path(name), bytes);
    ASSERT_EQ(Found(folder), "") << name;
  }
}

TEST(CheckFiles, FindsShardsThatDoNotFitTheirIndex) {
  const std::string folder = FreshFolder("unfit_index");
  const Manifest manifest = WriteCheckpoint(folder, 3, SmallTensors());
  const std::string path = folder + "/" + IndexFile(1), text = Slurp(path);
  const auto found = [&](const std::function<void(ShardIndex&)>& change) {
    ShardIndex index = *ReadShardIndex(text);
    change(index);
    Spill(path, WriteShardIndex(index));
    PublishAgain(folder, manifest);
    return Found(folder);
  };
  EXPECT_EQ(found([](ShardIndex&) {}), "");
  EXPECT_THAT(found([](ShardIndex& index) { index.tensors.erase("language.norm"); }),
              HasSubstr("rank-00001.safetensors: it has a tensor language.norm, which its index has not"));
  EXPECT_THAT(found([](ShardIndex& index) { index.tensors["more"] = index.tensors["language.norm"]; }),
              HasSubstr("rank-00001.safetensors: it has no tensor more, which its index has"));
  EXPECT_THAT(found([](ShardIndex& index) { index.tensors["language.norm"].dtype = DType::kFp32; }),
              HasSubstr("tensor language.norm is bf16 [5]; by its index it is fp32 [5]"));
  EXPECT_THAT(found([](ShardIndex& index) { index.tensors["language.norm"].shape = {6}; }),
              HasSubstr("manifest.json: no shard has element 5 of tensor language.norm"));
  EXPECT_THAT(found([](ShardIndex& index) {
                index.tensors["language.norm"].elements = {{0, 4, 0, 1}};
              }),
              HasSubstr("tensor language.norm is bf16 [5]; by its index it is bf16 [4]"));
  EXPECT_THAT(found([](ShardIndex& index) { index.bytes += 1; }),
              HasSubstr("rank-00001.json: it says that its shard has "));
  EXPECT_THAT(found([](ShardIndex& index) { index.header_sha256[0] ^= 1; }),
              HasSubstr("rank-00001.safetensors: its header has another SHA-256 than its index says"));
  EXPECT_THAT(found([](ShardIndex& index) { index.tensors["language.w"].sha256[0] ^= 1; }),
              HasSubstr("rank-00001.safetensors: tensor language.w is damaged"));
}

TEST(CheckFiles, FindsElementsThatNoneOrTwoHave) {
  const auto found = [](const std::vector<ElementStride>& second) {
    const std::string folder = FreshFolder("cover");
    WriteCheckpoint(folder, 2, {{"w", DType::kFp32, {4, 2}, {{0, {{0, 1, 2, 4}}}, {1, second}}}});
    return Found(folder, 2);
  };
  EXPECT_EQ(found({{1, 1, 2, 4}}), "");
  EXPECT_EQ(found({{1, 1, 2, 3}}), "manifest.json: no shard has element 7 of tensor w\n");
  EXPECT_EQ(found({{3, 1, 2, 3}}), "manifest.json: no shard has element 1 of tensor w\n");
  EXPECT_EQ(found({{1, 2, 0, 1}, {3, 1, 2, 3}}),
            "rank-00001.json: element 2 of tensor w is in two shards: those of ranks 0 and 1\n");
}

TEST(CheckFiles, FindsShardsThatDisagree) {
  const std::string folder = FreshFolder("disagree_files");
  Manifest manifest = WriteCheckpoint(folder, 1, {{"w", DType::kFp32, {8}, {{0, {{0, 4, 0, 1}}}}}});
  manifest.world_size = 2;
  manifest.shards.push_back(*testing::WriteRank(folder, 1, {{"w", DType::kFp32, {2, 4}, {{1, {{4, 4, 0, 1}}}}}}));
  ASSERT_TRUE(PublishManifest(folder, manifest).ok());
  EXPECT_EQ(Found(folder),
            "rank-00001.json: tensor w is a part of fp32 [2,4]; in rank-00000.json it is a part of fp32 [8]\n");
}

TEST(CheckFiles, NamesStrayShardsAndLeavesOtherFilesAlone) {
  const std::string folder = FreshFolder("strays");
  WriteCheckpoint(folder, 3, SmallTensors());
  Spill(folder + "/notes.txt", "the good one");
  Spill(folder + "/manifest.json.writing.7.0000beef", "{");
  EXPECT_EQ(Found(folder), "");
  std::filesystem::copy(folder + "/" + ShardFile(1), folder + "/" + ShardFile(7));
  std::filesystem::copy(folder + "/" + IndexFile(1), folder + "/" + IndexFile(7));
  EXPECT_EQ(Found(folder),
            "rank-00007.json: the manifest does not have this file\n"
            "rank-00007.safetensors: the manifest does not have this file\n");
}

TEST(CheckFiles, NamesEveryDamagedFile) {
  const std::string folder = FreshFolder("several");
  WriteCheckpoint(folder, 3, SmallTensors());
  for (const std::string& name : {std::string(kCheckpointPlanFile), ShardFile(0), IndexFile(1), ShardFile(2)}) {
    std::string bytes = Slurp(folder + "/" + name);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    Spill(folder + "/" + name, bytes);
  }
  Spill(folder + "/" + ShardFile(1), "short");
  std::vector<std::string> files;
  for (const CheckpointProblem& problem : CheckCheckpointFiles(folder, 3, IsProven)) files.push_back(problem.file);
  EXPECT_THAT(files, ::testing::ElementsAre("plan.json", "rank-00000.safetensors", "rank-00001.json",
                                            "rank-00001.safetensors", "rank-00002.safetensors"));
}

// A manifest that names shards of which the folder has nothing costs no look at each.
TEST(CheckFiles, ShardsThatAreNotThereAreOneLine) {
  const std::string folder = FreshFolder("many");
  Manifest manifest = WriteCheckpoint(folder, 2, {});
  manifest.world_size = 200'000;
  for (int rank = 2; rank < manifest.world_size; ++rank)
    manifest.shards.push_back({rank, 100, 10, std::string(64, 'a')});
  Spill(folder + "/" + kManifestFile, WriteManifest(manifest));
  int reports = 0;
  const auto problems = CheckCheckpointFiles(folder, 1, IsProven, [&](int64_t, int64_t) { ++reports; });
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].what, "the folder has neither shard nor index of 199998 of 200000 ranks; the first is rank 2");
  EXPECT_LT(reports, 20);
}

TEST(CheckFiles, OfAFolderThatIsNoCheckpoint) {
  EXPECT_THAT(Found(FreshFolder("no_checkpoint")), HasSubstr("manifest.json: cannot read "));
  EXPECT_THAT(Found(::testing::TempDir() + "no_folder_at_all"), HasSubstr("manifest.json: cannot read "));
}

}  // namespace
}  // namespace planwright
