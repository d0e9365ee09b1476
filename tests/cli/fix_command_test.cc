// `plan validate --fix` on files: what is written, what stays, and what is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"
#include "tests/cli/plan_program.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramResult;
using ::testing::StartsWith;

// tests/golden/slips/text.yaml, in its form.
class Fix : public testing::PlanProgram {
 protected:
  std::string Good() {
    const std::string file =
        Write("good.yaml", ReadWholeFile(InSource("tests/golden/slips/text.yaml"), 1 << 20).value());
    Plan("fmt " + file);
    return Read("good.yaml");
  }
  // Three errors that have fixes, and comments.
  std::string Wrong() {
    return absl::StrReplaceAll(Good(), {{"gpu: h100_sxm", "gpu: H100-80GB  # eight of them"},
                                        {"parallel: {tp: 2}", "parallel: {tensor_model_parallel_size: 2}"},
                                        {"  train_samples: 640000", "  # as before\n  max_steps: 10k"}});
  }
};

TEST_F(Fix, WritesWhatIsSuggestedAndKeepsComments) {
  const std::string file = Write("r.yaml", Wrong());
  const ProgramResult fixed = Plan("validate --fix " + file);
  EXPECT_EQ(fixed.status, 0) << fixed.err;
  EXPECT_THAT(fixed.out, StartsWith("fixed " + file + ":\n@@ line "));
  EXPECT_THAT(fixed.out, HasSubstr("\n-  max_steps: 10k\n+  train_samples: 640000\n"));
  EXPECT_THAT(fixed.out, HasSubstr("\ntext is valid\n"));
  EXPECT_EQ(fixed.err, "");
  const std::string text = Read("r.yaml");
  EXPECT_EQ(text, absl::StrReplaceAll(Good(), {{"gpu: h100_sxm", "gpu: h100_sxm   # eight of them"},  // in its column
                                               {"  train_samples", "  # as before\n  train_samples"}}));
  // What has no error is not touched, even if it has not its form.
  const std::string messy = Write("messy.yaml", absl::StrReplaceAll(text, {{"name: text", "name:   text"}}));
  const auto before = std::filesystem::last_write_time(messy);
  const ProgramResult again = Plan("validate --fix " + messy);
  EXPECT_EQ(again.status, 0);
  EXPECT_THAT(again.out, StartsWith("text is valid\n"));
  EXPECT_EQ(std::filesystem::last_write_time(messy), before);
}

TEST_F(Fix, LeavesOtherFilesAndOverrides) {
  const std::string base = Write("base.yaml", Wrong());
  const std::string own = "name: child\nextends: [base.yaml]\n", file = Write("r.yaml", own);
  const ProgramResult told = Plan("validate --fix " + file);
  EXPECT_EQ(told.status, 1);
  EXPECT_THAT(told.err, HasSubstr("base.yaml:"));
  EXPECT_THAT(told.out, Not(HasSubstr("fixed")));
  EXPECT_EQ(Read("r.yaml"), own);
  EXPECT_EQ(Read("base.yaml"), Wrong());
  const std::string good = Write("good2.yaml", Good());
  const ProgramResult of_override = Plan("validate --fix " + good + " checkpoint.save_interval=7");
  EXPECT_EQ(of_override.status, 1);
  EXPECT_THAT(of_override.err, HasSubstr("save_interval"));
  EXPECT_EQ(Read("good2.yaml"), Good());
  // A file of `extends` that is named wrongly is a mistake of this file.
  Write("base.yaml", Good());
  const std::string wrong = Write("wrong.yaml", "name: child\nextends: [base.yml]\n");
  EXPECT_EQ(Plan("validate --fix " + wrong).status, 0);
  EXPECT_EQ(Read("wrong.yaml"), own);
}

// The value stands in the file that is fixed, and lies over one of a file that it extends.
TEST_F(Fix, LaysOverAFileThatIsExtended) {
  Write("base.yaml", Good());
  for (const auto& [wrong, right] : std::vector<std::pair<std::string, std::string>>{
           {"batch: {global_sampels: 64}", "batch: {global_samples: 64}"},
           {"batch: {sequence_lenght: 8192}", "batch: {sequence_length: 8192}"},
           {"batch: {seq_length: 8192}", "batch: {sequence_length: 8192}"},
           {"optimizer: {clip_grad_nrom: 2.0}", "optimizer: {clip_grad_norm: 2.0}"}}) {
    const std::string file = Write("r.yaml", "name: child\nextends: [base.yaml]\n" + wrong + "\n");
    const ProgramResult fixed = Plan("validate --fix " + file);
    EXPECT_EQ(fixed.status, 0) << wrong << fixed.err;
    EXPECT_THAT(Read("r.yaml"), HasSubstr(right)) << wrong;
  }
  EXPECT_EQ(Read("base.yaml"), Good());
}

// No number is chosen, nothing that was asked for is dropped, and it is said why.
TEST_F(Fix, LeavesWhatAPersonMustDecide) {
  const std::string chosen = "--fix leaves it: which value is right is for you to decide",
                    dropped = "--fix leaves it: without it the recipe would say something else",
                    open = "--fix leaves it: what is right here does not follow from the recipe";
  const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
      {"    peak: 3.0e-4", "    peak: -3", chosen},
      {"    mlp: {ffn: 8192}", "    mlp: {ffn: 0}", chosen},
      {"    style: cosine", "    style: cosine\n    decay_samples: 10", dropped},
      {"    style: cosine", "    style: cosine\n    frobnicate: 3", open},
      {"  micro_samples: 1", "  micro_samples: 1\n  gradient_accumulation_steps: 5", dropped},
      {"  micro_samples: 1", "  micro_samples: 1\n  global_batch_size: 77", dropped},
      {"parallel: {tp: 2}", "parallel: {tp: 3}", chosen},
      {"optimizer: {clip_grad_norm: 1.0}", "optimizer: {clip_grad_norm: 1.0, name: sgd}", dropped},
      {"optimizer: {clip_grad_norm: 1.0}", "precision: {params: fp16}", chosen},
      {"optimizer: {clip_grad_norm: 1.0}", "optimizer: {clip_grad_norm: 1.0}\nhidden_dropout: 0.1", dropped},
  };
  for (const auto& [right, wrong, why] : cases) {
    const std::string text = absl::StrReplaceAll(Good(), {{right, wrong}});
    ASSERT_NE(text, Good()) << right;
    const std::string file = Write("r.yaml", text);
    const ProgramResult left = Plan("validate --fix " + file);
    EXPECT_EQ(left.status, 1) << wrong << left.out;
    EXPECT_THAT(left.err, HasSubstr("note: " + why)) << wrong;
    EXPECT_EQ(Read("r.yaml"), text) << wrong;
  }
}

// An effective batch is the samples of a step: the same one goes, and where there is none it is written.
TEST_F(Fix, WritesMicrobatchesAsSamplesOfAStep) {
  const std::string good = Good();
  const std::string same = absl::StrReplaceAll(good, {{"  global_samples: 64", "  gradient_accumulation_steps: 16"}});
  ASSERT_NE(same, good);
  const std::string file = Write("r.yaml", same);
  const ProgramResult fixed = Plan("validate --fix " + file);
  EXPECT_EQ(fixed.status, 0) << fixed.err;
  EXPECT_EQ(Read("r.yaml"), good);
}

TEST_F(Fix, SaysWhichOtherPlaceHasTheValue) {
  Write("base.yaml", Wrong());
  const std::string file = Write("r.yaml", "name: child\nextends: [base.yaml]\n");
  EXPECT_THAT(Plan("validate --fix " + file).err, HasSubstr("note: --fix leaves it: `cluster.gpu` stands in "));
  const std::string good = Write("good2.yaml", Good());
  EXPECT_THAT(Plan("validate --fix " + good + " cluster.gpu=H100-80GB").err,
              HasSubstr("note: --fix leaves it: `cluster.gpu` is an override"));
}

TEST_F(Fix, MakesWhatItCanAndTellsTheRest) {
  const std::string file =
      Write("r.yaml", absl::StrReplaceAll(Wrong(), {{"    warmup_samples", "    frobnicate: 3\n    warmup_samples"}}));
  const ProgramResult fixed = Plan("validate --json --fix " + file);
  EXPECT_EQ(fixed.status, 1);
  const json told = json::parse(fixed.out);
  EXPECT_EQ(told["fixed"]["changed"], true);
  EXPECT_THAT(told["fixed"]["diff"].get<std::string>(), HasSubstr("+  train_samples: 640000\n"));
  ASSERT_EQ(told["problems"].size(), 1u);
  EXPECT_THAT(told["problems"][0]["message"].get<std::string>(), HasSubstr("frobnicate"));
  EXPECT_THAT(Read("r.yaml"), HasSubstr("frobnicate: 3"));
  EXPECT_THAT(Read("r.yaml"), HasSubstr("train_samples: 640000"));
}

TEST_F(Fix, KeepsLineEndsAndLinks) {
  const std::string file = Write("r.yaml", absl::StrReplaceAll(Wrong(), {{"\n", "\r\n"}}));
  std::filesystem::create_symlink("r.yaml", folder_ + "/link.yaml");
  const ProgramResult fixed = Plan("validate --fix " + folder_ + "/link.yaml");
  EXPECT_EQ(fixed.status, 0) << fixed.err;
  EXPECT_THAT(fixed.out, HasSubstr("\n+  train_samples: 640000\n")) << "a diff to read";
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ + "/link.yaml"));
  EXPECT_THAT(Read("r.yaml"), HasSubstr("  train_samples: 640000\r\n"));
  EXPECT_THAT(absl::StrReplaceAll(Read("r.yaml"), {{"\r\n", ""}}), Not(HasSubstr("\n")));
}

TEST_F(Fix, RefusesPlansAndLeavesWhatIsNoYaml) {
  const ProgramResult plan = Plan("validate --fix " + Write("plan.json", "{}"));
  EXPECT_EQ(plan.status, 2);
  EXPECT_THAT(plan.err, HasSubstr("is a compiled plan"));
  const std::string open = Good() + "a: [1,\n", file = Write("r.yaml", open);
  EXPECT_EQ(Plan("validate --fix " + file).status, 1);
  EXPECT_EQ(Read("r.yaml"), open);
}

}  // namespace
}  // namespace planwright
