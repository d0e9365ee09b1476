// A run with adapters as people use it: one that is killed goes on, its checkpoints are evaluated and begin other runs,
// and what they stand on must be named (docs/training/adapters.md#checkpoints).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "planner/base/files/exit_status.h"
#include "tests/end_to_end/checkpoint_run.h"

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

}  // namespace
}  // namespace planwright::testing
