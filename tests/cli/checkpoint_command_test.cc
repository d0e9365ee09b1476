// `plan checkpoint` on runs of real checkpoints: what it lists, shows and finds, and how it exits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "planner/state/checkpoint/run_lives.h"
#include "tests/cli/plan_program.h"
#include "tests/state/checkpoint/plan_checkpoint.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using testing::ProgramResult;

// The tiny recipe with its encoder on rank 0 and its language model on ranks 1 to 4.
const Plan& TinyPlan() {
  static const Plan plan = testing::CompiledFile(
      InSource("recipes/nemotron_moe_vlm_tiny.yaml"),
      {"modules.language.placement.first_rank=1", "modules.language.placement.ranks=4",
       "modules.language.parallel.tp=2", "modules.language.parallel.ep=2", "precision.params=bf16"});
  return plan;
}

class CheckpointCommand : public testing::PlanProgram {
 protected:
  void SetUp() override {
    PlanProgram::SetUp();
    run_ = folder_ + "/run";
  }

  // Life 1 published steps 2, 4 and 6; life 2 began from step 4 and published step 8.
  void MakeRun() {
    EXPECT_EQ(*TakeLife(run_), 1);
    EXPECT_TRUE(WriteLifeStart(run_, 1, testing::StartOf(TinyPlan())).ok());
    for (int64_t step : {2, 4, 6}) testing::WriteCheckpointOf(TinyPlan(), run_, step, 1);
    EXPECT_EQ(*TakeLife(run_), 2);
    EXPECT_TRUE(WriteLifeStart(run_, 2, testing::StartOf(TinyPlan(), 1, 4)).ok());
    testing::WriteCheckpointOf(TinyPlan(), run_, 8, 2);
  }
  std::string FolderOf(int64_t step, int life) const { return run_ + "/checkpoints/" + CheckpointFolder(step, life); }
  ProgramResult Run(const std::string& arguments) { return Plan("checkpoint " + arguments); }
  json Json(const std::string& arguments, int status = 0) {
    const ProgramResult result = Run(arguments + " --json");
    EXPECT_EQ(result.status, status) << result.err;
    return json::parse(result.out, nullptr, false);
  }
  // Changes one byte of a file.
  static void Flip(const std::string& path, int64_t at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const char byte = static_cast<char>(file.get() ^ 1);
    ASSERT_TRUE(file.seekp(at).put(byte)) << path;
  }

  std::string run_;
};

TEST_F(CheckpointCommand, ListsTheNewestFirst) {
  MakeRun();
  const ProgramResult text = Run("ls " + run_);
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.err, IsEmpty());
  EXPECT_THAT(text.out, MatchesRegex("step +life +samples +size +published +state\n"
                                     " *8 +2 +64 +[0-9.]+ [kM]B +2[0-9T:-]+Z +usable\n"
                                     " *6 +1 .* replaced: life 2 began from step 4 of life 1[^\n]*\n"
                                     " *4 +1 +32 .* usable; life 2 began from it\n"
                                     " *2 +1 +16 .* usable\n"));
  const json list = Json("ls " + run_)["checkpoints"];
  ASSERT_EQ(list.size(), 4U);
  EXPECT_EQ(list[0]["step"], 8);
  EXPECT_EQ(list[0]["life"], 2);
  EXPECT_EQ(list[0]["state"], "usable");
  EXPECT_EQ(list[0]["folder"], FolderOf(8, 2));
  EXPECT_EQ(list[0]["consumed_samples"], 64);
  EXPECT_GT(list[0]["bytes"], 100'000);
  EXPECT_EQ(list[1]["state"], "replaced");
  EXPECT_THAT(list[1]["why"], HasSubstr("life 2"));
  EXPECT_EQ(list[1]["bytes"], nullptr);
}

TEST_F(CheckpointCommand, SaysWhyACheckpointIsNotUsable) {
  MakeRun();
  std::filesystem::remove(FolderOf(8, 2) + "/manifest.json");
  std::filesystem::resize_file(FolderOf(4, 1) + "/rank-00001.safetensors", 10);
  std::filesystem::create_directories(run_ + "/checkpoints/old");
  const ProgramResult text = Run("ls " + run_);
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("not published: it has no manifest.json"),
                              HasSubstr("damaged: rank-00001.safetensors"), HasSubstr("foreign, old: its name")));
  // The damaged one is the newest that counts.
  EXPECT_THAT(Run("verify " + run_).out, HasSubstr("step-00000004.life-1: damaged"));
  EXPECT_EQ(Run("verify " + run_).status, 13);
  EXPECT_EQ(Run("verify " + FolderOf(8, 2)).status, 2);
  EXPECT_THAT(Run("verify " + FolderOf(8, 2)).err, HasSubstr("it has no manifest.json"));
}

TEST_F(CheckpointCommand, ShowsTensorsByModule) {
  MakeRun();
  const ProgramResult text = Run("show " + run_);
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("step-00000008.life-2 of nemotron_moe_vlm_tiny\n"),
                              HasSubstr("after step 8: 8 applied, 0 skipped, 64 samples"),
                              HasSubstr("written by life 2 on 5 ranks"), HasSubstr("bf16, 5 shards"),
                              HasSubstr("\nlanguage: "), HasSubstr("\nradio_encoder: ")));
  // Two layers of 8 experts are one row.
  EXPECT_THAT(text.out, HasSubstr("backbone.layers.*.mixer.experts.*.up_proj.weight"));
  EXPECT_EQ(Run("show " + FolderOf(8, 2)).out, text.out);
  EXPECT_THAT(Run("show " + FolderOf(6, 1)).out, HasSubstr("step-00000006.life-1")) << "also one that does not count";

  const json shown = Json("show " + run_);
  EXPECT_EQ(shown["step"], 8);
  EXPECT_EQ(shown["plan_digest"], TinyPlan().digest);
  EXPECT_EQ(shown["shards"].size(), 5U);
  const std::vector<CheckpointTensor> tensors = CheckpointTensors(TinyPlan());
  ASSERT_EQ(shown["tensors"].size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(shown["tensors"][i]["key"], tensors[i].key);
    EXPECT_EQ(shown["tensors"][i]["shape"], tensors[i].shape);
    EXPECT_FALSE(shown["tensors"][i]["ranks"].empty());
  }
}

TEST_F(CheckpointCommand, VerifiesEveryByte) {
  MakeRun();
  const ProgramResult whole = Run("verify " + run_);
  EXPECT_EQ(whole.status, 0) << whole.err;
  EXPECT_THAT(whole.out, MatchesRegex("step-00000008.life-2: whole, [0-9.]+ [kM]B read\n"));
  EXPECT_THAT(whole.err, IsEmpty());
  EXPECT_THAT(Run("verify --all " + run_).out, MatchesRegex("step-00000008.*\nstep-00000004.*\nstep-00000002[^\n]*\n"));

  // A byte of a tensor in the middle of a shard: only reading finds it.
  const std::string shard = FolderOf(4, 1) + "/rank-00002.safetensors";
  Flip(shard, static_cast<int64_t>(std::filesystem::file_size(shard)) / 2);
  EXPECT_EQ(Run("ls " + run_).status, 0);
  EXPECT_EQ(Run("verify " + run_).status, 0) << "the newest is whole";
  const ProgramResult damaged = Run("verify " + FolderOf(4, 1));
  EXPECT_EQ(damaged.status, 13);
  EXPECT_THAT(damaged.out, AllOf(HasSubstr("step-00000004.life-1: damaged\n"), HasSubstr("  rank-00002.safetensors: "),
                                 Not(HasSubstr("rank-00001"))));
  const json all = Json("verify --all " + run_, 13);
  EXPECT_EQ(all["whole"], false);
  ASSERT_EQ(all["checkpoints"].size(), 3U);
  EXPECT_EQ(all["checkpoints"][0]["whole"], true);
  EXPECT_EQ(all["checkpoints"][1]["whole"], false);
  EXPECT_EQ(all["checkpoints"][1]["problems"][0]["file"], "rank-00002.safetensors");
  EXPECT_EQ(all["checkpoints"][2]["whole"], true);
}

TEST_F(CheckpointCommand, TellsADamagedFileFromNoCheckpoint) {
  MakeRun();
  Flip(FolderOf(8, 2) + "/rank-00000.json", 100);
  EXPECT_EQ(Run("show " + run_).status, 13);
  EXPECT_THAT(Run("show " + run_).err, HasSubstr("rank-00000.json"));
  Flip(FolderOf(8, 2) + "/manifest.json", 100);
  EXPECT_EQ(Run("show " + FolderOf(8, 2)).status, 13);
  EXPECT_EQ(Run("verify " + FolderOf(8, 2)).status, 13);
  Write("run/lives/2/start.json", "{");
  EXPECT_EQ(Run("ls " + run_).status, 13);
  EXPECT_THAT(Run("ls " + run_).err, HasSubstr("start.json"));

  std::filesystem::create_directories(folder_ + "/empty/checkpoints");
  Write("file", "text");
  for (const char* action : {"ls", "show", "verify"}) {
    for (const char* name : {"none", "file", "run/lives"}) {
      const ProgramResult result = Run(std::string(action) + " " + folder_ + "/" + name);
      EXPECT_EQ(result.status, 2) << action << " " << name;
      EXPECT_THAT(result.err, HasSubstr("error: ")) << action << " " << name;
      EXPECT_THAT(result.out, IsEmpty()) << action << " " << name;
    }
  }
  EXPECT_EQ(Run("ls " + folder_ + "/empty").status, 0);
  EXPECT_EQ(Json("ls " + folder_ + "/empty")["checkpoints"].size(), 0U);
  EXPECT_EQ(Run("show " + folder_ + "/empty").status, 2);
  EXPECT_EQ(Run("verify --all " + folder_ + "/empty").status, 2);
  EXPECT_EQ(Run("ls " + FolderOf(4, 1)).status, 2) << "a checkpoint is no run";
}

// Another user's run, and one below a folder of theirs: it may well be a run, and nobody can look.
TEST_F(CheckpointCommand, AFolderThatMayNotBeReadIsNamed) {
  MakeRun();
  std::string as_nobody;
  if (geteuid() == 0) {
    std::filesystem::permissions(folder_, std::filesystem::perms(0755));
    as_nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups ";
    if (Shell(as_nobody + "test -x " + InBuild("bin/plan")).status != 0)
      GTEST_SKIP() << "as root this needs setpriv, and a build that other users may read";
  }
  const std::string deeper = folder_ + "/deeper";
  std::filesystem::create_directories(deeper + "/run");
  const std::string closed[] = {run_, deeper};
  for (const std::string& one : closed) std::filesystem::permissions(one, std::filesystem::perms::none);
  for (const char* words :
       {"status ", "report ", "checkpoint ls ", "checkpoint show ", "checkpoint verify ", "diff x.yaml "}) {
    for (const std::string& path : {run_, deeper + "/run"}) {
      const ProgramResult result = Shell(as_nobody + InBuild("bin/plan") + " " + words + path);
      EXPECT_EQ(result.status, 2) << words;
      EXPECT_THAT(result.err, AllOf(HasSubstr(path), HasSubstr("Permission denied"))) << words << path;
    }
  }
  for (const std::string& one : closed) std::filesystem::permissions(one, std::filesystem::perms::owner_all);
}

TEST_F(CheckpointCommand, ChecksItsUsage) {
  std::filesystem::create_directories(run_ + "/checkpoints");
  for (const std::string& words : {std::string(), std::string("ls"), "list " + run_, "ls " + run_ + " " + run_,
                                   "ls --all " + run_, "show --all " + run_}) {
    EXPECT_EQ(Run(words).status, 2) << words;
    EXPECT_THAT(Run(words).err, HasSubstr("error: ")) << words;
  }
}

// A file may come from anywhere; it must not move the cursor of a terminal.
TEST_F(CheckpointCommand, PrintsNoControlCharacters) {
  std::filesystem::create_directories(run_ + "/checkpoints/'\x1b[31m'");
  EXPECT_THAT(Run("ls " + run_).out, AllOf(HasSubstr("foreign"), Not(HasSubstr("\x1b"))));
  EXPECT_EQ(Json("ls " + run_)["checkpoints"].size(), 1U);
  std::filesystem::create_directories(run_ + "/checkpoints/no\xffutf8");
  EXPECT_EQ(Json("ls " + run_)["checkpoints"].size(), 2U);
}

}  // namespace
}  // namespace planwright
