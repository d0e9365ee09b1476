// Folders of adapters as PEFT writes them: what is read, and what is refused by its key.
#include "planner/state/weights/adapter_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One that PEFT has written: of rank 3 and alpha 5.
std::string OfPeft() {
  const std::string path = InSource("tests/golden/adapters_llama/begin/adapter_config.json");
  return ReadWholeFile(path, kModelConfigJson.bytes).value();
}

std::vector<std::string> ProblemsWith(const std::string& before, const std::string& after) {
  const std::string text = OfPeft(), changed = absl::StrReplaceAll(text, {{before, after}});
  EXPECT_NE(changed, text) << before;
  return AdapterConfigProblems(changed, 3, 5.0);
}

TEST(AdapterFolder, ReadsWhatPeftWrites) {
  EXPECT_THAT(AdapterConfigProblems(OfPeft(), 3, 5.0), IsEmpty());
  EXPECT_THAT(AdapterConfigProblems(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4})", 2, 4.0), IsEmpty());
}

TEST(AdapterFolder, RefusesOtherNumbers) {
  EXPECT_THAT(AdapterConfigProblems(OfPeft(), 4, 6.5),
              ElementsAre("adapter_config.json: r = 3, and the module's rank is 4",
                          "adapter_config.json: lora_alpha = 5.0, and the module's alpha is 6.5"));
}

TEST(AdapterFolder, RefusesOtherKindsByTheirKey) {
  EXPECT_THAT(ProblemsWith("\"LORA\"", "\"IA3\""),
              ElementsAre("adapter_config.json: peft_type = \"IA3\", and only LORA is read"));
  EXPECT_THAT(ProblemsWith("\"use_dora\": false", "\"use_dora\": true"),
              ElementsAre("adapter_config.json: use_dora = true, which adapters here do not have"));
  EXPECT_THAT(ProblemsWith("\"use_rslora\": false", "\"use_rslora\": true"),
              ElementsAre("adapter_config.json: use_rslora = true, which adapters here do not have"));
  EXPECT_THAT(ProblemsWith("\"rank_pattern\": {}", "\"rank_pattern\": {\"q_proj\": 8}"),
              ElementsAre("adapter_config.json: rank_pattern = {\"q_proj\":8}, which adapters here do not have"));
  EXPECT_THAT(ProblemsWith("\"bias\": \"none\"", "\"bias\": \"all\""),
              ElementsAre("adapter_config.json: bias = \"all\", and biases have no adapters"));
  EXPECT_THAT(ProblemsWith("\"modules_to_save\": null", "\"modules_to_save\": [\"lm_head\"]"),
              ElementsAre("adapter_config.json: modules_to_save = [\"lm_head\"], which adapters here do not have"));
  EXPECT_THAT(AdapterConfigProblems("[]", 3, 5.0), ElementsAre("adapter_config.json is no JSON object"));
}

TEST(AdapterFolder, RefusesDrawsThatChangeTheWeights) {
  for (const char* draw : {"pissa", "pissa_niter_16", "corda", "olora"})
    EXPECT_THAT(ProblemsWith("\"init_lora_weights\": true", absl::StrCat("\"init_lora_weights\": \"", draw, "\"")),
                ElementsAre(absl::StrCat("adapter_config.json: init_lora_weights = \"", draw,
                                         "\", with which PEFT changes the weights that adapters stand on: make plain "
                                         "adapters of it in Python, save_pretrained(FOLDER, "
                                         "path_initial_model_for_weight_conversion=INITIAL)")));
  EXPECT_THAT(ProblemsWith("\"init_lora_weights\": true", "\"init_lora_weights\": \"loftq\""),
              ElementsAre(HasSubstr("PEFT quantizes the weights that adapters stand on: merge it in Python")));
  EXPECT_THAT(ProblemsWith("\"init_lora_weights\": true", "\"init_lora_weights\": \"new\""),
              ElementsAre(HasSubstr("init_lora_weights = \"new\", and what PEFT does with it is not known")));
  for (const char* draw : {"false", "\"gaussian\"", "\"eva\"", "\"orthogonal\"", "\"mica\""})
    EXPECT_THAT(ProblemsWith("\"init_lora_weights\": true", absl::StrCat("\"init_lora_weights\": ", draw)), IsEmpty());
}

// Also keys of a later PEFT.
TEST(AdapterFolder, RefusesKeysThatItDoesNotKnow) {
  const auto with = [](const std::string& field) { return ProblemsWith("{\n", "{" + field + ",\n"); };
  EXPECT_THAT(with(R"("use_kasa": true)"),
              ElementsAre("adapter_config.json: use_kasa = true, which adapters here do not have"));
  EXPECT_THAT(ProblemsWith("\"arrow_config\": null", "\"arrow_config\": {\"top_k\": 3}"),
              ElementsAre("adapter_config.json: arrow_config = {\"top_k\":3}, which adapters here do not have"));
  EXPECT_THAT(ProblemsWith("\"use_bdlora\": null", "\"use_bdlora\": {\"nblocks\": 2}"),
              ElementsAre(HasSubstr("use_bdlora = {\"nblocks\":2}, which adapters here do not have")));
  EXPECT_THAT(ProblemsWith("\"megatron_config\": null", "\"megatron_config\": {\"a\": 1}"),
              ElementsAre(HasSubstr("megatron_config = {\"a\":1}, which adapters here do not have")));
  EXPECT_THAT(with(R"("later": null, "later_too": false, "and": "", "or": [])"), IsEmpty());
}

TEST(AdapterFolder, SaysWhatIsWrongWithTheText) {
  EXPECT_THAT(AdapterConfigProblems(R"({"peft_type": "LORA", "lora_alpha": 4})", 2, 4.0),
              ElementsAre("adapter_config.json has no r, and the module's rank is 2"));
  EXPECT_THAT(AdapterConfigProblems(R"({"peft_type": "LORA", "r": 2, "r": 2, "lora_alpha": 4})", 2, 4.0),
              ElementsAre(AllOf(HasSubstr("adapter_config.json cannot be read: "), HasSubstr("twice"))));
  EXPECT_THAT(AdapterConfigProblems("", 2, 4.0), ElementsAre(HasSubstr("adapter_config.json cannot be read: ")));
}

// Programs have words of their own in front of the layers.
TEST(AdapterFolder, NamesCountFromTheLayerOn) {
  EXPECT_EQ(LayerTail("base_model.model.backbone.layers.12.mixer.in_proj.lora_A.weight"),
            "layers.12.mixer.in_proj.lora_A.weight");
  EXPECT_EQ(LayerTail("language_model.model.layers.0.self_attn.q_proj.lora_B.weight"),
            "layers.0.self_attn.q_proj.lora_B.weight");
  EXPECT_EQ(LayerTail("lm_head.weight"), "lm_head.weight");
  EXPECT_EQ(LayerTail("3.weight"), "3.weight");
}

}  // namespace
}  // namespace planwright
