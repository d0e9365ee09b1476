#include "planner/compile/model/expand_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/compile/stages_of.h"
#include "tests/support/recipe_builder.h"

namespace planwright {
namespace {

Module Expanded(const ModuleRecipe& recipe, const Grid& grid, const ProjectorTarget& target, const DataPlan& data) {
  return ExpandModule(recipe, grid, testing::StagesOf(recipe), target, 8192, data);
}

std::set<std::string> FileNames(const std::string& name, bool several) {
  ProjectorTarget target = {2688, 0.0173, 20};
  target.several_encoders = several;
  std::set<std::string> names;
  const DataPlan data = {.encoders = {{.module = name, .patch = 16, .pixel_shuffle = 2, .max_image = 2048}}};
  for (const Parameter& parameter : Expanded(BuildEncoder(0, 1, {}, 200, name), Grid{}, target, data).parameters) {
    EXPECT_TRUE(names.insert(parameter.file_name).second) << parameter.file_name;
    EXPECT_TRUE(parameter.name.starts_with(name + "."));
  }
  return names;
}

TEST(ExpandModel, AnEncoderAloneHasThePublishedFileNames) {
  const std::set<std::string> names = FileNames("radio_encoder", false);
  EXPECT_TRUE(names.contains("vision_model.final_norm.weight"));
  EXPECT_TRUE(names.contains("vision_model.radio_model.model.blocks.31.mlp.fc2.bias"));
  EXPECT_TRUE(names.contains("mlp1.0.weight"));
}

TEST(ExpandModel, SeveralEncodersCarryTheirNamesInFront) {
  const std::set<std::string> a = FileNames("a", true), b = FileNames("b", true);
  EXPECT_TRUE(a.contains("a.vision_model.final_norm.weight"));
  EXPECT_TRUE(a.contains("a.mlp1.0.weight"));
  for (const std::string& name : a) EXPECT_FALSE(b.contains(name)) << name;
}

Module Encoder(int final_norm, int erf_gelu) {
  ModuleRecipe recipe = BuildEncoder(0, 1);
  Give(recipe.model, {{"final_norm", final_norm}, {"erf_gelu", erf_gelu}});
  const DataPlan data = {.encoders = {{.module = "images", .patch = 16, .pixel_shuffle = 2, .max_image = 2048}}};
  return Expanded(recipe, Grid{}, {2688, 0.0173, 20}, data);
}

// Plans from before these keys lack the constants, and mean what a recipe without the keys means.
TEST(ExpandModel, WhatARecipeLeavesOutIsNoConstant) {
  const Module plain = Encoder(1, 0), published = Encoder(0, 1);
  EXPECT_FALSE(plain.constants.contains("final_norm"));
  EXPECT_FALSE(plain.constants.contains("erf_gelu"));
  EXPECT_EQ(published.constants.at("final_norm"), Attribute(int64_t{0}));
  EXPECT_EQ(published.constants.at("erf_gelu"), Attribute(int64_t{1}));
  // C-RADIO ViT-H has the blocks, the embedding and no norm behind them (docs/model/vision_encoder.md#sizes).
  EXPECT_EQ(plain.parameter_count - published.parameter_count, 2 * 1280);
  EXPECT_EQ(published.parameters.size(), plain.parameters.size() - 2);
  for (const Parameter& parameter : published.parameters)
    EXPECT_EQ(parameter.file_name.find("final_norm"), std::string::npos);
}

// Nemotron-H: names and shapes of the published files (docs/model/mlp.md).
TEST(ExpandModel, ADenseMlpHasThePublishedNames) {
  ModuleRecipe recipe = BuildLanguage(0, 2, {.tp = 2});
  recipe.model.pattern = std::string("M-*");
  recipe.model.sections.insert("mlp");
  Give(recipe.model, {{"mlp.ffn", 12544}});
  const Module module = Expanded(recipe, Grid{.tp = 2}, {}, {});
  std::map<std::string, const Parameter*> found;
  for (const Parameter& parameter : module.parameters) found[parameter.file_name] = &parameter;
  const std::string layer = "language_model.backbone.layers.1.";
  ASSERT_EQ(found.count(layer + "norm.weight"), 1U);
  const Parameter &up = *found.at(layer + "mixer.up_proj.weight"), &down = *found.at(layer + "mixer.down_proj.weight");
  EXPECT_EQ(up.shape, (std::vector<int64_t>{12544, 2688}));
  EXPECT_EQ(down.shape, (std::vector<int64_t>{2688, 12544}));
  EXPECT_EQ(up.shard_dim, 0);
  EXPECT_EQ(down.shard_dim, 1);
  EXPECT_EQ(module.layers.at(1).parameters, 2688 + 2 * 12544 * 2688);
  // Two products, of a token: twice the weights (docs/flops.md).
  EXPECT_EQ(module.layers.at(1).forward_flops, 4 * 12544 * 2688);
  EXPECT_EQ(module.layers.at(1).mixing_flops, 0);
  EXPECT_EQ(module.layers.at(1).expert_row, -1);
}

}  // namespace
}  // namespace planwright
