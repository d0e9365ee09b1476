// Pairs of recipes: which differences are called mere layout, and which may change the loss curve.
// tests/numerics/diff_pairs_test.cc trains some of the pairs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "absl/strings/str_split.h"
#include "planner/base/paper/table.h"
#include "planner/plan/plan_json.h"
#include "planner/views/diff/diff.h"
#include "tests/numerics/layouts.h"
#include "tests/support/compiled.h"
#include "tests/views/diff/toy_recipes.h"

namespace planwright {
namespace {

using testing::CompiledFile;
using ::testing::HasSubstr;
using testing::kIcons;
using testing::kTiny;
using testing::kToy;

// Paths of changes that may change the loss.
std::vector<std::string> MarkedPaths(const PlanDiff& diff) {
  std::vector<std::string> paths;
  for (const PlanChange& change : diff.changes) {
    if (change.may_change_loss) paths.push_back(change.path);
  }
  return paths;
}

// Whether some change is of the field `path` or inside it.
bool TellsOf(const PlanDiff& diff, const std::string& path) {
  return std::any_of(diff.changes.begin(), diff.changes.end(),
                     [&](const PlanChange& change) { return change.path.starts_with(path); });
}

TEST(DiffPlans, APlanIsTheSameAsItself) {
  const Plan plan = CompiledFile(kToy);
  EXPECT_TRUE(DiffPlans(plan, plan).same());
  const absl::StatusOr<Plan> read = ReadPlan(WritePlan(plan));
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(DiffPlans(plan, *read).same());
  Plan nameless = plan;
  nameless.digest.clear();  // no short cut
  EXPECT_TRUE(DiffPlans(plan, nameless).same());
}

TEST(DiffPlans, TargetsOfAdaptersAreASet) {
  const auto adapted = [](const std::string& targets) {
    return CompiledFile(kTiny, {"modules.language.train.backbone=frozen",
                                "modules.language.adapter={rank: 2, alpha: 4, targets: [" + targets + "]}"});
  };
  const Plan plan = adapted("q_proj, in_proj, shared_experts.up_proj");
  EXPECT_TRUE(DiffPlans(plan, adapted("shared_experts.up_proj, in_proj, q_proj")).same());
  EXPECT_TRUE(DiffPlans(plan, adapted("mixer.in_proj, mixer.shared_experts.up_proj, mixer.q_proj, q_proj")).same());
  const PlanDiff other = DiffPlans(plan, adapted("q_proj, in_proj"));
  EXPECT_TRUE(TellsOf(other, "modules.language.adapter_targets"));
  EXPECT_TRUE(other.may_change_loss());
}

TEST(DiffPlans, NoLayoutChangesTheCurve) {
  const Plan one = CompiledFile(kTiny);
  for (const testing::Layout& layout : testing::TinyLayouts()) {
    const PlanDiff diff = DiffPlans(one, CompiledFile(kTiny, layout.overrides));
    EXPECT_FALSE(diff.same()) << layout.name;
    EXPECT_THAT(MarkedPaths(diff), ::testing::IsEmpty()) << layout.name;
    EXPECT_TRUE(TellsOf(diff, "modules.language.grid") || TellsOf(diff, "modules.radio_encoder.grid")) << layout.name;
  }
}

TEST(DiffPlans, NoPlannedLayoutChangesTheCurve) {
  const Plan one = CompiledFile(kTiny);
  for (const std::vector<std::string>& overrides : testing::PlannedLayouts()) {
    const PlanDiff diff = DiffPlans(one, CompiledFile(kTiny, overrides));
    EXPECT_FALSE(diff.same()) << overrides.back();
    EXPECT_THAT(MarkedPaths(diff), ::testing::IsEmpty()) << overrides.back();
  }
}

TEST(DiffPlans, WhatKeepsTheCurveIsTold) {
  const std::pair<const char*, const char*> kKeeps[] = {
      {"name=other", "name"},
      {"gradients.buckets=3", "modules.language.buckets"},
      {"log.every_steps=5", "log_every_steps"},
      {"cluster.gpu=h100_sxm", "cluster.gpu"},
      {"batch.micro_samples=2", "budget.micro_samples"},
      {"models.hybrid_moe_tiny.mamba.chunk=8", "modules.language.constants.mamba.chunk"},
      {"budget.learning_rate.style=cosine", nullptr},  // already the recipe's value
      {"budget.learning_rate.init=0", nullptr},
  };
  for (const auto& [override, path] : kKeeps) {
    const PlanDiff diff = DiffPlans(CompiledFile(kTiny), CompiledFile(kTiny, {override}));
    EXPECT_EQ(diff.same(), path == nullptr) << override;
    EXPECT_THAT(MarkedPaths(diff), ::testing::IsEmpty()) << override;
    if (path) {
      EXPECT_TRUE(TellsOf(diff, path)) << override;
    }
  }
}

TEST(DiffPlans, WhatMayChangeTheCurveIsNamed) {
  const std::pair<const char*, const char*> kChanges[] = {
      {"data.seed=5", "seed"},
      {"batch.global_samples=4", "budget.global_samples"},
      {"batch.sequence_length=64", "budget.sequence_length"},
      {"budget.train_samples=320", "budget.train_samples"},
      {"budget.learning_rate.peak=1.0e-3", "budget.learning_rate.peak"},
      {"budget.learning_rate.warmup_samples=24", "budget.learning_rate.warmup_samples"},
      {"budget.learning_rate.style=linear", "budget.learning_rate.style"},
      {"budget.weight_decay={start: 0.05, end: 0.1, style: linear}", "budget.weight_decay.end"},
      {"optimizer.betas=[0.8, 0.95]", "optimizer.beta1"},
      {"optimizer.parts=[{match: language, learning_rate: 1.0e-3}]", "optimizer.parts.language"},
      {"optimizer.parts=[{match: \"*norm*\", learning_rate: 2.0e-4}, {match: language, weight_decay: 0.1}]",
       "optimizer.parts.language"},
      {"optimizer.eps=1.0e-6", "optimizer.eps"},
      {"optimizer.clip_grad_norm=0.5", "optimizer.clip_grad_norm"},
      {"precision.params=fp64", "precision"},
      {"precision.deterministic=true", "deterministic"},
      {"data.classes=4", "data.classes"},
      {"data.max_images=1", "data.max_images"},
      {"data.min_images=1", "data.min_images"},
      {"data.image_grids=[[4, 4]]", "data.image_grids"},
      {"data.image_token=254", "data.image_token"},
      {"models.hybrid_moe_tiny.pattern=\"ME*M\"", "modules.language.layers.language.layers.3.kind"},
      {"models.hybrid_moe_tiny.pattern=\"ME*EM\"", "modules.language.layers.language.layers.4"},
      {"models.hybrid_moe_tiny.init_std=0.03", "modules.language.parameters"},
      {"models.hybrid_moe_tiny.norm_eps=1.0e-6", "modules.language.constants.norm_eps"},
      {"models.hybrid_moe_tiny.attention={heads: 8, head_dim: 8, kv_groups: 4}",
       "modules.language.constants.attention.head_dim"},
      {"models.hybrid_moe_tiny.mamba={heads: 8, head_dim: 8, groups: 4, state: 8, conv: 4, chunk: 16}",
       "modules.language.constants.mamba.groups"},
      {"models.hybrid_moe_tiny.moe.top_k=3", "modules.language.constants.moe.top_k"},
      {"models.hybrid_moe_tiny.moe.normalized=false", "modules.language.constants.moe.normalized"},
      {"models.hybrid_moe_tiny.moe.scale=1.0", "modules.language.constants.moe.scale"},
      {"models.hybrid_moe_tiny.moe.aux_loss=1.0e-2", "modules.language.constants.moe.aux_loss"},
      {"models.hybrid_moe_tiny.moe.bias_rate=1.0e-2", "modules.language.constants.moe.bias_rate"},
      {"models.hybrid_moe_tiny.moe.ffn=32", "modules.language.parameters"},
      {"models.radio_vit_tiny.activation=gelu", "modules.radio_encoder.constants.erf_gelu"},
      {"models.radio_vit_tiny.final_norm=none", "modules.radio_encoder.constants.final_norm"},
      {"models.radio_vit_tiny.positions=interpolate", "modules.radio_encoder.constants.crop"},
      {"models.radio_vit_tiny.heads=2", "modules.radio_encoder.constants.heads"},
      {"models.radio_vit_tiny.class_tokens=4", "modules.radio_encoder.constants.class_tokens"},
      {"models.radio_vit_tiny.projector.hidden=32", "modules.radio_encoder.parameters"},
  };
  const Plan tiny = CompiledFile(kTiny);
  for (const auto& [override, path] : kChanges) {
    const PlanDiff diff = DiffPlans(tiny, CompiledFile(kTiny, {override}));
    EXPECT_TRUE(diff.may_change_loss()) << override;
    EXPECT_THAT(MarkedPaths(diff), ::testing::Contains(HasSubstr(path))) << override;
  }
}

// Two sections of one run. The vocabulary has the ids of bytes.
Plan WithSources(const std::string& sources, const std::string& more = "") {
  return CompiledFile(kTiny, {"models.hybrid_moe_tiny.vocabulary=260", "batch.sequence_length=96",
                              "data={kind: sources, max_patches: 64, sources: [" + sources + "]" + more + "}"});
}

TEST(DiffPlans, SourcesSayFromWhichSampleOn) {
  const std::string a = "{name: a, kind: webdataset, shards: /gone/a.tar", b = "{name: b, kind: webdataset, shards: ";
  const Plan half = WithSources(a + "}, " + b + "/gone/b.tar}");  // a b a b ...
  const auto diff = [&](const Plan& other) { return DiffPlans(half, other); };
  EXPECT_TRUE(diff(WithSources(a + ", weight: 0.5}, " + b + "/gone/b.tar, weight: 0.5}")).same());
  // 3 to 2: a b a b a, then a again in the place of b.
  const PlanDiff weight = diff(WithSources(a + ", weight: 3}, " + b + "/gone/b.tar, weight: 2}"));
  EXPECT_THAT(MarkedPaths(weight), ::testing::UnorderedElementsAre("data.sources.a.weight", "data.sources.b.weight"));
  EXPECT_EQ(weight.first_other_sample, 5);
  EXPECT_THAT(DiffText(weight, "A", "B"), HasSubstr("samples are other ones from sample 5 on\n"));
  EXPECT_EQ(DiffJson(weight)["first_other_sample"], 5);
  // Other documents of the second source.
  EXPECT_EQ(diff(WithSources(a + "}, " + b + "/gone/c.tar}")).first_other_sample, 1);
  EXPECT_TRUE(TellsOf(diff(WithSources(a + "}, " + b + "/gone/c.tar}")), "data.sources.b.shards"));
  // A source more.
  const PlanDiff added =
      diff(WithSources(a + "}, " + b + "/gone/b.tar}, {name: c, kind: webdataset, shards: /gone/c.tar}"));
  EXPECT_TRUE(TellsOf(added, "data.sources.c"));
  EXPECT_EQ(added.first_other_sample, 2);
  // All samples, or none.
  EXPECT_EQ(diff(WithSources(a + "}, " + b + "/gone/b.tar}", ", shuffle: none")).first_other_sample, 0);
  const PlanDiff balance = diff(WithSources(a + "}, " + b + "/gone/b.tar}", ", balance: images"));
  EXPECT_FALSE(balance.same() || balance.may_change_loss() || balance.first_other_sample);
}

TEST(DiffPlans, ShowsWhereWeightsCameFrom) {
  Plan from = CompiledFile(kTiny), to = from;
  from.digest = "a", to.digest = "b";
  from.initialize.emplace().sources = {{"language", "nano", ""}, {"radio_encoder", "radio", ""}};
  to.initialize.emplace().sources = {{"radio_encoder", "radio", ""}};
  const PlanDiff diff = DiffPlans(from, to);
  ASSERT_TRUE(TellsOf(diff, "initialize.sources.language"));
  EXPECT_THAT(DiffText(diff, "A", "B"), ::testing::ContainsRegex("initialize.sources.language +nano +-> +- "));
}

TEST(DiffPlans, TheOrderOfSourcesCountsWhereItDecides) {
  const std::string a = "{name: a, kind: webdataset, shards: /gone/a.tar, weight: ",
                    b = "{name: b, kind: webdataset, shards: /gone/b.tar, weight: ";
  // 1 to 1: both may come first.
  const PlanDiff turned = DiffPlans(WithSources(a + "1}, " + b + "1}"), WithSources(b + "1}, " + a + "1}"));
  EXPECT_THAT(MarkedPaths(turned), ::testing::ElementsAre("data.sources"));
  EXPECT_EQ(turned.first_other_sample, 0);
  EXPECT_TRUE(turned.may_change_loss());
  // 3 to 2: it is never the turn of both.
  const PlanDiff idle = DiffPlans(WithSources(a + "3}, " + b + "2}"), WithSources(b + "2}, " + a + "3}"));
  EXPECT_TRUE(TellsOf(idle, "data.sources"));
  EXPECT_EQ(idle.changes.size(), 1U);
  EXPECT_FALSE(idle.same() || idle.may_change_loss() || idle.first_other_sample);
}

TEST(DiffPlans, ARateThatIsTheSameAtEveryStepIsIdle) {
  const std::vector<std::string> constant = {"budget.learning_rate.style=constant", "budget.learning_rate.min=1.0e-5"};
  std::vector<std::string> other = constant;
  other[1] = "budget.learning_rate.min=2.0e-5";
  const PlanDiff diff = DiffPlans(CompiledFile(kTiny, constant), CompiledFile(kTiny, other));
  EXPECT_FALSE(diff.same());
  EXPECT_FALSE(diff.may_change_loss());
  ASSERT_TRUE(TellsOf(diff, "budget.learning_rate.min"));
  EXPECT_THAT(diff.changes[0].effect, HasSubstr("the same at every step"));
}

TEST(DiffPlans, LayoutAndModelAreToldApart) {
  const PlanDiff diff = DiffPlans(
      CompiledFile(kTiny),
      CompiledFile(kTiny, testing::Join(testing::EncoderOn(2, 2), testing::LanguageOn(2, 4, 2, 4), {"data.seed=5"})));
  EXPECT_TRUE(TellsOf(diff, "modules.language.grid.tp"));
  EXPECT_TRUE(TellsOf(diff, "groups.language.tp"));
  EXPECT_TRUE(TellsOf(diff, "bridges."));
  EXPECT_TRUE(TellsOf(diff, "schedule."));
  EXPECT_TRUE(TellsOf(diff, "roles."));
  EXPECT_EQ(MarkedPaths(diff), (std::vector<std::string>{"seed", "data.seed"}));
}

TEST(DiffPlans, SizesOfGroupsFollowTheGrid) {
  const PlanDiff diff = DiffPlans(CompiledFile(kTiny, testing::LanguageOn(1, 2, 1, 1)),
                                  CompiledFile(kTiny, testing::LanguageOn(1, 4, 1, 1)));
  const auto it = std::find_if(diff.changes.begin(), diff.changes.end(),
                               [](const PlanChange& c) { return c.path == "groups.language.dp_cp.members"; });
  ASSERT_NE(it, diff.changes.end());
  EXPECT_EQ(it->from, (nlohmann::ordered_json{{"groups", 1}, {"ranks_each", 2}}));
  EXPECT_EQ(it->to, (nlohmann::ordered_json{{"groups", 1}, {"ranks_each", 4}}));
}

TEST(DiffPlans, TheSameWordsOfAnotherFolderAreOtherFiles) {
  const Plan icons = CompiledFile(kIcons);
  Plan elsewhere = icons;
  elsewhere.data.base = "/elsewhere";
  ASSERT_EQ(PlanDigest(icons), PlanDigest(elsewhere));
  const PlanDiff diff = DiffPlans(icons, elsewhere);
  ASSERT_EQ(diff.changes.size(), 1u);
  EXPECT_EQ(diff.changes[0].path, "data.base");
  EXPECT_TRUE(diff.may_change_loss());
  elsewhere.data.base = icons.data.base + "/../" + icons.data.base.substr(icons.data.base.rfind('/') + 1);
  EXPECT_TRUE(DiffPlans(icons, elsewhere).same()) << "the same folder by another way";
}

// The losses of a set in one curve are of one list of documents.
TEST(DiffPlans, AnotherFolderOfAnEvaluationSetIsTold) {
  Plan plan = CompiledFile(kIcons);
  plan.evaluation = {.every_samples = plan.budget.global_samples,
                     .sets = {{.name = "held", .samples = 4, .rounds = 1, .data = plan.data}}};
  plan.digest = PlanDigest(plan);
  Plan elsewhere = plan;
  elsewhere.evaluation.sets[0].data.base = "/elsewhere";
  ASSERT_EQ(PlanDigest(plan), PlanDigest(elsewhere));
  const PlanDiff diff = DiffPlans(plan, elsewhere);
  ASSERT_EQ(diff.changes.size(), 1u);
  EXPECT_EQ(diff.changes[0].path, "evaluation.sets[held].data.base");
  EXPECT_TRUE(diff.may_change_loss());
  elsewhere.evaluation.sets[0].name = "other";
  EXPECT_FALSE(TellsOf(DiffPlans(plan, elsewhere), "evaluation.sets[held].data.base"));
}

TEST(DiffPlans, TwoDigestsAreNeverTheSamePlan) {
  const Plan tiny = CompiledFile(kTiny);
  const auto differs = [&](const char* what, const std::function<void(Plan&)>& change) {
    Plan other = tiny;
    change(other);
    other.digest = PlanDigest(other);
    ASSERT_NE(other.digest, tiny.digest) << what;
    EXPECT_FALSE(DiffPlans(tiny, other).same()) << what;
    other.digest.clear();
    EXPECT_FALSE(DiffPlans(tiny, other).same()) << what << ", without a digest";
  };
  differs("a list turned", [](Plan& p) { std::reverse(p.groups.begin(), p.groups.end()); });
  differs("parameters turned", [](Plan& p) { std::swap(p.modules[1].parameters[0], p.modules[1].parameters[1]); });
  differs("names of buckets swapped",
          [](Plan& p) { std::swap(p.modules[1].buckets[0].name, p.modules[1].buckets.back().name); });
  differs("a value of a block renamed", [](Plan& p) { p.blocks[0].body[0].outputs[0].name += "x"; });
  differs("a probe renamed", [](Plan& p) {
    for (Block& block : p.blocks) {
      if (!block.probes.empty()) return void(block.probes[0].name += "x");
    }
  });
  differs("another master", [](Plan& p) { p.modules[1].buckets[0].master = DType::kFp64; });
}

TEST(DiffPlans, AnOptimizerThatIsLeftOutIsSeen) {
  const Plan tiny = CompiledFile(kTiny);
  Plan broken = tiny;
  broken.digest.clear();
  std::erase_if(broken.roles[0].step,
                [](const Instruction& i) { return i.kind == OpKind::kAdamW && i.text("module") == "language"; });
  EXPECT_THAT(MarkedPaths(DiffPlans(tiny, broken)), ::testing::Contains("step.adamw language"));
}

TEST(DiffJson, HasTheShapeThatScriptsRelyOn) {
  const nlohmann::ordered_json json = DiffJson(DiffPlans(CompiledFile(kTiny), CompiledFile(kTiny, {"data.seed=5"})));
  EXPECT_EQ(json["same"], false);
  EXPECT_EQ(json["may_change_loss"], true);
  EXPECT_EQ(json["changes"][0]["path"], "seed");
  EXPECT_EQ(json["changes"][0]["from"], 1234);
  EXPECT_EQ(json["changes"][0]["to"], 5);
  EXPECT_EQ(json["changes"][0]["effect"], "other initial weights");
}

// Another kind of dispatch alone: said once, and no layer computes anything else.
TEST(DiffPlans, HowTokensReachExpertsKeepsTheCurve) {
  const auto with = [](const char* dispatch) {
    std::vector<std::string> overrides = testing::LanguageOn(1, 4, 2, 4);
    overrides.push_back(std::string("modules.language.parallel.dispatch=") + dispatch);
    return CompiledFile(kTiny, overrides);
  };
  const PlanDiff diff = DiffPlans(with("all_to_all"), with("all_gather"));
  EXPECT_TRUE(TellsOf(diff, "modules.language.dispatch"));
  EXPECT_THAT(MarkedPaths(diff), ::testing::IsEmpty());
}

// Key heads that ranks share, and a padded vocabulary: another kind of attention, and no layer computes anything else.
TEST(DiffPlans, WhatTpDoesNotDivideKeepsTheCurve) {
  for (const testing::Layout& layout : testing::UndividedLayouts()) {
    const std::string recipe = InSource(layout.recipe);
    const Plan one = CompiledFile(recipe, testing::Join(layout.training, layout.one_rank));
    const PlanDiff diff = DiffPlans(one, CompiledFile(recipe, testing::Join(layout.training, layout.overrides)));
    EXPECT_TRUE(TellsOf(diff, "modules.language.grid")) << layout.name;
    EXPECT_THAT(MarkedPaths(diff), ::testing::IsEmpty()) << layout.name;
  }
}

// The shared expert beside the exchanges: other streams and another order, and no layer computes anything else.
TEST(DiffPlans, WhenTokensTravelKeepsTheCurve) {
  for (const char* dispatch : {"all_to_all", "all_gather"}) {
    const auto with = [&](const char* overlap) {
      std::vector<std::string> overrides = testing::LanguageOn(1, 4, 2, 4);
      overrides.push_back(std::string("modules.language.parallel.dispatch=") + dispatch);
      overrides.push_back(std::string("modules.language.parallel.overlap_dispatch=") + overlap);
      return CompiledFile(kTiny, overrides);
    };
    const PlanDiff diff = DiffPlans(with("false"), with("true"));
    EXPECT_FALSE(diff.changes.empty()) << dispatch;
    EXPECT_THAT(MarkedPaths(diff), ::testing::IsEmpty()) << dispatch;
  }
}

TEST(DiffText, MarksWhatMayChangeTheCurve) {
  const PlanDiff diff = DiffPlans(CompiledFile(kTiny), CompiledFile(kTiny, {"data.seed=5", "log.every_steps=2"}));
  const std::string text = DiffText(diff, "a", "b");
  EXPECT_THAT(text, HasSubstr("a and b: 3 differences; the loss curve may change"));
  EXPECT_THAT(text, HasSubstr(" !  seed"));
  EXPECT_THAT(text, HasSubstr("    log_every_steps"));
  EXPECT_EQ(DiffText({}, "a", "b"), "a and b are the same plan\n");
}

TEST(DiffText, KeepsToTheWidthAndSaysRanksInRuns) {
  const auto lanes = [](int ranks) { return CompiledFile(kTiny, testing::LanguageOn(1, ranks, 1, 1)); };
  const PlanDiff diff = DiffPlans(lanes(2), lanes(4));
  for (size_t width : {60, 100, 150}) {
    const std::string text = DiffText(diff, "a", "b", width);
    EXPECT_THAT(text, HasSubstr("[1-4]"));
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n')))
      EXPECT_LE(Width(line), width) << line;
  }
}

}  // namespace
}  // namespace planwright
