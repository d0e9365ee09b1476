// The tables of `plan tune`: every figure of a search is there, and what is not known is said.
#include "planner/search/results/tuned_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "nlohmann/json.hpp"
#include "tests/search/results/found_layouts.h"

namespace planwright {
namespace {

using ::testing::AllOf;
using testing::FoundLayouts;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TunedText, HasTheLayoutsBesideTheGivenOne) {
  const std::string text = FoundText(FoundLayouts(), 1000);
  EXPECT_THAT(text, HasSubstr("264 GPUs (h100_sxm, 33 nodes of 8)\n"));
  EXPECT_THAT(text,
              HasSubstr("given  6.9 s      144.93  61.37 GB  language.s0 25.0 % for radio_encoder.s0  language.moe "
                        "experts 50.0 %  given layout"));
  EXPECT_THAT(text, HasSubstr("\n1      2 s"));
  EXPECT_THAT(text, HasSubstr("\n2 =    1.99 s"));
  EXPECT_THAT(text, HasSubstr("\n3      3 s"));
}

TEST(TunedText, SaysWhatTheSearchKnows) {
  Found found = FoundLayouts();
  const std::string text = FoundText(found, 1000);
  EXPECT_THAT(text, HasSubstr("as the fastest, as far as differences of predicted times are known (1.0 %, of other "
                              "grids 2.0 %): the simpler first, of equally simple ones the faster, unless another "));
  EXPECT_THAT(text, HasSubstr("The fastest layout takes 1.99 s, which no candidate that fits can be below by more than "
                              "5.0 %. The first one is equal to it, as far as differences are known, and is simpler, "
                              "or needs less memory."));
  EXPECT_THAT(text, HasSubstr("The space has 1,204,089 candidates: 1,000,000 broke a rule, 200,000 did not fit memory, "
                              "4,000 could not be faster by a lower bound of their time, and 89 were valid and fit."));
  EXPECT_THAT(text, HasSubstr("4,567 were timed, 89 of them with all instructions."));
  EXPECT_THAT(text, HasSubstr("The network was not measured. If it is 2.5 times slower than the data sheet says, the "
                              "fastest is: third."));
  EXPECT_THAT(text, HasSubstr("The link was not measured. Up to 64 times slower, no layout that was compared"));
  EXPECT_THAT(text, HasSubstr("All of these are proved"));
  EXPECT_THAT(text, Not(HasSubstr("unknown")));
  found.result.gap = 0;
  EXPECT_THAT(FoundText(found, 1000),
              AllOf(HasSubstr("1.99 s, which no candidate that fits is below"), Not(HasSubstr("it is the optimum"))));
  found.result.fastest = 2;
  EXPECT_THAT(FoundText(found, 1000), HasSubstr("is faster by this model: it is the optimum.\n"));
  EXPECT_EQ(FoundJson(found)["searched"], "all layouts");
  found.result.gap = 0.05;
  EXPECT_THAT(FoundText(found, 1000),
              HasSubstr("takes less than 1.9 s by this model: the fastest is at most 5.0 % above"));
  found.result.interrupted = true, found.result.gap = 0.5;
  EXPECT_THAT(FoundText(found, 1000), HasSubstr("ended before its time: the fastest so far is at most 50.0 % above"));
  found.result.gap = std::numeric_limits<double>::infinity();
  EXPECT_THAT(FoundText(found, 1000), AllOf(HasSubstr("others may be faster"), Not(HasSubstr("inf"))));
  EXPECT_TRUE(nlohmann::json::parse(FoundJson(found).dump())["gap"].is_null());
  found.result.given.reset();
  EXPECT_THAT(FoundText(found, 1000), HasSubstr("does not run on so many ranks, or does not fit"));
  found.result.best[1].proved = false;
  EXPECT_THAT(FoundText(found, 1000), HasSubstr("2 layouts are proved"));
}

// FLOPs have no error: layers that cost the same may change places.
TEST(TunedText, SaysWhatIsEqual) {
  Found found = FoundLayouts();
  found.result.error = {}, found.result.prefer = Preference::kMemory;
  EXPECT_THAT(FoundText(found, 1000),
              HasSubstr("\n= marks layouts that are as fast as the fastest: the faster, unless another needs less "));
  EXPECT_EQ(FoundJson(found)["prefer"], "memory");
}

TEST(TunedText, SaysWhatARowStandsForAndWhatTheSimplestCosts) {
  Found found = FoundLayouts();
  EXPECT_THAT(FoundText(found, 1000),
              AllOf(HasSubstr("  second; and 812 like it\n"), Not(HasSubstr("is the simplest"))))
      << "it costs nothing";
  EXPECT_THAT(FoundPage("title", {found}), HasSubstr("second; and 812 like it"));
  found.result.fastest = 1.97;
  EXPECT_THAT(
      FoundText(found, 1000),
      HasSubstr("\nOf the layouts that take at most 3.0 % longer than the fastest, row 2 is the simplest (1 axis "
                "beside dp, even stages, no recompute): its step takes 1.0 % longer.\n"));
  found.result.fastest = 1.9899;
  EXPECT_THAT(FoundText(found, 1000), HasSubstr("its step takes less than 0.1 % longer.\n"));
  const nlohmann::ordered_json row = FoundJson(found)["best"][1];
  EXPECT_EQ(row["alike"], 812);
  EXPECT_EQ(row["simplest"], true);
  EXPECT_EQ(row["simplicity"], "1 axis beside dp, even stages, no recompute");
  found.result.best[1].simplest = false;
  EXPECT_THAT(FoundText(found, 1000), Not(HasSubstr("is the simplest")));
}

TEST(TunedText, SaysWhichLayersStagesMayHave) {
  Found found = FoundLayouts();
  TuneResult& result = found.result;
  result.gap = 0, result.fastest = 2;
  result.moved = {.possible = true, .module = "language", .even_modules = {"radio_encoder"}};
  // The search was ended before it came to other layers.
  EXPECT_THAT(FoundText(found, 1000),
              AllOf(HasSubstr("optimum among layouts whose stages differ by at most one layer."),
                    Not(HasSubstr("With other layers"))));
  EXPECT_EQ(FoundJson(found)["searched"], "layouts whose stages differ by at most one layer");
  EXPECT_TRUE(FoundJson(found)["moved"].is_null());
  result.moved.searched = true, result.moved.timed = 1234, result.moved.simulated = 5, result.moved.even = 2.5;
  result.asked = 4;
  EXPECT_THAT(
      FoundText(found, 1000),
      AllOf(HasSubstr("it is the optimum among layouts with any layers in the stages of language, and stages of "
                      "radio_encoder that differ by at most one layer."),
            HasSubstr("With other layers in the stages of language 1,234 more candidates were timed, 5 of them "
                      "with all instructions: the fastest takes 2 s, 20.0 % less than the fastest of those whose "
                      "stages differ by at most one layer (2.5 s)."),
            HasSubstr("All others whose stages differ by at most one layer are more than 10.0 % slower")));
  EXPECT_THAT(FoundPage("title", {found}), HasSubstr("1,234 more candidates were timed"));
  const nlohmann::ordered_json json = FoundJson(found);
  EXPECT_EQ(json["moved"]["timed"], 1234);
  EXPECT_EQ(json["moved"]["even"], 2.5);
  result.moved.even = 2;
  EXPECT_THAT(FoundText(found, 1000), HasSubstr("instructions: none that was found is faster."));
  result.moved.even = 0;
  EXPECT_THAT(FoundText(found, 1000), HasSubstr("instructions: of the others none fits."));
  EXPECT_TRUE(FoundJson(found)["moved"]["even"].is_null());
  result.moved.timed = 0, result.moved.even = 2;
  EXPECT_THAT(FoundText(found, 1000), HasSubstr("Other layers in the stages of language cannot be faster"));
  result.moved = {.even_modules = {"radio_encoder"}};
  EXPECT_THAT(FoundText(found, 1000),
              HasSubstr("optimum among layouts with stages of radio_encoder that differ by at most one layer."));
}

TEST(TunedText, SaysThatItEndedAtItsLimit) {
  Found found = FoundLayouts();
  EXPECT_THAT(FoundText(found, 1000), Not(HasSubstr("ended early")));
  EXPECT_TRUE(FoundJson(found)["ended_early"].is_null());
  found.result.at_limit = true, found.result.counts.simulated = 1650, found.result.asked = 4;
  EXPECT_THAT(FoundText(found, 1000),
              AllOf(HasSubstr("1,650 layouts were simulated; --simulations N lets it go on. The "),
                    Not(HasSubstr("not listed"))));
  EXPECT_EQ(FoundJson(found)["ended_early"], "1,650 layouts were simulated; --simulations N lets it go on");
  found.result.gap = 0, found.result.fastest = 2;
  EXPECT_THAT(FoundText(found, 1000), HasSubstr("were simulated; --simulations N lets it go on. No"));
  EXPECT_THAT(ScalingText({found}, 1000), HasSubstr("264: The search ended early"));
  found.result.interrupted = true;
  EXPECT_EQ(FoundJson(found)["ended_early"], "interrupted");
}

TEST(TunedText, SaysWhenMemoryCounts) {
  Found found = FoundLayouts();
  found.result.worth = 849'000'000;
  EXPECT_THAT(FoundText(found, 1000), HasSubstr("the faster, unless another needs less memory by more than 849 MB."));
}

// A bound is rounded up, and where nothing is known no number stands.
TEST(TunedText, HasOneFigureOfTheGap) {
  Found found = FoundLayouts();
  const auto figure = [&](double gap) {
    found.result.gap = gap;
    return GapFigure(found);
  };
  EXPECT_EQ(figure(0), "0.0 %");
  EXPECT_EQ(figure(1e-5), "0.1 %");
  EXPECT_EQ(figure(0.05), "5.0 %");
  EXPECT_EQ(figure(0.065), "6.5 %");
  EXPECT_EQ(figure(0.0651), "6.6 %");
  EXPECT_THAT(FoundText(found, 1000), HasSubstr("can be below by more than 6.6 %."));
  EXPECT_EQ(figure(std::numeric_limits<double>::infinity()), "unknown");
  EXPECT_TRUE(FoundJson(found)["gap"].is_null());
  Found none;
  none.result.problem = "No candidate fits memory.";
  EXPECT_EQ(GapFigure(none), "unknown");
  for (const char* key : {"gap", "fastest", "lower_bound"}) EXPECT_TRUE(FoundJson(none)[key].is_null()) << key;
}

TEST(TunedText, NamesTheRanksThatWait) {
  TunedLayout layout = FoundLayouts().result.best[0];
  EXPECT_EQ(WaitsText(layout), "language.s0 25.0 % for radio_encoder.s0");
  layout.waits = "language.s0, no samples of radio_encoder", layout.waits_for = "the rank with most expert rows";
  EXPECT_EQ(WaitsText(layout), "language.s0, no samples of radio_encoder: 25.0 % for the rank with most expert rows");
}

TEST(TunedText, SaysWhatIsNotListed) {
  Found found = FoundLayouts();
  EXPECT_THAT(FoundText(found, 1000), Not(HasSubstr("not listed")));
  found.result.asked = 4;
  EXPECT_THAT(FoundText(found, 1000),
              HasSubstr("All others are more than 10.0 % slower than the fastest, and are not listed."));
  found.result.interrupted = true, found.result.counts.left = 5;
  EXPECT_THAT(FoundText(found, 1000), AllOf(HasSubstr("What the search came to has"), Not(HasSubstr("not listed")),
                                            HasSubstr("5 were left undecided, and 89")));
  found.result.counts = {.space = 1, .found = 1, .timed = 1, .simulated = 1};
  EXPECT_THAT(FoundText(found, 1000), AllOf(HasSubstr("1 candidate: "), HasSubstr("1 was valid and fit. 1 was timed")));
}

TEST(TunedText, SaysWhyThereIsNoLayout) {
  Found none;
  none.result.gpus = 1, none.result.cluster.gpu = "h100_sxm", none.result.problem = "No candidate fits memory.";
  none.result.counts = {.space = 12, .memory = 12};
  EXPECT_THAT(FoundText(none, 1000), AllOf(HasSubstr("1 GPU (h100_sxm, 1 node of 8)\n"),
                                           HasSubstr("No candidate fits memory.\n"), HasSubstr("12 did not fit")));
  none.problems.push_back({DiagnosticKind::kBrokenRule, Severity::kError, "what is wrong", {}, ""});
  const nlohmann::ordered_json json = FoundJson(none);
  EXPECT_EQ(json["problem"], "No candidate fits memory.");
  EXPECT_EQ(json["problems"][0]["message"], "what is wrong");
  EXPECT_EQ(json["space"]["memory"], 12);
}

TEST(TunedText, HasFlopsWhereTheDeviceIsUnknown) {
  Found found = FoundLayouts();
  found.result.seconds = false, found.result.cluster.gpu = "none";
  for (TunedLayout& layout : found.result.best) layout.seconds *= 1e12, layout.speed.reset();
  const std::string text = FoundText(found, 1000);
  EXPECT_THAT(text, HasSubstr("264 ranks"));
  EXPECT_THAT(text, HasSubstr("2 TFLOP"));
  EXPECT_THAT(text, HasSubstr("tok/s/rank"));
  EXPECT_THAT(text, HasSubstr("The speed of the device is unknown"));
  EXPECT_TRUE(FoundJson(found)["best"][0]["tokens_per_second_per_rank"].is_null());
  EXPECT_EQ(FoundJson(found)["best"][0]["flops"], 2e12);
}

TEST(TunedText, HasALineForEachNumberOfGpus) {
  Found none;
  none.result.gpus = 8, none.result.cluster.gpu = "h100_sxm", none.result.problem = "No candidate fits memory.";
  const std::string text = ScalingText({none, FoundLayouts()}, 1000);
  EXPECT_THAT(text, HasSubstr("GPUs  step  tok/s/GPU  memory    hours  GPU-hours"));
  EXPECT_THAT(text, HasSubstr(" 264  2 s         500  30.00 GB   88.3     23,311"));
  EXPECT_THAT(text, HasSubstr("8: No candidate fits memory."));
  EXPECT_THAT(text, HasSubstr("264: The fastest layout takes 1.99 s"));
}

TEST(TunedText, SaysWhichNumbersOfGpusWereNotSearched) {
  Found ended;
  ended.searched = false, ended.result.gpus = 528, ended.result.problem = "It was not searched: the command was ended.";
  ended.result.cluster.gpu = "h100_sxm";
  EXPECT_THAT(ScalingText({FoundLayouts(), ended}, 1000),
              AllOf(HasSubstr(" 264  2 s"), HasSubstr("not searched\n"), HasSubstr("528: It was not searched")));
  EXPECT_THAT(FoundText(ended, 1000), AllOf(HasSubstr("It was not searched"), Not(HasSubstr("candidates"))));
  EXPECT_EQ(FoundJson(ended)["ended_early"], "not searched");
}

TEST(TunedText, IsAlsoJson) {
  const nlohmann::ordered_json json = FoundJson(FoundLayouts());
  EXPECT_EQ(json["gpus"], 264);
  EXPECT_EQ(json["best"].size(), 3u);
  EXPECT_EQ(json["best"][1]["seconds"], 1.99);
  EXPECT_EQ(json["best"][1]["equal"], true);
  EXPECT_EQ(json["given"]["memory"], 61'370'000'000);
  EXPECT_EQ(json["space"]["time"].dump(), "4000");
  EXPECT_EQ(json["gap"], 0.05);
  EXPECT_EQ(json["rank_hours"], 23311);
  EXPECT_EQ(json["sensitivity"][0]["slower"], 2.5);
  EXPECT_TRUE(json["sensitivity"][1]["slower"].is_null());
}

}  // namespace
}  // namespace planwright
