// `plan show data`, on plans made by hand: what is said of every kind of data, and how full the lanes are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "planner/base/paper/table.h"
#include "planner/data/samples/sample_source.h"
#include "planner/plan/balanced_slots.h"
#include "planner/views/show/lane_work.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

// An encoder with three lanes feeds two lanes of a language model: 20 steps of 12 samples, in 3 microbatches of 4.
Plan ThreeLanes() {
  Plan plan;
  plan.modules.resize(2);
  plan.modules[0].name = "encoder";
  plan.modules[0].grid.dp = 3;
  plan.modules[1].name = "language";
  plan.modules[1].grid.dp = 2;
  plan.budget.global_samples = 12;
  plan.budget.block_samples = 4;
  plan.budget.micro_samples = 2;
  plan.budget.microbatches = 3;
  plan.budget.steps = 20;
  plan.budget.sequence_length = 64;
  plan.data.kind = DataKind::kMock;
  plan.data.seed = 7;
  plan.data.vocabulary = 256;
  plan.data.image_token = 255;
  plan.data.image_grids = {{4, 6}, {2, 4}, {6, 2}};
  plan.data.max_images = 3;
  plan.data.classes = 8;
  plan.data.text_tokens = 5;
  plan.data.encoders = {{.module = "encoder", .token = 255, .patch = 4, .pixel_shuffle = 2, .max_image = 64}};
  return plan;
}

SourcePlan Source(const std::string& name, SourceKind kind, int64_t weight) {
  SourcePlan source;
  source.name = name;
  source.kind = kind;
  source.weight = weight;
  return source;
}

Plan WithSources() {
  Plan plan = ThreeLanes();
  plan.data.kind = DataKind::kSources;
  plan.data.tokenizer = "ids";
  plan.data.tokenizer_digest = std::string(64, 'a');
  plan.data.sources = {Source("captions", SourceKind::kWebdataset, 6), Source("code", SourceKind::kTokens, 1)};
  plan.data.sources[0].shards = {"a/{0..9}.tar", "b/*.tar", "c.tar", "d.tar", "e.tar"};
  plan.data.sources[0].ignore = {"json"};
  plan.data.sources[1].path = "code_text";
  plan.data.pad_token = 4;
  plan.data.end_token = 0;
  plan.data.window = 128;
  plan.data.min_patches = 4;
  plan.data.max_patches = 64;
  plan.data.shuffle = "1000";
  plan.data.damaged = "skip";
  plan.data.most_damaged = 100;
  plan.data.index = "data_index";
  plan.data.balance = "images";
  plan.data.base = ::testing::TempDir() + "no_such_folder";
  return plan;
}

TEST(ShowData, SaysWhatMockSamplesAre) {
  EXPECT_EQ(ShowData(ThreeLanes(), 100), R"(data       mock, seed 7
ids        image of encoder 255, all below 256
images     0 to 3 a sample, of 4 x 6, 2 x 4, 6 x 2 patches
classes    8, each with a text of 5 tokens
documents  each sees those before it in its sample
balance    none

step       12 samples, 3 microbatches of 4
module    lanes  samples of each lane in a microbatch
encoder       3  [0, 2) [2, 3) [3, 4)
language      2  [0, 2) [2, 4)

fullest encoder lane over the mean lane, in patches of the first 20 steps:
module   balance           step  microbatch
encoder  none (this run)  1.671       1.885
encoder  images           1.462       1.755
)");
}

TEST(ShowData, SaysWhatSourcesAreAlsoWhereTheyAreNot) {
  const std::string text = ShowData(WithSources(), 100);
  EXPECT_THAT(text, HasSubstr(R"(data       sources, seed 7
text       ids, tokenizer aaaaaaaaaaaa
ids        image of encoder 255, pad 4, end 0, all below 256
source    kind        weight  share    files
captions  webdataset       6  85.71 %  a/{0..9}.tar b/*.tar c.tar d.tar and 1 more
code      tokens           1  14.29 %  code_text.bin
shuffle    1000 documents together
packing    first_fit, in windows of 128 documents
long       error
damaged    skip, 100 documents of all sources at most
index      data_index
images     4 to 64 patches, bilinear, grid ceil
documents  each sees those before it in its sample
balance    images
)"));
  EXPECT_THAT(text, HasSubstr("how full lanes are is not known: "));
  EXPECT_THAT(text, HasSubstr("no_such_folder"));
  EXPECT_THAT(text, Not(HasSubstr("over the mean lane")));
  const ordered_json json = ShowDataJson(WithSources());
  EXPECT_EQ(json["sources"][0]["share"], 6.0 / 7);
  EXPECT_EQ(json["sources"][0]["ignore"], ordered_json({"json"}));
  EXPECT_EQ(json["sources"][1]["path"], "code_text");
  EXPECT_FALSE(json["sources"][1].contains("shards"));
  EXPECT_THAT(json["lane_work"]["unknown"].get<std::string>(), HasSubstr("no_such_folder"));
}

// A plain computation: the patches of each lane in lists, for a step and for a microbatch.
TEST(ShowData, FullnessIsThatOfListsOfEverything) {
  const Plan plan = ThreeLanes();
  const absl::StatusOr<std::unique_ptr<SampleSource>> source = OpenSampleSource(plan);
  ASSERT_TRUE(source.ok()) << source.status();
  const std::vector<std::vector<int>> kLanes = {{0, 1}, {2}, {3}};  // of the 4 samples of a microbatch
  double all = 0, fullest[2] = {}, fullest_micro[2] = {};           // without and with balance
  for (int64_t step = 0; step < 20; ++step) {
    std::vector<int64_t> patches;
    for (int64_t i = 0; i < 12; ++i) patches.push_back((*source)->Patches(step * 12 + i).value());
    const std::vector<int64_t> slots = BalancedSlots(patches);
    for (int64_t of_sample : patches) all += static_cast<double>(of_sample);
    for (int balanced : {0, 1}) {
      std::vector<double> of_step(3);
      for (int microbatch = 0; microbatch < 3; ++microbatch) {
        std::vector<double> of_lane(3);
        for (size_t lane = 0; lane < 3; ++lane) {
          for (int slot : kLanes[lane]) {
            const int64_t at = microbatch * 4 + slot;
            of_lane[lane] += static_cast<double>(patches[balanced == 1 ? slots[at] : at]);
          }
          of_step[lane] += of_lane[lane];
        }
        fullest_micro[balanced] += *std::max_element(of_lane.begin(), of_lane.end());
      }
      fullest[balanced] += *std::max_element(of_step.begin(), of_step.end());
    }
  }
  const absl::StatusOr<LaneWork> work = MeasureLaneWork(plan);
  ASSERT_TRUE(work.ok()) << work.status();
  EXPECT_EQ(work->steps, 20);
  EXPECT_EQ(work->patches, all);
  ASSERT_EQ(work->modules.size(), 1u);
  EXPECT_DOUBLE_EQ(work->modules[0].in_order.step, fullest[0] / all * 3);
  EXPECT_DOUBLE_EQ(work->modules[0].in_order.microbatch, fullest_micro[0] / all * 3);
  EXPECT_DOUBLE_EQ(work->modules[0].balanced.step, fullest[1] / all * 3);
  EXPECT_DOUBLE_EQ(work->modules[0].balanced.microbatch, fullest_micro[1] / all * 3);
  const ordered_json json = ShowDataJson(plan)["lane_work"];
  EXPECT_EQ(json["fullest_over_mean"][0]["images"]["step"], work->modules[0].balanced.step);
}

TEST(ShowData, LooksAtSoManyStepsAtMost) {
  Plan plan = ThreeLanes();
  plan.budget.steps = 1000;
  EXPECT_EQ(MeasureLaneWork(plan)->steps, 50);
  plan.budget.global_samples = plan.budget.block_samples = 1500;
  EXPECT_EQ(MeasureLaneWork(plan)->steps, 33);
  plan.budget.global_samples = plan.budget.block_samples = 50'021;  // a prime number, so the balance is found fast
  EXPECT_EQ(MeasureLaneWork(plan)->steps, 1);
}

TEST(ShowData, SaysWhereThereIsNothingToBalance) {
  Plan plan = ThreeLanes();
  plan.data.max_images = 0;
  EXPECT_THAT(ShowData(plan), HasSubstr("\nthe samples of the first 20 steps have no images\n"));
  plan.data.encoders.clear();
  EXPECT_THAT(ShowData(plan), Not(HasSubstr("the first 20 steps")));
  EXPECT_TRUE(ShowDataJson(plan)["lane_work"].is_null());
}

TEST(ShowData, KeepsToTheWidth) {
  for (const size_t width : {60, 80, 150}) {
    for (const Plan& plan : {ThreeLanes(), WithSources()}) {
      std::istringstream lines(ShowData(plan, width));
      for (std::string line; std::getline(lines, line);) {
        const bool has_path = line.find('/') != std::string::npos;  // a path stays whole
        EXPECT_TRUE(has_path || Width(line) <= width) << line;
      }
    }
  }
}

}  // namespace
}  // namespace planwright
