// The shipped recipes are valid, and have the sizes that their names and comments promise.
#include <algorithm>

#include "gtest/gtest.h"
#include "planner/recipe/model_facts.h"
#include "tests/recipe/temp_recipes.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

std::string Shipped(const std::string& name) { return InSource("recipes/") + name + ".yaml"; }

const ModelRecipe& Language(const Recipe& recipe) { return recipe.modules.at(1).model; }
const ModelRecipe& Encoder(const Recipe& recipe) { return recipe.modules.at(0).model; }

TEST(ShippedRecipes, TwentyLayersOnEightRanksAreTheReferences) {
  const Recipe recipe = MustRead(Shipped("nemotron_moe_vlm_20l_mock_8r"));
  ASSERT_EQ(recipe.modules.size(), 2u);
  EXPECT_EQ(*recipe.modules[0].name, "radio_encoder");
  EXPECT_EQ(*recipe.modules[0].ranks, 4);
  EXPECT_EQ(*recipe.modules[0].tp, 2);
  EXPECT_EQ(*recipe.modules[1].first_rank, 4);
  EXPECT_EQ(*recipe.modules[1].ep, 4);
  EXPECT_EQ(*Language(recipe).pattern, "MEMEM*EMEMEM*EMEMEM*");
  EXPECT_EQ(*SizeOf(Language(recipe).numbers, "moe.experts"), 128);
  EXPECT_EQ(*SizeOf(Language(recipe).numbers, "mamba.state"), 128);
  EXPECT_EQ(*RealOf(Language(recipe).numbers, "init_std"), 0.0173);
  EXPECT_EQ(*SizeOf(Encoder(recipe).numbers, "projector.hidden"), 20480);
  EXPECT_EQ(*SizeOf(Encoder(recipe).numbers, "class_tokens"), 8);
  EXPECT_EQ(*SizeOf(Encoder(recipe).numbers, "crop"), 1);
  EXPECT_EQ(*recipe.batch.global_samples, 8);
  EXPECT_EQ(*recipe.budget.learning_rate.peak, 2e-4);
  EXPECT_EQ(*recipe.budget.weight_decay.end, 0.05);
  EXPECT_EQ(*recipe.precision, "bf16");
}

TEST(ShippedRecipes, TheToyKeepsLayersAndLayout) {
  const Recipe real = MustRead(Shipped("nemotron_moe_vlm_20l_mock_8r"));
  const Recipe toy = MustRead(Shipped("nemotron_moe_vlm_20l_mock_8r_toy"));
  EXPECT_EQ(*Language(toy).pattern, *Language(real).pattern);
  EXPECT_EQ(*SizeOf(Language(toy).numbers, "hidden"), 64);
  EXPECT_EQ(*RealOf(Language(toy).numbers, "moe.scale"), 2.5);  // inherited
  EXPECT_EQ(*Encoder(toy).pattern, "VVVV");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(*toy.modules[i].first_rank, *real.modules[i].first_rank);
    EXPECT_EQ(*toy.modules[i].tp, *real.modules[i].tp);
    EXPECT_EQ(*toy.modules[i].ep, *real.modules[i].ep);
  }
  EXPECT_EQ(toy.data.image_grids.size(), 3u);  // lists replace
  EXPECT_EQ(*toy.precision, "fp32");
  EXPECT_NE(toy.digest, real.digest);
}

TEST(ShippedRecipes, TinyIsColocatedOnOneRank) {
  const Recipe recipe = MustRead(Shipped("nemotron_moe_vlm_tiny"));
  ASSERT_EQ(recipe.modules.size(), 2u);
  for (const ModuleRecipe& module : recipe.modules) {
    EXPECT_EQ(*module.first_rank, 0);
    EXPECT_EQ(*module.ranks, 1);
  }
}

// Nodes, lanes, expert groups and batches of the production layouts (docs/layouts/grids.md#topologies).
TEST(ShippedRecipes, FiftyFourLayersAreTheReferenceTopologies) {
  struct Topology {
    const char* name;
    int64_t nodes, encoder_ranks, language_ranks, ep, global_samples, microbatches;
  };
  const Topology topologies[] = {{"9n", 9, 8, 64, 16, 192, 6},    {"17n", 17, 8, 128, 8, 384, 6},
                                 {"33n", 33, 8, 256, 8, 768, 6},  {"34n", 34, 16, 256, 8, 768, 6},
                                 {"68n", 68, 32, 512, 8, 768, 3}, {"100n", 100, 32, 768, 8, 768, 2}};
  for (const Topology& topology : topologies) {
    const Recipe recipe = MustRead(Shipped(std::string("nemotron_moe_vlm_54l_") + topology.name));
    SCOPED_TRACE(topology.name);
    ASSERT_EQ(recipe.modules.size(), 2u);
    const ModuleRecipe &encoder = recipe.modules[0], &language = recipe.modules[1];
    EXPECT_EQ(*recipe.cluster.nodes, topology.nodes);
    EXPECT_EQ(*encoder.ranks, topology.encoder_ranks);
    EXPECT_EQ(*encoder.tp, 1);
    EXPECT_EQ(*language.first_rank, topology.encoder_ranks);
    EXPECT_EQ(*language.ranks, topology.language_ranks);
    EXPECT_EQ(*language.tp, 2);
    EXPECT_EQ(*language.ep, topology.ep);
    EXPECT_EQ(*recipe.batch.global_samples, topology.global_samples);
    EXPECT_EQ(*recipe.batch.global_samples / (*language.ranks / 2), topology.microbatches);
    EXPECT_EQ(*encoder.train_backbone, "frozen");
    EXPECT_EQ(*encoder.train_projection, "trained");
    EXPECT_EQ(*language.train_backbone, "trained");
    EXPECT_EQ(*SizeOf(Encoder(recipe).numbers, "class_tokens"), 10);
    const std::string pattern = *Language(recipe).pattern;
    EXPECT_EQ(std::count(pattern.begin(), pattern.end(), 'M'), 23);
    EXPECT_EQ(std::count(pattern.begin(), pattern.end(), 'E'), 23);
    EXPECT_EQ(std::count(pattern.begin(), pattern.end(), '*'), 8);
  }
}

TEST(ShippedRecipes, FiftyFourLayersHaveTheProductionBudget) {
  for (const char* name : {"9n", "33n", "100n", "text_only", "131072r"}) {
    const Recipe recipe = MustRead(Shipped(std::string("nemotron_moe_vlm_54l_") + name));
    SCOPED_TRACE(name);
    const LearningRateRecipe& rate = recipe.budget.learning_rate;
    EXPECT_EQ(*recipe.budget.train_samples, 122070313);
    EXPECT_EQ(*rate.peak, 1.2e-3);
    EXPECT_EQ(*rate.min, 1.2e-5);
    EXPECT_EQ(**rate.warmup_samples, 1024000);
    EXPECT_EQ(**rate.decay_samples, 121046313);
    EXPECT_EQ(**rate.wsd_decay_samples, 18310547);
    EXPECT_EQ(**rate.wsd_style, "minus_sqrt");
    EXPECT_EQ(*recipe.budget.weight_decay.start, 0.1);
    EXPECT_EQ(*recipe.budget.weight_decay.end, 0.1);
    EXPECT_EQ(*recipe.gradients.buckets, 8);
    EXPECT_EQ(**recipe.checkpoint.every_steps, 1000);
  }
}

TEST(ShippedRecipes, StagesFreezeWhatTheirNamesSay) {
  const auto trained = [](const std::string& name) {
    const Recipe recipe = MustRead(Shipped(name));
    return *recipe.modules[0].train_backbone + " " + *recipe.modules[0].train_projection + " " +
           *recipe.modules[1].train_backbone;
  };
  for (const std::string name : {"nemotron_moe_vlm_54l_33n_stage", "icons_stage"}) {
    EXPECT_EQ(trained(name + "1"), "frozen trained frozen");
    EXPECT_EQ(trained(name + "2"), "frozen trained trained");
    EXPECT_EQ(trained(name + "3"), "trained trained trained");
  }
}

TEST(ShippedRecipes, StagesOfTheIconsStartFromTheOneBefore) {
  EXPECT_FALSE(MustRead(Shipped("icons_stage1")).initialize.has_value());
  for (const auto& [stage, before] : {std::pair("icons_stage2", "stage1"), std::pair("icons_stage3", "stage2")}) {
    const Recipe recipe = MustRead(Shipped(stage));
    ASSERT_TRUE(recipe.initialize.has_value()) << stage;
    EXPECT_EQ(**recipe.initialize->from, std::string("../build/icons/") + before + "/parameters_last.safetensors");
  }
}

// The whole model on two GPUs and on four, and its twins: text alone and a frozen encoder do the same steps of the same
// language model, and each GPU has the same work.
TEST(ShippedRecipes, TheYardsticksHaveTwins) {
  for (const std::string name : {"2g", "2g_frozen", "2g_text_only", "4g", "4g_text_only"}) {
    SCOPED_TRACE(name);
    const Recipe recipe = MustRead(Shipped("nemotron_moe_vlm_20l_" + name));
    const int gpus = name[0] - '0';
    const bool text = name.ends_with("_text_only");
    EXPECT_EQ(*recipe.cluster.gpus_per_node, gpus);
    ASSERT_EQ(recipe.modules.size(), text ? 1u : 2u);
    for (const ModuleRecipe& module : recipe.modules) {
      EXPECT_EQ(*module.first_rank, 0);
      EXPECT_EQ(*module.ranks, gpus);
      EXPECT_EQ(*module.tp, 1);
      const bool language = CarriesLoss(module.model);
      EXPECT_EQ(*module.train_backbone, !language && name.ends_with("_frozen") ? "frozen" : "trained");
      if (!language) continue;
      EXPECT_EQ(*module.ep, gpus);
      EXPECT_EQ(*SizeOf(module.model.numbers, "moe.experts"), 128);
    }
    // A lane on each GPU, 8 microbatches of one sample, 50 steps.
    EXPECT_EQ(*recipe.batch.global_samples, 8 * gpus);
    EXPECT_EQ(*recipe.batch.micro_samples, 1);
    EXPECT_EQ(*recipe.budget.train_samples, 50 * 8 * gpus);
    EXPECT_EQ(**recipe.budget.learning_rate.decay_samples, 50 * 8 * gpus);
    if (text) continue;
    EXPECT_EQ(*recipe.data.min_images, 2);
    EXPECT_EQ(*recipe.data.max_images, 2);
    ASSERT_EQ(recipe.data.image_grids.size(), 1u);
    EXPECT_EQ(*recipe.data.image_grids[0], (std::vector<int64_t>{64, 96}));
    // The images and their texts fill the sequence.
    EXPECT_EQ(2 * (64 * 96 / 4 + *recipe.data.text_tokens), *recipe.batch.sequence_length);
  }
}

TEST(ShippedRecipes, TheLargestHas131072Ranks) {
  const Recipe recipe = MustRead(Shipped("nemotron_moe_vlm_54l_131072r"));
  EXPECT_EQ(*recipe.cluster.nodes * *recipe.cluster.gpus_per_node, 131072);
  EXPECT_EQ(*recipe.modules[0].ranks + *recipe.modules[1].ranks, 131072);
}

TEST(ShippedRecipes, IconsReplaceTheDataWhole) {
  const Recipe recipe = MustRead(Shipped("icons_8r_toy"));
  EXPECT_EQ(*recipe.data.kind, DataKind::kSources);
  EXPECT_FALSE(recipe.data.image_token.has_value());
  EXPECT_TRUE(recipe.data.image_grids.empty());
  ASSERT_EQ(recipe.data.sources.size(), 1u);
  ASSERT_EQ(recipe.data.sources[0].shards.size(), 1u);
  const Located<std::string>& shard = recipe.data.sources[0].shards[0];
  EXPECT_EQ(*shard, "../build/icons/icons-000000.tar");  // as written
  EXPECT_TRUE(shard.where.file->ends_with("recipes/icons_8r_toy.yaml"));
  EXPECT_EQ(*SizeOf(Language(recipe).numbers, "vocabulary"), 260);
}

}  // namespace
}  // namespace planwright
