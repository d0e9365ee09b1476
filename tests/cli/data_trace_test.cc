// `plan data stats` and `plan data trace`: their output, word for word, on fixtures of the webdataset package.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "nlohmann/json.hpp"
#include "planner/base/files/exit_status.h"
#include "tests/cli/plan_program.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class DataTrace : public PlanProgram {
 protected:
  std::string Recipe(const std::string& shards, const std::string& more = "") {
    return InSource("recipes/icons_8r_toy.yaml") +
           " 'data={kind: sources, seed: 3, max_patches: 256, sources: [{name: waves, kind: webdataset, shards: [" +
           shards + "], weight: 2}, {name: again, kind: webdataset, shards: [" + shards + "]}], index: " + folder_ +
           "/index" + more + "}'";
  }

  const std::string fixtures_ = InSource("tests/golden/data_fixtures");
  const std::string shards_ = fixtures_ + "/webdataset/*.tar";
};

TEST_F(DataTrace, ShowsASampleWordForWord) {
  ASSERT_EQ(Plan("data index " + Recipe(shards_)).status, kExitSuccess);
  const ProgramResult traced = Plan("data trace " + Recipe(shards_) + " --sample 0 --images " + folder_ + "/seen");
  EXPECT_EQ(traced.status, kExitSuccess) << traced.err;
  const std::string shard = fixtures_ + "/webdataset/shard-00000", image = folder_ + "/seen/sample-0.image-";
  EXPECT_THAT(traced.out, StartsWith("sample 0 of waves: epoch 0, pack 0\n"
                                     "  positions 0 to 58: " +
                                     shard +
                                     "0.tar: document waves_0, whole: 59 tokens\n"
                                     "  positions 59 to 95: " +
                                     shard +
                                     "0.tar: document note_2, whole: 37 tokens\n"
                                     "  positions 96 to 154: " +
                                     shard +
                                     "1.tar: document more/waves_3, whole: 59 tokens\n"
                                     "  0 to 47         image       image 1 of radio_encoder, 12 x 16 patches: " +
                                     image +
                                     "1.radio_encoder.png\n"
                                     "  48 to 58        learnt      \"slow waves\"\n"
                                     "  59 to 95        learnt      \"no picture here: žluťoučký kůň\"\n"
                                     "  96 to 143       image       image 2 of radio_encoder, 8 x 24 patches: " +
                                     image +
                                     "2.radio_encoder.png\n"
                                     "  144 to 154      learnt      \"wide waves\"\n"
                                     "  155 to 191      padding     37 tokens\n"
                                     "  ids     256 x48, 115, 108, 111, 119, 32, "));
  EXPECT_THAT(traced.out, HasSubstr("\n  labels  256 x47, 115, 108, "));
  EXPECT_THAT(Read("seen/sample-0.image-2.radio_encoder.png"), StartsWith("\x89PNG"));
  EXPECT_THAT(traced.out, Not(HasSubstr("\x1b[")));  // no terminal, no colour
}

// Pictures that it wrote before are replaced, those of somebody else are not.
TEST_F(DataTrace, ReplacesItsOwnPicturesAlone) {
  ASSERT_EQ(Plan("data index " + Recipe(shards_)).status, kExitSuccess);
  const std::string trace = "data trace " + Recipe(shards_) + " --sample 0 --images " + folder_ + "/seen";
  const std::string name = "seen/sample-0.image-2.radio_encoder.png";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Plan(trace).status, kExitSuccess);
  std::string other = Read(name);
  const size_t text = other.find("tEXt") - 4;
  other.erase(text, 4 + 4 + std::string("Software plan data trace").size() + 4);
  Write(name, other);
  const ProgramResult refused = Plan(trace);
  EXPECT_EQ(refused.status, kExitUsage);
  EXPECT_THAT(refused.err, HasSubstr(name + " is there and is no picture of `plan data trace`"));
  EXPECT_EQ(Read(name), other);
}

TEST_F(DataTrace, JsonHasTheSampleAsRanksReadIt) {
  ASSERT_EQ(Plan("data index " + Recipe(shards_)).status, kExitSuccess);
  // Of 3 samples 2 are of the first source.
  const ProgramResult traced = Plan("data trace " + Recipe(shards_) + " --step 1 --lane 0 --json");
  ASSERT_EQ(traced.status, kExitSuccess) << traced.err;
  const nlohmann::json samples = nlohmann::json::parse(traced.out)["samples"];
  ASSERT_GE(samples.size(), 2u);
  EXPECT_EQ(samples[0]["sample"], 0);
  EXPECT_EQ(samples[0]["source"], "waves");
  EXPECT_EQ(samples[0]["tokens"].size(), 192u);
  EXPECT_EQ(samples[0]["labels"][47], samples[0]["tokens"][48]);
  EXPECT_EQ(samples[0]["loss_mask"][46], 0);
  EXPECT_EQ(samples[0]["loss_mask"][47], 1);
  EXPECT_EQ(samples[0]["runs"][1]["text"], "slow waves");
  EXPECT_EQ(samples[0]["images"][1]["cols"], 24);
  EXPECT_EQ(samples[0]["documents"][1]["end"], 37);
}

TEST_F(DataTrace, IdsHaveTheTextOfTheirPieces) {
  const std::string recipe =
      InSource("recipes/icons_8r_toy.yaml") +
      " 'data={kind: sources, sources: [{name: chats, kind: webdataset, shards: [" + fixtures_ +
      "/prepared/*.tar]}], tokenizer: ids, image_token: 2, pad_token: 0, end_token: 1, index: " + folder_ + "/index}'";
  const ProgramResult indexed = Plan("data index " + recipe);
  ASSERT_EQ(indexed.status, kExitSuccess) << indexed.err;
  const std::string text = Plan("data trace " + recipe + " --sample 0").out +
                           Plan("data trace " + recipe + " --sample 1").out +
                           Plan("data trace " + recipe + " --sample 2").out;
  EXPECT_THAT(text, AllOf(HasSubstr("not learnt  \"Compare \""), HasSubstr("learnt      \"Alike.</s>\""),
                          HasSubstr("image 3 of radio_encoder")));
}

TEST_F(DataTrace, EveryKindOfDataIsShown) {
  const std::string mock = InSource("recipes/nemotron_moe_vlm_tiny.yaml");
  const ProgramResult traced = Plan("data trace " + mock + " --sample 8");
  EXPECT_EQ(traced.status, kExitSuccess) << traced.err;
  EXPECT_EQ(traced.out,
            "sample 8\n"
            "  0 to 2          image       image 1 of radio_encoder, 6 x 2 patches\n"
            "  3 to 4          image       image 2 of radio_encoder, 2 x 4 patches\n"
            "  5 to 20         learnt      16 tokens\n"
            "  21 to 47        padding     27 tokens\n"
            "  ids     255 x5, 208, 6, 89, 81, 15, 224, 190, 196, 167, 247, 130, 222, 196, 236, 151, 28, 254 x27\n"
            "  labels  255 x4, 208, 6, 89, 81, 15, 224, 190, 196, 167, 247, 130, 222, 196, 236, 151, 28, 254 x28\n");
  const ProgramResult stats = Plan("data stats " + mock + " --samples 50 --json");
  ASSERT_EQ(stats.status, kExitSuccess) << stats.err;
  EXPECT_EQ(nlohmann::json::parse(stats.out)["read_samples"], 50);
  // The lane of a step: its samples follow from the plan alone.
  EXPECT_THAT(Plan("data trace " + mock + " --step 2 --lane 0").out, StartsWith("sample 8\n"));
}

TEST_F(DataTrace, ALaneHasOtherSamplesWithBalance) {
  const std::string mock = InSource("recipes/nemotron_moe_vlm_tiny.yaml");
  const auto numbers = [&](const std::string& more) {
    std::vector<int64_t> all;
    for (const std::string lane : {"0", "1", "2", "3"}) {
      const ProgramResult traced = Plan("data trace " + mock + more + " --step 2 --json --lane " + lane);
      if (traced.status != kExitSuccess) break;
      const nlohmann::json samples = nlohmann::json::parse(traced.out)["samples"];
      for (const nlohmann::json& sample : samples) all.push_back(sample["sample"]);
    }
    return all;
  };
  std::vector<int64_t> plain = numbers(""), balanced = numbers(" data.balance=images");
  EXPECT_GE(plain.size(), 8u);
  EXPECT_NE(balanced, plain);
  std::sort(plain.begin(), plain.end());
  std::sort(balanced.begin(), balanced.end());
  EXPECT_EQ(balanced, plain);  // the step has the same samples
}

TEST_F(DataTrace, StatsSayWhatTheRunTrainsOn) {
  ASSERT_EQ(Plan("data index " + Recipe(shards_)).status, kExitSuccess);
  const ProgramResult told = Plan("data stats " + Recipe(shards_));
  EXPECT_EQ(told.status, kExitSuccess) << told.err;
  EXPECT_THAT(
      told.out,
      StartsWith("data of kind sources, 240 samples of 192 tokens\n\n"
                 "an epoch of each source, and the run\n"
                 "  source  share  documents  tokens  samples   full  samples of the run  epochs\n"
                 "  waves   66.7%          5     277        2  72.1%                 160      80\n"
                 "  again   33.3%          5     277        2  72.1%                  80      40\n\n"
                 "what became of its documents\n"
                 "  source  whole  cut  pieces  padding  skipped  damaged  images do not fit  without tokens\n"
                 "  waves       5    0       0        0        0        0                  0               0\n"
                 "  again       5    0       0        0        0        0                  0               0\n\n"
                 "images of an epoch of each source; least and most are means of the smallest and largest "
                 "images\n"
                 "  encoder        source  images  of a sample  at most  patches of an image  least  most  of a "
                 "sample, at most\n"
                 "  radio_encoder  waves        5          2.5        3                  140     60   192        "
                 "           384\n"
                 "  radio_encoder  again        5          2.5        4                  140     60   192        "
                 "           508\n\n"
                 "the first 240 samples\n"));
  EXPECT_THAT(told.out, HasSubstr("\nimages of a sample: 240, mean 2.5, largest 4\n"
                                  "  1  40  ████████████████████\n"
                                  "  2  80  ████████████████████████████████████████\n"));
  const nlohmann::json json = nlohmann::json::parse(Plan("data stats " + Recipe(shards_) + " --json").out);
  EXPECT_EQ(json["sources"][1]["tokens"], 277);
  EXPECT_EQ(json["sources"][1]["epochs"], 40);
  EXPECT_EQ(json["read"][1]["learnt_tokens"].get<int64_t>() + json["read"][0]["learnt_tokens"].get<int64_t>(), 12160);
  EXPECT_EQ(json["histograms"]["image_patches"]["largest"], 192);
}

TEST_F(DataTrace, SaysWhatItCannotDo) {
  const std::string mock = InSource("recipes/nemotron_moe_vlm_tiny.yaml");
  EXPECT_THAT(Plan("data trace " + mock).err, HasSubstr("say which: --sample N, or --step N --lane L"));
  EXPECT_THAT(Plan("data trace " + mock + " --sample 1 --lane 0").err, HasSubstr("say which: "));
  EXPECT_THAT(Plan("data trace " + mock + " --step 1").err, HasSubstr("--step and --lane belong together"));
  EXPECT_THAT(Plan("data trace " + mock + " --step 1 --lane 99").err,
              HasSubstr("the language model has the lanes 0 to "));
  EXPECT_THAT(Plan("data trace " + mock + " --step 9999999 --lane 0").err, HasSubstr("the run has "));
  const std::string folder = folder_ + "/seen", text = InSource("recipes/nemotron_moe_lm_20l_1g.yaml");
  EXPECT_THAT(Plan("data trace " + mock + " --sample 1 --images ''").err, HasSubstr("found an empty one"));
  EXPECT_THAT(Plan("data trace " + text + " --sample 1 --images " + folder).err,
              HasSubstr("no module of this plan sees images"));
  EXPECT_EQ(Plan("data trace " + mock + " --images " + folder).status, kExitUsage);
  EXPECT_FALSE(std::filesystem::exists(folder));
  EXPECT_THAT(Plan("data stats " + mock + " --sample 1").err, HasSubstr("`plan data stats` has no option `--sample`"));
  const ProgramResult unindexed = Plan("data stats " + Recipe(shards_));
  EXPECT_EQ(unindexed.status, kExitUsage);
  EXPECT_THAT(unindexed.err, HasSubstr("run `plan data index`"));
}

}  // namespace
}  // namespace planwright::testing
