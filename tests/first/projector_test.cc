// What a first recipe has for the projector behind each kind of encoder.
#include "planner/cli/first/projector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/recipe/yaml/yaml_text.h"
#include "planner/search/results/started_recipe.h"

namespace planwright {
namespace {

const char kLanguage[] = "{kind: decoder, hidden: 48}";

std::string Chosen(const std::string& encoder) {
  YamlNode model = *ParseValue(encoder);
  ChooseProjector(*ParseValue(kLanguage), model);
  return FlowText(model);
}

TEST(Projector, OfEachKindIsAsItsFileSays) {
  // Four times 2 x 2 patches, by the default of the kind, or as many as the model says.
  EXPECT_EQ(Chosen("{kind: radio_vit, hidden: 10}"), "{kind: radio_vit, hidden: 10, projector: {hidden: 160}}");
  EXPECT_EQ(Chosen("{kind: radio_vit, hidden: 10, pixel_shuffle: 1}"),
            "{kind: radio_vit, hidden: 10, pixel_shuffle: 1, projector: {hidden: 40}}");
  EXPECT_EQ(Chosen("{kind: siglip_vit, hidden: 10, final_norm: layernorm}"),
            "{kind: siglip_vit, hidden: 10, final_norm: none, projector: {hidden: 48}}");
  EXPECT_EQ(Chosen("{kind: qwen_vit, hidden: 10}"), "{kind: qwen_vit, hidden: 10}");
  EXPECT_EQ(Chosen("{kind: radio_vit}"), "{kind: radio_vit}") << "the reader of the recipe tells what is missing";
  EXPECT_EQ(Chosen("{kind: own_vit, hidden: 10}"), "{kind: own_vit, hidden: 10}");
}

TEST(Projector, ModulesAreCalledAsTheFileSays) {
  EXPECT_EQ(EncoderModule(*ParseValue("{kind: radio_vit}")), "radio_encoder");
  EXPECT_EQ(EncoderModule(*ParseValue("{kind: siglip_vit}")), "siglip_encoder");
  EXPECT_EQ(EncoderModule(*ParseValue("{kind: qwen_vit}")), "vision_encoder");
  EXPECT_EQ(EncoderModule(*ParseValue("{kind: own_vit}")), "vision_encoder");
}

TEST(Projector, SizesHaveTheDefaultsOfTheKind) {
  const YamlNode radio = *ParseValue("{kind: radio_vit, projector: {hidden: 7}}");
  EXPECT_EQ(SizeOfModel(radio, "pixel_shuffle", 5), 2);
  EXPECT_EQ(SizeOfModel(radio, "projector.hidden", 5), 7);
  EXPECT_EQ(SizeOfModel(radio, "hidden", 5), 5) << "the key is required";
  EXPECT_EQ(SizeOfModel(*ParseValue("{kind: siglip_vit}"), "pixel_shuffle", 5), 1);
  EXPECT_EQ(SizeOfModel(*ParseValue("{kind: own_vit}"), "pixel_shuffle", 5), 5);
}

}  // namespace
}  // namespace planwright
