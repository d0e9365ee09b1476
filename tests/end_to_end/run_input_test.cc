// What a person may give to a run that keeps checkpoints: contradicting keys, a folder that holds something else, files
// that were moved or changed. Each gets a clear message and its exit status, and no run that has checkpoints silently
// begins again at step 1.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "planner/base/files/exit_status.h"
#include "tests/end_to_end/checkpoint_run.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class RunInput : public CheckpointRun {
 protected:
  static void Write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  std::string Checkpoint(const std::string& name) const { return Checkpoints() + "/" + name; }

  void ExpectRefused(int steps, const std::vector<std::string>& words, int status, const std::string& what) {
    const Ended ended = Run(steps, words);
    EXPECT_EQ(ended.status, status) << ended.output;
    EXPECT_THAT(ended.output, AllOf(HasSubstr(what), Not(HasSubstr("step 1/"))));
    EXPECT_TRUE(ProcessesWith(RunDir()).empty());
  }
  void ExpectGoesOn(int steps, int from, const std::string& what = "") {
    const Ended ended = Run(steps);
    ASSERT_EQ(ended.status, 0) << ended.output;
    EXPECT_THAT(ended.output, AllOf(HasSubstr("resuming after step " + std::to_string(from) + " "), HasSubstr(what)));
    ExpectCurve(static_cast<size_t>(steps));
  }
};

TEST_F(RunInput, KeysOfTheRecipe) {
  struct Case {
    std::vector<std::string> overrides;
    const char* message;
  };
  const Case cases[] = {
      {{"checkpoint.keep_last=2"}, "but not when one is written"},
      {{"checkpoint.keep_every_steps=2"}, "but not when one is written"},
      {{"checkpoint.every_steps=2", "checkpoint.keep_every_steps=4"}, "has no effect: all checkpoints stay"},
      {{"checkpoint.every_steps=2", "checkpoint.keep_last=1", "checkpoint.keep_every_steps=3"}, "no multiple"},
      {{"checkpoint.every_steps=0"}, "checkpoint.every_steps"},
      {{"checkpoint.every_steps=-2"}, "checkpoint.every_steps"},
      {{"checkpoint.every_steps=2.5"}, "checkpoint.every_steps"},
      {{"checkpoint.every_steps=two"}, "checkpoint.every_steps"},
      {{"checkpoint.every_steps=99999999999999999999"}, "checkpoint.every_steps"},
      {{"checkpoint.every_steps=2", "checkpoint.keep_last=-1"}, "checkpoint.keep_last"},
      {{"checkpoint.every_steps=2", "checkpoint.keep_last=0"}, "checkpoint.keep_last"},
      {{"checkpoint.every_steps=2", "checkpoint.keep_last=1", "checkpoint.keep_every_steps=-4"},
       "checkpoint.keep_every_steps"},
      {{"checkpoint.every=2"}, "every_steps"}};
  for (const Case& one : cases) {
    std::vector<std::string> words = {"compile", Recipe(), "-o", Folder() + "/plan.json"};
    words.insert(words.end(), one.overrides.begin(), one.overrides.end());
    const Ended ended = Plan(words);
    EXPECT_EQ(ended.status, kExitInvalid) << ::testing::PrintToString(one.overrides) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr(one.message)) << ::testing::PrintToString(one.overrides);
  }
}

// The largest numbers that a recipe may have: there is one checkpoint, at the end, and nothing overflows.
TEST_F(RunInput, HugeNumbers) {
  const std::string most = "1000000000000000";
  const Ended ended =
      Run(3, {"checkpoint.every_steps=" + most, "checkpoint.keep_last=" + most, "checkpoint.keep_every_steps=" + most});
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(CheckpointNames(), ElementsAre("step-00000003.life-1"));
}

TEST_F(RunInput, FoldersThatHoldSomethingElse) {
  Write(RunDir(), "a file");
  ExpectRefused(2, {}, kExitUsage, "cannot make the folder " + RunDir());
  fs::remove(RunDir());
  fs::create_directories(RunDir());
  Write(Checkpoints(), "a file");
  ExpectRefused(2, {}, kExitStorage, "cannot read the folder " + Checkpoints());
  fs::remove_all(RunDir());
  fs::create_directories(RunDir());
  Write(RunDir() + "/lives", "a file");
  ExpectRefused(2, {}, kExitUsage, "cannot read the folder " + RunDir() + "/lives");
}

TEST_F(RunInput, ThePlanOfTheRunSoFar) {
  ASSERT_EQ(Run(2).status, 0);
  const std::string path = RunDir() + "/plan.json", plan = ReadAll(path);
  for (const std::string& bytes : {std::string(), plan.substr(0, plan.size() / 2), std::string("{}")}) {
    Write(path, bytes);
    ExpectRefused(4, {}, kExitUsage, path);
  }
  fs::remove(path);
  fs::create_directories(path);
  ExpectRefused(4, {}, kExitUsage, "cannot read " + path);
  fs::remove(path);
  Write(path, plan);
  EXPECT_FALSE(fs::exists(RunDir() + "/lives/2")) << "a refused launch is no life";
  ExpectGoesOn(4, 2);
}

// Accepted or not, what does not fit is not loaded, and the run can go on with its own recipe.
TEST_F(RunInput, AnotherRecipe) {
  ASSERT_EQ(Run(2).status, 0);
  const std::string accept = "--accept-changes", refused = " is refused, with --accept-changes too: its tensors ";
  struct Case {
    std::vector<std::string> words;
    const char* message;
  };
  for (const Case& one :
       {Case{{"models.hybrid_moe_tiny.moe.ffn=32"}, "experts.0.down_proj.weight is fp32[64,48] in the checkpoint"},
        Case{{"precision.params=bf16"}, "is of a run in fp32, and the plan is in bf16"}}) {
    std::vector<std::string> words = one.words;
    ExpectRefused(4, words, kExitUsage, refused);
    words.push_back(accept);
    ExpectRefused(4, words, kExitUsage, one.message);
  }
  const Ended again = Run(4, {accept});
  EXPECT_EQ(again.status, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("resuming after step 2 "));
  ExpectCurve(4);
}

TEST_F(RunInput, OtherNamesOfModules) {
  ASSERT_EQ(Run(2).status, 0);
  const std::string recipe = Folder() + "/renamed.yaml";
  Write(recipe, std::regex_replace(ReadAll(Recipe()), std::regex("radio_encoder"), "eyes"));
  const Ended ended = Plan({"launch", recipe, "modules.language.placement.first_rank=1", "batch.micro_samples=2",
                            "budget.train_samples=320", "budget.learning_rate.decay_samples=320",
                            "checkpoint.every_steps=2", "--local", "--yes", "--run-dir", RunDir(), "--accept-changes"});
  EXPECT_EQ(ended.status, kExitUsage) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("does not fit the plan"), HasSubstr("the checkpoint has no eyes."),
                                  Not(HasSubstr("step 1/"))));
}

TEST_F(RunInput, CheckpointsThatWereMoved) {
  ASSERT_EQ(Run(4).status, 0);
  const std::string second = Checkpoint("step-00000002.life-1"), fourth = Checkpoint("step-00000004.life-1"),
                    third = Checkpoint("step-00000003.life-1");
  // By another name.
  fs::create_directories(Checkpoint("notes"));
  fs::create_directories(Checkpoint("step-7.life-1"));
  fs::copy(fourth, Checkpoint("step-00000004.life-1.bak"));
  fs::remove(RunDir() + "/outcome.json");  // with which the run would be done
  ExpectGoesOn(4, 4, "its name is not that of a checkpoint");
  // Two that have changed names.
  const auto swap = [&] { fs::rename(second, third), fs::rename(fourth, second), fs::rename(third, fourth); };
  swap();
  EXPECT_EQ(Plan({"checkpoint", "ls", RunDir()}).status, 0);
  ExpectRefused(6, {}, kExitDamaged, "manifest.json: it is that of step-00000002.life-1, not of step-00000004.life-1");
  swap();
  ExpectGoesOn(6, 4);
}

TEST_F(RunInput, CheckpointsThatAreGone) {
  ASSERT_EQ(Run(4).status, 0);
  const std::string newest = Checkpoint("step-00000004.life-1"), other = Checkpoint("step-00000004.life-1.bak");
  fs::remove_all(Checkpoint("step-00000002.life-1"));
  fs::rename(newest, other);
  ExpectRefused(6, {}, kExitDamaged, "checkpoint " + other + " is not used: its name is not that of a checkpoint");
  fs::rename(other, newest);
  ExpectGoesOn(6, 4);
  // A life began from a checkpoint, so there was one.
  const std::string away = Folder() + "/away";
  fs::rename(Checkpoints(), away);
  ExpectRefused(8, {}, kExitDamaged, "began from step 4 of life 1, and no checkpoint from there on is left");
  fs::remove_all(Checkpoints());
  fs::rename(away, Checkpoints());
  ExpectGoesOn(8, 6);
}

TEST_F(RunInput, AManifestOfAnotherRun) {
  ASSERT_EQ(Run(4, {"data.seed=77"}).status, 0);
  const std::string name = "step-00000004.life-1/manifest.json", other = Folder() + "/other.json";
  fs::rename(Checkpoint(name), other);
  fs::remove_all(RunDir());
  ASSERT_EQ(Run(4).status, 0);
  fs::copy_file(other, Checkpoint(name), fs::copy_options::overwrite_existing);
  EXPECT_EQ(Plan({"checkpoint", "verify", RunDir()}).status, kExitDamaged);
  ExpectRefused(6, {}, kExitUsage, "step-00000004.life-1 is not one of this run: it is of run ");
  fs::remove_all(Checkpoint("step-00000004.life-1"));
  ExpectGoesOn(6, 2);
}

// Checkpoints without the lives that wrote them: nobody knows which of them count.
TEST_F(RunInput, LivesThatAreGone) {
  ASSERT_EQ(Run(4).status, 0);
  const std::string start = RunDir() + "/lives/1/start.json", text = ReadAll(start);
  Write(start, "{");
  ExpectRefused(6, {}, kExitDamaged, start + " is damaged");
  fs::remove(start);
  ExpectRefused(6, {}, kExitUsage, "life 1 has not said how it began");
  Write(start, text);
  ExpectGoesOn(6, 4);
  const std::string away = Folder() + "/away";
  fs::rename(RunDir() + "/lives", away);
  EXPECT_THAT(Plan({"checkpoint", "ls", RunDir()}).output,
              HasSubstr("of no life: " + RunDir() + "/lives/1 is gone, so nobody can tell whether it counts"));
  ExpectRefused(8, {}, kExitUsage, "already holds a run whose folder lives is gone");
  fs::remove(RunDir() + "/plan.json");
  ExpectRefused(8, {}, kExitUsage, "is not before life 1");
  EXPECT_EQ(CheckpointNames().size(), 3U);
}

// Steps of another size: what counts is the samples. The next life goes on from the newest checkpoint, though its step
// has a smaller number, and retention keeps that one.
TEST_F(RunInput, AnotherGlobalBatch) {
  const std::vector<std::string> keep = {"checkpoint.every_steps=1", "checkpoint.keep_last=1"};
  ASSERT_EQ(Run(3, keep).status, 0);
  const auto with = [&](const char* word) {
    return std::vector<std::string>{keep[0], keep[1], word, "--accept-changes"};
  };
  ExpectRefused(3, with("batch.global_samples=16"), kExitUsage,
                "is after 24 samples, which is no whole number of steps of 16 samples");
  ASSERT_EQ(Run(4, with("batch.global_samples=8")).status, 0);
  const Ended larger = Run(3, with("batch.global_samples=16"));
  EXPECT_EQ(larger.status, 0) << larger.output;
  EXPECT_THAT(CheckpointNames(), ::testing::Contains(::testing::StartsWith("step-00000003.life-")));
  const Ended next = Run(4, with("batch.global_samples=16"));
  EXPECT_EQ(next.status, 0) << next.output;
  EXPECT_THAT(next.output, HasSubstr("resuming after step 3 "));
  const Ended smaller = Run(20, with("batch.global_samples=4"));
  EXPECT_EQ(smaller.status, 0) << smaller.output;
  EXPECT_THAT(smaller.output, HasSubstr("resuming after step 16 "));
  std::vector<int> samples;
  for (const std::string& line : Curve()) samples.push_back(nlohmann::json::parse(line).at("consumed_samples"));
  EXPECT_THAT(samples, ElementsAre(8, 16, 24, 32, 48, 64, 68, 72, 76, 80));
}

}  // namespace
}  // namespace planwright::testing
