// Folders of decoders, which transformers saved: they become recipes that plan their tensors, what they say is written
// again as it was, and models whose head is their embedding go in and out without a second tensor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "planner/exchange/expected_tensors.h"
#include "planner/exchange/export_run.h"
#include "planner/exchange/import_folder.h"
#include "planner/exchange/like_source.h"
#include "planner/exchange/read_model.h"
#include "planner/exchange/write_config.h"
#include "planner/plan/shard_map.h"
#include "planner/state/checkpoint/run_lives.h"
#include "planner/state/weights/fit.h"
#include "planner/state/weights/read_values.h"
#include "planner/wire/records/safetensors.h"
#include "tests/exchange/refusals.h"
#include "tests/exchange/toy_folder.h"
#include "tests/state/checkpoint/plan_checkpoint.h"
#include "tests/support/compiled.h"

namespace planwright {
namespace {

using nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ReadToy;
using testing::Toy;

constexpr char kHead[] = "lm_head.weight", kEmbedding[] = "model.embed_tokens.weight";

class Decoders : public testing::FolderTest {
 protected:
  ImportedModel Imported(const std::string& folder, bool untie = false) {
    absl::StatusOr<ImportedModel> imported = ImportFolder(In(folder), {}, In(folder), BuiltInDialects(), untie);
    EXPECT_TRUE(imported.ok()) << imported.status();
    return imported.ok() ? *std::move(imported) : ImportedModel{};
  }
  ImportedModel Imported(const Toy& toy, bool untie = false) {
    const std::string folder = "source" + std::to_string(++folders_);
    WriteToy(In(folder), toy);
    return Imported(folder, untie);
  }
  // The plan of a recipe that extends the imported text and begins with a folder.
  Plan Extended(const std::string& text, const std::string& from) {
    const size_t name = text.find("models:\n  ") + 10;
    const std::string model = text.substr(name, text.find(':', name) - name);
    std::ofstream(In("model.yaml")) << text;
    std::ofstream(In("recipe.yaml"))
        << "name: toy\nextends: [model.yaml]\ncluster: {nodes: 1, gpus_per_node: 1, gpu: none}\n"
           "batch: {global_samples: 2, sequence_length: 32}\n"
           "budget: {train_samples: 4, learning_rate: {peak: 1.0e-3}}\nprecision: {params: fp32}\n"
           "data: {kind: mock, max_images: 0, classes: 2, text_tokens: 4}\n"
           "modules:\n  language: {model: "
        << model << ", placement: {first_rank: 0, ranks: 1}}\ninitialize: {from: " << In(from) << "}\n";
    return testing::CompiledFile(In("recipe.yaml"), {"lints.PW0605=off"});
  }
  // A run of the model that is imported from here.
  Plan RunOf(const std::string& folder, bool untie = false) {
    const Plan plan = Extended(Imported(folder, untie).text, folder);
    EXPECT_EQ(*TakeLife(In("run")), 1);
    EXPECT_TRUE(WriteLifeStart(In("run"), 1, testing::StartOf(plan)).ok());
    testing::WriteCheckpointOf(plan, In("run"), 2, 1);
    return plan;
  }
  // The bytes of each tensor of a folder that was exported.
  std::map<std::string, std::string> Home(const std::string& like) {
    ExportRequest request{.from = In("run"), .to = In("home" + like), .shard_bytes = int64_t{5'000'000'000}};
    if (!like.empty()) request.like = In(like);
    const absl::StatusOr<ExportedRun> exported = ExportRun(request, {});
    EXPECT_TRUE(exported.ok()) << exported.status();
    if (!exported.ok()) return {};
    EXPECT_THAT(exported->findings.problems, IsEmpty());
    const absl::StatusOr<std::unique_ptr<WeightFiles>> files = WeightFiles::Open(In("home" + like));
    EXPECT_TRUE(files.ok()) << files.status();
    std::map<std::string, std::string> tensors;
    for (const auto& [name, tensor] : (*files)->all()) {
      std::string& bytes = tensors[name];
      bytes.resize(static_cast<size_t>(tensor.bytes));
      EXPECT_TRUE((*files)->ReadBytes(tensor, 0, std::as_writable_bytes(std::span(bytes))).ok()) << name;
    }
    return tensors;
  }

  int folders_ = 0;
};

// Every parameter of the plan is a tensor of the toy, and every tensor a parameter.
void ExpectTheTensorsOf(const Toy& toy, const Plan& plan) {
  std::map<std::string, std::vector<int64_t>> ours, theirs;
  for (const auto& [name, tensor] : toy.tensors) theirs["language_model." + name] = tensor.shape;
  for (const Parameter& parameter : plan.modules.at(0).parameters) {
    for (int64_t expert = 0; expert < std::max<int64_t>(parameter.experts, 1); ++expert)
      ours[ExpertName(parameter.file_name, parameter.experts > 0 ? expert : -1)] = parameter.shape;
  }
  EXPECT_EQ(ours, theirs);
}

Toy Tied(Toy toy, bool stores_head = false) {
  toy.config["tie_word_embeddings"] = true;
  if (!stores_head) toy.tensors.erase(kHead);
  return toy;
}

std::string ZerosOf(const testing::ToyTensor& tensor) {
  int64_t bytes = DTypeBytes(tensor.dtype);
  for (const int64_t size : tensor.shape) bytes *= size;
  return std::string(static_cast<size_t>(bytes), '\0');
}

// As folders of old may have it; transformers writes one word for each block today.
TEST_F(Decoders, AWindowOfOneBlockIsRefused) {
  Toy toy = ReadToy("qwen3");
  toy.config["layer_types"][1] = "sliding_attention";
  EXPECT_THAT(Imported(toy).findings.problems, ElementsAre(AllOf(Field(&Finding::where, "layer_types[1]"),
                                                                 Field(&Finding::value, "\"sliding_attention\""))));
}

const std::vector<std::string> kToys = {"llama", "mistral", "qwen2", "qwen3", "qwen3_moe"};

// The lines of its tensors are those of a llama.
TEST_F(Decoders, OtherBeginningsAreBesideThoseOfTheFoldersType) {
  const Toy toy = ReadToy("qwen3");
  Toy other = toy;
  other.tensors.clear();
  for (const auto& [name, tensor] : toy.tensors) other.tensors["x." + name] = tensor;
  EXPECT_THAT(Imported(other).findings.problems,
              ElementsAre(Field(&Finding::where, HasSubstr(", and those of qwen3 "))));
}

TEST_F(Decoders, OfTransformersPlanTheirTensors) {
  for (const std::string& name : kToys) {
    const Toy toy = ReadToy(name);
    const ImportedModel imported = Imported(toy);
    EXPECT_THAT(imported.findings.problems, IsEmpty()) << name;
    EXPECT_THAT(imported.text, HasSubstr("\n  " + name + ":\n    kind: decoder\n"));
    const Plan plan = Extended(imported.text, "source" + std::to_string(folders_));
    ExpectTheTensorsOf(toy, plan);
    EXPECT_EQ(FitWeights(plan).problems, std::vector<std::string>()) << name;
  }
}

// What import reads, export writes: the same numbers come back, and of each key that it writes what was there.
TEST_F(Decoders, WhatGoesInComesHome) {
  const std::vector<ordered_json> ropes = {{{"rope_type", "default"}, {"rope_theta", 5000.0}},
                                           {{"rope_type", "linear"}, {"rope_theta", 5000.0}, {"factor", 8.0}},
                                           {{"rope_type", "llama3"},
                                            {"rope_theta", 500000.0},
                                            {"factor", 8.0},
                                            {"original_max_position_embeddings", 32},
                                            {"low_freq_factor", 1.0},
                                            {"high_freq_factor", 4.0}},
                                           {{"rope_type", "yarn"},
                                            {"rope_theta", 5000.0},
                                            {"factor", 8.0},
                                            {"original_max_position_embeddings", 32},
                                            {"beta_slow", 1.5},
                                            {"beta_fast", 30.0},
                                            {"attention_factor", 1.25}}};
  for (const std::string& name : kToys) {
    for (const ordered_json& rope : ropes) {
      for (const bool tied : {false, true}) {
        Toy toy = ReadToy(name);
        if (tied) toy = Tied(std::move(toy));
        toy.config["rope_parameters"] = rope;
        if (toy.config.contains("router_aux_loss_coef")) toy.config["router_aux_loss_coef"] = 0.0;
        Findings findings;
        const SaidModel said = ReadModel(toy.config, {}, findings);
        EXPECT_THAT(findings.problems, IsEmpty()) << name << rope;
        Plan plan;
        plan.budget.sequence_length = 16;
        const WrittenConfig written = ConfigOf(plan, said, DType::kFp32, findings);
        EXPECT_THAT(findings.problems, IsEmpty()) << name << rope;
        for (const auto& [key, value] : written.config.items()) {
          if (key == "transformers_version" || key == "max_position_embeddings" || !toy.config.contains(key)) continue;
          // The first dialect that can say it: a Mistral without a window is a Llama.
          const bool family = key == "model_type" || key == "architectures";
          if (!family || written.dialect->name() == name) {
            EXPECT_EQ(nlohmann::json(value), nlohmann::json(toy.config[key])) << name << " " << key;
          }
        }
        ASSERT_EQ(written.read.language->numbers.size(), said.language->numbers.size());
        for (const auto& [key, number] : said.language->numbers)
          EXPECT_EQ(written.read.language->Find(key)->text(), number.text()) << name << " " << key;
      }
    }
  }
}

// As these are published: no key is unknown, and there are as many parameters as their makers say.
TEST_F(Decoders, PublishedConfigsAreKnown) {
  struct Published {
    const char* config;
    int64_t parameters;
  };
  const Published published[] = {
      // Llama-3.1-8B
      {R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
           "bos_token_id": 128000, "eos_token_id": 128001, "hidden_act": "silu", "hidden_size": 4096,
           "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 131072, "mlp_bias": false,
           "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
           "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0,
           "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"},
           "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
           "transformers_version": "4.43.0.dev0", "use_cache": true, "vocab_size": 128256})",
       8030261248},
      // Mistral-7B-v0.3
      {R"({"architectures": ["MistralForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2,
           "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
           "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32,
           "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
           "sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
           "transformers_version": "4.42.0.dev0", "use_cache": true, "vocab_size": 32768})",
       7248023552},
      // Qwen2.5-7B
      {R"({"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
           "eos_token_id": 151643, "hidden_act": "silu", "hidden_size": 3584, "initializer_range": 0.02,
           "intermediate_size": 18944, "max_position_embeddings": 131072, "max_window_layers": 28,
           "model_type": "qwen2", "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
           "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 131072, "tie_word_embeddings": false,
           "torch_dtype": "bfloat16", "transformers_version": "4.40.1", "use_cache": true, "use_mrope": false,
           "use_sliding_window": false, "vocab_size": 152064})",
       7615616512},
      // Qwen3-1.7B
      {R"({"architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
           "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048,
           "initializer_range": 0.02, "intermediate_size": 6144, "max_position_embeddings": 40960,
           "max_window_layers": 28, "model_type": "qwen3", "num_attention_heads": 16, "num_hidden_layers": 28,
           "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000,
           "sliding_window": null, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
           "transformers_version": "4.51.0", "use_cache": true, "use_sliding_window": false, "vocab_size": 151936})",
       1720574976},
      // Qwen3-30B-A3B
      {R"({"architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
           "bos_token_id": 151643, "decoder_sparse_step": 1, "eos_token_id": 151645, "head_dim": 128,
           "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 6144,
           "max_position_embeddings": 40960, "max_window_layers": 48, "mlp_only_layers": [],
           "model_type": "qwen3_moe", "moe_intermediate_size": 768, "norm_topk_prob": true, "num_attention_heads": 32,
           "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4,
           "output_router_logits": false, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000.0,
           "router_aux_loss_coef": 0.001, "sliding_window": null, "tie_word_embeddings": false,
           "torch_dtype": "bfloat16", "transformers_version": "4.51.0", "use_cache": true,
           "use_sliding_window": false, "vocab_size": 151936})",
       30532122624}};
  for (const Published& one : published) {
    Findings findings;
    const SaidModel said = ReadModel(ordered_json::parse(one.config), {}, findings);
    EXPECT_THAT(findings.problems, IsEmpty());
    int64_t parameters = 0;
    for (const auto& [name, shape] : ExpectedTensors(said)) parameters += ElementsOf(shape);
    EXPECT_EQ(parameters, one.parameters) << one.config;
  }
}

TEST_F(Decoders, WhatCannotBeExpressedIsNamedByKeyAndValue) {
  const testing::Refusal refusals[] = {
      {"llama", "rope_parameters/rope_type", "\"dynamic\"", "only default, linear, llama3 and yarn"},
      {"llama", "rope_parameters/rope_type", "\"longrope\"", "only default"},
      {"llama", "rope_parameters/mscale", "0.7", "attention_factor"},
      {"llama", "rope_parameters/mrope_section", "[1, 1, 1]", "one position"},
      {"llama", "rope_parameters/partial_rotary_factor", "0.5", "whole heads"},
      {"llama", "rope_parameters/truncate", "false", "whole plane"},
      {"llama", "partial_rotary_factor", "0.5", "whole heads"},
      {"llama", "rope_theta", "1.0", "is another name of rope_parameters.rope_theta"},
      {"llama", "mlp_bias", "true", "no biases"},
      {"llama", "hidden_act", "\"gelu\"", "only \"silu\""},
      {"llama", "attention_dropout", "0.1", "no dropout"},
      {"llama", "hidden_dropout", "0.1", "no dropout"},
      {"llama", "q_lora_rank", "8", "no latents"},
      {"llama", "kv_lora_rank", "8", "no latents"},
      {"llama", "quantization_config", "{\"bits\": 4}", "not quantized"},
      {"llama", "sliding_window", "32", "is not known"},
      {"llama", "model_type", "\"phi3\"", "cannot be expressed, only "},
      {"llama", "model_type", "\"gemma3\"", "cannot be expressed: its embeddings are scaled"},
      {"llama", "model_type", "\"qwen3_5_moe\"", "gated-delta layers are not built yet"},
      {"llama", "model_type", "\"deepseek_v3\"", "latent vectors"},
      {"mistral", "sliding_window", "4096", "all earlier tokens"},
      {"mistral", "attention_bias", "true", "is not known"},
      {"qwen2", "attention_bias", "true", "is not known"},
      {"qwen2", "use_sliding_window", "true", "all earlier tokens"},
      {"qwen2", "use_mrope", "true", "one position"},
      {"qwen3", "use_sliding_window", "true", "all earlier tokens"},
      {"qwen3_moe", "use_sliding_window", "true", "all earlier tokens"},
      {"qwen3_moe", "num_experts_per_tok", "0", "is no integer from 1"},
      {"qwen3_moe", "n_shared_experts", "1", "is not known"},
      {"qwen3_moe", "mlp_only_layers", "3", "is no list"},
      {"qwen3", "rope_parameters/rope_type", "\"proportional\"", "only default"},
  };
  testing::ExpectRefusals(refusals);
}

// 0 and the width of a head are one model; a part of a head is none that these config.json can say.
TEST_F(Decoders, WholeHeadsThatTurnLeaveHoweverARecipeSaysIt) {
  for (const std::string& name : kToys) {
    Findings none;
    SaidModel said = ReadModel(ReadToy(name).config, {}, none);
    const auto head_dim = static_cast<int64_t>(said.language->NumberOf("attention.head_dim"));
    const auto problems = [&](int64_t features) {
      said.language->Set("rope.features", Said{features, "the recipe"});
      Plan plan;
      plan.budget.sequence_length = 16;
      Findings findings;
      ConfigOf(plan, said, DType::kFp32, findings);
      return findings.problems;
    };
    EXPECT_THAT(problems(0), IsEmpty()) << name;
    EXPECT_THAT(problems(head_dim), IsEmpty()) << name;
    Findings like;
    ReadFolder source;
    source.said = ReadModel(ReadToy(name).config, {}, like);
    CompareWithSource(said, source, like);
    EXPECT_THAT(like.problems, IsEmpty()) << name;
    EXPECT_THAT(problems(head_dim - 2),
                ElementsAre(AllOf(Field(&Finding::where, "the recipe"),
                                  Field(&Finding::message, HasSubstr("cannot be expressed: whole heads turn")))));
  }
}

// transformers lets rope_scaling replace rope_parameters, so that what only the latter says would be another number.
TEST_F(Decoders, RopeIsSaidTwiceOnlyInTheSameWay) {
  const ordered_json whole = {{"rope_type", "linear"}, {"rope_theta", 500.0}, {"factor", 8.0}};
  const auto problems = [](const ordered_json& parameters, const ordered_json& scaling) {
    Toy toy = ReadToy("llama");
    toy.config["rope_parameters"] = parameters;
    toy.config["rope_scaling"] = scaling;
    Findings findings;
    ReadModel(toy.config, {}, findings);
    return findings.problems;
  };
  ordered_json partly = whole, turned = {{"factor", 8}, {"rope_theta", 500.0}, {"rope_type", "linear"}};
  partly.erase("rope_theta");
  const auto refused = ElementsAre(AllOf(Field(&Finding::where, "rope_scaling"),
                                         Field(&Finding::message, HasSubstr("is another name of rope_parameters, and "
                                                                            "says other things: rope_theta"))));
  EXPECT_THAT(problems(whole, partly), refused);
  EXPECT_THAT(problems(partly, whole), refused);
  EXPECT_THAT(problems(whole, turned), IsEmpty()) << "keys have no order";
  turned["attention_factor"] = nullptr;
  EXPECT_THAT(problems(whole, turned), IsEmpty());
  for (const ordered_json& nothing : {ordered_json(nullptr), ordered_json::object()}) {
    EXPECT_THAT(problems(whole, nothing), IsEmpty());
    EXPECT_THAT(problems(nothing, whole), IsEmpty());
  }
}

// Dense blocks among those with experts, by their numbers or by a step.
TEST_F(Decoders, BlocksOfExpertsAreThoseThatTheConfigSays) {
  Toy toy = ReadToy("qwen3_moe");
  const auto pattern = [&] {
    Findings findings;
    const SaidModel said = ReadModel(toy.config, {}, findings);
    EXPECT_THAT(findings.problems, IsEmpty());
    Plan plan;
    plan.budget.sequence_length = 16;
    WrittenConfig written = ConfigOf(plan, said, DType::kFp32, findings);
    EXPECT_THAT(findings.problems, IsEmpty());
    EXPECT_EQ(written.config["decoder_sparse_step"], 1);
    EXPECT_EQ(written.config["num_hidden_layers"], toy.config["num_hidden_layers"]);
    EXPECT_EQ(written.read.language->letters, said.language->letters);
    return said.language->Find("pattern")->text();
  };
  EXPECT_EQ(pattern(), "*-*E*E");
  EXPECT_THAT(
      Imported(toy).findings.notes,
      ElementsAre("router_aux_loss_coef = 0.001 is not taken over: transformers adds one loss over the routers of "
                  "all layers and samples, which no layer can take by itself; see moe.aux_loss"));
  EXPECT_THAT(Imported(toy).text, HasSubstr("see aux_loss."));
  toy.config["mlp_only_layers"] = ordered_json::array();
  EXPECT_EQ(pattern(), "*E*E*E");
  toy.config["decoder_sparse_step"] = 2;
  EXPECT_EQ(pattern(), "*-*E*-");
  toy.config["mlp_only_layers"] = nullptr, toy.config["decoder_sparse_step"] = 3;
  EXPECT_EQ(pattern(), "*-*-*E");
  toy.config["router_aux_loss_coef"] = 0.0;
  Findings findings;
  ReadModel(toy.config, {}, findings);
  EXPECT_THAT(findings.notes, IsEmpty());
}

TEST_F(Decoders, ATiedModelHasOneTensor) {
  const Toy toy = Tied(ReadToy("llama"));
  WriteToy(In("tied"), toy);
  const ImportedModel imported = Imported("tied");
  EXPECT_THAT(imported.findings.problems, IsEmpty());
  EXPECT_THAT(imported.text, HasSubstr("tied: true"));
  const Plan plan = RunOf("tied");
  ExpectTheTensorsOf(toy, plan);
  EXPECT_TRUE(FitWeights(plan).fits());
  const std::map<std::string, std::string> home = Home("");
  EXPECT_FALSE(home.contains(kHead));
  EXPECT_TRUE(home.contains(kEmbedding));
  EXPECT_THAT(Imported("home").text, HasSubstr("tied: true"));
}

// Some folders of tied models store the head as well.
TEST_F(Decoders, AStoredHeadOfATiedModelIsACopy) {
  const Toy toy = Tied(ReadToy("llama"), true);
  WriteToy(In("copied"), toy);
  const ImportedModel imported = Imported("copied");
  EXPECT_THAT(imported.findings.problems, IsEmpty());
  const Plan plan = RunOf("copied");
  EXPECT_TRUE(FitWeights(plan).fits());
  const std::map<std::string, std::string> home = Home("copied");
  EXPECT_EQ(home.at(kHead), home.at(kEmbedding));
  EXPECT_NE(home.at(kHead), ZerosOf(toy.tensors.at(kHead)));
  EXPECT_THAT(Imported("homecopied").findings.problems, IsEmpty());
  Toy other = toy;
  std::string& bytes = other.tensors.at(kHead).bytes;
  bytes = ZerosOf(other.tensors.at(kHead));
  bytes[4 * 100 + 3] = 0x3f;
  EXPECT_THAT(
      Imported(other).findings.problems,
      ElementsAre(Field(&Finding::where, AllOf(HasSubstr("lm_head.weight is no copy of " + std::string(kEmbedding)),
                                               HasSubstr("element 100 is another number")))));
  WeightsFit fit = FitWeights(Extended(imported.text, "source" + std::to_string(folders_)));
  EXPECT_TRUE(fit.fits());
  // What a launch asks.
  EXPECT_THAT(WrongExtras(fit), ElementsAre(AllOf(HasSubstr("lm_head.weight is no copy of " + std::string(kEmbedding)),
                                                  HasSubstr("write `tied: false` in the model of the recipe"))));
  EXPECT_THAT(ReadAllValues(plan, fit, 1).problems, ElementsAre(HasSubstr("is no copy of")));
  WeightsFit right = FitWeights(plan);
  EXPECT_THAT(WrongExtras(right), IsEmpty());
}

// Asked for, a tied model gets a head of its own, which begins as a copy of the embedding.
TEST_F(Decoders, ATiedModelIsUntiedIfAskedFor) {
  for (const bool stores_head : {false, true}) {
    const std::string folder = stores_head ? "copied" : "tied";
    WriteToy(In(folder), Tied(ReadToy("llama"), stores_head));
    const ImportedModel imported = Imported(folder, true);
    EXPECT_THAT(imported.findings.problems, IsEmpty());
    EXPECT_THAT(imported.text, HasSubstr("tied: false             # --untie, instead of tie_word_embeddings = true"));
    const Plan plan = Extended(imported.text, folder);
    const WeightsFit fit = FitWeights(plan);
    EXPECT_EQ(fit.problems, std::vector<std::string>());
    EXPECT_EQ(fit.taken.size(), plan.modules[0].parameters.size());
    const std::vector<Parameter>& all = plan.modules[0].parameters;
    const auto head =
        std::find_if(all.begin(), all.end(), [](const Parameter& each) { return each.file_name.ends_with(kHead); });
    ASSERT_NE(head, all.end());
    EXPECT_EQ(fit.taken.at(head->name).key, stores_head ? kHead : kEmbedding);
  }
  RunOf("tied", true);
  const std::map<std::string, std::string> home = Home("");
  EXPECT_NE(home.at(kHead), home.at(kEmbedding));
  EXPECT_THAT(Imported("home").text, HasSubstr("tied: false "));
  EXPECT_THAT(Imported(ReadToy("llama"), true).findings.problems, ElementsAre(Field(&Finding::where, "--untie")));
}

// plan weights, a launch and every rank ask what fits. They take the embedding for the head of an untied model only if
// config.json says that it is one, or if there is no config.json.
TEST_F(Decoders, AHeadThatIsMissingDoesNotFit) {
  const Toy whole = ReadToy("llama");
  WriteToy(In("whole"), whole);
  const ImportedModel imported = Imported("whole");
  Toy toy = whole;
  toy.tensors.erase(kHead);
  const auto problems = [&](const std::string& folder, bool with_config) {
    WriteToy(In(folder), toy);
    if (!with_config) std::filesystem::remove(In(folder) + "/config.json");
    return FitWeights(Extended(imported.text, folder)).problems;
  };
  EXPECT_THAT(problems("said", true), ElementsAre(HasSubstr("missing: lm_head.weight [")));
  toy.config.erase("tie_word_embeddings");
  EXPECT_THAT(problems("default", true), ElementsAre(HasSubstr("missing: lm_head.weight [")));
  toy.config["text_config"] = {{"tie_word_embeddings", true}};
  EXPECT_THAT(problems("part", true), IsEmpty());
  toy.config.erase("text_config");
  toy.config["model_type"] = "of_another_program";
  EXPECT_THAT(problems("unknown", true), IsEmpty());
  toy.config["tie_word_embeddings"] = false;
  EXPECT_THAT(problems("unknown_untied", true), ElementsAre(HasSubstr("missing: lm_head.weight [")));
  EXPECT_THAT(problems("files", false), IsEmpty());
}

// Without being asked, the embedding is not taken for a head that is missing.
TEST_F(Decoders, AHeadThatIsMissingIsMissing) {
  Toy toy = ReadToy("llama");
  toy.tensors.erase(kHead);
  EXPECT_THAT(Imported(toy).findings.problems,
              ElementsAre(Field(&Finding::where, HasSubstr("tensor language_model.lm_head.weight is missing"))));
}

}  // namespace
}  // namespace planwright
