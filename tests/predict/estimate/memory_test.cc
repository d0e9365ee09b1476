// Memory by category. The parameters of the shipped models equal hand-made counts
// (docs/model/language_model.md#parameter-counts), and a plan that does not fit its device is refused at its module.
#include "planner/predict/estimate/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/compile/compile.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/verify/verify.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"
#include "tests/support/recipes.h"

namespace planwright {
namespace {

using testing::TinyRecipe;

Plan Shipped(const std::string& name, std::vector<std::string> overrides, Diagnostics& diagnostics) {
  const auto recipe = ReadRecipe(InSource("recipes/") + name + ".yaml", overrides, diagnostics);
  auto plan = CompileRecipe(*recipe, diagnostics);
  return plan ? *std::move(plan) : Plan();
}

Plan Shipped(const std::string& name, std::vector<std::string> overrides = {}) {
  Diagnostics diagnostics;
  return Shipped(name, std::move(overrides), diagnostics);
}

// Overrides of a shipped recipe: nothing is frozen, and devices have no limit.
const std::vector<std::string> kPlain = {"modules.radio_encoder.train.backbone=trained", "cluster.gpu=none"};

const RoleEstimate& RoleNamed(const std::vector<RoleEstimate>& estimates, const std::string& name) {
  for (const RoleEstimate& estimate : estimates) {
    if (estimate.role->name == name) return estimate;
  }
  throw std::runtime_error("no role " + name);
}

void ExpectState(const Plan& plan, double parameters, double gradients, double optimizer) {
  const std::vector<RoleEstimate> estimates = EstimateMemory(plan);
  const MemoryBytes& bytes = RoleNamed(estimates, "language.s0").planned;
  EXPECT_NEAR(static_cast<double>(bytes.parameters) / 1e9, parameters, 0.06);
  EXPECT_NEAR(static_cast<double>(bytes.gradients) / 1e9, gradients, 0.06);
  EXPECT_NEAR(static_cast<double>(bytes.optimizer) / 1e9, optimizer, 0.06);
}

// docs/memory.md#two-layouts
TEST(Memory, StateOfTheShippedLayouts) {
  ExpectState(Shipped("nemotron_moe_vlm_20l_mock_8r"), 6.4, 12.8, 34.6);
  ExpectState(Shipped("nemotron_moe_vlm_54l_33n", kPlain), 9.6, 19.3, 1.5);
  ExpectState(Shipped("nemotron_moe_vlm_54l_9n", kPlain), 6.0, 11.9, 5.9);
}

// What each word computes again is not kept: rotary embedding, norms of heads and gates are elementwise.
TEST(Memory, EachWordOfADecoderKeepsLess) {
  const auto kept = [](const std::string& words) {
    const Plan plan = Shipped("qwen3_moe_tiny", {"modules.language.recompute=" + words});
    return EstimateMemory(plan).at(0).planned.activations;
  };
  const int64_t all = kept("none"), least = kept("full");
  for (const char* word : {"attention", "moe", "mlp", "elementwise"}) {
    EXPECT_LT(kept(word), all) << word;
    EXPECT_GT(kept(word), least) << word;
    EXPECT_LT(kept(absl::StrCat("[", word, ", elementwise]")), all) << word;
  }
  EXPECT_LT(kept("[attention, elementwise]"), std::min(kept("attention"), kept("elementwise")));
  EXPECT_EQ(kept("[attention, moe, mlp]"), least);
}

TEST(Memory, WiderNumbersTakeMore) {
  Recipe recipe = TinyRecipe({1, 1, 1, 1, 1, false});
  std::vector<MemoryBytes> bytes;
  for (const char* precision : {"bf16", "fp32", "fp64"}) {
    recipe.precision = std::string(precision);
    const Plan plan = testing::Compiled(recipe);
    bytes.push_back(RoleNamed(EstimateMemory(plan), "language.s0").planned);
  }
  EXPECT_EQ(bytes[1].gradients, bytes[0].gradients);
  EXPECT_EQ(bytes[2].gradients, 2 * bytes[1].gradients);
  EXPECT_EQ(bytes[0].optimizer, 3 * bytes[0].gradients);  // masters and two moments
  EXPECT_EQ(bytes[1].optimizer, 2 * bytes[1].gradients);  // the weights are the masters
  EXPECT_EQ(bytes[2].optimizer, 2 * bytes[2].gradients);
  EXPECT_LT(bytes[0].activations, bytes[1].activations);
  EXPECT_LT(bytes[1].activations, bytes[2].activations);
}

const Symbol& ExpertRows(const Plan& plan) {
  return *std::find_if(plan.symbols.begin(), plan.symbols.end(),
                       [](const Symbol& symbol) { return symbol.name == "language.expert_rows"; });
}

TEST(Memory, ExpertRowsArePlannedAtTheDeclaredImbalance) {
  const Plan plan = Shipped("nemotron_moe_vlm_54l_33n");  // moe.imbalance 2, ep 8
  const Symbol& rows = ExpertRows(plan);
  EXPECT_EQ(rows.expected, 2 * rows.mean);
  EXPECT_EQ(rows.maximum, 8 * rows.mean);  // all tokens of the eight ranks choose experts of one
  const std::vector<RoleEstimate> estimates = EstimateMemory(plan);
  const RoleEstimate& language = RoleNamed(estimates, "language.s0");
  EXPECT_GT(language.worst.total(), language.planned.total());
  EXPECT_EQ(language.worst.optimizer, language.planned.optimizer);
}

TEST(Memory, WithoutAnImbalanceAllExpertRowsHaveRoom) {
  const Plan plan = Shipped("nemotron_moe_vlm_20l_mock_8r");
  EXPECT_EQ(ExpertRows(plan).mean, 4096 * 6);
  EXPECT_EQ(ExpertRows(plan).expected, 0);
  EXPECT_EQ(ExpertRows(plan).maximum, 4 * 4096 * 6);
  const std::vector<RoleEstimate> estimates = EstimateMemory(plan);
  const RoleEstimate& language = RoleNamed(estimates, "language.s0");
  EXPECT_EQ(language.worst.total(), language.planned.total());
}

TEST(Memory, ImagesAreBoundedByTheData) {
  const Plan plan = Shipped("nemotron_moe_vlm_20l_mock_8r");
  for (const Symbol& symbol : plan.symbols) {
    if (symbol.name == "radio_encoder.patches") {
      EXPECT_EQ(symbol.maximum, 3 * 96 * 96);  // three of the largest
      EXPECT_EQ(symbol.mean, 3 * (4096 + 6144 + 9216) / 3 / 2);
    }
  }
}

// The encoder is a microbatch ahead of the language model, so it keeps two of them.
TEST(Memory, KeepsTheMicrobatchesInFlight) {
  Recipe recipe = TinyRecipe({1, 1, 1, 1, 1, false});
  const Plan many = testing::Compiled(recipe);
  recipe.batch.global_samples = int64_t{1};
  recipe.budget.train_samples = int64_t{20};
  const Plan one = testing::Compiled(recipe);
  const auto activations = [](const Plan& plan, const char* role) {
    return RoleNamed(EstimateMemory(plan), role).planned.activations;
  };
  EXPECT_GT(activations(many, "radio_encoder.s0"), activations(one, "radio_encoder.s0") * 3 / 2);
  EXPECT_LT(activations(many, "radio_encoder.s0"), activations(one, "radio_encoder.s0") * 5 / 2);
  EXPECT_EQ(activations(many, "language.s0"), activations(one, "language.s0"));
}

TEST(Memory, APlanThatDoesNotFitIsRefusedAtItsModule) {
  Diagnostics diagnostics;
  Shipped("nemotron_moe_vlm_20l_mock_8r", {"cluster.gpu=h100_sxm", "batch.micro_samples=4"}, diagnostics);
  ASSERT_TRUE(diagnostics.has_errors());
  const Diagnostic problem = diagnostics.sorted().front();
  EXPECT_EQ(problem.kind, DiagnosticKind::kDeviceTooSmall);
  EXPECT_THAT(*problem.where.file, ::testing::HasSubstr("nemotron_moe_vlm_20l_mock_8r.yaml"));
  EXPECT_THAT(problem.message, ::testing::HasSubstr("activations"));
  EXPECT_THAT(problem.help, ::testing::HasSubstr("micro_samples"));
}

TEST(Memory, WarnsWhereOnlyEvenExpertsFit) {
  Diagnostics diagnostics;
  const Plan plan = Shipped("nemotron_moe_vlm_54l_text_only", {}, diagnostics);
  EXPECT_FALSE(diagnostics.has_errors());
  const std::vector<Diagnostic> problems = diagnostics.sorted();
  const auto warning = std::find_if(problems.begin(), problems.end(),
                                    [](const Diagnostic& d) { return d.kind == DiagnosticKind::kExpertRowsMayNotFit; });
  ASSERT_NE(warning, problems.end());
  EXPECT_EQ(warning->severity, Severity::kWarning);
  EXPECT_THAT(warning->message, ::testing::HasSubstr("h100_sxm"));
  const RoleEstimate language = EstimateMemory(plan).front();
  EXPECT_LE(language.planned.total(), language.limit);
  EXPECT_GT(language.worst.total(), language.limit);
}

TEST(Memory, FrozenWeightsHaveNeitherGradientsNorState) {
  Plan plan = Shipped("nemotron_moe_vlm_20l_mock_8r");
  Module& encoder = plan.modules[0];
  const int64_t before = RoleNamed(EstimateMemory(plan), "radio_encoder.s0").planned.parameters;
  for (Storage& storage : encoder.storages) storage.bucket = -1;
  encoder.buckets.clear();
  const MemoryBytes frozen = RoleNamed(EstimateMemory(plan), "radio_encoder.s0").planned;
  EXPECT_EQ(frozen.gradients, 0);
  EXPECT_EQ(frozen.optimizer, 0);
  EXPECT_NEAR(static_cast<double>(frozen.parameters), static_cast<double>(before), 1e5);
}

}  // namespace
}  // namespace planwright
