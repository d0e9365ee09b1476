// The search finds what trying everything finds, and every figure is that of the recipe that it names.
#include "planner/search/tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/compile/compile.h"
#include "planner/predict/estimate/memory.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/predict/rates/device.h"
#include "planner/search/budget_rule.h"
#include "planner/search/equal_layouts.h"
#include "planner/search/found_layouts.h"
#include "planner/search/space.h"
#include "planner/views/diff/diff.h"
#include "tests/search/tuned_recipe.h"

namespace planwright {
namespace {

using testing::kTiny;
using testing::ReadTuned;
using testing::RequestOf;
using testing::Tuned;

// Every candidate of a space that is valid and fits, by time. Several may make one plan.
std::vector<FoundLayout> TryEverything(const TuneRequest& request, int64_t ranks) {
  const TunedRecipe tuned = ReadTuned(kTiny, request.overrides).value();
  Space space(tuned.recipe, ranks, request.fixed);
  std::vector<FoundLayout> all;
  for (const Placing& placing : space.placings()) {
    std::vector<std::vector<ModuleChoice>> choices;
    for (size_t m = 0; m < tuned.recipe.modules.size(); ++m) {
      std::vector<ModuleChoice>& ways = choices.emplace_back();
      for (const ModuleChoice& layout : space.LayoutsOf(m, placing)) {
        for (ModuleChoice& way : space.WaysOf(m, layout)) ways.push_back(std::move(way));
      }
    }
    for (const ModuleChoice& first : choices[0]) {
      for (const ModuleChoice& second : choices[1]) {
        for (int64_t micro : space.micro_samples()) {
          for (StepChoice step : space.steps()) {
            step.micro_samples = micro;
            const Candidate candidate{{first, second}, step};
            const WholeStep whole = SimulateWhole(tuned, candidate);
            if (whole.fits) all.push_back({candidate, whole});
          }
        }
      }
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const FoundLayout& a, const FoundLayout& b) {
    return std::tie(a.step.seconds, a.step.memory) < std::tie(b.step.seconds, b.step.memory);
  });
  return all;
}

// Of all layouts, as ChoiceRule says it of this request.
std::vector<LayoutRow> RowsOfEverything(const std::vector<FoundLayout>& all, const TuneRequest& request,
                                        const TuneResult& result) {
  return RowsOf(all, {.errors = kDifferenceErrors, .prefer = request.prefer, .worth = result.worth}, request.best);
}

void ExpectSameAsEverything(const TuneRequest& request, int64_t ranks, size_t at_least) {
  const std::vector<FoundLayout> all = TryEverything(request, ranks);
  const TuneResult result = Tuned(request);
  ASSERT_GE(all.size(), at_least) << "a space in which something can be found";
  EXPECT_EQ(result.fastest, all.front().step.seconds);
  const std::vector<LayoutRow> rows = RowsOfEverything(all, request, result);
  ASSERT_FALSE(result.best.empty());
  EXPECT_EQ(result.best[0].seconds, rows[0].layout.step.seconds);
  EXPECT_EQ(result.best[0].memory, rows[0].layout.step.memory);
  EXPECT_EQ(result.best[0].simplicity, SimplicityText(rows[0].layout.candidate));
  const auto simplest = [](const auto& row) { return row.simplest; };
  const auto is = std::find_if(result.best.begin(), result.best.end(), simplest);
  const auto should = std::find_if(rows.begin(), rows.end(), simplest);
  ASSERT_TRUE(is != result.best.end() && should != rows.end());
  EXPECT_EQ(is->seconds, should->layout.step.seconds);
  EXPECT_EQ(result.gap, 0);
  EXPECT_EQ(result.lower_bound, all.front().step.seconds);
  EXPECT_FALSE(result.interrupted);
  EXPECT_LT(static_cast<double>(result.counts.simulated), result.counts.space / 4) << "bounds cut something";
}

// GPUs so slow that the tiny model keeps them busy.
const std::vector<std::string> kSlowGpus = {"cluster.gpu=other",          "cluster.gpus_per_node=2",
                                            "cluster.device.memory=16",   "cluster.device.peak=0.05",
                                            "cluster.device.bandwidth=2", "cluster.device.link=0.5",
                                            "cluster.device.network=0.1", "modules.language.placement.first_rank=1"};

TEST(Tune, FindsWhatTryingEverythingFinds) {
  ExpectSameAsEverything(
      RequestOf(kTiny, kSlowGpus,
                {"gradients.buckets", "modules.radio_encoder.recompute", "modules.language.recompute"}),
      2, 200);
}

TEST(Tune, FindsItWhereMemoryIsShort) {
  std::vector<std::string> overrides = kSlowGpus;
  overrides.push_back("cluster.device.memory=2.0");
  const TuneRequest request = RequestOf(kTiny, overrides, {"gradients", "modules.radio_encoder.recompute"});
  ExpectSameAsEverything(request, 2, 30);
  EXPECT_GT(Tuned(request).counts.memory, 0);
}

TEST(Tune, RecomputesSetsOfKindsAndElementwise) {
  const auto ways_of = [](size_t module, const std::string& backbone) {
    const TunedRecipe tuned =
        ReadTuned(kTiny, {"models.hybrid_moe_tiny.pattern=ME", "modules.radio_encoder.train.backbone=" + backbone})
            .value();
    Space space(tuned.recipe, 1, {});
    std::vector<std::string> ways;
    for (const ModuleChoice& way : space.WaysOf(module, space.LayoutsOf(module, space.placings()[0])[0]))
      ways.push_back(absl::StrJoin(way.recompute, "+"));
    return ways;
  };
  using Ways = std::vector<std::string>;
  EXPECT_EQ(ways_of(1, "trained"),
            (Ways{"none", "full", "elementwise", "mamba", "mamba+elementwise", "moe", "moe+elementwise"}));
  EXPECT_EQ(ways_of(0, "trained"), (Ways{"none", "full", "elementwise"}));
  EXPECT_EQ(ways_of(0, "frozen"), Ways{"none"}) << "it has no backward";
}

TEST(Tune, PlacesModulesInEveryWayOnce) {
  for (const int64_t nodes : {1, 2, 3, 50'000}) {
    const TunedRecipe tuned =
        ReadTuned(kTiny, {"cluster.gpus_per_node=8", absl::StrCat("cluster.nodes=", nodes)}).value();
    const Space space(tuned.recipe, 8 * nodes, {});
    std::set<std::pair<std::vector<int64_t>, std::vector<int64_t>>> placings;
    for (const Placing& placing : space.placings()) placings.insert({placing.first_rank, placing.ranks});
    EXPECT_EQ(placings.size(), space.placings().size());
    // Together, or apart: of one node by ranks, else by nodes.
    EXPECT_EQ(static_cast<int64_t>(placings.size()), nodes == 1 ? 8 : nodes);
  }
}

// Of the encoder, too.
TEST(Tune, FindsItWhereElementwiseSavesEnough) {
  std::vector<std::string> overrides = kSlowGpus;
  overrides.insert(overrides.end(), {"models.hybrid_moe_tiny.pattern=MEME", "cluster.device.memory=3.69848",
                                     "batch.sequence_length=96"});
  const TuneRequest request =
      RequestOf(kTiny, overrides, {"gradients.buckets", "modules.radio_encoder.parallel", "modules.language.parallel"});
  ExpectSameAsEverything(request, 2, 30);
  EXPECT_NE(Tuned(request).best[0].line.find("elementwise"), std::string::npos);
}

TEST(Tune, FiguresAreThoseOfTheRecipeWithTheChanges) {
  const TuneRequest request = RequestOf(kTiny, kSlowGpus, {"gradients.buckets"});
  const TuneResult result = Tuned(request), again = Tuned(request);
  Diagnostics problems;
  const auto given = CompileRecipe(*ReadRecipe(request.recipe, request.overrides, problems), problems);
  ASSERT_TRUE(given);
  ASSERT_FALSE(result.best.empty());
  ASSERT_FALSE(result.frontier.empty());
  for (const auto* list : {&result.best, &result.frontier}) {
    for (const TunedLayout& layout : *list) {
      std::vector<std::string> overrides = request.overrides;
      overrides.insert(overrides.end(), layout.changes.begin(), layout.changes.end());
      const auto plan = CompileRecipe(*ReadRecipe(request.recipe, overrides, problems), problems);
      ASSERT_TRUE(plan) << layout.line;
      EXPECT_EQ(TimeStep(*plan).length, layout.seconds);
      EXPECT_EQ(plan->digest, layout.digest);
      int64_t memory = 0;
      for (const RoleEstimate& role : EstimateMemory(*plan)) memory = std::max(memory, role.planned.total());
      EXPECT_EQ(memory, layout.memory);
      EXPECT_TRUE(layout.proved);
      EXPECT_FALSE(DiffPlans(*given, *plan).may_change_loss());
    }
  }
  ASSERT_TRUE(result.given);
  EXPECT_EQ(result.given->seconds, TimeStep(*given).length);
  // The same request gives the same result.
  ASSERT_EQ(again.best.size(), result.best.size());
  for (size_t i = 0; i < result.best.size(); ++i) EXPECT_EQ(again.best[i].digest, result.best[i].digest);
  EXPECT_EQ(again.counts.timed, result.counts.timed);
  // Smaller and slower from line to line.
  for (size_t i = 1; i < result.frontier.size(); ++i) {
    EXPECT_GE(result.frontier[i].seconds, result.frontier[i - 1].seconds);
    EXPECT_LT(result.frontier[i].memory, result.frontier[i - 1].memory);
  }
}

double Sum(const TuneCounts& counts) { return counts.rules + counts.memory + counts.time + counts.found + counts.left; }

TEST(Tune, EveryCandidateIsCountedOnce) {
  std::vector<std::string> small = kSlowGpus;
  small.push_back("cluster.device.memory=2.0");
  for (const auto& overrides : {kSlowGpus, small}) {
    TuneRequest request = RequestOf(kTiny, overrides, {"gradients.buckets"});
    const TuneCounts counts = Tuned(request).counts;
    EXPECT_EQ(Sum(counts), counts.space);
    EXPECT_EQ(counts.left, 0);
    EXPECT_GT(counts.found, 0);
    EXPECT_LE(counts.found, static_cast<double>(counts.simulated));
    EXPECT_LT(static_cast<double>(counts.timed), counts.space);
    // A search that is ended says how much is left.
    request.candidates = 20;
    const TuneCounts ended = Tuned(request).counts;
    EXPECT_EQ(Sum(ended), ended.space);
    EXPECT_GT(ended.left, 0);
  }
}

// Nothing is averaged here: as many are found as there are, if none is cut by time.
TEST(Tune, CountsAreThoseOfTryingEverything) {
  const TuneRequest request = RequestOf(kTiny, kSlowGpus, {"modules", "gradients.buckets"});
  const TuneResult result = Tuned(request);
  const std::vector<FoundLayout> all = TryEverything(request, 2);
  EXPECT_EQ(result.counts.found + result.counts.time, static_cast<double>(all.size()));
  EXPECT_EQ(Sum(result.counts), result.counts.space);
}

TEST(Tune, ListsEachPlanOnce) {
  // On one rank nothing can overlap, so that some candidates make one plan.
  TuneRequest request = RequestOf(kTiny, {}, {"modules"});
  request.best = 1000;
  const TuneResult result = Tuned(request);
  ASSERT_GE(result.best.size(), 3u);
  EXPECT_LT(static_cast<double>(result.best.size()), result.counts.found) << "some make the same plan";
  for (const auto* list : {&result.best, &result.frontier}) {
    std::set<std::string> digests;
    for (const TunedLayout& layout : *list) EXPECT_TRUE(digests.insert(layout.digest).second) << layout.line;
  }
}

TEST(Tune, ListsWhatIsNotMuchSlower) {
  TuneRequest request = RequestOf(kTiny, kSlowGpus, {"modules.language", "gradients"});
  request.best = 1000;
  const TuneResult result = Tuned(request);
  ASSERT_NEAR(result.within, 0.1, 1e-9);
  EXPECT_GT(result.counts.time, 0);
  size_t within = 0;
  std::set<Candidate> rows;
  for (const FoundLayout& layout : TryEverything(request, 2)) {
    if (layout.step.seconds > result.fastest * (1 + result.within)) continue;
    rows.insert(RowOf(layout.candidate)), ++within;
  }
  size_t told = 0;
  for (const TunedLayout& layout : result.best) told += static_cast<size_t>(1 + layout.alike);
  EXPECT_EQ(told, within) << "all of them, and no other";
  EXPECT_GE(result.best.size(), rows.size());
  EXPECT_LE(result.best.size(), rows.size() + 1) << "the simplest may have its own";
  for (const auto* list : {&result.best, &result.frontier}) {
    for (const TunedLayout& layout : *list) EXPECT_LE(layout.seconds, result.fastest * (1 + result.within));
  }
}

TEST(Tune, FixedKeysStay) {
  const TuneResult result =
      Tuned(RequestOf(kTiny, kSlowGpus, {"modules.language", "batch.micro_samples", "gradients.overlap_reduce"}));
  for (const TunedLayout& layout : result.best) {
    for (const std::string& change : layout.changes) {
      EXPECT_EQ(change.find("modules.language."), std::string::npos) << change;
      EXPECT_EQ(change.find("batch."), std::string::npos) << change;
      EXPECT_EQ(change.find("overlap_reduce"), std::string::npos) << change;
    }
  }
}

TEST(Tune, AnotherNumberOfGpus) {
  TuneRequest request = RequestOf(kTiny, kSlowGpus, {"gradients", "modules.radio_encoder.recompute"});
  request.gpus = 4;
  const TuneResult result = Tuned(request);
  ASSERT_FALSE(result.best.empty());
  EXPECT_NE(std::find(result.best[0].changes.begin(), result.best[0].changes.end(), "cluster.nodes=2"),
            result.best[0].changes.end());
  EXPECT_FALSE(result.given) << "the recipe has two ranks";
  // What another speed would change is said for both kinds of links.
  ASSERT_EQ(result.sensitivity.size(), 2u);
  EXPECT_EQ(result.sensitivity[0].what, "link");
  EXPECT_EQ(result.sensitivity[1].what, "network");
  request.gpus = 3;
  Diagnostics problems;
  EXPECT_EQ(Tune(request, problems).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Tune, EndsEarlyWithWhatItHas) {
  TuneRequest request = RequestOf(kTiny, kSlowGpus, {});
  request.candidates = 20;
  int64_t reports = 0;
  request.progress = [&](const TuneProgress& progress) { reports += progress.simulated > 0 ? 1 : 0; };
  const TuneResult result = Tuned(request);
  EXPECT_TRUE(result.interrupted);
  EXPECT_GE(reports, 1);
  ASSERT_FALSE(result.best.empty());
  EXPECT_TRUE(result.best[0].proved);
  // What it did not look into has a bound all the same.
  request = RequestOf(kTiny, kSlowGpus, {"modules.radio_encoder", "modules.language.recompute", "gradients"});
  const double least = Tuned(request).fastest;
  request.candidates = 1;
  const TuneResult ended = Tuned(request);
  EXPECT_TRUE(ended.interrupted);
  EXPECT_GT(ended.lower_bound, 0);
  EXPECT_LE(ended.lower_bound, least);
  EXPECT_LE(ended.fastest, ended.lower_bound * (1 + ended.gap) * (1 + 1e-9));
  const std::atomic<bool> stop = true;
  request.stop = &stop;
  Diagnostics problems;
  const absl::StatusOr<TuneResult> at_once = Tune(request, problems);
  ASSERT_TRUE(at_once.ok()) << at_once.status();
  EXPECT_TRUE(at_once->interrupted);
  EXPECT_GT(at_once->lower_bound, 0) << "the products of the language model are";
  EXPECT_LE(at_once->lower_bound, least);
  EXPECT_EQ(at_once->best.at(0).digest, at_once->given.value().digest) << "nothing better is known than the recipe";
}

// By a clock of its own, which goes on by a second whenever it is looked at.
TEST(Tune, IsDoneWhenItsTimeIsOver) {
  TuneRequest request = RequestOf(kTiny, kSlowGpus, {});
  double now = 0;
  int64_t before = 0;
  request.clock = [&] { return now += 1; };
  request.seconds = request.proofs = 40;
  request.progress = [&](const TuneProgress& progress) {
    if (now <= 41) before = progress.simulated;
  };
  const TuneResult result = Tuned(request);
  EXPECT_TRUE(result.interrupted);
  EXPECT_TRUE(result.timed_out);
  EXPECT_LE(result.counts.simulated, before + 4) << "one goes on, and three may find what else is good";
  ASSERT_EQ(result.best.size(), 1u) << "others are not proved any more";
  EXPECT_TRUE(result.best[0].proved);
  EXPECT_LE(result.frontier.size(), 1u);
  EXPECT_LE(now, 60);

  // A search that is done in time may have more to prove than there is time.
  now = 0;
  request.seconds = 0, request.proofs = 0.5;  // over as soon as the clock is asked
  const TuneResult whole = Tuned(request);
  EXPECT_FALSE(whole.interrupted);
  EXPECT_EQ(whole.best.size(), 1u);
  EXPECT_TRUE(whole.sensitivity.empty());
}

TuneRequest RequestByAProfile() {
  return RequestOf("recipes/nemotron_moe_vlm_20l_mock_8r.yaml",
                   {"cluster.gpu=h100_sxm", "cluster.profile=" + InSource("recipes/profiles/h100_sxm.json")},
                   {"modules", "batch"});
}

TEST(Tune, SensitivityComparesWithTheFastest) {
  TuneRequest request = RequestByAProfile();
  request.fixed = {"modules.radio_encoder", "batch", "gradients", "modules.language.placement",
                   "modules.language.parallel.tp"};
  request.prefer = Preference::kMemory;
  const TuneResult result = Tuned(request);
  ASSERT_FALSE(result.best.empty());
  ASSERT_GT(result.best[0].seconds, result.fastest) << "it needs less memory";
  ASSERT_EQ(result.sensitivity.size(), 1u);
  const TuneSensitivity& link = result.sensitivity[0];
  ASSERT_EQ(link.what, "link");
  ASSERT_GT(link.slower, 1.1);
  const auto with_slower_links = [&](const TunedLayout& layout, double slower) {
    std::vector<std::string> overrides = request.overrides;
    overrides.insert(overrides.end(), layout.changes.begin(), layout.changes.end());
    Diagnostics problems;
    const auto plan = CompileRecipe(*ReadRecipe(request.recipe, overrides, problems), problems);
    Cluster cluster = plan.value().cluster;
    cluster.device.link = DeviceOf(cluster).node_link / 1e9 / slower;
    return StepLength(*plan, RatesOf(cluster));
  };
  const TunedLayout *fastest = nullptr, *instead = nullptr;
  for (const TunedLayout& layout : result.best) {
    if (layout.seconds == result.fastest) fastest = &layout;
    if (layout.line == link.instead) instead = &layout;
  }
  ASSERT_TRUE(fastest && instead);
  EXPECT_LT(with_slower_links(*instead, link.slower), with_slower_links(*fastest, link.slower));
  for (const TunedLayout& layout : result.best)
    EXPECT_GE(with_slower_links(layout, link.slower / 1.03), with_slower_links(*fastest, link.slower / 1.03));
}

TEST(Tune, MemoryComesFirstIfItIsPreferred) {
  TuneRequest request = RequestByAProfile();
  const TuneResult simple = Tuned(request);
  request.prefer = Preference::kMemory;
  const TuneResult result = Tuned(request);
  EXPECT_NEAR(static_cast<double>(result.worth), 849.3e6, 1e6) << "a hundredth of the device";
  ASSERT_FALSE(result.best.empty() || simple.best.empty());
  EXPECT_EQ(result.fastest, simple.fastest);
  for (const TunedLayout& layout : result.best) {
    if (!layout.equal) continue;
    EXPECT_GE(layout.memory, result.best[0].memory - result.worth) << layout.line;
  }
}

TEST(Tune, LeavesAMarginFree) {
  TuneRequest request = RequestOf(kTiny, kSlowGpus, {"gradients.buckets", "modules.radio_encoder.recompute"});
  const TuneResult whole = Tuned(request);
  ASSERT_FALSE(whole.best.empty());
  // So that the fastest does not fit any more.
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const TunedLayout& layout : whole.frontier) least = std::min(least, layout.memory);
  const int64_t limit = whole.best[0].limit;
  request.margin = limit - least;
  const TuneResult result = Tuned(request);
  ASSERT_FALSE(result.best.empty());
  EXPECT_GT(result.fastest, whole.fastest);
  for (const TunedLayout& layout : result.best) EXPECT_LE(layout.memory, limit - request.margin);
  EXPECT_GT(result.counts.memory, whole.counts.memory);
  Diagnostics problems;
  request.margin = limit;
  EXPECT_EQ(Tune(request, problems).status().code(), absl::StatusCode::kInvalidArgument);
  request = RequestOf(kTiny, {}, {"modules"});
  request.margin = 1;
  EXPECT_THAT(std::string(Tune(request, problems).status().message()), ::testing::HasSubstr("memory is known"));
}

TEST(Tune, RefusesAProfileWithoutThePrecisionBeforeItSearches) {
  TuneRequest request = RequestByAProfile();
  request.overrides.push_back("precision.params=fp32");
  request.progress = [](const TuneProgress&) { ADD_FAILURE() << "it searches"; };
  Diagnostics problems;
  EXPECT_EQ(Tune(request, problems).status().code(), absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(problems.sorted().size(), 1u);
  EXPECT_EQ(problems.sorted()[0].kind, DiagnosticKind::kProfileUnusable);
}

TEST(Tune, NamesTheRanksThatWaitAsShowDoes) {
  // Fewer samples in a microbatch than the encoder has lanes.
  const TuneResult result =
      Tuned(RequestOf("recipes/nemotron_moe_vlm_54l_33n.yaml",
                      {"modules.radio_encoder.placement.ranks=136", "modules.language.placement.first_rank=136",
                       "modules.language.placement.ranks=128"},
                      {"modules", "batch", "gradients"}));
  ASSERT_TRUE(result.given);
  EXPECT_NE(result.given->waits.find(" of radio_encoder"), std::string::npos) << result.given->waits;
}

// It was simulated before the search, and need not have come up again.
TEST(Tune, AtItsLimitTheGivenLayoutIsKnown) {
  TuneRequest request = RequestByAProfile();
  for (const char* good : {"modules.radio_encoder.placement.ranks=8", "modules.language.placement.first_rank=0",
                           "modules.language.placement.ranks=8", "modules.language.parallel.ep=8",
                           "modules.language.parallel.dispatch=all_to_all",
                           "modules.language.parallel.overlap_dispatch=true", "modules.language.recompute=attention"})
    request.overrides.emplace_back(good);
  request.fixed = {"modules.radio_encoder", "gradients", "batch", "modules.language.parallel.tp",
                   "modules.language.parallel.expert_tp"};
  request.simulations = 1;
  const TuneResult result = Tuned(request);
  ASSERT_TRUE(result.at_limit && result.given);
  ASSERT_FALSE(result.best.empty());
  EXPECT_LE(result.fastest, result.given->seconds);
}

TEST(Tune, SaysThatItEndedAtItsLimit) {
  TuneRequest request = RequestOf(kTiny, kSlowGpus, {"modules.radio_encoder", "modules.language.recompute"});
  EXPECT_FALSE(Tuned(request).at_limit);
  request.simulations = 3;
  const TuneResult result = Tuned(request);
  EXPECT_TRUE(result.at_limit);
  EXPECT_FALSE(result.interrupted);
  EXPECT_LE(result.counts.simulated, 3 + 100) << "with those that are listed beside the fastest";
  EXPECT_GT(result.counts.left + result.counts.time, 0);
}

// They are not simulated to learn that they are refused.
TEST(Tune, PackedDocumentsHaveOneSampleInAMicrobatch) {
  const auto refused = [](const std::string& packed) {
    BudgetRule rule(ReadTuned(kTiny, {"data.packed_documents=" + packed}).value().recipe);
    EXPECT_GT(rule.MicrobatchesOf(1, 1, 2, 1), 0);
    return rule.MicrobatchesOf(2, 1, 2, 1) == 0;
  };
  EXPECT_FALSE(refused("false"));
  EXPECT_TRUE(refused("true"));
}

TEST(Tune, RefusesWhatNoLayoutMends) {
  Diagnostics problems;
  EXPECT_EQ(Tune(RequestOf(kTiny, {"batch.global_sample=3"}, {}), problems).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(problems.has_errors());
}

TEST(Tune, SaysWhyNothingWasFound) {
  std::vector<std::string> overrides = kSlowGpus;
  overrides.push_back("cluster.device.memory=0.5");
  const TuneResult none = Tuned(RequestOf(kTiny, overrides, {}));
  EXPECT_TRUE(none.best.empty());
  EXPECT_EQ(none.problem, "No candidate is valid and fits memory.");
  EXPECT_GT(none.counts.memory, 0);
  EXPECT_EQ(Sum(none.counts), none.counts.space);
  TuneRequest request = RequestOf(kTiny, kSlowGpus, {"modules"});
  request.gpus = 4;
  const TuneResult fixed = Tuned(request);
  EXPECT_TRUE(fixed.best.empty());
  EXPECT_EQ(fixed.gpus, 4);
  EXPECT_EQ(fixed.cluster.nodes, 2);
  EXPECT_EQ(fixed.problem, "There is no candidate: with the keys that are fixed, no layout has 4 ranks.");
}

}  // namespace
}  // namespace planwright
