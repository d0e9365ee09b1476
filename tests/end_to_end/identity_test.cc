// Which run a checkpoint belongs to, and what its files say alike: real runs whose checkpoints were exchanged, changed
// with all digests mended, or written by a release before runs had an identity.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>

#include "planner/base/files/exit_status.h"
#include "planner/state/checkpoint/format.h"
#include "planner/wire/records/safetensors.h"
#include "tests/end_to_end/checkpoint_run.h"
#include "tests/state/checkpoint/changed_numbers.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(fd);
  return std::to_string(ntohs(address.sin_port));
}

class Identity : public CheckpointRun {
 protected:
  std::string Checkpoint(const std::string& name) const { return Checkpoints() + "/" + name; }
  ordered_json JsonOf(const std::string& path) const { return ordered_json::parse(ReadBytes(path), nullptr, false); }
  std::string RunId() const { return JsonOf(RunDir() + "/run.json").value("run_id", ""); }

  // The checkpoint of step 4 of a run that reads other samples.
  std::string OfAnotherRun(const std::function<void()>& change = [] {}) {
    EXPECT_EQ(Run(4, {"data.seed=77"}).status, 0);
    change();
    std::string kept = Folder() + "/kept";
    fs::rename(Checkpoint("step-00000004.life-1"), kept);
    fs::remove_all(RunDir());
    return kept;
  }
  static void Replace(const std::string& folder, const std::string& by) {
    fs::remove_all(folder);
    fs::copy(by, folder, fs::copy_options::recursive);
  }
  void ExpectGoesOn(int steps, int from) {
    const Ended ended = Run(steps);
    EXPECT_EQ(ended.status, 0) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("resuming after step " + std::to_string(from) + " "));
    ExpectCurve(static_cast<size_t>(steps));
  }
  void ExpectRefused(const std::string& folder) {
    const Ended ended = Run(6);
    EXPECT_EQ(ended.status, kExitUsage) << ended.output;
    EXPECT_THAT(ended.output, AllOf(HasSubstr("checkpoint " + folder + " is not one of this run: "),
                                    HasSubstr("initialize.from"), Not(HasSubstr("step 5/"))));
    EXPECT_FALSE(fs::exists(RunDir() + "/lives/2")) << "a refused launch is no life";
    const Ended verify = Plan({"checkpoint", "verify", RunDir()});
    EXPECT_EQ(verify.status, kExitDamaged) << verify.output;
    EXPECT_THAT(Plan({"checkpoint", "ls", RunDir()}).output, HasSubstr("of another run: "));
  }

  // Changes the manifest of a checkpoint, with its own digest made for it.
  static void ChangeManifest(const std::string& folder, const std::function<void(ordered_json&)>& change) {
    ordered_json json = ordered_json::parse(ReadBytes(folder + "/manifest.json"));
    change(json);
    WriteBytes(folder + "/manifest.json", ManifestText(json));
  }
  // The same of the index of a shard, with the manifest made for it.
  static void ChangeIndex(const std::string& folder, size_t shard, const std::function<void(ordered_json&)>& change) {
    ChangeManifest(folder, [&](ordered_json& manifest) {
      ordered_json& entry = manifest["shards"][shard];
      const std::string path = folder + "/" + IndexFile(entry["rank"]);
      ordered_json index = ordered_json::parse(ReadBytes(path));
      change(index);
      const std::string text = index.dump(2) + "\n";
      WriteBytes(path, text);
      entry["bytes"] = index["bytes"], entry["index_bytes"] = text.size(), entry["index_sha256"] = Sha256Hex(text);
    });
  }

  // Takes everything out of a run of one life that releases before runs had an identity did not write.
  void MakeOlder() const {
    fs::remove(RunDir() + "/run.json");
    WriteBytes(RunDir() + "/lives/1/start.json", "{\"from_life\":0,\"from_step\":0}\n");
    for (const char* file : {"/metrics.jsonl", "/lives/1/checkpoints.jsonl"}) {
      std::stringstream lines(ReadBytes(RunDir() + file));
      std::string older;
      for (std::string line; std::getline(lines, line);) {
        ordered_json record = ordered_json::parse(line);
        record.erase("run_id"), record.erase("life");
        older += record.dump() + "\n";
      }
      WriteBytes(RunDir() + file, older);
    }
    for (const std::string& name : CheckpointNames()) {
      const std::string folder = Checkpoint(name);
      const size_t shards = JsonOf(folder + "/manifest.json")["shards"].size();
      for (size_t shard = 0; shard < shards; ++shard) {
        ChangeIndex(folder, shard, [&](ordered_json& index) {
          index["format"] = 1;
          for (const char* key : {"run_id", "life", "step", "applied_steps", "skipped_steps", "consumed_samples"})
            index.erase(key);
          const std::string path = folder + "/" + ShardFile(index["rank"]), bytes = ReadBytes(path);
          uint64_t length = 0;
          std::memcpy(&length, bytes.data(), sizeof length);
          ordered_json header = ordered_json::parse(bytes.substr(8, length));
          header.erase("__metadata__");
          std::string text = header.dump();
          text.resize((text.size() + 7) / 8 * 8, ' ');
          const uint64_t now = text.size();
          text.insert(0, reinterpret_cast<const char*>(&now), sizeof now);
          WriteBytes(path, text + bytes.substr(8 + length));
          index["header_sha256"] = Sha256Hex(text);
          index["bytes"] = fs::file_size(path);
        });
      }
      ChangeManifest(folder, [](ordered_json& manifest) { manifest["format"] = 1, manifest.erase("run_id"); });
    }
  }
};

TEST_F(Identity, IsInEveryFileThatCounts) {
  ASSERT_EQ(Run(4).status, 0);
  ExpectGoesOn(6, 4);
  const std::string id = RunId();
  EXPECT_TRUE(IsRunId(id)) << id;
  for (const char* name :
       {"/lives/1/start.json", "/lives/1/outcome.json", "/lives/2/start.json", "/outcome.json", "/logs/launch.log",
        "/lives/1/logs/launch.log", "/logs/rank0000.log", "/logs/rank0001.log",
        "/checkpoints/step-00000006.life-2/manifest.json", "/checkpoints/step-00000006.life-2/rank-00001.json",
        "/checkpoints/step-00000004.life-1/rank-00000.safetensors"})
    EXPECT_THAT(ReadBytes(RunDir() + name), HasSubstr(id)) << name;
  EXPECT_THAT(Plan({"checkpoint", "show", RunDir()}).output, HasSubstr("of run " + id));
  ExpectWholeCheckpoints(3);
}

TEST_F(Identity, ACheckpointOfAnotherRunIsRefused) {
  const std::string other = OfAnotherRun();
  ASSERT_EQ(Run(4).status, 0);
  const std::string newest = Checkpoint("step-00000004.life-1"), own = Folder() + "/own";
  fs::rename(newest, own);
  Replace(newest, other);
  ExpectRefused(newest);
  // A rank that nobody's launch has looked for says the same.
  fs::create_directories(RunDir() + "/lives/2");
  std::vector<Started> ranks;
  const std::string port = "MASTER_PORT=" + FreePort();
  for (const char* rank : {"0", "1"}) {
    ranks.push_back(
        StartProgram({InBuild("bin/executor"), "--plan", RunDir() + "/plan.json", "--run-dir", RunDir(), "--life", "2"},
                     {std::string("RANK=") + rank, "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=2",
                      "MASTER_ADDR=localhost", port},
                     Folder() + "/by_hand" + rank));
  }
  const Ended first = End(ranks[0]);
  EXPECT_EQ(first.status, kExitUsage) << first.output;
  EXPECT_THAT(first.output, HasSubstr(newest + " is not one of this run: it is of run "));
  // Rank 0 serves the store, so the other one may hear no more than that it is gone.
  EXPECT_NE(End(ranks[1]).status, 0);
  fs::remove_all(RunDir() + "/lives/2");
  // With an older one the run goes on from its own, and says that it does not take that.
  Replace(newest, own);
  Replace(Checkpoint("step-00000002.life-1"), other);
  ChangeManifest(Checkpoint("step-00000002.life-1"), [](ordered_json& json) { json["step"] = 2; });
  const Ended goes_on = Run(6);
  EXPECT_EQ(goes_on.status, 0) << goes_on.output;
  EXPECT_THAT(goes_on.output, AllOf(HasSubstr("resuming after step 4 "), HasSubstr("is not used: it is of run ")));
  ExpectCurve(6);
  // To take its weights is what initialize.from is for.
  fs::remove_all(RunDir());
  const Ended begins = Run(2, {"initialize.from=" + other});
  EXPECT_EQ(begins.status, 0) << begins.output;
  EXPECT_THAT(begins.output, HasSubstr("with the weights of " + other));
}

TEST_F(Identity, RunsOfAnOlderReleaseGoOn) {
  const std::string other = OfAnotherRun([this] { MakeOlder(); });
  ASSERT_EQ(Run(4).status, 0);
  MakeOlder();
  ExpectWholeCheckpoints(2);
  const std::string newest = Checkpoint("step-00000004.life-1"), own = Folder() + "/own";
  fs::rename(newest, own);
  Replace(newest, other);
  ExpectRefused(newest);
  EXPECT_FALSE(fs::exists(RunDir() + "/run.json"));
  Replace(newest, own);
  ExpectGoesOn(6, 4);
  EXPECT_EQ(JsonOf(RunDir() + "/lives/2/start.json")["run_id"], RunId());
  ExpectWholeCheckpoints(3);
  ExpectGoesOn(8, 6);
  ExpectWholeCheckpoints(4);
  // Those of the time before are still its own: where newer ones are gone, it goes on from there.
  for (const char* name : {"step-00000006.life-2", "step-00000008.life-3"}) fs::remove_all(Checkpoint(name));
  ExpectGoesOn(6, 4);
}

TEST_F(Identity, WhatTwoFilesSayIsCompared) {
  const std::vector<std::string> each = {"checkpoint.every_steps=1"};
  ASSERT_EQ(Run(8, each).status, 0);
  const auto folder = [&](int64_t step) { return Checkpoint(CheckpointFolder(step, 1)); };
  std::vector<std::string> says(9);
  const auto change = [&](int64_t step, const char* key, const ordered_json& value) {
    ChangeManifest(folder(step), [&](ordered_json& json) { json[key] = value; });
  };
  change(8, "applied_steps", 1000), says[8] = "its applied_steps and skipped_steps are 1000 and 0 after 8 steps";
  change(7, "consumed_samples", int64_t{1} << 52), says[7] = "its consumed_samples is 4503599627370496 after 7 steps";
  change(6, "world_size", 3), says[6] = "its world_size is 3; by the plan beside it, it is 2";
  change(5, "precision", "bf16"), says[5] = "its precision is bf16; by the plan beside it, it is fp32";
  change(4, "life", 2), says[4] = "it is that of step-00000004.life-2, not of step-00000004.life-1";
  {
    std::string plan = ReadBytes(folder(3) + "/plan.json");
    plan[plan.size() / 2] = static_cast<char>(plan[plan.size() / 2] ^ 1);
    WriteBytes(folder(3) + "/plan.json", plan);
    says[3] = "plan.json: its SHA-256 is ";
  }
  ChangeIndex(folder(2), 1, [&](ordered_json& index) {
    const std::string path = folder(2) + "/rank-00001.safetensors", key = "language.lm_head.weight";
    const auto file = SafetensorsFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    const StoredTensor stored = *file->Find(key);
    std::string bytes = ReadBytes(path);
    const float value = std::nanf("");
    std::memcpy(&bytes[stored.offset + 20], &value, sizeof value);
    WriteBytes(path, bytes);
    index["tensors"][key]["sha256"] = Sha256Hex(bytes.substr(stored.offset, stored.bytes));
    says[2] = "tensor " + key + ": element 5 is infinite or no number (NaN)";
  });
  for (int64_t step = 8; step > 1; --step) {
    const Ended verify = Plan({"checkpoint", "verify", folder(step)});
    EXPECT_EQ(verify.status, kExitDamaged) << step;
    EXPECT_THAT(verify.output, HasSubstr(says[step])) << step;
  }
  EXPECT_EQ(Plan({"checkpoint", "verify", folder(1)}).status, 0);
  // One launch passes over all of them, and says of each why.
  const Ended ended = Run(8, each);
  EXPECT_EQ(ended.status, 0) << ended.output;
  for (int64_t step = 8; step > 1; --step) EXPECT_THAT(ended.output, HasSubstr(says[step]));
  EXPECT_THAT(ended.output, HasSubstr("resuming after step 1 from " + folder(1)));
  ExpectCurve(8);
}

TEST_F(Identity, ARunDirectoryMayBeMovedAndCopied) {
  ASSERT_EQ(Run(4).status, 0);
  const std::string id = RunId(), moved = Folder() + "/moved";
  fs::rename(RunDir(), moved);
  fs::copy(moved, RunDir(), fs::copy_options::recursive);
  ExpectGoesOn(6, 4);
  EXPECT_EQ(RunId(), id);
  fs::remove_all(RunDir());
  fs::rename(moved, RunDir());
  // Without its file, the run remembers who it is.
  fs::remove(RunDir() + "/run.json");
  ExpectGoesOn(8, 4);
  EXPECT_EQ(RunId(), id);
}

// A life with other rates was accepted and has published nothing. What counts is the plan of the checkpoint.
TEST_F(Identity, TheCheckpointsOwnPlanIsCompared) {
  ASSERT_EQ(Run(4).status, 0);
  const std::string rate = "budget.learning_rate.peak=1.0e-3";
  const Ended accepted =
      RunUntilKilled(6, {.rank = 0, .list = "step", .step = 5, .number = 1}, {rate, "--accept-changes"});
  ASSERT_EQ(accepted.status, kExitPeerLost) << accepted.output;
  ASSERT_THAT(accepted.output, HasSubstr("resuming after step 4"));
  const Ended refused = Run(6, {rate});
  EXPECT_EQ(refused.status, kExitUsage) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("would change the loss curve"));
  ExpectGoesOn(6, 4);
}

}  // namespace
}  // namespace planwright::testing
