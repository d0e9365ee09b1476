// Shards as the writer writes them and the reader reads them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <functional>
#include <limits>
#include <random>
#include <thread>

#include "planner/state/checkpoint/element_cover.h"
#include "planner/state/checkpoint/shard_reader.h"
#include "planner/state/checkpoint/shard_writer.h"
#include "planner/wire/records/safetensors.h"
#include "tests/state/checkpoint/failing_calls.h"
#include "tests/state/checkpoint/small_checkpoint.h"

namespace planwright {
namespace {

using ::testing::AllOf;
using testing::BytesOf;
using testing::DealtTensor;
using testing::ElementBytes;
using testing::failing;
using testing::FilesOf;
using testing::FreshFolder;
using ::testing::HasSubstr;
using testing::SmallIdentity;
using testing::SmallTensors;
using testing::Span;
using testing::WriteCheckpoint;
using testing::WriteRank;

std::unique_ptr<CheckpointReader> Opened(const std::string& folder) {
  auto reader = CheckpointReader::Open(folder);
  EXPECT_TRUE(reader.ok()) << reader.status();
  return reader.ok() ? *std::move(reader) : nullptr;
}

std::span<std::byte> Room(std::string& bytes) { return {reinterpret_cast<std::byte*>(bytes.data()), bytes.size()}; }

// ---- Writer.

TEST(ShardWriter, WritesAPlainSafetensorsFile) {
  const std::string folder = FreshFolder("plain");
  const std::vector<DealtTensor> tensors = SmallTensors();
  for (int rank = 0; rank < 3; ++rank) {
    const auto shard = WriteRank(folder, rank, tensors);
    ASSERT_TRUE(shard.ok()) << shard.status();
    const auto file = SafetensorsFile::Open(folder + "/" + ShardFile(rank));
    ASSERT_TRUE(file.ok()) << file.status();
    const auto index = ReadShardIndex(testing::Slurp(folder + "/" + IndexFile(rank)));
    ASSERT_TRUE(index.ok()) << index.status();
    EXPECT_EQ(shard->rank, rank);
    EXPECT_EQ(shard->bytes, file->bytes());
    EXPECT_EQ(shard->index_bytes, static_cast<int64_t>(testing::Slurp(folder + "/" + IndexFile(rank)).size()));
    EXPECT_EQ(shard->index_sha256, Sha256Hex(testing::Slurp(folder + "/" + IndexFile(rank))));
    EXPECT_EQ(index->rank, rank);
    EXPECT_TRUE(index->of == SmallIdentity());
    EXPECT_THAT(file->metadata(), ::testing::UnorderedElementsAre(std::pair("run_id", testing::kRunId),
                                                                  std::pair("checkpoint", "step-00000100.life-1"),
                                                                  std::pair("rank", std::to_string(rank))));
    EXPECT_EQ(index->bytes, shard->bytes);
    EXPECT_EQ(index->header_sha256, Sha256Hex(testing::Slurp(file->path()).substr(0, file->header().size())));
    EXPECT_EQ(file->header().size() % 8, 0u);
    size_t mine = 0;
    for (const DealtTensor& tensor : tensors) {
      const auto elements = tensor.ranks.find(rank);
      if (elements == tensor.ranks.end()) continue;
      ++mine;
      const auto stored = file->Find(tensor.key);
      ASSERT_TRUE(stored.ok()) << stored.status();
      const std::string bytes = BytesOf(tensor, elements->second);
      const int64_t count = static_cast<int64_t>(bytes.size()) / DTypeBytes(tensor.dtype);
      EXPECT_EQ(*file->Read(*stored), bytes) << tensor.key;
      EXPECT_EQ(stored->shape, count == ElementsOf(tensor.shape) ? tensor.shape : std::vector<int64_t>{count});
      EXPECT_EQ(stored->dtype, tensor.dtype);
      EXPECT_EQ(stored->offset % DTypeBytes(tensor.dtype), 0) << tensor.key;
      const ShardTensor& entry = index->tensors.at(tensor.key);
      EXPECT_EQ(entry.shape, tensor.shape);
      EXPECT_EQ(entry.elements, elements->second);
      EXPECT_EQ(entry.sha256, Sha256Hex(bytes));
    }
    EXPECT_EQ(file->tensors().size(), mine);
    EXPECT_EQ(index->tensors.size(), mine);
  }
}

TEST(ShardWriter, WritesLargeTensorsInChunksAndSaysSo) {
  const std::string folder = FreshFolder("large");
  std::mt19937_64 random(3);
  std::vector<std::string> bytes;
  for (size_t size : {size_t{13} << 20, size_t{4}, (size_t{4} << 20) - 8, size_t{12}, size_t{9} << 20}) {
    bytes.emplace_back(size, '\0');
    for (size_t i = 0; i + 8 <= size; i += 8) {
      const uint64_t number = random();
      std::memcpy(bytes.back().data() + i, &number, 8);
    }
  }
  std::vector<ShardSource> sources;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const int64_t elements = static_cast<int64_t>(bytes[i].size()) / 4;
    sources.push_back({"t" + std::to_string(i), DType::kFp32, {elements}, {{0, elements, 0, 1}}, {}});
    const size_t cut = bytes[i].size() / 3;  // no whole number of elements
    sources.back().ranges = {Span(bytes[i]).first(cut), {}, Span(bytes[i]).subspan(cut)};
  }
  int64_t calls = 0, sum = 0, most = 0;
  std::vector<const std::byte*> ranges, expected;
  for (const ShardSource& source : sources) {
    for (const auto& range : source.ranges) expected.push_back(range.data());
  }
  const auto shard = WriteShard(folder, 0, SmallIdentity(), sources,
                                {.before_range = [&](const std::byte* range) { ranges.push_back(range); },
                                 .wrote = [&](int64_t count) { ++calls, sum += count, most = std::max(most, count); }});
  ASSERT_TRUE(shard.ok()) << shard.status();
  EXPECT_EQ(sum, shard->bytes);
  EXPECT_GE(calls, 7);
  EXPECT_LE(most, int64_t{4} << 20);
  EXPECT_EQ(ranges, expected);
  const auto file = SafetensorsFile::Open(folder + "/" + ShardFile(0));
  ASSERT_TRUE(file.ok()) << file.status();
  const auto index = ReadShardIndex(testing::Slurp(folder + "/" + IndexFile(0)));
  ASSERT_TRUE(index.ok()) << index.status();
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto stored = file->Find("t" + std::to_string(i));
    ASSERT_TRUE(stored.ok());
    EXPECT_TRUE(*file->Read(*stored) == bytes[i]) << i;
    EXPECT_EQ(index->tensors.at("t" + std::to_string(i)).sha256, Sha256Hex(bytes[i]));
  }
}

TEST(ShardWriter, RefusesWhatDoesNotFit) {
  const std::string folder = FreshFolder("unfit"), bytes(16, 'x');
  const ShardSource good{"a", DType::kFp32, {8}, {{0, 2, 4, 2}}, {Span(bytes)}};
  EXPECT_TRUE(WriteShard(folder, 0, SmallIdentity(), {good}).ok());
  std::vector<std::pair<std::vector<ShardSource>, std::string>> cases(6, {{good}, ""});
  cases[0].first[0].ranges = {Span(bytes).first(15)}, cases[0].second = "4 elements of fp32 do not fit 15 bytes";
  cases[1].first[0].ranges.push_back(Span(bytes)), cases[1].second = "do not fit 32 bytes";
  cases[2].first[0].dtype = DType::kFp64, cases[2].second = "4 elements of fp64 do not fit 16 bytes";
  cases[3].first[0].shape = {5}, cases[3].second = "do not ascend in a tensor of 5";
  cases[4].first.push_back(good), cases[4].second = "two tensors a";
  cases[5].first[0].key = "", cases[5].second = "cannot be the key";
  for (const auto& [sources, what] : cases) {
    const absl::Status status = WriteShard(folder, 1, SmallIdentity(), sources).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << what;
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank-00001.safetensors"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder + "/" + ShardFile(1)));
}

TEST(ShardWriter, SaysWhichFileCannotBeWritten) {
  const std::string missing = ::testing::TempDir() + "no/such/folder";
  const absl::Status status = WriteRank(missing, 2, SmallTensors()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr(missing + "/rank-00002.safetensors: No such file or directory"));
  EXPECT_EQ(WriteDurably(missing, "a", "b").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(PublishManifest(missing, {.run_id = testing::kRunId}).code(), absl::StatusCode::kUnavailable);
}

TEST(ShardWriter, CannotWriteIntoAReadOnlyFolder) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const std::string folder = FreshFolder("read_only");
  ASSERT_EQ(chmod(folder.c_str(), 0555), 0);
  EXPECT_THAT(std::string(WriteRank(folder, 2, SmallTensors()).status().message()), HasSubstr("Permission denied"));
}

// Runs `body` in a child whose files may have `most` bytes; true if it returns true.
bool WithFileLimit(rlim_t most, const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{most, most};
    const bool set = setrlimit(RLIMIT_FSIZE, &limit) == 0;
    _exit(set && body() ? 0 : 1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool SaysFull(const absl::Status& status, const std::string& file) {
  return status.code() == absl::StatusCode::kResourceExhausted &&
         std::string(status.message()).find(file) != std::string::npos &&
         std::string(status.message()).find("File too large") != std::string::npos;
}

TEST(ShardWriter, FailsWhenTheDiskIsFull) {
  const std::string folder = FreshFolder("full"), bytes(size_t{6} << 20, 'x');
  const int64_t elements = static_cast<int64_t>(bytes.size()) / 4;
  const std::vector<ShardSource> sources = {{"a", DType::kFp32, {elements}, {{0, elements, 0, 1}}, {Span(bytes)}}};
  // Somewhere in the tensor: within the first chunk, at its end, in the second.
  for (rlim_t most : {rlim_t{1}, rlim_t{100'000}, rlim_t{4} << 20, (rlim_t{6} << 20) + 8}) {
    EXPECT_TRUE(WithFileLimit(most, [&] {
      return SaysFull(WriteShard(folder, 3, SmallIdentity(), sources).status(), folder + "/rank-00003.safetensors");
    })) << most;
  }
  // The shard of about 220 bytes is there; its index is longer.
  const std::vector<ShardSource> one = {{"a", DType::kFp32, {1}, {{0, 1, 0, 1}}, {Span(bytes).first(4)}}};
  EXPECT_TRUE(WithFileLimit(300, [&] {
    return SaysFull(WriteShard(folder, 4, SmallIdentity(), one).status(), folder + "/rank-00004.json");
  }));
  EXPECT_TRUE(std::filesystem::exists(folder + "/" + ShardFile(4)));
  EXPECT_FALSE(std::filesystem::exists(folder + "/" + IndexFile(4)));
  EXPECT_TRUE(WithFileLimit(100, [&] { return SaysFull(WriteDurably(folder, "m", bytes), folder + "/m"); }));
  for (const std::string& name : FilesOf(folder)) EXPECT_THAT(name, ::testing::Not(HasSubstr("writing")));
}

TEST(ShardWriter, ChecksTheAnswerOfEverySync) {
  const std::string folder = FreshFolder("sync");
  // fsync: the shard, its index, the folder. close: the same files.
  for (int call = 0; call < 3; ++call) {
    failing = {.fsync = call};
    const absl::Status status = WriteRank(folder, 0, SmallTensors()).status();
    failing = {};
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << call;
    EXPECT_THAT(std::string(status.message()), HasSubstr("Input/output error")) << call;
  }
  for (int call = 0; call < 2; ++call) {
    failing = {.close = call, .error = ENOSPC};
    const absl::Status status = WriteRank(folder, 0, SmallTensors()).status();
    failing = {};
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << call;
    EXPECT_THAT(std::string(status.message()), HasSubstr("No space left")) << call;
  }
  // An interrupted call is made again.
  failing = {.fsync = 0, .carried_out = false, .error = EINTR};
  EXPECT_TRUE(WriteRank(folder, 0, SmallTensors()).ok());
  failing = {};
  const std::string published = FreshFolder("sync_manifest");
  const Manifest manifest = WriteCheckpoint(published, 3, SmallTensors());
  for (int call = 0; call < 3; ++call) {  // the manifest, the folder, the folder above
    failing = {.fsync = call};
    EXPECT_EQ(PublishManifest(published, manifest).code(), absl::StatusCode::kResourceExhausted) << call;
    failing = {};
  }
}

TEST(ShardWriter, GoesOnAfterShortAndInterruptedWrites) {
  const std::string whole = FreshFolder("long_writes"), parts = FreshFolder("short_writes");
  ASSERT_TRUE(WriteRank(whole, 0, SmallTensors()).ok());
  failing = {.write_most = 13};
  EXPECT_TRUE(WriteRank(parts, 0, SmallTensors()).ok());
  failing = {};
  for (const std::string& name : {ShardFile(0), IndexFile(0)})
    EXPECT_EQ(testing::Slurp(parts + "/" + name), testing::Slurp(whole + "/" + name));
  failing = {.write = 3, .write_most = 13, .error = EINTR};
  EXPECT_TRUE(WriteRank(parts, 0, SmallTensors()).ok());
  failing = {};
  for (const std::string& name : {ShardFile(0), IndexFile(0)})
    EXPECT_EQ(testing::Slurp(parts + "/" + name), testing::Slurp(whole + "/" + name));
  // No file takes 0 bytes forever.
  failing = {.write_most = 0};
  EXPECT_EQ(WriteRank(parts, 0, SmallTensors()).status().code(), absl::StatusCode::kResourceExhausted);
  failing = {.write = 1, .write_most = 13, .error = ENOSPC};
  EXPECT_THAT(std::string(WriteRank(parts, 0, SmallTensors()).status().message()), HasSubstr("No space left"));
  failing = {};
}

TEST(WriteDurably, ReplacesAndLeavesNothingElse) {
  const std::string folder = FreshFolder("durable");
  ASSERT_TRUE(WriteDurably(folder, "m", "old, and longer").ok());
  ASSERT_TRUE(WriteDurably(folder, "m", "new").ok());
  EXPECT_EQ(testing::Slurp(folder + "/m"), "new");
  EXPECT_THAT(FilesOf(folder), ::testing::ElementsAre("m"));
}

TEST(WriteDurably, BelievesTheFileWhenTheAnswerOfTheRenameIsLost) {
  const std::string folder = FreshFolder("lost_answer");
  failing = {.rename = 0};
  EXPECT_TRUE(WriteDurably(folder, "m", "text").ok());
  failing = {.rename = 0, .carried_out = false};
  const absl::Status status = WriteDurably(folder, "m", "other text");
  failing = {};
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder + "/m: Input/output error"));
  EXPECT_EQ(testing::Slurp(folder + "/m"), "text");
  EXPECT_THAT(FilesOf(folder), ::testing::ElementsAre("m"));
}

TEST(PublishManifest, NeedsEveryFileWithItsSize) {
  const std::string folder = FreshFolder("publish");
  const Manifest manifest = WriteCheckpoint(folder, 3, SmallTensors());
  EXPECT_TRUE(ReadManifest(testing::Slurp(folder + "/" + kManifestFile)).ok());
  for (const std::string& name : FilesOf(folder)) {
    if (name == kManifestFile) continue;
    const std::string path = folder + "/" + name, bytes = testing::Slurp(path);
    std::filesystem::remove(folder + "/" + kManifestFile);
    testing::Spill(path, bytes.substr(1));
    const absl::Status shorter = PublishManifest(folder, manifest);
    EXPECT_EQ(shorter.code(), absl::StatusCode::kUnavailable) << name;
    EXPECT_THAT(std::string(shorter.message()), HasSubstr(path + ": it has "));
    std::filesystem::remove(path);
    const absl::Status missing = PublishManifest(folder, manifest);
    EXPECT_EQ(missing.code(), absl::StatusCode::kUnavailable) << name;
    EXPECT_THAT(std::string(missing.message()), HasSubstr(path + ": it cannot be read: No such file"));
    EXPECT_FALSE(std::filesystem::exists(folder + "/" + kManifestFile));
    testing::Spill(path, bytes);
  }
  EXPECT_TRUE(PublishManifest(folder, manifest).ok());
  Manifest wrong = manifest;
  wrong.life = 0;
  EXPECT_EQ(PublishManifest(folder, wrong).code(), absl::StatusCode::kInvalidArgument);
  Manifest of_no_run = manifest;
  of_no_run.run_id = "";
  EXPECT_EQ(PublishManifest(folder, of_no_run).code(), absl::StatusCode::kInvalidArgument);
}

// ---- Cover.

TEST(ElementCover, IsThatOfABruteForceWalk) {
  std::mt19937 random(11);
  const auto below = [&](int64_t most) { return static_cast<int64_t>(random() % most); };
  int good = 0, bad = 0;
  for (int round = 0; round < 20'000; ++round) {
    // Owners of each element; a round in three has an element without an owner, or with two.
    const int64_t elements = 1 + below(40), shards = 1 + below(5);
    std::vector<std::vector<int>> owners(elements);
    const int64_t period = 1 + below(6), length = 1 + below(4);
    for (int64_t i = 0; i < elements; ++i) {
      const bool regular = round % 2 == 0;
      owners[i] = {static_cast<int>(regular ? i / length % period % shards : below(shards))};
    }
    if (round % 3 == 0) {
      std::vector<int>& some = owners[below(elements)];
      if (below(2) == 0) {
        some.clear();
      } else {
        some.push_back(static_cast<int>(below(shards)));
      }
    }
    std::vector<std::vector<ElementStride>> strides(shards);
    std::vector<std::map<int64_t, int64_t>> locals(shards);  // by element
    for (int shard = 0; shard < shards; ++shard) {
      std::vector<ElementRun> runs;
      for (int64_t i = 0; i < elements; ++i) {
        if (std::count(owners[i].begin(), owners[i].end(), shard) == 0) continue;
        const int64_t local = static_cast<int64_t>(locals[shard].size());
        locals[shard][i] = local;
        runs.push_back({local, i, 1});
      }
      strides[shard] = StridesOf(runs);
    }
    std::vector<const std::vector<ElementStride>*> lists;
    for (const auto& list : strides) lists.push_back(&list);
    ElementCover cover(lists);
    bool failed = false;
    for (int64_t at = 0; at < elements && !failed;) {
      const int64_t first = at + below(4), count = std::min(below(12), elements - first);
      if (first >= elements) break;
      int64_t next = first;
      const auto problem = cover.Walk(first, count, [&](const CoveredRun& covered) {
        EXPECT_EQ(covered.run.whole, next);
        EXPECT_GE(covered.run.count, 1);
        for (int64_t i = 0; i < covered.run.count; ++i)
          EXPECT_EQ(locals[covered.shard].at(covered.run.whole + i), covered.run.local + i);
        next += covered.run.count;
      });
      int64_t expected = first;  // the first element with a problem
      const auto owned = [&](int64_t i) { return std::set<int>(owners[i].begin(), owners[i].end()).size(); };
      while (expected < first + count && owned(expected) == 1) ++expected;
      ASSERT_EQ(problem.has_value(), expected < first + count);
      if (problem) {
        failed = true;
        // What was visited before has no problem. Of an element in two shards, this is the first.
        EXPECT_EQ(problem->whole, expected);
        EXPECT_EQ(problem->shard.has_value(), owned(expected) > 1);
        EXPECT_LE(next, expected);
      } else {
        EXPECT_EQ(next, first + count);
      }
      at = first + count;
    }
    (failed ? bad : good) += 1;
  }
  EXPECT_GT(good, 5000);
  EXPECT_GT(bad, 1000);
}

TEST(ElementCover, TakesNoTimeForRunsThatAreNotWanted) {
  // 2^40 runs each.
  const std::vector<ElementStride> even = {{0, 1, 2, int64_t{1} << 40}}, odd = {{1, 1, 2, int64_t{1} << 40}};
  ElementCover cover({&even, &odd});
  std::vector<int64_t> locals;
  const auto visit = [&](const CoveredRun& covered) { locals.push_back(covered.run.local); };
  EXPECT_FALSE(cover.Walk(int64_t{1} << 39, 2, visit));
  EXPECT_FALSE(cover.Walk((int64_t{1} << 40) + 1, 1, visit));
  EXPECT_THAT(locals, ::testing::ElementsAre(int64_t{1} << 38, int64_t{1} << 38, int64_t{1} << 39));
  EXPECT_TRUE(cover.Walk(int64_t{1} << 41, 1, visit));
}

// ---- Reader.

TEST(CheckpointReader, GivesEachTensorBack) {
  const std::string folder = FreshFolder("whole");
  const std::vector<DealtTensor> tensors = SmallTensors();
  WriteCheckpoint(folder, 3, tensors);
  const auto reader = Opened(folder);
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(reader->folder(), folder);
  EXPECT_EQ(reader->manifest().counters.step, 100);
  EXPECT_EQ(reader->tensors().size(), tensors.size());
  EXPECT_EQ(reader->bytes_read(), 0);
  int64_t sum = 0;
  for (const DealtTensor& tensor : tensors) {
    EXPECT_EQ(reader->tensors().at(tensor.key).dtype, tensor.dtype);
    EXPECT_EQ(reader->tensors().at(tensor.key).shape, tensor.shape);
    const int64_t elements = ElementsOf(tensor.shape);
    const std::string expected = elements == 0 ? "" : BytesOf(tensor, {{0, elements, 0, 1}});
    sum += static_cast<int64_t>(expected.size());
    for (int again = 0; again < 2; ++again) {
      std::string bytes(expected.size(), '\0');
      const absl::Status status = reader->Read(tensor.key, {{0, 0, elements}}, Room(bytes));
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(bytes, expected) << tensor.key;
      EXPECT_EQ(reader->bytes_read(), sum);  // each shard is proved once
    }
  }
}

TEST(CheckpointReader, GivesAnyElementsOfAnyCut) {
  std::mt19937 random(5);
  const auto below = [&](int64_t most) { return static_cast<int64_t>(random() % most); };
  for (int round = 0; round < 24; ++round) {
    const int64_t rows = 1 + below(9), columns = 12, elements = rows * columns;
    const int64_t tp = int64_t{1} << below(3), dp = 1 + below(4);
    DealtTensor tensor{"w", round % 2 == 0 ? DType::kBf16 : DType::kFp64, {rows, columns}, {}};
    // Columns cut over tp, then the elements of each part in flat ranges over dp.
    const int64_t width = columns / tp, mine = rows * width;
    for (int64_t part = 0; part < tp; ++part) {
      std::vector<ElementRun> runs;
      for (int64_t row = 0; row < rows; ++row) runs.push_back({row * width, row * columns + part * width, width});
      for (int64_t lane = 0; lane < dp; ++lane) {
        const auto clipped = ClipRuns(runs, mine * lane / dp, mine * (lane + 1) / dp);
        if (!clipped.empty()) tensor.ranks[static_cast<int>(part * dp + lane)] = StridesOf(clipped);
      }
    }
    const std::string folder = FreshFolder("cuts");
    WriteCheckpoint(folder, static_cast<int>(tp * dp), {tensor});
    const auto reader = Opened(folder);
    ASSERT_NE(reader, nullptr);
    for (int read = 0; read < 50; ++read) {
      std::vector<ElementRun> runs;
      std::string expected(elements * DTypeBytes(tensor.dtype) + below(3), '\1');
      std::string bytes = expected;
      // Runs ascend in the tensor; offsets in `to` are dealt from the back, so that they descend.
      int64_t local = elements;
      for (int64_t whole = below(5); whole < elements;) {
        const int64_t count = std::min(below(15), elements - whole);
        local -= count;
        runs.push_back({local, whole, count});
        for (int64_t i = 0; i < count; ++i) {
          const std::string one = testing::ElementBytes(tensor, whole + i);
          expected.replace((local + i) * one.size(), one.size(), one);
        }
        whole += count + below(9);
      }
      const absl::Status status = reader->Read("w", runs, Room(bytes));
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_EQ(bytes, expected);
    }
  }
}

TEST(CheckpointReader, ReadsFromManyThreads) {
  const std::string folder = FreshFolder("threads");
  std::vector<DealtTensor> tensors;
  int64_t sum = 0;
  for (int i = 0; i < 20; ++i) {
    tensors.push_back({"t" + std::to_string(i), DType::kFp32, {64, 8}, {{0, {{0, 4, 8, 64}}}, {1, {{4, 4, 8, 64}}}}});
    sum += 64 * 8 * 4;
  }
  WriteCheckpoint(folder, 2, tensors);
  const auto reader = Opened(folder);
  ASSERT_NE(reader, nullptr);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      for (size_t i = 0; i < tensors.size(); ++i) {
        const DealtTensor& tensor = tensors[(i + thread * 3) % tensors.size()];
        std::string bytes(64 * 8 * 4, '\0');
        if (!reader->Read(tensor.key, {{0, 0, 512}}, Room(bytes)).ok() || bytes != BytesOf(tensor, {{0, 512, 0, 1}}))
          ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(reader->bytes_read(), sum);
}

TEST(CheckpointReader, RefusesWhatIsNotThere) {
  const std::string folder = FreshFolder("wrong_read");
  WriteCheckpoint(folder, 3, SmallTensors());
  const auto reader = Opened(folder);
  ASSERT_NE(reader, nullptr);
  std::string bytes(24 * 4, '\0');
  const auto code = [&](const std::string& key, const std::vector<ElementRun>& runs) {
    return reader->Read(key, runs, Room(bytes)).code();
  };
  EXPECT_EQ(code("language.w", {{0, 0, 24}}), absl::StatusCode::kOk);
  EXPECT_EQ(code("language.w", {}), absl::StatusCode::kOk);
  const int64_t large = INT64_MAX;
  EXPECT_EQ(code("nothing", {{0, 0, 1}}), absl::StatusCode::kInvalidArgument);
  const std::vector<std::vector<ElementRun>> wrong = {{{0, 0, 25}},    {{0, 24, 1}},           {{0, -1, 1}},
                                                      {{-1, 0, 1}},    {{0, 0, -1}},           {{1, 0, 24}},
                                                      {{24, 0, 1}},    {{0, large, large}},    {{large, 0, 1}},
                                                      {{0, 1, large}}, {{0, 4, 2}, {2, 2, 2}}, {{0, 4, 2}, {2, 5, 2}}};
  for (const auto& runs : wrong)
    EXPECT_EQ(code("language.w", runs), absl::StatusCode::kInvalidArgument) << ::testing::PrintToString(runs.size());
}

// A shard that is cut off after it was opened, or goes away: an error with its path, no end by SIGBUS.
TEST(CheckpointReader, AShardThatIsCutOffWhileItIsRead) {
  const std::string folder = FreshFolder("cut_off"), path = folder + "/" + ShardFile(1);
  WriteCheckpoint(folder, 3, SmallTensors());
  const auto reader = Opened(folder), later = Opened(folder), without = Opened(folder);
  std::string room(24 * 4, '\0');
  ASSERT_TRUE(reader->Read("language.norm", {{0, 0, 5}}, Room(room)).ok());
  const auto stored = SafetensorsFile::Open(path)->Find("language.w");
  std::filesystem::resize_file(path, stored->offset + 3);
  const absl::Status cut = reader->Read("language.w", {{0, 2, 2}}, Room(room));
  EXPECT_EQ(cut.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(cut.message()),
              AllOf(HasSubstr(path + ": tensor language.w: "), HasSubstr("it ends at byte")));
  EXPECT_THAT(std::string(later->Read("language.w", {{0, 2, 2}}, Room(room)).message()),
              HasSubstr(path + ": its size changes"));
  std::filesystem::remove(path);
  EXPECT_THAT(std::string(without->Read("language.w", {{0, 2, 2}}, Room(room)).message()),
              HasSubstr(path + ": cannot read " + path + ": No such file or directory"));
}

// Runs that are shorter and longer than what is read at once, from a shard that is larger.
TEST(CheckpointReader, ReadsManyShortRuns) {
  const std::string folder = FreshFolder("short_runs");
  const DealtTensor large = {"large", DType::kFp32, {300, 1000}, {{0, {{0, 300'000, 0, 1}}}}};
  WriteCheckpoint(folder, 1, {large});
  const auto reader = Opened(folder);
  for (const int64_t width : {1, 7, 250, 999, 1000}) {
    std::vector<ElementRun> runs;
    std::string expected, room(300 * width * 4, '\0');
    for (int64_t row = 0; row < 300; ++row) {
      runs.push_back({row * width, row * 1000, width});
      for (int64_t i = 0; i < width; ++i) expected += ElementBytes(large, row * 1000 + i);
    }
    ASSERT_TRUE(reader->Read("large", runs, Room(room)).ok()) << width;
    EXPECT_TRUE(room == expected) << width;
  }
}

TEST(CheckpointReader, NumbersThatAreNotFiniteAreRefusedWhereThatIsAsked) {
  const std::string folder = FreshFolder("not_finite"), path = folder + "/" + ShardFile(0);
  std::vector<float> values = {1, 2, 3, std::numeric_limits<float>::quiet_NaN(), 5, 6};
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  Manifest manifest = WriteCheckpoint(folder, 1, {});
  const auto shard = WriteShard(folder, 0, SmallIdentity(), {{"w", DType::kFp32, {2, 3}, {{0, 6, 0, 1}}, {bytes}}});
  ASSERT_TRUE(shard.ok()) << shard.status();
  manifest.shards = {*shard};
  ASSERT_TRUE(PublishManifest(folder, manifest).ok());
  const auto reader = Opened(folder);
  std::string room(24, '\0');
  const auto read = [&](const std::vector<ElementRun>& runs, CheckpointReader::Numbers numbers) {
    return reader->Read("w", runs, Room(room), numbers);
  };
  EXPECT_TRUE(read({{0, 0, 6}}, CheckpointReader::Numbers::kAny).ok());
  EXPECT_TRUE(read({{0, 0, 3}, {3, 4, 2}}, CheckpointReader::Numbers::kFinite).ok());
  const absl::Status refused = read({{0, 1, 5}}, CheckpointReader::Numbers::kFinite);
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(refused.message()), HasSubstr(path + ": tensor w: element 3 is infinite or no number (NaN)"));
}

TEST(CheckpointReader, ProvesWhatItReadsAndNothingElse) {
  const std::string folder = FreshFolder("damaged_tensor");
  const std::vector<DealtTensor> tensors = SmallTensors();
  WriteCheckpoint(folder, 3, tensors);
  const std::string path = folder + "/" + ShardFile(1);
  size_t at = 0;
  {
    const auto file = SafetensorsFile::Open(path);
    ASSERT_TRUE(file.ok());
    at = file->Find("language.w")->offset;
  }
  std::string bytes = testing::Slurp(path);
  bytes[at + 5] = static_cast<char>(bytes[at + 5] ^ 16);
  testing::Spill(path, bytes);
  const auto reader = Opened(folder);
  ASSERT_NE(reader, nullptr);
  std::string room(24 * 4, '\0');
  for (int again = 0; again < 2; ++again) {
    // One element of the shard's part, and not the damaged one.
    const absl::Status status = reader->Read("language.w", {{0, 2, 1}}, Room(room));
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr(path + ": tensor language.w is damaged: its SHA-256 is"));
  }
  EXPECT_TRUE(reader->Read("language.w", {{0, 0, 2}, {2, 4, 4}}, Room(room)).ok());  // of the other shards
  EXPECT_TRUE(reader->Read("language.norm", {{0, 0, 5}}, Room(room)).ok());          // of the same shard
}

TEST(CheckpointReader, FindsElementsThatNoneOrTwoHave) {
  const DealtTensor good{"w", DType::kFp32, {8}, {{0, {{0, 4, 0, 1}}}, {1, {{4, 4, 0, 1}}}}};
  std::string room(8 * 4, '\0');
  const auto message = [&](const std::vector<ElementStride>& second, const std::vector<ElementRun>& runs) {
    DealtTensor tensor = good;
    tensor.ranks[1] = second;
    const std::string folder = FreshFolder("uncovered");
    WriteCheckpoint(folder, 2, {tensor});
    const auto reader = Opened(folder);
    const absl::Status status = reader->Read("w", runs, Room(room));
    EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kDataLoss);
    return std::string(status.message());
  };
  EXPECT_EQ(message({{4, 4, 0, 1}}, {{0, 0, 8}}), "");
  EXPECT_THAT(message({{5, 3, 0, 1}}, {{0, 0, 8}}), HasSubstr("no shard has element 4 of tensor w"));
  EXPECT_THAT(message({{4, 3, 0, 1}}, {{0, 0, 8}}), HasSubstr("no shard has element 7 of tensor w"));
  EXPECT_THAT(message({{3, 5, 0, 1}}, {{0, 0, 8}}),
              HasSubstr("element 3 of tensor w is in two shards: those of ranks 0 and 1"));
  EXPECT_EQ(message({{5, 3, 0, 1}}, {{0, 0, 4}, {4, 5, 3}}), "");  // the element is not wanted
}

TEST(CheckpointReader, OpensNoDamagedCheckpoint) {
  const std::string folder = FreshFolder("not_open");
  WriteCheckpoint(folder, 3, SmallTensors());
  for (const std::string& name : FilesOf(folder)) {
    const std::string path = folder + "/" + name, bytes = testing::Slurp(path);
    const auto status = [&] { return CheckpointReader::Open(folder).status(); };
    // A shard has its header compared; what is behind it is proved when it is read.
    const size_t end = name.ends_with(".safetensors") ? SafetensorsFile::Open(path)->header().size() : bytes.size();
    for (const std::string& damaged : {bytes.substr(0, bytes.size() - 1), bytes + " ", std::string()}) {
      testing::Spill(path, damaged);
      EXPECT_EQ(status().code(), absl::StatusCode::kDataLoss) << name;
      EXPECT_THAT(std::string(status().message()), HasSubstr(path + ": ")) << name;
    }
    for (size_t at = 0; at < end; at += 7) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ 1);
      testing::Spill(path, damaged);
      EXPECT_EQ(status().code(), absl::StatusCode::kDataLoss) << name << " byte " << at;
    }
    std::filesystem::remove(path);
    EXPECT_EQ(status().code(), absl::StatusCode::kUnavailable) << name;
    EXPECT_THAT(std::string(status().message()), HasSubstr(path)) << name;
    testing::Spill(path, bytes);
    EXPECT_TRUE(status().ok()) << status();
  }
  EXPECT_EQ(CheckpointReader::Open(folder + "/none").status().code(), absl::StatusCode::kUnavailable);
}

TEST(CheckpointReader, RefusesShardsThatDisagree) {
  const std::string folder = FreshFolder("disagree");
  const DealtTensor first{"w", DType::kFp32, {8}, {{0, {{0, 4, 0, 1}}}}};
  for (const DealtTensor& second : {DealtTensor{"w", DType::kFp32, {2, 4}, {{1, {{4, 4, 0, 1}}}}},
                                    DealtTensor{"w", DType::kBf16, {8}, {{1, {{4, 4, 0, 1}}}}}}) {
    Manifest manifest = WriteCheckpoint(folder, 1, {first});
    manifest.world_size = 2;
    manifest.shards.push_back(*WriteRank(folder, 1, {second}));
    ASSERT_TRUE(PublishManifest(folder, manifest).ok());
    const absl::Status status = CheckpointReader::Open(folder).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr("in rank-00000.json it is a part of fp32 [8]"));
  }
}

}  // namespace
}  // namespace planwright
