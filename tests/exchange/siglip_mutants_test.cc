// Each line of the dialects of SigLIP and of LLaVA counts, as in dialect_mutants_test.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/state/dialect/dialect_forms.h"
#include "tests/exchange/dialect_judge.h"
#include "tests/support/compiled.h"

namespace planwright {
namespace {

using nlohmann::ordered_json;
using testing::CompiledFile;
using testing::DialectJudge;
using testing::ReadToy;
using testing::Toy;

// What `plan weights` says of tensors that no run has, and what it calls those of a run.
std::string WeightsOfSiglip(const DialectSet& dialects) {
  std::string text;
  for (const char* name :
       {"vision_tower.head.probe", "head.attention.in_proj_weight", "a.head.layernorm.bias", "a.head.mlp.fc1.weight",
        "vision_tower.vision_model.post_layernorm.bias", "vision_model.embeddings.position_ids", "text_model.head.bias",
        "logit_scale", "logit_bias", "language_model.lm_head.weight"}) {
    const DialectExtra* extra = dialects.FindExtra(name);
    if (extra == nullptr) continue;
    absl::StrAppend(&text, name, extra->what, "|", extra->who, "|", absl::StrJoin(extra->copy_of, " "), "|",
                    extra->own_key, extra->own_value, "|");
    for (size_t i = 0; extra->sizes && i < extra->sizes->size(); ++i) {
      const DialectSize& size = (*extra->sizes)[i];
      absl::StrAppend(&text, size.any, size.formula ? size.formula->text() : "", ",");
    }
  }
  // Of a module called eyes, beside another encoder, and alone.
  for (const auto& [kind, all] : FormsOf(dialects)) {
    for (const DialectForms& dialect : all) {
      for (const StoredForm& form : dialect.forms) {
        absl::StrAppend(&text, "\n", kind, " ", form.text, " ");
        for (const char* name : {"eyes.vision_tower.vision_model.a", "eyes.multi_modal_projector.b", "language_model.c",
                                 "language_model.lm_head.weight"})
          absl::StrAppend(&text, form.NameOf(name, "eyes."), " ");
        absl::StrAppend(&text, form.NameOf("vision_tower.vision_model.a", ""));
      }
    }
  }
  return text;
}

std::vector<Toy> LlavasOf(const Toy& llava) {
  Toy bare = llava, tied = llava, untied = llava, base = llava, shorter = llava, head = llava, copied = llava;
  for (const char* key : {"vision_feature_layer", "vision_feature_select_strategy"}) bare.config.erase(key);
  for (const char* key : {"num_attention_heads", "intermediate_size", "patch_size", "image_size", "hidden_act",
                          "layer_norm_eps", "vision_use_head", "hidden_size"})
    base.config["vision_config"].erase(key);
  tied.config["tie_word_embeddings"] = tied.config["text_config"]["tie_word_embeddings"] = true;
  copied.config = tied.config;
  tied.tensors.erase("language_model.lm_head.weight");
  untied.config["tie_word_embeddings"] = true;
  head.config["vision_config"].erase("vision_use_head");
  shorter.tensors.clear();
  for (const auto& [name, tensor] : llava.tensors) {
    const std::string begin = "vision_tower.vision_model.";
    shorter.tensors[name.starts_with(begin) ? "vision_tower." + name.substr(begin.size()) : name] = tensor;
  }
  std::vector<Toy> toys = {llava, bare, tied, copied, untied, base, shorter, head};
  for (const char* type : {"llama", "mistral", "qwen3", "qwen3_moe", "gemma"}) {
    toys.push_back(llava);
    toys.back().config["text_config"]["model_type"] = type;
  }
  return toys;
}

std::vector<Toy> SiglipsOf(const Toy& siglip) {
  Toy tower = siglip, base = siglip, headless = siglip, bare = siglip;
  tower.config = siglip.config["vision_config"];
  std::erase_if(tower.tensors, [](const auto& one) { return !one.first.starts_with("vision_model."); });
  Toy shorter = tower;
  shorter.tensors.clear();
  for (const auto& [name, tensor] : tower.tensors) shorter.tensors[name.substr(13)] = tensor;
  base.config["vision_config"] = {{"model_type", "siglip_vision_model"}};
  headless.config["vision_config"]["vision_use_head"] = false;
  bare.config["text_config"] = ordered_json::object();
  return {siglip, tower, shorter, base, headless, bare};
}

TEST(DialectMutants, OfSiglip) {
  DialectJudge judge;
  const std::vector<Toy> llavas = LlavasOf(ReadToy("llava")), siglips = SiglipsOf(ReadToy("siglip"));
  for (const Toy& toy : llavas) judge.AddImport(toy);
  for (const Toy& toy : siglips) judge.AddImport(toy);
  judge.Add(WeightsOfSiglip);
  const std::string eye = "models.eye.", tongue = "models.tongue.";
  for (const std::vector<std::string>& overrides :
       std::vector<std::vector<std::string>>{{},
                                             {tongue + "tied=true", eye + "activation=gelu"},
                                             {eye + "final_norm=layernorm", tongue + "attention.biases=none"},
                                             {eye + "positions=resized", tongue + "attention.normed=true"},
                                             {eye + "pixel_shuffle=2", eye + "projector.hidden=20"}})
    judge.AddExport(CompiledFile(InSource("tests/golden/llava_oracle/oracle.yaml"), overrides),
                    {"", "language", "eye_encoder"});
  judge.AddExport(CompiledFile(InSource("tests/golden/siglip_oracle/oracle.yaml"), {}), {"", "eye_encoder"});
  for (const Toy& toy : llavas) judge.Vary(toy, *BuiltInDialects().Find("llava"));
  for (const Toy& toy : siglips) judge.Vary(toy, *BuiltInDialects().Find("siglip_vision_model"));
  judge.ExpectEachLineCounts({"siglip_vit"}, 300);
}

}  // namespace
}  // namespace planwright
