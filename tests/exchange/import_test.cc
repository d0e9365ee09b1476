// `plan import`: what transformers saved becomes a recipe that plans the same tensors, and what a recipe cannot say is
// refused by key and value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/exchange/config_file.h"
#include "planner/exchange/expected_tensors.h"
#include "planner/exchange/import_folder.h"
#include "planner/exchange/read_model.h"
#include "planner/exchange/recipe_text.h"
#include "planner/state/weights/python_json.h"
#include "tests/exchange/toy_folder.h"
#include "tests/support/compiled.h"

namespace planwright {
namespace {

using nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using testing::FloatsOfClip;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::ReadToy;
using testing::Toy;
using testing::WriteToy;

class Import : public testing::FolderTest {
 protected:
  ImportedModel Imported(const Toy& toy, const std::set<std::string>& ignored = {}, const std::string& text = "") {
    const std::string folder = In("source" + std::to_string(++folders_));
    WriteToy(folder, toy, text);
    absl::StatusOr<ImportedModel> imported = ImportFolder(folder, ignored);
    EXPECT_TRUE(imported.ok()) << imported.status();
    return imported.ok() ? *std::move(imported) : ImportedModel{};
  }

  // The plan of a recipe that extends the imported text.
  Plan Extended(const std::string& text, const std::string& more) {
    std::ofstream(In("model.yaml")) << text;
    std::ofstream(In("recipe.yaml")) << "name: toy\nextends: [model.yaml]\ncluster: {nodes: 1, gpus_per_node: 1, gpu: "
                                        "none}\nbatch: {global_samples: 2, sequence_length: 32}\nbudget: "
                                        "{train_samples: 4, learning_rate: {peak: 1.0e-3}}\nprecision: {params: fp32}\n"
                                     << more;
    return testing::CompiledFile(In("recipe.yaml"), {"lints.PW0605=off"});
  }

  int folders_ = 0;
};

constexpr char kBothModules[] =
    "modules:\n  radio_encoder: {model: radio, placement: {first_rank: 0, ranks: 1}}\n"
    "  language: {model: nemotron_h, placement: {first_rank: 0, ranks: 1}}\n"
    "bridges:\n  - {from: radio_encoder, to: language}\n"
    "data: {kind: mock, image_grids: [[4, 4]], max_images: 1, classes: 2, text_tokens: 4}\n";
constexpr char kLanguageModule[] =
    "modules:\n  language: {model: nemotron_h, placement: {first_rank: 0, ranks: 1}}\n"
    "data: {kind: mock, max_images: 0, classes: 2, text_tokens: 4}\n";

// A line of the text: a number, and where it came from.
auto Says(const std::string& number, const std::string& from) {
  return ::testing::ContainsRegex("\n *" + number + " +# " + from + "\n");
}

// Every parameter of the plan is a tensor of the toy, and every tensor of the toy is a parameter or one of `others`.
void ExpectTheTensorsOf(const Toy& toy, const Plan& plan, const std::string& prefix,
                        const std::vector<std::string>& others) {
  std::map<std::string, testing::ToyTensor> left = toy.tensors;
  for (const Module& module : plan.modules) {
    for (const Parameter& parameter : module.parameters) {
      for (int64_t expert = parameter.experts > 0 ? 0 : -1; expert < std::max<int64_t>(parameter.experts, 0);
           ++expert) {
        std::string name = ExpertName(parameter.file_name, expert);
        if (!prefix.empty() && !name.starts_with(prefix)) continue;
        name = name.substr(prefix.size());
        const auto found = left.find(name);
        EXPECT_NE(found, left.end()) << name;
        if (found != left.end()) {
          EXPECT_EQ(found->second.shape, parameter.shape) << name;
          left.erase(found);
        }
        if (expert == -1) break;
      }
    }
  }
  for (const auto& [name, tensor] : left) {
    EXPECT_TRUE(std::any_of(others.begin(), others.end(), [&, tensor_name = name](const std::string& part) {
      return tensor_name.find(part) != std::string::npos;
    })) << name;
  }
}

const std::vector<std::string> kNotTrained = {"layer_scale", "summary_idxs", "video_embedder", "input_conditioner"};

TEST_F(Import, ALanguageModelOfTransformersPlansItsTensors) {
  const Toy toy = ReadToy("lm");
  const ImportedModel imported = Imported(toy);
  EXPECT_THAT(imported.findings.problems, IsEmpty());
  EXPECT_THAT(imported.text, HasSubstr("pattern: \"ME*E\""));
  EXPECT_THAT(imported.text, Says("vocabulary: 256", "vocab_size"));
  EXPECT_THAT(imported.text, Says("scale: 2.5", "routed_scaling_factor"));
  EXPECT_THAT(imported.text, Says("norm_eps: 1.0e-05", "layer_norm_epsilon"));
  ExpectTheTensorsOf(toy, Extended(imported.text, kLanguageModule), "language_model.", {});
}

// transformers has one rule for every number of experts, and says which.
TEST_F(Import, BothRulesForTheWeightsOfExperts) {
  struct Case {
    int64_t top_k;
    ordered_json rule;
    const char *line, *from;
    std::optional<int64_t> constant;  // none: the module lacks it, as modules from before do
  };
  for (const Case& one : {Case{1, true, "normalized: true", "norm_topk_prob", 1},
                          {1, false, "normalized: false", "norm_topk_prob", std::nullopt},
                          {1, nullptr, "normalized: true", "default of nemotron_h", 1},
                          {2, true, "normalized: true", "norm_topk_prob", std::nullopt},
                          {2, false, "normalized: false", "norm_topk_prob", 0},
                          {8, false, "normalized: false", "norm_topk_prob", 0}}) {
    SCOPED_TRACE(std::to_string(one.top_k) + " " + one.rule.dump());
    Toy toy = ReadToy("lm");
    toy.config["num_experts_per_tok"] = one.top_k, toy.config["norm_topk_prob"] = one.rule;
    const ImportedModel imported = Imported(toy);
    EXPECT_THAT(imported.findings.problems, IsEmpty());
    EXPECT_THAT(imported.text, Says(one.line, one.from));
    const Plan plan = Extended(imported.text, kLanguageModule);
    const Attributes& constants = plan.FindModule("language")->constants;
    EXPECT_EQ(constants.contains("moe.normalized"), one.constant.has_value());
    if (one.constant) EXPECT_EQ(constants.at("moe.normalized"), Attribute(*one.constant));
  }
}

TEST_F(Import, AVisionLanguageModelOfTransformersPlansItsTensors) {
  const Toy toy = ReadToy("omni");
  const ImportedModel imported = Imported(toy);
  EXPECT_THAT(imported.findings.problems, IsEmpty());
  EXPECT_THAT(imported.text, HasSubstr("\ndata: {image_token: 255}  # image_token_id\n"));
  EXPECT_THAT(imported.text, Says("class_tokens: 2", "vision_config.num_cls_tokens . vision_config.num_registers"));
  EXPECT_THAT(imported.text, Says("final_norm: none", "text_config.num_nextn_predict_layers = 0"));
  EXPECT_THAT(imported.text, Says("activation: gelu", "vision_config.hidden_act = gelu"));
  EXPECT_THAT(imported.findings.notes, Contains(HasSubstr("embedder of video patches, 1 tensor")));
  ExpectTheTensorsOf(toy, Extended(imported.text, kBothModules), "", kNotTrained);
}

TEST_F(Import, AnEncoderAloneLacksItsProjector) {
  const Toy toy = ReadToy("radio");
  const ImportedModel encoder = Imported(toy), language = Imported(ReadToy("lm"));
  EXPECT_THAT(encoder.findings.problems, IsEmpty());
  EXPECT_THAT(encoder.text, AllOf(HasSubstr("models.radio.projector.hidden"), Not(HasSubstr("projector:\n"))));
  std::ofstream(In("lm.yaml")) << language.text;
  std::ofstream(In("radio.yaml")) << encoder.text;
  const Plan plan = Extended(
      "extends: [lm.yaml, radio.yaml]\nmodels: {radio: {projector: {hidden: 48}}}\ndata: {image_token: "
      "255}\n",
      kBothModules);
  ExpectTheTensorsOf(toy, plan, "vision_model.", kNotTrained);
}

TEST_F(Import, DenseLayersAreKnown) {
  Toy toy = ReadToy("lm");
  toy.config["layers_block_type"][1] = "mlp";
  std::erase_if(toy.tensors, [](const auto& tensor) { return tensor.first.starts_with("backbone.layers.1.mixer."); });
  toy.tensors["backbone.layers.1.mixer.up_proj.weight"] = {DType::kFp32, {96, 64}};
  toy.tensors["backbone.layers.1.mixer.down_proj.weight"] = {DType::kFp32, {64, 96}};
  const ImportedModel imported = Imported(toy);
  EXPECT_THAT(imported.findings.problems, IsEmpty());
  EXPECT_THAT(imported.text, HasSubstr("pattern: \"M-*E\""));
  EXPECT_THAT(imported.text, Says("ffn: 96", "intermediate_size"));
  ExpectTheTensorsOf(toy, Extended(imported.text, kLanguageModule), "language_model.", {});
}

TEST_F(Import, TheRemoteDialectIsTheSameModel) {
  Toy toy = ReadToy("omni");
  toy.config = testing::RemoteConfig(toy.config);
  const ImportedModel imported = Imported(toy);
  EXPECT_THAT(imported.findings.problems, IsEmpty());
  EXPECT_THAT(imported.text, Says("class_tokens: 2", "vision_config.args.teachers and register_multiple"));
  EXPECT_THAT(imported.findings.notes,
              AllOf(Contains(HasSubstr("llm_config.rope_theta = 10000 is not taken over: nemotron_h has no position")),
                    Contains(HasSubstr("not read of vision_config.args")), Contains(HasSubstr("template = "))));
  ExpectTheTensorsOf(toy, Extended(imported.text, kBothModules), "", kNotTrained);
}

TEST_F(Import, ANamedVitHasTheSizesThatItIsPublishedWith) {
  Toy toy = ReadToy("omni");
  toy.config = testing::RemoteConfig(toy.config);
  ordered_json& vision = toy.config["vision_config"];
  for (const char* key : {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"})
    vision.erase(key);
  vision["args"]["model"] = "vit_huge_patch16_224";
  Findings findings;
  const SaidModel sizes = ReadModel(toy.config, {}, findings);
  EXPECT_EQ(sizes.encoder->NumberOf("hidden"), 1280);
  EXPECT_EQ(sizes.encoder->layers, 32);
  EXPECT_EQ(sizes.encoder->NumberOf("heads"), 16);
  EXPECT_EQ(sizes.encoder->NumberOf("ffn"), 5120);
  EXPECT_THAT(findings.problems, ElementsAre(Field(&Finding::where, "vit_hidden_size")));
  vision["args"]["model"] = "vit_giant_patch14_reg4_dinov2";
  Findings refused;
  ReadModel(toy.config, {}, refused);
  EXPECT_THAT(refused.problems, Contains(Field(&Finding::where, "vision_config.args.model")));
}

// Published files write Infinity, which JSON does not have.
TEST_F(Import, ReadsTheInfinityOfPython) {
  Toy toy = ReadToy("lm");
  std::string text = toy.config.dump(2);
  const std::string tagged = toy.config["time_step_limit"][1].dump(2);
  toy.config["time_step_limit"][1] = "HERE";
  text = toy.config.dump(2);
  text.replace(text.find("\"HERE\""), 6, "Infinity");
  EXPECT_THAT(Imported(toy, {}, text).findings.problems, IsEmpty());
  EXPECT_EQ(WithTaggedFloats(R"({"a": "Infinity \" NaN", "b": -Infinity, "c": [NaN]})"),
            R"({"a": "Infinity \" NaN", "b": {"__float__": "-Infinity"}, "c": [{"__float__": "NaN"}]})");
}

// Nemotron 3 Nano 30B-A3B with the keys that it is published with: all are known, and the model has the tensors and
// parameters that were counted by hand.
TEST_F(Import, EveryKeyOfAPublishedConfigIsKnown) {
  std::filesystem::create_directories(In("nano"));
  std::filesystem::copy_file(InSource("tests/exchange/transformers/nano_30b.config.json"), In("nano/config.json"));
  const absl::StatusOr<ordered_json> config = ReadConfigFile(In("nano"));
  ASSERT_TRUE(config.ok()) << config.status();
  Findings findings;
  const SaidModel sizes = ReadModel(*config, {}, findings);
  EXPECT_THAT(findings.problems, IsEmpty());
  EXPECT_THAT(findings.notes,
              ElementsAre(HasSubstr("rope_theta"), HasSubstr("partial_rotary_factor"), HasSubstr("time_step_min")));
  EXPECT_EQ(SizesTooLarge(sizes), "");
  const TensorShapes tensors = ExpectedTensors(sizes);
  int64_t parameters = 0;
  for (const auto& [name, shape] : tensors) {
    if (!name.ends_with("e_score_correction_bias")) parameters += ElementsOf(shape);
  }
  EXPECT_EQ(tensors.size(), 6243U);
  EXPECT_EQ(parameters, 31'577'937'344);
}

// A key, a value that a recipe cannot express, and a word of the message.
struct Refusal {
  const char *path, *value, *word;
};
constexpr Refusal kRefused[] = {
    {"text_config.rope_scaling", R"({"factor": 2.0})", "RoPE"},
    {"text_config.rope_parameters", R"({"rope_type": "default"})", "RoPE"},
    {"text_config.mlp_hidden_act", R"("silu")", "no gate"},
    {"text_config.attention_bias", "true", "no bias"},
    {"text_config.mlp_bias", "true", "no bias"},
    {"text_config.use_bias", "true", "no bias"},
    {"text_config.mamba_proj_bias", "true", "no bias"},
    {"text_config.use_conv_bias", "false", "has a bias"},
    {"text_config.n_group", "4", "one group"},
    {"text_config.topk_group", "2", "one group"},
    {"text_config.n_shared_experts", "2", "one shared expert"},
    {"text_config.norm_topk_prob", "1", "neither true nor false"},
    {"text_config.norm_topk_prob", R"("true")", "neither true nor false"},
    {"text_config.moe_latent_size", "1024", "latent"},
    {"text_config.tie_word_embeddings", "true", "two tensors"},
    {"text_config.residual_in_fp32", "true", "precision of the run"},
    {"text_config.time_step_limit", "[0.001, 0.1]", "not clamped"},
    {"text_config.sliding_window", "4096", "all earlier tokens"},
    {"text_config.attention_dropout", "0.1", "no dropout"},
    {"text_config.quantization_config", R"({"bits": 4})", "not quantized"},
    {"text_config.mamba_hidden_act", R"("gelu")", "Mamba-2"},
    {"vision_config.use_swiglu_ffn", "true", "no gate"},
    {"vision_config.qkv_bias", "false", "have a bias"},
    {"vision_config.hidden_act", R"("silu")", "gelu"},
    {"vision_config.layerscale_value", "0.5", "not scaled"},
    {"vision_config.num_channels", "1", "three colours"},
    {"vision_config.drop_path_rate", "0.1", "no dropout"},
    {"vision_config.norm_mean", "[0.5, 0.5, 0.5]", "CLIP"},
    {"vision_config.norm_std", "[0.5, 0.5, 0.5]", "CLIP"},
    {"downsample_ratio", "0.3", "1 / n"},
    {"ps_version", R"("v1")", "order"},
    {"norm_mean", "[0.0, 0.0, 0.0]", "CLIP"},
};

ordered_json& At(ordered_json& config, const std::string& path) {
  const size_t dot = path.find('.');
  return dot == std::string::npos ? config[path] : config[path.substr(0, dot)][path.substr(dot + 1)];
}

TEST_F(Import, WhatCannotBeExpressedIsNamedByKeyAndValue) {
  const Toy toy = ReadToy("omni");
  for (const Refusal& refusal : kRefused) {
    ordered_json config = toy.config;
    At(config, refusal.path) = ordered_json::parse(refusal.value);
    Findings findings;
    ReadModel(config, {}, findings);
    ASSERT_THAT(findings.problems, Contains(Field(&Finding::where, refusal.path)));
    EXPECT_EQ(findings.problems.size(), 1U) << refusal.path;
    EXPECT_EQ(findings.problems[0].value, ordered_json::parse(refusal.value).dump()) << refusal.path;
    EXPECT_THAT(findings.problems[0].message, HasSubstr(refusal.word)) << refusal.path;
  }
}

TEST_F(Import, AllThatCannotBeExpressedIsOneListAndNothingIsWritten) {
  Toy toy = ReadToy("omni");
  for (const Refusal& refusal : kRefused) At(toy.config, refusal.path) = ordered_json::parse(refusal.value);
  toy.config["text_config"]["layers_block_type"][1] = "gated_delta_net";
  const ImportedModel imported = Imported(toy);
  EXPECT_EQ(imported.text, "");
  for (const Refusal& refusal : kRefused)
    EXPECT_THAT(imported.findings.problems, Contains(Field(&Finding::where, refusal.path)));
  EXPECT_THAT(imported.findings.problems, Contains(Field(&Finding::where, "text_config.layers_block_type[1]")));
}

TEST_F(Import, OtherModelsAreRefusedByTheirType) {
  Toy toy = ReadToy("lm");
  toy.config["model_type"] = "gemma3";
  EXPECT_THAT(Imported(toy).findings.problems,
              ElementsAre(AllOf(Field(&Finding::where, "model_type"), Field(&Finding::value, "\"gemma3\""))));
  Toy omni = ReadToy("omni");
  omni.config["text_config"]["model_type"] = "qwen3",
  omni.config["vision_config"]["model_type"] = "siglip_vision_model";
  EXPECT_THAT(Imported(omni).findings.problems, AllOf(Contains(Field(&Finding::where, "text_config.model_type")),
                                                      Contains(Field(&Finding::where, "vision_config.model_type"))));
}

TEST_F(Import, KeysThatAreNotKnownAreReportedByTheirPath) {
  Toy toy = ReadToy("omni");
  toy.config["text_config"]["hiden_size"] = 64;
  toy.config["vision_config"]["windows"] = {1, 2};
  toy.config["surprise"] = nullptr;
  const Findings findings = Imported(toy).findings;
  EXPECT_THAT(findings.problems,
              ElementsAre(AllOf(Field(&Finding::where, "text_config.hiden_size"), Field(&Finding::value, "64"),
                                Field(&Finding::message, HasSubstr("did you mean `hidden_size`"))),
                          AllOf(Field(&Finding::where, "vision_config.windows"), Field(&Finding::value, "[1,2]"))));
  EXPECT_THAT(findings.notes, Contains("surprise = null is not known"));
  const ImportedModel ignored = Imported(toy, {"text_config.hiden_size", "vision_config.windows"});
  EXPECT_THAT(ignored.findings.problems, IsEmpty());
  EXPECT_THAT(ignored.findings.notes, Contains(HasSubstr("vision_config.windows = [1,2] is ignored")));
  EXPECT_THAT(ignored.findings.notes, Not(Contains(HasSubstr("has no effect"))));
  // A key that is known is read, and one that is not there says nothing.
  const std::set<std::string> more = {"text_config.hiden_size", "vision_config.windows", "text_config.hidden_size",
                                      "x"};
  const ImportedModel without = Imported(toy, more);
  EXPECT_THAT(without.findings.notes, Contains(HasSubstr("--ignore text_config.hidden_size has no effect")));
  EXPECT_THAT(without.findings.notes, Contains(HasSubstr("--ignore x has no effect")));
}

TEST_F(Import, TwoNamesOfOneNumberMustAgree) {
  Toy toy = ReadToy("lm");
  toy.config["norm_eps"] = 1e-6, toy.config["hybrid_override_pattern"] = "MEM*";
  EXPECT_THAT(Imported(toy).findings.problems,
              ::testing::UnorderedElementsAre(Field(&Finding::where, "norm_eps"),
                                              Field(&Finding::where, "hybrid_override_pattern")));
}

// transformers reads layer_norm_epsilon alone. Published configs have other names beside it, with the same number.
TEST_F(Import, OtherNamesOfTheEpsilonSayNothing) {
  for (const char* other : {"norm_eps", "rms_norm_eps"}) {
    Toy toy = ReadToy("lm");
    toy.config[other] = toy.config["layer_norm_epsilon"] = 2e-5;
    EXPECT_THAT(Imported(toy).findings.problems, IsEmpty());
    EXPECT_THAT(Imported(toy).text, Says("norm_eps: 2.0e-05", "layer_norm_epsilon"));
    toy.config[other] = 1e-3;
    const auto is_refused =
        ElementsAre(AllOf(Field(&Finding::where, other), Field(&Finding::value, "0.001"),
                          Field(&Finding::message, HasSubstr("is read by nobody: the epsilon is layer_norm_epsilon"))));
    EXPECT_THAT(Imported(toy).findings.problems, is_refused);
    toy.config.erase("layer_norm_epsilon");
    EXPECT_THAT(Imported(toy).findings.problems, is_refused);
    toy.config[other] = 1e-5;  // the default
    EXPECT_THAT(Imported(toy).findings.problems, IsEmpty());
    EXPECT_THAT(Imported(toy).text, Says("norm_eps: 1.0e-05", "default of nemotron_h"));
  }
}

TEST_F(Import, TheNumberOfLayersIsThatOfThePattern) {
  Toy toy = ReadToy("lm");
  toy.config["num_hidden_layers"] = 5;
  EXPECT_THAT(Imported(toy).findings.problems, ElementsAre(Field(&Finding::where, "num_hidden_layers")));
  toy.config.erase("layers_block_type"), toy.config["hybrid_override_pattern"] = "ME*G";
  EXPECT_THAT(Imported(toy).findings.problems, ElementsAre(AllOf(Field(&Finding::where, "hybrid_override_pattern"),
                                                                 Field(&Finding::value, "\"ME*G\""))));
}

// Each number that decides a shape is compared with the headers.
TEST_F(Import, NumbersAreComparedWithTheHeaders) {
  const Toy toy = ReadToy("omni");
  const std::map<std::string, std::string> changes = {
      {"text_config.vocab_size", "language_model.lm_head.weight is [256, 64], by config.json [512, 64]"},
      {"text_config.hidden_size", "language_model.backbone.norm_f.weight is [64], by config.json [128]"},
      {"text_config.n_routed_experts", "mixer.gate.weight is [8, 64], by config.json [16, 64]"},
      {"text_config.moe_intermediate_size", "up_proj.weight is [48, 64], by config.json [96, 64]"},
      {"text_config.moe_shared_expert_intermediate_size", "shared_experts.up_proj.weight is [64, 64]"},
      {"text_config.num_key_value_heads", "k_proj.weight is [32, 64], by config.json [64, 64]"},
      {"text_config.mamba_num_heads", "mixer.A_log is [8], by config.json [16]"},
      {"text_config.conv_kernel", "conv1d.weight is [128, 1, 4], by config.json [128, 1, 8]"},
      {"text_config.ssm_state_size", "in_proj.weight is [200, 64], by config.json [264, 64]"},
      {"vision_config.num_registers", "cls_token.token is [2, 32], by config.json [3, 32]"},
      {"vision_config.max_img_size", "pos_embed is [1, 256, 32], by config.json [1, 1024, 32]"},
      {"vision_config.num_hidden_layers", "blocks.2.norm1.weight [32] is missing"},
      {"vision_config.mlp_ratio", "fc1.weight is [64, 32], by config.json [128, 32]"},
      {"projector_hidden_size", "mlp1.1.weight is [64, 128], by config.json [128, 128]"},
  };
  for (const auto& [path, message] : changes) {
    Toy changed = toy;
    ordered_json& value = At(changed.config, path);
    value = value.is_number_float() ? ordered_json(2 * value.get<double>()) : ordered_json(2 * value.get<int64_t>());
    EXPECT_THAT(Imported(changed).findings.problems, Contains(Field(&Finding::where, HasSubstr(message)))) << path;
  }
}

TEST_F(Import, TensorsThatNoPartHasAreProblems) {
  Toy toy = ReadToy("omni");
  toy.tensors.erase("mlp1.0.weight");
  toy.tensors["language_model.backbone.layers.0.mixer.in_proj.bias"] = {DType::kFp32, {200}};
  toy.tensors["vision_final_layernorm.weight"] = {DType::kFp32, {32}};
  toy.tensors["mtp.layers.0.norm.weight"] = {DType::kFp32, {64}};
  const Findings findings = Imported(toy).findings;
  EXPECT_THAT(findings.problems,
              ::testing::UnorderedElementsAre(
                  Field(&Finding::where, HasSubstr("mlp1.0.weight [128] is missing")),
                  Field(&Finding::where, HasSubstr("in_proj.bias [200] is of no part that can be expressed")),
                  Field(&Finding::where, HasSubstr("vision_final_layernorm.weight is of a final norm, but"))));
  EXPECT_THAT(findings.notes, Contains(HasSubstr("multi-token prediction layers, 1 tensor, such as mtp.layers")));
}

// transformers normalizes pixels by these tensors, whatever config.json says.
TEST_F(Import, StoredMeanAndDeviationMustBeThoseOfClip) {
  const std::string of = "radio_model.input_conditioner.";
  Toy toy = ReadToy("radio");
  EXPECT_THAT(Imported(toy).findings.problems, IsEmpty());
  toy.tensors[of + "norm_std"].bytes = FloatsOfClip(true);
  toy.tensors[of + "norm_mean"] = {DType::kFp32, {1, 3, 2}, ""};
  EXPECT_THAT(Imported(toy).findings.problems,
              ElementsAre(Field(&Finding::where, HasSubstr(of + "norm_mean has not one number for each of three")),
                          Field(&Finding::where, HasSubstr(of + "norm_std: element 0 is 0.4814546"))));
  // As bf16 rounds them.
  const auto bf16 = [](std::initializer_list<uint16_t> numbers) {
    return std::string(reinterpret_cast<const char*>(numbers.begin()), numbers.size() * 2);
  };
  toy = ReadToy("radio");
  toy.tensors[of + "norm_mean"] = {DType::kBf16, {3, 1, 1}, bf16({0x3ef7, 0x3eea, 0x3ed1})};
  EXPECT_THAT(Imported(toy).findings.problems, IsEmpty());
  toy.tensors[of + "norm_mean"].bytes = bf16({0x3ef7, 0x7fc0, 0x3ed1});
  EXPECT_THAT(Imported(toy).findings.problems, ElementsAre(Field(&Finding::where, HasSubstr("element 1 is nan"))));
}

TEST_F(Import, ShapesOfTensorsThatArePassedThroughAreCompared) {
  Toy toy = ReadToy("omni");
  const std::string radio = "vision_model.radio_model.";
  toy.tensors[radio + "model.blocks.1.layer_scale2.lambda1"].shape = {16};
  toy.tensors[radio + "model.patch_generator.video_embedder.weight"].shape = {32, 95};
  toy.tensors[radio + "summary_idxs"].shape = {1, 1};
  EXPECT_THAT(
      Imported(toy).findings.problems,
      ::testing::UnorderedElementsAre(
          Field(&Finding::where, HasSubstr("layer_scale2.lambda1 is [16], by config.json [32]")),
          Field(&Finding::where, HasSubstr("video_embedder.weight is [32, 95], by config.json [32, frames x 48]")),
          Field(&Finding::where, HasSubstr("summary_idxs is [1, 1], by config.json a list"))));
}

// Megatron-Core builds a norm behind the encoder where the language model predicts several tokens.
TEST_F(Import, MultiTokenPredictionLeavesTheMainModelAndBringsAFinalNorm) {
  Toy toy = ReadToy("omni");
  toy.config["text_config"]["num_nextn_predict_layers"] = 1;
  toy.tensors["mtp.layers.0.norm.weight"] = {DType::kFp32, {64}};
  const ImportedModel imported = Imported(toy);
  EXPECT_THAT(imported.findings.problems, IsEmpty());
  EXPECT_THAT(imported.text, HasSubstr("final_norm: layernorm"));
  EXPECT_THAT(imported.findings.notes,
              AllOf(Contains(HasSubstr("text_config.num_nextn_predict_layers = 1: multi-token prediction cannot")),
                    Contains(HasSubstr("does not store vision_final_layernorm.weight"))));
  for (const char* name : {"vision_final_layernorm.weight", "vision_final_layernorm.bias"})
    toy.tensors[name] = {DType::kFp32, {32}};
  const Findings stored = Imported(toy).findings;
  EXPECT_THAT(stored.problems, IsEmpty());
  EXPECT_THAT(stored.notes, Not(Contains(HasSubstr("does not store"))));
}

TEST_F(Import, AFolderThatIsNoneIsAnError) {
  EXPECT_THAT(std::string(ImportFolder(In("nowhere"), {}).status().message()), HasSubstr("nowhere/config.json"));
  std::filesystem::create_directories(In("empty"));
  std::ofstream(In("empty/config.json")) << "[1]";
  EXPECT_THAT(std::string(ImportFolder(In("empty"), {}).status().message()), HasSubstr("it is no JSON object"));
  std::ofstream(In("empty/config.json")) << "{\n\"a\": 1e400}";
  EXPECT_THAT(std::string(ImportFolder(In("empty"), {}).status().message()),
              AllOf(HasSubstr("config.json: line 2: the number 1e400 is out of range"), Not(HasSubstr("json.exc"))));
  std::ofstream(In("empty/config.json")) << "{\"model_type\": \"nemotron_h\"}";
  EXPECT_THAT(std::string(ImportFolder(In("empty"), {}).status().message()), HasSubstr("it has no weights"));
}

// What `plan validate` would refuse, is refused by the config's keys: a number that alone contradicts no header.
TEST_F(Import, WhatNoRecipeMayHaveIsNotWritten) {
  struct Case {
    const char *toy, *path, *value, *where, *message;
  };
  constexpr Case kCases[] = {
      {"omni", "vision_config.num_attention_heads", "3", "vision_config.hidden_size",
       "is not a multiple of heads 3 (vision_config.num_attention_heads = 3)"},
      {"radio", "num_attention_heads", "3", "hidden_size", "is not a multiple of heads 3 (num_attention_heads = 3)"},
      {"lm", "num_experts_per_tok", "9", "num_experts_per_tok", "(n_routed_experts = 8)"},
      {"omni", "image_token_id", "256", "image_token_id",
       "token 256 is outside the vocabulary of 256 (text_config.vocab_size = 256)"}};
  for (const Case& each : kCases) {
    Toy toy = ReadToy(each.toy);
    At(toy.config, each.path) = ordered_json::parse(each.value);
    const ImportedModel imported = Imported(toy);
    EXPECT_THAT(imported.findings.problems, ElementsAre(AllOf(Field(&Finding::where, each.where),
                                                              Field(&Finding::message, HasSubstr(each.message)))))
        << each.path;
    EXPECT_EQ(imported.text, "") << each.path;
  }
  Toy toy = ReadToy("omni");
  toy.config["vision_config"]["num_cls_tokens"] = 5000;
  for (auto& [name, tensor] : toy.tensors) {
    if (name.ends_with("cls_token.token"))
      tensor.shape[0] = 5000 + toy.config["vision_config"]["num_registers"].get<int>();
  }
  const ImportedModel imported = Imported(toy);
  EXPECT_THAT(imported.findings.problems,
              Contains(AllOf(Field(&Finding::where, HasSubstr("vision_config.num_cls_tokens")),
                             Field(&Finding::message, HasSubstr("class_tokens")))));
  EXPECT_EQ(imported.text, "");
}

TEST_F(Import, SizesThatDoNotFitTogetherAreOneListByKey) {
  Toy toy = ReadToy("omni");
  toy.config["vision_config"]["max_img_size"] = 60;
  toy.config["text_config"]["num_key_value_heads"] = 3;
  for (auto& [name, tensor] : toy.tensors) {
    if (name.ends_with("pos_embed")) tensor.shape[1] = 225;
    if (name.ends_with("k_proj.weight") || name.ends_with("v_proj.weight")) tensor.shape[0] = 48;
  }
  EXPECT_THAT(Imported(toy).findings.problems,
              ElementsAre(AllOf(Field(&Finding::where, "vision_config.max_img_size"),
                                Field(&Finding::message, HasSubstr("downsample_ratio"))),
                          AllOf(Field(&Finding::where, "text_config.num_attention_heads"),
                                Field(&Finding::message, HasSubstr("(text_config.num_key_value_heads = 3)")))));
}

TEST_F(Import, QuantizedTensorsAreRefusedByName) {
  const Toy toy = ReadToy("lm");
  const std::string name = "lm_head.weight";
  Toy other = toy;
  other.tensors[name] = {DType::kInt64, {256, 64}, ""};
  EXPECT_THAT(Imported(other).findings.problems,
              ElementsAre(Field(&Finding::where, AllOf(HasSubstr("tensor lm_head.weight is I64, and weights are read"),
                                                       HasSubstr("unquantized files")))));
}

TEST_F(Import, TwoConfigsOfOneModelMustAgree) {
  Toy toy = ReadToy("omni");
  toy.config["llm_config"] = toy.config["text_config"];
  EXPECT_THAT(Imported(toy).findings.problems, IsEmpty());
  toy.config["llm_config"]["n_group"] = 4;
  toy.config["audio_config"] = {{"a", 1}}, toy.config["sound_config"] = {{"a", 2}};
  EXPECT_THAT(Imported(toy).findings.problems,
              ElementsAre(AllOf(Field(&Finding::where, "llm_config"),
                                Field(&Finding::message, HasSubstr("is another name of text_config"))),
                          Field(&Finding::where, "sound_config")));
}

TEST_F(Import, ALeastTimeStepIsANote) {
  Toy toy = ReadToy("lm");
  toy.config["time_step_min"] = 0.0;
  EXPECT_THAT(Imported(toy).findings.notes, Not(Contains(HasSubstr("time_step_min"))));
  toy.config["time_step_min"] = 0.001;
  EXPECT_THAT(Imported(toy).findings.notes, Contains(HasSubstr("time_step_min = 0.001 is not taken over: a run does")));
  for (const char* wrong : {"-0.1", "\"0.1\"", "[0]", "true", R"({"__float__": "NaN"})"}) {
    toy.config["time_step_min"] = ordered_json::parse(wrong);
    EXPECT_THAT(Imported(toy).findings.problems, ElementsAre(Field(&Finding::where, "time_step_min"))) << wrong;
  }
}

TEST_F(Import, NumbersOfPatchesAreNoted) {
  Toy toy = ReadToy("omni");
  toy.config["min_num_patches"] = 4, toy.config["vision_config"]["min_num_patches"] = 4;
  const Findings findings = Imported(toy).findings;
  EXPECT_THAT(findings.problems, IsEmpty());
  EXPECT_THAT(findings.notes, AllOf(Contains(::testing::StartsWith("min_num_patches = 4 is not taken over")),
                                    Contains(::testing::StartsWith("vision_config.min_num_patches = 4 is not"))));
}

TEST_F(Import, ValuesOfAnotherTypeAreNotTakenForNone) {
  Toy toy = ReadToy("omni");
  toy.config["text_config"]["use_bias"] = "", toy.config["text_config"]["moe_latent_size"] = ordered_json::array();
  toy.config["text_config"]["model_type"] = 7;
  EXPECT_THAT(Imported(toy).findings.problems,
              ::testing::UnorderedElementsAre(
                  AllOf(Field(&Finding::where, "text_config.use_bias"), Field(&Finding::value, "\"\""),
                        Field(&Finding::message, HasSubstr("only null, false or 0"))),
                  Field(&Finding::where, "text_config.moe_latent_size"),
                  AllOf(Field(&Finding::where, "text_config.model_type"), Field(&Finding::message, "is no text"))));
}

// Sizes are a stranger's claims.
TEST_F(Import, SizesBeyondAllModelsAreRefusedBeforeTheyAreExpanded) {
  for (const char* key : {"n_routed_experts", "hidden_size", "vocab_size", "mamba_num_heads"}) {
    Toy toy = ReadToy("lm");
    toy.config[key] = int64_t{1} << 24;
    // Alone, 2^24 ids are no unusual model.
    if (std::string(key) == "vocab_size") toy.config["hidden_size"] = int64_t{1} << 24;
    if (std::string(key) != "n_routed_experts") toy.config["mamba_head_dim"] = int64_t{1} << 24;
    EXPECT_THAT(Imported(toy).findings.problems,
                ElementsAre(Field(&Finding::message, HasSubstr("beyond what a recipe may have"))))
        << key;
  }
  Toy toy = ReadToy("lm");
  toy.config["hidden_size"] = -1, toy.config["vocab_size"] = 1e300, toy.config["chunk_size"] = "many";
  EXPECT_EQ(Imported(toy).findings.problems.size(), 3U);
}

// Editors of Windows end lines so.
TEST(RecipeText, ItsWeightsAreFoundWhateverEndsALine) {
  EXPECT_EQ(WeightsInComment("# a\n# initialize: {from: ../hf}\nmodels:\n"), "../hf");
  EXPECT_EQ(WeightsInComment("# a\r\n# initialize: {from: ../hf}\r\nmodels:\r\n"), "../hf");
  EXPECT_EQ(WeightsInComment("# initialize: {from: 'it''s'}"), "it's");
  EXPECT_EQ(WeightsInComment("models:\n"), "");
}

}  // namespace
}  // namespace planwright
