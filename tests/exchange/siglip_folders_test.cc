// Folders of SigLIP, alone and in a LLaVA: they become recipes that plan their tensors, come home as they went in, and
// what is not built of them is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "planner/exchange/export_run.h"
#include "planner/exchange/import_folder.h"
#include "planner/exchange/read_model.h"
#include "planner/exchange/write_config.h"
#include "planner/state/checkpoint/run_lives.h"
#include "planner/state/weights/fit.h"
#include "planner/state/weights/weight_files.h"
#include "tests/exchange/refusals.h"
#include "tests/exchange/toy_folder.h"
#include "tests/exchange/vision_folders.h"
#include "tests/state/checkpoint/plan_checkpoint.h"
#include "tests/support/compiled.h"

namespace planwright {
namespace {

using nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::ReadToy;
using testing::Toy;

const std::string kNorm = "vision_tower.vision_model.post_layernorm.";  // which nothing of a LLaVA reads

// As transformers 5 saves a model that it made itself.
Toy WithShortNames(const Toy& toy) {
  Toy shorter = toy;
  shorter.tensors.clear();
  for (const auto& [name, tensor] : toy.tensors)
    shorter.tensors[absl::StrReplaceAll(name, {{"vision_tower.vision_model.", "vision_tower."}})] = tensor;
  return shorter;
}

// Its text as that of another family.
Toy WithText(const std::string& type) {
  Toy toy = ReadToy("llava");
  ordered_json& text = toy.config["text_config"];
  text["model_type"] = type;
  for (const char* key : {"layer_types", "max_window_layers", "use_sliding_window", "sliding_window"}) text.erase(key);
  if (type == "mistral") text["sliding_window"] = nullptr;
  std::erase_if(toy.tensors, [](const auto& one) {
    return one.first.find("language_model.") == 0 && one.first.find("_proj.bias") != std::string::npos;
  });
  const std::string layer = "language_model.model.layers.";
  for (int i = 0; type == "qwen3" && i < 2; ++i) {
    for (const char* norm : {"q_norm", "k_norm"})
      toy.tensors[absl::StrCat(layer, i, ".self_attn.", norm, ".weight")] = {DType::kFp32, {8}, ""};
  }
  return toy;
}

Toy Tied() {
  Toy toy = ReadToy("llava");
  toy.config["tie_word_embeddings"] = toy.config["text_config"]["tie_word_embeddings"] = true;
  toy.tensors.erase("language_model.lm_head.weight");
  return toy;
}

class Siglip : public testing::VisionFolders {
 protected:
  Plan Llava(const std::string& text, const std::string& language, const std::string& from) {
    return Extended(text, "siglip_vision_model", language, from);
  }
};

TEST_F(Siglip, LlavasPlanTheirTensors) {
  const std::vector<std::pair<std::string, Toy>> toys = {{"qwen2", ReadToy("llava")},
                                                         {"qwen2", WithShortNames(ReadToy("llava"))},
                                                         {"qwen2", Tied()},
                                                         {"llama", WithText("llama")},
                                                         {"mistral", WithText("mistral")},
                                                         {"qwen3", WithText("qwen3")}};
  for (size_t i = 0; i < toys.size(); ++i) {
    const auto& [text, toy] = toys[i];
    const std::string folder = absl::StrCat("toy", i);
    const ImportedModel imported = Imported(toy, folder);
    EXPECT_THAT(imported.findings.problems, IsEmpty()) << text << i;
    EXPECT_THAT(imported.text, AllOf(HasSubstr("kind: siglip_vit\n"), HasSubstr("final_norm: none"),
                                     HasSubstr("max_image: 14"), HasSubstr("kind: decoder\n"),
                                     HasSubstr("projector:\n      hidden: 32"), Not(HasSubstr("table"))));
    const Plan plan = Llava(imported.text, text, folder);
    EXPECT_EQ(FitWeights(plan).problems, std::vector<std::string>()) << text << i;
    int64_t elements = 0, planned = 0;
    for (const auto& [tensor, of] : toy.tensors) {
      if (tensor.find("post_layernorm") == std::string::npos) elements += ElementsOf(of.shape);
    }
    for (const Module& module : plan.modules) {
      for (const Parameter& parameter : module.parameters) planned += ElementsOf(parameter.shape);
    }
    EXPECT_EQ(planned, elements) << text << i;
  }
}

// What import reads, export writes, each text as that of its family. A Mistral without a window is a Llama.
TEST_F(Siglip, WhatGoesInComesHome) {
  for (const auto& [type, toy] : std::vector<std::pair<std::string, Toy>>{{"qwen2", ReadToy("llava")},
                                                                          {"qwen2", Tied()},
                                                                          {"llama", WithText("llama")},
                                                                          {"llama", WithText("mistral")},
                                                                          {"qwen3", WithText("qwen3")}}) {
    Findings findings;
    const SaidModel said = ReadModel(toy.config, {}, findings);
    EXPECT_THAT(findings.problems, IsEmpty()) << type;
    Plan plan;
    plan.budget.sequence_length = 16;
    const WrittenConfig written = ConfigOf(plan, said, DType::kFp32, findings);
    EXPECT_THAT(findings.problems, IsEmpty()) << type;
    EXPECT_EQ(written.dialect->name(), "llava");
    EXPECT_EQ(written.config["text_config"]["model_type"], type);
    EXPECT_EQ(written.config["image_seq_length"], 16);
    SCOPED_TRACE(type);
    testing::ExpectSameKeys(
        nlohmann::json(written.config), nlohmann::json(toy.config),
        {"transformers_version", "max_position_embeddings", "image_seq_length", "model_type", "use_cache", "head_dim"});
    EXPECT_EQ(written.read.language->numbers.size(), said.language->numbers.size());
    EXPECT_EQ(written.read.encoder->numbers.size(), said.encoder->numbers.size());
  }
}

// A run leaves under the names of a release, and with --like under those of the folder that it came from. The norm that
// nothing reads is made, or copied.
TEST_F(Siglip, ALlavaLeavesAsAFolder) {
  for (const bool shorter : {false, true}) {
    const Toy toy = shorter ? WithShortNames(ReadToy("llava")) : ReadToy("llava");
    const std::string source = absl::StrCat("source", shorter), run = In(absl::StrCat("run", shorter));
    const Plan plan = Llava(Imported(toy, source).text, "qwen2", source);
    EXPECT_EQ(*TakeLife(run), 1);
    EXPECT_TRUE(WriteLifeStart(run, 1, testing::StartOf(plan)).ok());
    testing::WriteCheckpointOf(plan, run, 2, 1);
    for (const bool like : {false, true}) {
      const std::string home = absl::StrCat("home", shorter, like);
      ExportRequest request{.from = run, .to = In(home), .shard_bytes = int64_t{5'000'000'000}};
      if (like) request.like = In(source);
      const absl::StatusOr<ExportedRun> exported = ExportRun(request, {});
      ASSERT_TRUE(exported.ok()) << exported.status();
      EXPECT_THAT(exported->findings.problems, IsEmpty());
      const absl::StatusOr<std::unique_ptr<WeightFiles>> files = WeightFiles::Open(In(home));
      ASSERT_TRUE(files.ok()) << files.status();
      std::map<std::string, std::vector<int64_t>> found, wanted;
      for (const auto& [tensor, of] : (*files)->all()) found[tensor] = of.shape;
      for (const auto& [tensor, of] : (like ? toy : ReadToy("llava")).tensors) wanted[tensor] = of.shape;
      EXPECT_EQ(found, wanted) << shorter << like;
      const bool made = absl::StrJoin(exported->made_up, " ").find("features are taken before it") != std::string::npos;
      EXPECT_EQ(made, !like);
      EXPECT_THAT(Imported(home).findings.problems, IsEmpty());
    }
  }
}

// Google's folders have a text model and a pooling head beside it.
TEST_F(Siglip, AloneItIsImportedWithoutAProjector) {
  const Toy toy = ReadToy("siglip");
  Toy tower = toy;
  tower.config = toy.config["vision_config"];
  std::erase_if(tower.tensors, [](const auto& one) { return one.first.find("vision_model.") != 0; });
  Toy shorter = tower;
  shorter.tensors.clear();
  for (const auto& [name, tensor] : tower.tensors) shorter.tensors[name.substr(13)] = tensor;
  int number = 0;
  for (const Toy& each : {toy, tower, shorter}) {
    const std::string folder = absl::StrCat("alone", ++number);
    const ImportedModel imported = Imported(each, folder);
    EXPECT_THAT(imported.findings.problems, IsEmpty());
    EXPECT_THAT(imported.findings.notes, Contains(HasSubstr("the pooling head")));
    EXPECT_THAT(imported.text, AllOf(HasSubstr("kind: siglip_vit\n"), HasSubstr("final_norm: layernorm"),
                                     HasSubstr("max_image: 9"), HasSubstr("projector.hidden")));
  }
  // Of another size than its image says.
  Toy damaged = toy;
  damaged.tensors["vision_model.embeddings.position_embedding.weight"].shape = {25, 20};
  EXPECT_THAT(Imported(damaged, "damaged").findings.problems,
              ElementsAre(Field(&Finding::where, HasSubstr("position_embedding"))));
}

// As llava-hf has published one with SigLIP, by an older transformers.
TEST_F(Siglip, AReleaseOfLlavaIsRead) {
  const ordered_json config = ordered_json::parse(R"({
      "architectures": ["LlavaForConditionalGeneration"], "ignore_index": -100, "image_token_index": 151646,
      "model_type": "llava", "projector_hidden_act": "gelu",
      "text_config": {"_name_or_path": "Qwen/Qwen1.5-0.5B-Chat", "architectures": ["Qwen2ForCausalLM"],
        "bos_token_id": 151643, "eos_token_id": 151645, "hidden_size": 1024, "intermediate_size": 2816,
        "max_window_layers": 21, "model_type": "qwen2", "num_attention_heads": 16, "num_hidden_layers": 24,
        "num_key_value_heads": 16, "rope_theta": 1000000.0, "sliding_window": 32768, "tie_word_embeddings": true,
        "torch_dtype": "bfloat16", "vocab_size": 152000},
      "torch_dtype": "float16", "transformers_version": "4.42.0.dev0",
      "vision_config": {"hidden_size": 1152, "image_size": 384, "intermediate_size": 4304,
        "model_type": "siglip_vision_model", "num_attention_heads": 16, "num_hidden_layers": 26, "patch_size": 14,
        "vision_use_head": false},
      "vision_feature_layer": -1, "vision_feature_select_strategy": "full"})");
  Findings findings;
  const SaidModel model = ReadModel(config, {}, findings);
  EXPECT_THAT(findings.problems, IsEmpty());
  EXPECT_THAT(findings.notes, Each(Not(HasSubstr("pooling head"))));
  ASSERT_TRUE(model.encoder && model.language);
  EXPECT_EQ(model.encoder->letters, std::string(26, 'V'));
  EXPECT_EQ(model.encoder->NumberOf("projector.hidden"), 1024);
  EXPECT_EQ(model.language->NumberOf("tied"), 1);
}

// As Google has published the base size: all numbers are those of transformers' code.
TEST_F(Siglip, WhatAReleaseLeavesOutIsKnown) {
  const ordered_json config = ordered_json::parse(R"({
      "architectures": ["SiglipModel"], "initializer_factor": 1.0, "model_type": "siglip",
      "text_config": {"model_type": "siglip_text_model"}, "torch_dtype": "float32",
      "transformers_version": "4.37.0.dev0", "vision_config": {"model_type": "siglip_vision_model"}})");
  Findings findings;
  const SaidModel model = ReadModel(config, {}, findings);
  EXPECT_THAT(findings.problems, IsEmpty());
  ASSERT_TRUE(model.encoder);
  EXPECT_EQ(model.encoder->letters, std::string(12, 'V'));
  for (const auto& [key, number] : std::map<std::string, double>{
           {"hidden", 768}, {"heads", 12}, {"ffn", 3072}, {"patch", 16}, {"max_image", 224}, {"norm_eps", 1e-6}})
    EXPECT_EQ(model.encoder->NumberOf(key), number) << key;
}

// What nobody trains, such as the text model, has the other beginning as well. The norm behind the last block, which is
// an extra of a LLaVA under any beginning, is a tensor of the encoder alone.
TEST_F(Siglip, OtherBeginningsOfNamesAreOneLine) {
  const Toy toy = ReadToy("siglip");
  Toy other = toy;
  other.tensors.clear();
  size_t eyes = 0;
  for (const auto& [name, tensor] : toy.tensors) {
    other.tensors["a.b." + name] = tensor;
    eyes += name.starts_with("vision_model.") && name.find(".head.") == std::string::npos;
  }
  other.tensors["a.b.bias"] = {DType::kFp32, {3}, ""};
  EXPECT_THAT(Imported(other).findings.problems,
              ElementsAre(Field(&Finding::where,
                                HasSubstr(absl::StrCat(" and ", eyes - 1,
                                                       " more tensors begin with a.b.vision_model., and those of "
                                                       "siglip with vision_model.: rename them"))),
                          Field(&Finding::where, "tensor a.b.bias [3] is of no part that can be expressed")));
}

TEST_F(Siglip, WhatCannotBeExpressedIsNamedByKeyAndValue) {
  const testing::Refusal refusals[] = {
      {"llava", "vision_feature_layer", "-2", "the last block"},
      {"llava", "vision_feature_layer", "[-2,-1]", "the last block"},
      {"llava", "vision_feature_layer", "null", "the last block"},
      {"llava", "vision_feature_select_strategy", "\"default\"", "no class token"},
      {"llava", "projector_hidden_act", "\"relu\"", "inside the projector"},
      {"llava", "multimodal_projector_bias", "false", "have a bias"},
      {"llava", "tie_word_embeddings", "true", "is not said by text_config"},
      {"llava", "quantization_config", "{\"bits\": 4}", "not quantized"},
      {"llava", "vision_config/num_channels", "1", "three colours"},
      {"llava", "vision_config/attention_dropout", "0.1", "no dropout"},
      {"llava", "vision_config/hidden_act", "\"quick_gelu\"", "only gelu_pytorch_tanh and gelu"},
      {"llava", "vision_config/model_type", "\"clip_vision_model\"",
       "which no kind here has; only siglip_vision_model can"},
      {"llava", "vision_config/model_type", "\"siglip2_vision_model\"",
       "cannot be expressed: it is the NaFlex form of SigLIP 2"},
      {"llava", "vision_config/model_type", "\"vit\"", "cannot be expressed, only siglip_vision_model"},
      {"llava", "text_config/model_type", "\"gemma2\"", "only llama, mistral, qwen2, qwen3 and qwen3_moe"},
      {"siglip", "vision_config/num_channels", "1", "three colours"},
      {"siglip", "vision_config/window_size", "7", "is not known"},
      {"siglip", "model_type", "\"siglip2\"", "cannot be expressed: it is the NaFlex form of SigLIP 2"},
  };
  testing::ExpectRefusals(refusals);
  // What transformers takes where the key is not there.
  for (const auto& [key, value] :
       {std::pair{"vision_feature_layer", "-2"}, std::pair{"vision_feature_select_strategy", "\"default\""}}) {
    Toy toy = ReadToy("llava");
    toy.config.erase(key);
    Findings findings;
    ReadModel(toy.config, {}, findings);
    EXPECT_THAT(findings.problems,
                ElementsAre(AllOf(Field(&Finding::where, key),
                                  Field(&Finding::message, HasSubstr(absl::StrCat("and is then ", value))))));
  }
}

}  // namespace
}  // namespace planwright
