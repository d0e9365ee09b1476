// A run with adapters as people use it: one that is killed goes on, its checkpoints are evaluated and begin other runs,
// and what they stand on must be named (docs/training/adapters.md#checkpoints).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "planner/base/files/exit_status.h"
#include "tests/end_to_end/checkpoint_run.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Words = std::vector<std::string>;

// The encoder is frozen with adapters, and its projector learns; the language model is frozen with adapters.
const Words kAdapted = {
    "modules.radio_encoder.train.backbone=frozen",
    "modules.radio_encoder.adapter={rank: 2, alpha: 4.0, targets: [attn.qkv, fc2]}",
    "modules.language.train.backbone=frozen",
    "modules.language.adapter={rank: 3, alpha: 6.0, targets: [in_proj, q_proj, o_proj, shared_experts.up_proj]}",
    "models.radio_vit_tiny.positions=interpolate",
    "evaluation={every_samples: 16, sets: [{name: held_out, samples: 8, seed: 1}]}"};

// The number behind the last "held_out " of what was printed: "5.550813".
std::string LastLoss(const std::string& output) {
  const size_t word = output.rfind("  held_out ");
  if (word == std::string::npos) return "none";
  const size_t begin = output.find_first_of("0123456789", word);
  return output.substr(begin, output.find(' ', begin) - begin);
}

// The one before the first step.
std::string FirstLoss(const std::string& output) { return LastLoss(output.substr(0, output.find("\nstep 1/"))); }

class AdapterRun : public CheckpointRun {
 protected:
  Ended Evaluate(const Words& words) {
    Words all = {"evaluate", RunDir(), Recipe()};
    all.insert(all.end(), kAdapted.begin(), kAdapted.end());
    all.insert(all.end(), words.begin(), words.end());
    return Plan(all);
  }
};

TEST_F(AdapterRun, GoesOnWhereItWasKilled) {
  constexpr int kSome = 6;
  ASSERT_EQ(Run(kSome, kAdapted).status, 0);
  const std::vector<std::string> whole = Curve();
  ASSERT_GE(whole.size(), static_cast<size_t>(kSome));  // evaluations too
  fs::remove_all(RunDir());

  const Ended killed =
      RunUntilKilled(kSome, {.rank = 1, .list = "step", .step = 4, .number = 3, .waits = FirstManifest(2)}, kAdapted);
  ASSERT_EQ(killed.status, kExitPeerLost) << killed.output;
  const Ended resumed = Run(kSome, kAdapted);
  ASSERT_EQ(resumed.status, 0) << resumed.output;
  EXPECT_THAT(resumed.output, AllOf(HasSubstr("resuming after step 2"), Not(HasSubstr("beginning"))));
  EXPECT_EQ(Curve(), whole);
  ExpectWholeCheckpoints(3);
}

TEST_F(AdapterRun, IsEvaluatedOnWhatItStandsOn) {
  const Ended run = Run(4, kAdapted);
  ASSERT_EQ(run.status, 0) << run.output;
  const Ended ended = Evaluate({});
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr(", after step 4\n"));
  EXPECT_NE(LastLoss(run.output), "none") << run.output;
  EXPECT_EQ(LastLoss(ended.output), LastLoss(run.output)) << "its own evaluation after step 4";

  const Ended other = Evaluate({"data.seed=77"});
  EXPECT_EQ(other.status, kExitUsage);
  EXPECT_THAT(other.output, AllOf(HasSubstr("the adapters of language, radio_encoder in " + Checkpoints()),
                                  HasSubstr("stand on other weights than those that the plan names")));
}

TEST_F(AdapterRun, BeginsAnotherRunWithItsAdapters) {
  const Ended before = Run(2, kAdapted);
  ASSERT_EQ(before.status, 0) << before.output;
  const std::string first = Folder() + "/first";
  fs::rename(RunDir(), first);
  const auto begin = [&](const std::string& initialize) {
    Words words = kAdapted;
    words.push_back("initialize=" + initialize);
    return Run(2, words);
  };
  const Ended alone = begin("{from: " + first + "}");
  EXPECT_EQ(alone.status, kExitUsage);
  EXPECT_THAT(alone.output, HasSubstr(" has the adapters of language alone: name what they stand on, and for "
                                      "language.adapter this checkpoint, in initialize.sources"));
  const Ended both =
      begin("{sources: [{for: radio_encoder.backbone, from: drawn}, {for: radio_encoder.projection, from: " + first +
            "}, {for: radio_encoder.adapter, from: " + first +
            "}, {for: language, from: drawn}, {for: language.adapter, from: " + first + "}]}");
  ASSERT_EQ(both.status, 0) << both.output;
  EXPECT_THAT(both.output, HasSubstr(first + "/checkpoints/step-00000002.life-1 (language.adapter)"));
  EXPECT_THAT(both.output, HasSubstr("evaluation of step 0/40  held_out " + LastLoss(before.output)));
}

// Adapters as PEFT has them, and merged: what is merged into has other weights then, and the model is the same.
TEST_F(AdapterRun, LeavesMergedAsTheModelThatItWas) {
  const std::string recipe = InSource("recipes/llama_tiny.yaml");
  const auto launch = [&](const std::string& run_dir, const std::string& steps, Words words) {
    words.insert(words.begin(), {"launch", recipe, "checkpoint.every_steps=2", "budget.learning_rate.warmup_samples=0",
                                 "evaluation={every_samples: 16, sets: [{name: held_out, samples: 8, seed: 1}]}",
                                 "--local", "--yes", "--run-dir", Folder() + run_dir, "--steps", steps});
    return Plan(words);
  };
  const auto leave = [&](const std::string& run_dir, const std::string& folder, const std::string& like) {
    Words words = {"export", Folder() + run_dir, "-o", Folder() + folder};
    if (!like.empty()) words.insert(words.end(), {"--like", Folder() + like});
    return Plan(words);
  };
  ASSERT_EQ(launch("/whole", "2", {}).status, 0);
  ASSERT_EQ(leave("/whole", "/base", "").status, 0);
  const Words adapted = {"initialize={from: " + Folder() + "/base}", "modules.language.train.backbone=frozen",
                         "modules.language.adapter={rank: 3, alpha: 12.0, targets: [q_proj, v_proj, down_proj]}"};
  const Ended run = launch("/adapted", "4", adapted);
  ASSERT_EQ(run.status, 0) << run.output;
  const Ended merged = leave("/adapted", "/merged", "/base");
  ASSERT_EQ(merged.status, 0) << merged.output;
  EXPECT_THAT(merged.output, Not(HasSubstr("other files")));
  const Ended same = launch("/from_merged", "1", {"initialize={from: " + Folder() + "/merged}"});
  ASSERT_EQ(same.status, 0) << same.output;
  EXPECT_NEAR(std::stod(FirstLoss(same.output)), std::stod(LastLoss(run.output)), 2e-6) << run.output << same.output;

  // As PEFT has them, they begin another run where they were.
  const Ended left = leave("/adapted", "/adapter", "");
  ASSERT_EQ(left.status, 0) << left.output;
  EXPECT_TRUE(fs::exists(Folder() + "/adapter/adapter_model.safetensors"));
  Words again = adapted;
  again[0] = "initialize={sources: [{for: language, from: " + Folder() +
             "/base}, {for: language.adapter, from: " + Folder() + "/adapter}]}";
  const Ended begun = launch("/again", "1", again);
  ASSERT_EQ(begun.status, 0) << begun.output;
  EXPECT_EQ(FirstLoss(begun.output), LastLoss(run.output));

  const Ended other = leave("/adapted", "/twice", "/merged");
  ASSERT_EQ(other.status, 0) << other.output;
  EXPECT_THAT(other.output, HasSubstr("the adapters of language were trained on other files than those of "));
}

// Runs of the language model alone, on a base that lies in files.
class AdapterFiles : public CheckpointRun {
 protected:
  static constexpr char kTargets[] = "q_proj, v_proj";

  void SetUp() override {
    CheckpointRun::SetUp();
    ASSERT_EQ(Launch("first", 2, {}).status, 0);
    ASSERT_EQ(Plan({"export", In("first"), "-o", In("base")}).status, 0);
  }

  std::string In(const std::string& name) const { return Folder() + "/" + name; }
  static Words Adapted(const std::string& initialize, const std::string& alpha = "12.0",
                       const std::string& targets = kTargets) {
    return {"modules.language.train.backbone=frozen",
            "modules.language.adapter={rank: 3, alpha: " + alpha + ", targets: [" + targets + "]}",
            "initialize=" + initialize};
  }
  std::string On(const std::string& base) const { return "{from: " + In(base) + "}"; }
  std::string On(const std::string& base, const std::string& adapters) const {
    return "{sources: [{for: language, from: " + In(base) + "}, {for: language.adapter, from: " + In(adapters) + "}]}";
  }
  Ended With(Words first, const Words& words) {
    first.insert(first.end(), {InSource("recipes/llama_tiny.yaml"), "checkpoint.every_steps=2",
                               "budget.learning_rate.warmup_samples=0",
                               "evaluation={every_samples: 16, sets: [{name: held_out, samples: 8, seed: 1}]}"});
    first.insert(first.end(), words.begin(), words.end());
    return Plan(first);
  }
  Ended Launch(const std::string& run, int steps, Words words) {
    words.insert(words.end(), {"--local", "--yes", "--run-dir", In(run), "--steps", std::to_string(steps)});
    return With({"launch"}, words);
  }
};

// Their tensors have the right shapes all the same.
TEST_F(AdapterFiles, OfARunHaveItsAlphaAndItsBase) {
  ASSERT_EQ(Launch("run", 2, Adapted(On("base"))).status, 0);
  ASSERT_EQ(Plan({"export", In("run"), "-o", In("merged"), "--like", In("base")}).status, 0);
  const Ended fits = With({"weights"}, Adapted(On("base", "run")));
  EXPECT_EQ(fits.status, 0) << fits.output;

  const std::string alpha =
                        "the adapters of language were trained with alpha 12, and the module's alpha is 6: set "
                        "modules.language.adapter.alpha to 12",
                    base =
                        "stand on other weights than those that the plan names for language: name those with which "
                        "its run began, " +
                        In("base") + "; to put them on other weights all the same, export them";
  for (const auto& [words, message] :
       {std::pair(Adapted(On("base", "run"), "6.0"), alpha), std::pair(Adapted(On("merged", "run")), base)}) {
    const Ended weights = With({"weights"}, words), launch = Launch("other", 1, words);
    EXPECT_EQ(weights.status, 1) << weights.output;
    EXPECT_THAT(weights.output, AllOf(HasSubstr(message), HasSubstr("the weights do not fit\n")));
    EXPECT_EQ(launch.status, kExitUsage);
    EXPECT_THAT(launch.output, AllOf(HasSubstr(message), Not(HasSubstr("step 1/"))));
  }
  // A folder says nothing of what its adapters stand on.
  ASSERT_EQ(Plan({"export", In("run"), "-o", In("folder")}).status, 0);
  const Ended meant = With({"weights"}, Adapted(On("merged", "folder")));
  EXPECT_EQ(meant.status, 0) << meant.output;
}

TEST_F(AdapterFiles, AreNotDroppedWhereTheyAreEvaluated) {
  ASSERT_EQ(Launch("run", 2, Adapted(On("base"))).status, 0);
  const Ended none = With({"evaluate", In("run")}, {"--accept-changes"});
  EXPECT_EQ(none.status, kExitUsage);
  EXPECT_THAT(none.output, AllOf(HasSubstr("has adapters of language, and the recipe has none: give "
                                           "modules.language.adapter as its run has it"),
                                 Not(HasSubstr("after step"))));
}

// Its own checkpoint has them, and a digest of what they stand on.
TEST_F(AdapterFiles, GoOnWithoutTheirSource) {
  ASSERT_EQ(Launch("run", 2, Adapted(On("base"))).status, 0);
  const Words begun = Adapted(On("base", "run"));
  ASSERT_EQ(Launch("second", 2, begun).status, 0);
  fs::rename(In("run"), In("moved"));
  const Ended resumed = Launch("second", 4, begun);
  ASSERT_EQ(resumed.status, 0) << resumed.output;
  EXPECT_THAT(resumed.output, AllOf(HasSubstr("resuming after step 2"),
                                    HasSubstr("the adapters stand on the weights of " + In("base") + " (language)\n")));

  // Nor does it matter where what they stand on lies. Other adapters are a person's to accept.
  fs::rename(In("base"), In("elsewhere"));
  const Words moved = Adapted(On("elsewhere", "run"));
  const Ended diff = With({"diff", In("second")}, moved);
  EXPECT_THAT(diff.output, AllOf(HasSubstr("1 difference; the loss curve does not change"),
                                 Not(HasSubstr("a launch asks for --accept-changes"))));
  const Ended on = Launch("second", 6, moved);
  ASSERT_EQ(on.status, 0) << on.output;
  EXPECT_THAT(on.output, AllOf(HasSubstr("1 difference; the loss curve does not change"), HasSubstr("by their digest"),
                               HasSubstr("resuming after step 4")));
  const Ended others = Launch("second", 8, Adapted(On("elsewhere", "moved")));
  EXPECT_EQ(others.status, kExitUsage);
  EXPECT_THAT(others.output, HasSubstr("give --accept-changes if that is meant"));
}

TEST_F(AdapterFiles, AreRefusedWhereNothingHelps) {
  ASSERT_EQ(Launch("run", 2, Adapted(On("base"))).status, 0);
  const std::string tensors = "its tensors are not those of the plan", base = "stand on other weights than those";
  for (const auto& [words, message] :
       {std::pair(Adapted(On("first")), base), std::pair(Adapted(On("base"), "12.0", "q_proj"), tensors)}) {
    const Ended launch = Launch("run", 4, words), diff = With({"diff", In("run")}, words);
    EXPECT_EQ(launch.status, kExitUsage);
    EXPECT_THAT(launch.output, AllOf(HasSubstr(" is refused, with --accept-changes too: "), HasSubstr(message),
                                     Not(HasSubstr("give --accept-changes"))));
    EXPECT_THAT(diff.output, AllOf(HasSubstr(" is refused\n"), HasSubstr(message),
                                   Not(HasSubstr("a launch asks for --accept-changes"))));
  }
  const Ended absent = With({"diff", In("run")}, Adapted(On("gone")));
  EXPECT_THAT(absent.output, HasSubstr("not compared, of what the adapters stand on: cannot read " + In("gone")));
  // Another alpha is a person's to accept.
  EXPECT_THAT(Launch("run", 4, Adapted(On("base"), "6.0")).output, HasSubstr("give --accept-changes if that is meant"));
}

// What is frozen now is another thing than what adapters stand on.
TEST_F(AdapterRun, AFrozenProjectionIsNoOtherBase) {
  ASSERT_EQ(Run(2, kAdapted).status, 0);
  Words frozen = kAdapted;
  frozen.insert(frozen.end(), {"modules.radio_encoder.train.projection=frozen", "--accept-changes"});
  const Ended resumed = Run(4, frozen);
  EXPECT_EQ(resumed.status, kExitUsage) << resumed.output;
  EXPECT_THAT(resumed.output,
              AllOf(HasSubstr("does not fit the plan"), HasSubstr("the plan has no radio_encoder.mlp1.0.weight"),
                    Not(HasSubstr("stand on other weights"))));
}

}  // namespace
}  // namespace planwright::testing
