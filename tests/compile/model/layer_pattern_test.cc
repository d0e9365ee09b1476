#include "planner/compile/model/layer_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "planner/base/text/limits.h"
#include "planner/compile/model/stage_split.h"
#include "tests/support/golden.h"
#include "tests/support/problems.h"
#include "tests/support/recipe_builder.h"

namespace planwright {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

std::optional<LayerPattern> Parse(const std::string& pattern) {
  Diagnostics diagnostics;
  auto result = ParseLayerPattern({pattern, Line(7)}, *StatementOf("hybrid_lm"), diagnostics);
  EXPECT_EQ(result.has_value(), !diagnostics.has_errors());
  return result;
}

TEST(LayerPattern, GrammarEqualsTheReference) {
  int compared = 0;
  for (const json& c : Golden().at("hybrid_patterns")) {
    if (c.at("pattern").is_null()) continue;  // a recipe's model must have a pattern
    const auto pattern = Parse(c.at("pattern"));
    ASSERT_EQ(pattern.has_value(), c.at("ok").get<bool>()) << c.at("id");
    ++compared;
    if (!pattern) continue;
    EXPECT_EQ(pattern->layers.size(), c.at("total_layers").get<size_t>());
    EXPECT_EQ(pattern->segments.size(), c.at("segments").get<size_t>());
    EXPECT_EQ(pattern->mtp_depths, c.at("mtp_depths").get<int>());
    EXPECT_EQ(pattern->mtp, c.at("mtp").is_null() ? "" : c.at("mtp").get<std::string>());
    for (const auto& [layer, count] : c.at("counts").items())
      EXPECT_EQ(pattern->count(layer[0]), count.get<int64_t>()) << layer;
  }
  EXPECT_GE(compared, 5);
}

TEST(LayerPattern, ProductionPatternHas23ExpertLayers) {
  const auto pattern = Parse("MEMEM*EMEM*EMEM*EMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEME");
  ASSERT_TRUE(pattern);
  EXPECT_THAT((std::vector{pattern->count('M'), pattern->count('E'), pattern->count('*')}), ElementsAre(23, 23, 8));
}

TEST(LayerPattern, RulesOfTheGrammar) {
  EXPECT_EQ(Parse("M*M*/")->mtp_depths, 0);          // empty parts mean no MTP
  EXPECT_EQ(Parse("/MM")->mtp_depths, 1);            // an empty main part is accepted
  EXPECT_EQ(Parse("MM||M*|")->segments.size(), 4u);  // and empty segments
  EXPECT_TRUE(Parse("M*/+"));                        // attention kinds are compared within a part
  for (const char* wrong : {"M*D", "*+", "MM/M|M", "MM/M*/MM", "MxM", "M M"}) EXPECT_FALSE(Parse(wrong)) << wrong;
}

TEST(LayerPattern, UnknownLayerIsPointedAt) {
  Diagnostics diagnostics;
  const Location where = {std::make_shared<const std::string>("m.yaml"), 4, 12, 4};
  EXPECT_FALSE(ParseLayerPattern({"ME?E", where}, *StatementOf("hybrid_lm"), diagnostics));
  ASSERT_EQ(diagnostics.sorted().size(), 1u);
  EXPECT_EQ(diagnostics.sorted()[0].where.column, 14);
}

TEST(LayerPattern, StagesEqualTheReference) {
  int compared = 0;
  for (const json& c : Golden().at("hybrid_segments")) {
    // The reference system leaves out layers 8 and 9 here. This planner never leaves out a layer.
    const bool drops_layers = c.at("id") == "uneven_pp2_both_ignores_middle";
    StageSplit split = {.pp = c.at("pp")};
    if (!c.at("first").is_null()) split.first_layers = c.at("first").get<int64_t>();
    if (!c.at("last").is_null()) split.last_layers = c.at("last").get<int64_t>();
    const auto pattern = Parse(c.at("pattern"));
    ASSERT_TRUE(pattern);
    const int virtual_stage = c.at("vp_stage").is_null() ? 0 : c.at("vp_stage").get<int>();
    if (!c.at("vp_stage").is_null()) split.virtual_stages = static_cast<int>(pattern->segments.size()) / split.pp;
    Diagnostics diagnostics;
    const auto stages = SplitIntoStages(*pattern, split, Line(7), diagnostics);
    EXPECT_EQ(stages.has_value(), !diagnostics.has_errors());
    for (const json& expected : c.at("stages")) {
      const LayerStage* found = nullptr;
      if (stages) {
        for (const LayerStage& stage : *stages) {
          if (stage.pp_rank == expected.at("pp_rank") && stage.virtual_stage == virtual_stage) found = &stage;
        }
      }
      ASSERT_EQ(found != nullptr, !expected.contains("exception") && !drops_layers) << c.at("id");
      ++compared;
      if (found == nullptr) continue;
      EXPECT_EQ(found->layers, expected.at("layers").get<std::string>()) << c.at("id");
      EXPECT_EQ(found->first_layer, expected.at("offset").get<int64_t>()) << c.at("id");
    }
  }
  EXPECT_GE(compared, 10);
}

// The reference system builds only the first segment, half of the model.
TEST(LayerPattern, BreaksBeyondThePipelineAreAnError) {
  Diagnostics diagnostics;
  EXPECT_FALSE(SplitIntoStages(*Parse("MM|M*"), {.pp = 1}, Line(7), diagnostics));
  EXPECT_THAT(KindsAndLines(diagnostics), ElementsAre("PatternSplit:7"));
}

// A stage may be without layers, so that any number of them would do.
TEST(LayerPattern, NoMoreStagesAreMadeThanAPlanHas) {
  Diagnostics diagnostics;
  const StageSplit most = {.pp = static_cast<int>(kMostStages), .first_layers = 2};
  ASSERT_TRUE(SplitIntoStages(*Parse("M*"), most, Line(7), diagnostics));
  const StageSplit more = {.pp = static_cast<int>(kMostStages) + 1, .first_layers = 2};
  EXPECT_FALSE(SplitIntoStages(*Parse("M*"), more, Line(7), diagnostics));
  ASSERT_EQ(diagnostics.as_found().size(), 1u);
  EXPECT_EQ(diagnostics.as_found()[0].help, "use a smaller pp: a plan has at most 96 stages");
}

TEST(LayerPattern, VirtualStagesAreDealtRoundRobin) {
  Diagnostics diagnostics;
  const auto stages = SplitIntoStages(*Parse("MM|M*|EE|M"), {.pp = 2, .virtual_stages = 2}, Line(7), diagnostics);
  ASSERT_TRUE(stages);
  EXPECT_EQ((*stages)[2].layers, "EE");
  EXPECT_EQ((*stages)[2].pp_rank, 0);
  EXPECT_EQ((*stages)[2].first_layer, 4);
}

}  // namespace
}  // namespace planwright
