// Which layout comes first, and which are rows of the table.
#include "planner/search/equal_layouts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace planwright {
namespace {

using ::testing::ElementsAre;

// One module on 8 ranks.
FoundLayout Layout(double seconds, int64_t memory, const ModuleChoice& choice = {}, StepChoice step = {}) {
  FoundLayout layout{{{choice}, step}, {true, true, seconds, memory}};
  layout.candidate.modules[0].ranks = 8;
  return layout;
}

const ModuleChoice kPlain, kTp{.tp = 2}, kPp{.pp = 2}, kUneven{.pp = 2, .stage_layers = {3, 2}},
    kEven{.pp = 2, .stage_layers = {3, 3}}, kRecompute{.recompute = {"moe", "elementwise"}};

// One per cent of memory is 10 here.
constexpr ChoiceRule kRule = {.errors = {.same_grids = 0.01, .other_grids = 0.02}, .worth = 10};

TEST(EqualLayouts, AreSimplerWithFewerAxesThenEvenStagesThenNoRecompute) {
  EXPECT_EQ(SimplicityOf(kPlain), (Simplicity{0, 0, 0}));
  EXPECT_EQ(SimplicityOf(kEven), (Simplicity{1, 0, 0}));
  EXPECT_EQ(SimplicityOf(kUneven), (Simplicity{1, 1, 0}));
  EXPECT_EQ(SimplicityOf(kRecompute), (Simplicity{0, 0, 2}));
  EXPECT_LT(SimplicityOf(kPlain), SimplicityOf(kRecompute));
  EXPECT_LT(SimplicityOf(kRecompute), SimplicityOf(kEven));
  EXPECT_LT(SimplicityOf(kEven), SimplicityOf(kUneven));
  // Modules apart are as much to think of as an axis.
  Candidate two{{kTp, kPlain}, {}};
  EXPECT_EQ(SimplicityOf(two).axes, 1);
  EXPECT_EQ(SimplicityText(two), "1 axis beside dp, even stages, no recompute");
  two.modules[1].first_rank = 1;
  EXPECT_EQ(SimplicityOf(two).axes, 2);
  EXPECT_EQ(SimplicityText(two), "1 axis beside dp, modules apart, even stages, no recompute");
  EXPECT_EQ(SimplicityText({{kUneven}, {}}), "1 axis beside dp, uneven stages, no recompute");
  EXPECT_EQ(SimplicityText({{kRecompute}, {}}), "no axis but dp, even stages, recompute");
}

TEST(EqualLayouts, ThoseOfOtherGridsMayDifferByMore) {
  const FoundLayout fastest = Layout(1, 500, kTp);
  EXPECT_TRUE(kRule.Equal(fastest, Layout(1.009, 500, kTp)));
  EXPECT_FALSE(kRule.Equal(fastest, Layout(1.011, 500, kTp)));
  EXPECT_TRUE(kRule.Equal(fastest, Layout(1.019, 500, kPlain)));
  EXPECT_FALSE(kRule.Equal(fastest, Layout(1.021, 500, kPlain)));
}

TEST(EqualLayouts, TheSimplestComesFirstThenMemory) {
  const auto first = [](const std::vector<FoundLayout>& equals) { return FirstOfEqual(equals, kRule); };
  EXPECT_EQ(first({Layout(1, 500, kTp), Layout(1.01, 900, kPlain)}), 1u) << "whatever memory it needs";
  EXPECT_EQ(first({Layout(1, 500, kUneven), Layout(1.01, 500, kEven)}), 1u);
  EXPECT_EQ(first({Layout(1, 500, kRecompute), Layout(1.01, 900, kPlain), Layout(1.02, 800, kPlain)}), 2u);
  ChoiceRule memory = kRule;
  memory.prefer = Preference::kMemory;
  EXPECT_EQ(FirstOfEqual({Layout(1, 500, kTp), Layout(1.01, 900, kPlain)}, memory), 0u);
}

TEST(EqualLayouts, MemoryCountsWhereItSavesMuch) {
  const auto first = [](const std::vector<FoundLayout>& equals) { return FirstOfEqual(equals, kRule); };
  EXPECT_EQ(first({Layout(1.0, 500)}), 0u);
  EXPECT_EQ(first({Layout(1.0, 500), Layout(1.1, 499)}), 0u) << "slower to save next to nothing";
  EXPECT_EQ(first({Layout(1.0, 500), Layout(1.1, 490)}), 0u);
  EXPECT_EQ(first({Layout(1.0, 500), Layout(1.1, 489)}), 1u);
  EXPECT_EQ(first({Layout(1.2, 480), Layout(1.0, 500), Layout(1.1, 489)}), 2u) << "480 saves too little";
  EXPECT_EQ(first({Layout(1.2, 470), Layout(1.0, 500), Layout(1.1, 489)}), 0u);
  EXPECT_EQ(first({Layout(1.0, 500), Layout(1.0, 499)}), 1u) << "of the same time the smaller";
}

std::vector<std::string> Names(const std::vector<LayoutRow>& rows) {
  std::vector<std::string> names;
  for (const LayoutRow& row : rows) {
    const ModuleChoice& module = row.layout.candidate.modules[0];
    names.push_back(std::to_string(row.layout.step.seconds).substr(0, 5) + (module.tp > 1 ? " tp" : "") +
                    (module.pp > 1 ? " pp" : "") + (row.equal ? " =" : "") + (row.simplest ? " simplest" : "") +
                    (row.alike > 0 ? " and " + std::to_string(row.alike) : ""));
  }
  return names;
}

TEST(LayoutRows, StagesBucketsAndOverlapMakeNoRows) {
  ModuleChoice beside = kTp, gathered = kTp;
  beside.overlap_dispatch = true, gathered.dispatch = "all_gather";
  const std::vector<FoundLayout> whole = {Layout(1.000, 500, kTp, {.buckets = 4}),
                                          Layout(1.001, 500, kTp, {.buckets = 8}),
                                          Layout(1.002, 500, beside, {.buckets = 8}),
                                          Layout(1.003, 500, kTp, {.overlap_reduce = false}),
                                          Layout(1.004, 500, gathered),
                                          Layout(1.050, 500, kUneven),
                                          Layout(1.055, 500, kEven),
                                          Layout(1.060, 500, kPp, {.micro_samples = 2})};
  EXPECT_THAT(Names(RowsOf(whole, kRule, 10)),
              ElementsAre("1.000 tp = simplest and 3", "1.004 tp =", "1.050 pp and 1", "1.060 pp"));
}

TEST(LayoutRows, TheSimplestNearTheFastestIsShown) {
  const std::vector<FoundLayout> whole = {
      Layout(1.000, 500, kTp),        Layout(1.001, 500, kPp),    Layout(1.002, 500, kUneven),
      Layout(1.024, 500, kRecompute), Layout(1.029, 500, kPlain), Layout(1.031, 400, kPlain, {.micro_samples = 2})};
  EXPECT_THAT(Names(RowsOf(whole, kRule, 10)),
              ElementsAre("1.000 tp =", "1.001 pp = and 1", "1.024", "1.029 simplest", "1.031"));
  EXPECT_THAT(Names(RowsOf(whole, kRule, 2)), ElementsAre("1.000 tp =", "1.029 simplest"));
  EXPECT_THAT(Names(RowsOf(whole, kRule, 1)), ElementsAre("1.000 tp ="));
  // It has a row of its own where a less simple one stands for it.
  EXPECT_THAT(Names(RowsOf({Layout(1, 500, kUneven), Layout(1.025, 500, kEven)}, kRule, 10)),
              ElementsAre("1.000 pp =", "1.025 pp simplest"));
}

TEST(LayoutRows, TheFastestIsShownWhereASimplerOneIsFirst) {
  const std::vector<FoundLayout> whole = {Layout(1.000, 500, kUneven), Layout(1.010, 500, kTp),
                                          Layout(1.011, 500, kPlain), Layout(1.012, 500, kPlain, {.micro_samples = 2})};
  EXPECT_THAT(Names(RowsOf(whole, kRule, 10)), ElementsAre("1.011 = simplest", "1.012 =", "1.010 tp =", "1.000 pp ="));
  EXPECT_THAT(Names(RowsOf(whole, kRule, 2)), ElementsAre("1.011 = simplest", "1.000 pp ="));
}

}  // namespace
}  // namespace planwright
