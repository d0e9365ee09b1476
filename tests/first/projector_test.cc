// What a first recipe has for the projector behind each kind of encoder.
#include "planner/cli/first/projector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/recipe/tree_edits.h"
#include "planner/recipe/yaml/yaml_text.h"
#include "planner/search/results/started_recipe.h"

namespace planwright {
namespace {

const char kLanguage[] = "{kind: decoder, hidden: 48}";

// The encoder `eye` of a recipe whose models are as overrides ask for it.
absl::StatusOr<YamlNode> ChosenNode(const std::string& encoder, const std::vector<std::string>& overrides = {}) {
  YamlNode recipe = *ParseValue(absl::StrCat("{models: {eye: ", encoder, ", tongue: ", kLanguage, "}}"));
  YamlEntry eye{"eye", {}, *ParseValue(encoder)};
  YamlNode asked;
  asked.kind = YamlNode::Kind::kMap;
  EXPECT_TRUE(LayOverrides(overrides, asked).ok());
  EXPECT_TRUE(LayOverrides(overrides, recipe).ok());
  if (absl::Status status = ChooseProjector(recipe.Find("models")->value, asked, "tongue", eye); !status.ok())
    return status;
  return eye.value;
}

std::string Chosen(const std::string& encoder, const std::vector<std::string>& overrides = {}) {
  return FlowText(*ChosenNode(encoder, overrides));
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

TEST(Projector, FormulasAreOverWhatOverridesAskFor) {
  const std::string radio = "{kind: radio_vit, hidden: 32}";
  EXPECT_EQ(Chosen(radio, {"models.eye.pixel_shuffle=1"}), "{kind: radio_vit, hidden: 32, projector: {hidden: 128}}");
  EXPECT_EQ(Chosen(radio, {"models.eye.hidden=64"}), "{kind: radio_vit, hidden: 32, projector: {hidden: 1024}}");
  EXPECT_EQ(Chosen("{kind: siglip_vit, final_norm: none}", {"models.tongue.hidden=96"}),
            "{kind: siglip_vit, final_norm: none, projector: {hidden: 96}}");
  // A key of its own is left to them.
  EXPECT_EQ(Chosen(radio, {"models.eye.projector.hidden=7"}), radio);
  EXPECT_EQ(Chosen(radio, {"models.eye.projector={hidden: 7}"}), radio);
  EXPECT_EQ(Chosen("{kind: siglip_vit, final_norm: layernorm}", {"models.eye.final_norm=layernorm"}),
            "{kind: siglip_vit, final_norm: layernorm, projector: {hidden: 48}}");
}

TEST(Projector, CommentsSayWhereAValueIsFrom) {
  const YamlNode siglip = *ChosenNode("{kind: siglip_vit, final_norm: layernorm}");
  EXPECT_EQ(NodeAt(siglip, "final_norm")->comments->beside, "# first recipe of siglip_vit, instead of layernorm");
  EXPECT_EQ(NodeAt(siglip, "projector.hidden")->comments->beside, "# first recipe of siglip_vit: output.hidden");
}

TEST(Projector, ANumberThatTheKeyCannotHaveIsTold) {
  const absl::Status status = ChosenNode("{kind: radio_vit, hidden: 16777216, pixel_shuffle: 64}").status();
  EXPECT_EQ(status.message(),
            "planner/plan/kinds/radio_vit.model:38:27: `4 * pixel_shuffle * pixel_shuffle * hidden` is 274877906944, "
            "outside of the range of the key; say it yourself: models.eye.projector.hidden=NUMBER");
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
