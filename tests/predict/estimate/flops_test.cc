// FLOPs are counted in two ways, which must agree: from the statement of the model as on one rank, with rules about
// gradients (planner/predict/estimate/model_flops.h), and from the instructions that all ranks run.
#include <gtest/gtest.h>

#include <functional>

#include "planner/compile/compile.h"
#include "planner/plan/sample_images.h"
#include "planner/predict/estimate/model_flops.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/recipe/recipe_reader.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"
#include "tests/support/recipes.h"

namespace planwright {
namespace {

using testing::TinyLayout;
using testing::TinyRecipe;

double ProgramFlops(const Plan& plan) {
  double flops = 0;
  for (const RoleTime& role : TimeStep(plan).roles) flops += role.flops * static_cast<double>(role.count());
  return flops;
}

double ModelFlops(const Plan& plan) {
  double flops = 0;
  for (const Module& module : plan.modules)
    flops += FlopsOf(plan, module).step.model() + FlopsOf(plan, module).step.recompute;
  return flops;
}

TEST(Flops, OfProgramsEqualThoseOfTheModel) {
  for (const TinyLayout& layout :
       {TinyLayout{1, 1, 1, 1, 1, true}, TinyLayout{1, 1, 1, 1, 1, false}, TinyLayout{2, 2, 4, 2, 4, false},
        TinyLayout{4, 2, 4, 2, 2, true}, TinyLayout{2, 1, 8, 2, 4, false}}) {
    const Plan plan = testing::Compiled(TinyRecipe(layout));
    // Mean sizes are rounded to whole rows, and a tiny model has few rows.
    EXPECT_NEAR(ProgramFlops(plan) / ModelFlops(plan), 1, 0.03) << layout.language_ranks << " ranks";
  }
}

TEST(Flops, OfProgramsEqualThoseOfTheModelInEveryLayout) {
  const std::vector<std::pair<std::string, std::function<void(ModuleRecipe&)>>> changes = {
      {"pp", [](ModuleRecipe& m) { m.pp = int64_t{2}; }},
      {"cp", [](ModuleRecipe& m) { m.cp = int64_t{2}, m.tp = int64_t{1}; }},
      {"expert_tp", [](ModuleRecipe& m) { m.expert_tp = int64_t{2}; }},
      {"frozen", [](ModuleRecipe& m) { m.train_backbone = std::string("frozen"); }},
      {"recompute", [](ModuleRecipe& m) { m.recompute = {Located(std::string("full"))}; }},
      {"recompute_some",
       [](ModuleRecipe& m) {
         m.recompute = {Located(std::string("mamba")), Located(std::string("moe"))};
       }},
  };
  for (const auto& [name, change] : changes) {
    Recipe recipe = TinyRecipe({2, 1, 8, 2, 2, false});
    change(recipe.modules[1]);
    const Plan plan = testing::Compiled(recipe);
    EXPECT_NEAR(ProgramFlops(plan) / ModelFlops(plan), 1, 0.03) << name;
  }
}

// Mergers of inner layers learn with the projection, whatever the layers around them do.
TEST(Flops, OfProgramsEqualThoseOfTheModelWithFeaturesOfInnerLayers) {
  const std::vector<std::vector<std::string>> changes = {
      {},
      {"modules.eye_encoder.train={backbone: frozen}"},
      {"modules.eye_encoder.train={projection: frozen}"},
      {"modules.eye_encoder.train={backbone: frozen, projection: frozen}"},
      {"modules.eye_encoder.train={backbone: frozen}", "modules.language.train={backbone: frozen}"},
      {"modules.eye_encoder={model: eye, placement: {first_rank: 0, ranks: 4}, parallel: {pp: 2, tp: 2}}",
       "modules.language={model: tongue, placement: {first_rank: 4, ranks: 2}, parallel: {cp: 2}}"}};
  for (const std::vector<std::string>& change : changes) {
    const Plan plan = testing::CompiledFile(InSource("tests/verify/carries.yaml"), change);
    EXPECT_NEAR(ProgramFlops(plan) / ModelFlops(plan), 1, 0.03) << ::testing::PrintToString(change);
  }
}

// Of a step the elements are known that have crossed its bridge, with the features of inner layers.
TEST(Flops, OfAStepFollowItsRows) {
  const Plan plan = testing::CompiledFile(InSource("tests/verify/carries.yaml"));
  const Module &encoder = plan.modules.at(0), &language = plan.modules.at(1);
  constexpr int64_t kRows = 5, kFeatures = 32 * (1 + 2), kPatchesOfRow = 4;
  EXPECT_NEAR(StepFlops(plan).Of(std::vector{kRows * kFeatures}),
              FlopsOf(plan, language).step.model() +
                  FlopsOf(plan, encoder).token.model() * static_cast<double>(kRows * kPatchesOfRow),
              1);
}

// What ranks execute ends where a document ends; FLOPs of the model are of whole samples.
TEST(Flops, OfProgramsFollowDocumentsAndThoseOfTheModelDoNot) {
  Plan plan = testing::CompiledFile(InSource("recipes/nemotron_moe_lm_tiny.yaml"), {"data.packed_documents=true"});
  plan.data.kind = DataKind::kSources;
  const double whole = ProgramFlops(plan), model = ModelFlops(plan);
  plan.data.sources = {{.name = "texts", .weight = 1}};
  plan.data.counted.digest = std::string(64, 'a');
  plan.data.counted.documents = {{"texts", 10, 30, 48 * 48 / 4}};
  double scores = 0;  // of a token, forward
  for (const LayerSummary& layer : plan.modules[0].layers)
    scores += layer.kind == '*' ? static_cast<double>(layer.mixing_flops) : 0;
  ASSERT_GT(scores, 0);
  // The backward of scores costs twice their forward.
  const double of_step = 3 * scores * 48 * static_cast<double>(plan.budget.global_samples);
  EXPECT_NEAR(whole - ProgramFlops(plan), 0.75 * of_step, 1e-9 * whole);
  EXPECT_EQ(ModelFlops(plan), model);
}

Plan Nemotron20Layers() { return testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_20l_mock_8r.yaml")); }

TEST(Flops, OfProgramsEqualThoseOfTheModelOf20Layers) {
  const Plan plan = Nemotron20Layers();
  EXPECT_NEAR(ProgramFlops(plan) / ModelFlops(plan), 1, 2e-4);
}

// Elements of the matrices that a token meets in a frame: of routed experts, those of top_k of them.
double MatricesOf(const Module& module, const std::string& frame) {
  double elements = 0;
  for (const Storage& storage : module.storages) {
    for (int index : storage.parameters) {
      const Parameter& parameter = module.parameters[static_cast<size_t>(index)];
      if (storage.frame != frame || parameter.shape.size() != 2) continue;
      elements += static_cast<double>(parameter.shape[0] * parameter.shape[1]) *
                  static_cast<double>(parameter.experts > 0 ? module.top_k() : 1);
    }
  }
  return elements;
}

// A product with a matrix is a multiplication and an addition for each of its elements and each row. The published
// shapes of the matrices are a count of their own.
TEST(Flops, OfProductsAreTwoForEachElementOfAMatrix) {
  const Plan plan = Nemotron20Layers();
  const Module &encoder = plan.modules[0], &language = plan.modules[1];
  for (const LayerSummary& layer : language.layers)
    EXPECT_EQ(layer.forward_flops - layer.mixing_flops, 2 * MatricesOf(language, layer.frame)) << layer.frame;
  EXPECT_EQ(language.head_flops, 2 * MatricesOf(language, "language.head"));
  // A block has the class tokens of its image too; the projector has one row for four patches.
  const double rows = (4096 + 6144 + 9216 + 3 * 8) / (4096.0 + 6144 + 9216);
  for (const LayerSummary& layer : encoder.layers) {
    const double products = rows * 2 * MatricesOf(encoder, layer.frame);
    EXPECT_NEAR(static_cast<double>(layer.forward_flops - layer.mixing_flops), products, 1) << layer.frame;
  }
  EXPECT_EQ(encoder.head_flops, 2 * MatricesOf(encoder, encoder.name + ".head") / 4);
}

TEST(Flops, OfMixingAreThoseOfScoresAndScans) {
  const Plan plan = Nemotron20Layers();
  for (const LayerSummary& layer : plan.modules[1].layers) {
    const int64_t scan = 7 * 64 * 64 * 128, scores = 2 * 8192 * 32 * 128;
    EXPECT_EQ(layer.mixing_flops, layer.kind == 'M' ? scan : layer.kind == '*' ? scores : 0) << layer.frame;
  }
}

const PartFlops& Part(const ModuleFlops& flops, const std::string& name) {
  for (const PartFlops& part : flops.parts) {
    if (part.name == name) return part;
  }
  throw std::runtime_error("no part " + name);
}

TEST(Flops, TrainedPartsCostTwiceTheirForwardBackward) {
  const Plan plan = Nemotron20Layers();
  const ModuleFlops language = FlopsOf(plan, *plan.FindModule("language"));
  EXPECT_EQ(language.token.backward, 2 * language.token.forward);
  EXPECT_EQ(language.token.recompute, 0);
  EXPECT_EQ(Part(language, "mamba").layers, 9);
  EXPECT_EQ(Part(language, "head").token.forward, 2.0 * 2688 * 131072);
}

TEST(Flops, AFrozenBackboneTakesForwardOnly) {
  Plan plan = Nemotron20Layers();
  Module& encoder = plan.modules[0];
  encoder.trains_backbone = false;
  const ModuleFlops flops = FlopsOf(plan, encoder);
  EXPECT_EQ(Part(flops, "embed").token.backward, 0);
  EXPECT_EQ(Part(flops, "block").token.backward, 0);
  EXPECT_EQ(Part(flops, "projector").token.backward, 2 * Part(flops, "projector").token.forward);
}

TEST(Flops, AFrozenLanguageModelPassesGradientsOn) {
  Plan plan = Nemotron20Layers();
  Module& language = plan.modules[1];
  const double forward = FlopsOf(plan, language).token.forward;
  double mixing = 0;
  for (const LayerSummary& layer : language.layers) mixing += static_cast<double>(layer.mixing_flops);
  language.trains_backbone = language.trains_projection = false;
  // Products with weights once, for their input; scores and the scan twice.
  EXPECT_EQ(FlopsOf(plan, language).token.backward, forward - mixing + 2 * mixing);
  plan.modules[0].trains_backbone = plan.modules[0].trains_projection = false;
  EXPECT_EQ(FlopsOf(plan, language).token.backward, 0);
}

TEST(Flops, RecomputeAddsAForwardOfItsKinds) {
  Plan plan = Nemotron20Layers();
  plan.modules[1].recompute = {"attention"};
  const ModuleFlops flops = FlopsOf(plan, plan.modules[1]);
  EXPECT_EQ(flops.token.recompute, Part(flops, "attention").token.forward);
  EXPECT_EQ(flops.token.model(), 3 * flops.token.forward);
}

TEST(Flops, EncodersCountTheImagesOfTheData) {
  Plan plan = Nemotron20Layers();
  const ModuleFlops flops = FlopsOf(plan, plan.modules[0]);
  EXPECT_TRUE(flops.known);
  EXPECT_DOUBLE_EQ(flops.tokens_per_sample, 1.5 * (4096 + 6144 + 9216) / 3);
  // 2 h 3h + 2 h h + 4 h ffn + 4 N h of every row, over the patches.
  double all = 0, patches = 0;
  for (double count : {4096.0, 6144.0, 9216.0}) {
    const double rows = count + 8;
    all += rows * (8.0 * 1280 * 1280 + 4.0 * 1280 * 5120 + 4 * rows * 1280);
    patches += count;
  }
  EXPECT_NEAR(Part(flops, "block").token.forward, 32 * all / patches, 32);
  plan.data.kind = DataKind::kSources;
  plan.data.max_patches = 256;
  EXPECT_FALSE(FlopsOf(plan, plan.modules[0]).known);
  EXPECT_EQ(FlopsOf(plan, plan.modules[0]).tokens_per_sample, 4 * 8192);
}

// With the mean number of patches in a step, it has the FLOPs of a step; with none, those of its text.
TEST(StepFlops, CountsTheImagesThatAreThere) {
  Plan plan = Nemotron20Layers();
  const double samples = static_cast<double>(plan.budget.global_samples);
  const auto patches = static_cast<int64_t>(samples * 1.5 * (4096 + 6144 + 9216) / 3);
  const double text = FlopsOf(plan, plan.modules[1]).step.model(), images = FlopsOf(plan, plan.modules[0]).step.model();
  const auto of = [&](int64_t step_patches) {
    const std::vector<int64_t> elements = {step_patches / 4 * 2688};
    return StepFlops(plan).Of(elements);
  };
  EXPECT_DOUBLE_EQ(of(0), text);
  EXPECT_NEAR(of(patches) / (text + images), 1, 1e-12);
  EXPECT_NEAR((of(patches / 2) - text) / images, 0.5, 1e-9);
  // Frozen and first, the encoder runs forward only, whatever it recomputes.
  plan.modules[0].trains_backbone = plan.modules[0].trains_projection = false;
  plan.modules[0].recompute = {"block"};
  EXPECT_NEAR((of(patches) - text) / FlopsOf(plan, plan.modules[0]).step.forward, 1, 1e-9);
}

TEST(StepFlops, LeavesOutScoresOfImagesOfUnknownSize) {
  Plan plan = Nemotron20Layers();
  const std::vector<int64_t> one_row = {2688};
  const double with_scores = StepFlops(plan).Of(one_row);
  double scores = 0;
  for (const LayerSummary& layer : plan.modules[0].layers) scores += static_cast<double>(layer.mixing_flops);
  plan.data.kind = DataKind::kSources, plan.data.max_patches = 9216;
  // Four patches, forward and twice backward.
  EXPECT_NEAR((with_scores - StepFlops(plan).Of(one_row)) / (4 * 3 * scores), 1, 1e-3);
}

}  // namespace
}  // namespace planwright
