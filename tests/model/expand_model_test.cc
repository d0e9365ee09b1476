#include "planner/model/expand_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/recipe_builder.h"

namespace planwright {
namespace {

std::set<std::string> FileNames(const std::string& name, bool several) {
  ProjectorTarget target = {2688, 0.0173, 20};
  target.several_encoders = several;
  std::set<std::string> names;
  const DataPlan data = {.encoders = {{.module = name, .patch = 16, .pixel_shuffle = 2, .max_image = 2048}}};
  for (const Parameter& parameter :
       ExpandModule(BuildEncoder(0, 1, {}, 200, name), Grid{}, target, 8192, data).parameters) {
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

}  // namespace
}  // namespace planwright
