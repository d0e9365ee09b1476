// Folders of Qwen3-VL, dense and with experts: they become recipes that plan their tensors, come home as they went in,
// and what is not built of them is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/exchange/expected_tensors.h"
#include "planner/exchange/export_run.h"
#include "planner/exchange/import_folder.h"
#include "planner/exchange/read_model.h"
#include "planner/exchange/write_config.h"
#include "planner/state/checkpoint/run_lives.h"
#include "planner/state/weights/fit.h"
#include "planner/state/weights/read_values.h"
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
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ReadToy;
using testing::Toy;

const std::vector<std::string> kQwens = {"qwen3_vl", "qwen3_vl_deepstack", "qwen3_vl_moe"};

// What config.json calls the whole.
std::string TypeOf(const std::string& toy) { return toy == "qwen3_vl_deepstack" ? "qwen3_vl" : toy; }

// Releases have the matrices of experts transposed.
Toy Released(Toy toy) {
  for (auto& [name, tensor] : toy.tensors) {
    if (name.find(".mlp.experts.") != std::string::npos) std::swap(tensor.shape[1], tensor.shape[2]);
  }
  return toy;
}

class Qwen3Vl : public testing::VisionFolders {
 protected:
  Plan OfType(const std::string& type, const std::string& text, const std::string& from) {
    return Extended(text, type + "_vision", type + "_text", from);
  }
};

TEST_F(Qwen3Vl, OfTransformersPlanTheirTensors) {
  for (const std::string& name : kQwens) {
    for (const bool released : {false, true}) {
      const Toy toy = released ? Released(ReadToy(name)) : ReadToy(name);
      const ImportedModel imported = Imported(toy, absl::StrCat(name, released));
      EXPECT_THAT(imported.findings.problems, IsEmpty()) << name;
      EXPECT_THAT(imported.text, AllOf(HasSubstr("kind: qwen_vit\n"), HasSubstr("kind: decoder\n")));
      const Plan plan = OfType(TypeOf(name), imported.text, absl::StrCat(name, released));
      const WeightsFit fit = FitWeights(plan);
      EXPECT_EQ(fit.problems, std::vector<std::string>()) << name;
      int64_t elements = 0, planned = 0;
      for (const auto& [tensor, of] : toy.tensors) elements += ElementsOf(of.shape);
      for (const Module& module : plan.modules) {
        for (const Parameter& parameter : module.parameters)
          planned += ElementsOf(parameter.shape) * std::max<int64_t>(1, parameter.experts);
      }
      EXPECT_EQ(planned, elements) << name;
    }
  }
}

// What import reads, export writes: of each key what was there.
TEST_F(Qwen3Vl, WhatGoesInComesHome) {
  for (const std::string& name : kQwens) {
    for (const bool tied : {false, true}) {
      Toy toy = ReadToy(name);
      toy.config["tie_word_embeddings"] = tied;
      if (toy.config["text_config"].contains("router_aux_loss_coef"))
        toy.config["text_config"]["router_aux_loss_coef"] = 0.0;
      Findings findings;
      const SaidModel said = ReadModel(toy.config, {}, findings);
      EXPECT_THAT(findings.problems, IsEmpty()) << name;
      Plan plan;
      plan.budget.sequence_length = 16;
      const WrittenConfig written = ConfigOf(plan, said, DType::kFp32, findings);
      EXPECT_THAT(findings.problems, IsEmpty()) << name;
      EXPECT_EQ(written.dialect->name(), TypeOf(name));
      // What a run does not know, and what the whole says of its parts.
      const std::set<std::string> others = {"transformers_version", "max_position_embeddings", "video_token_id",
                                            "vision_start_token_id", "vision_end_token_id"};
      SCOPED_TRACE(name);
      testing::ExpectSameKeys(nlohmann::json(written.config), nlohmann::json(toy.config), others);
      EXPECT_EQ(written.read.language->numbers.size(), said.language->numbers.size());
      EXPECT_EQ(written.read.encoder->numbers.size(), said.encoder->numbers.size());
    }
  }
}

// A run leaves under the names of a release, and with --like in the form of the folder that it came from.
TEST_F(Qwen3Vl, ARunLeavesAsAFolder) {
  for (const std::string& name : kQwens) {
    SCOPED_TRACE(name);
    const Toy toy = ReadToy(name);
    const ImportedModel imported = Imported(toy, name);
    const Plan plan = OfType(TypeOf(name), imported.text, name);
    const std::string run = In("run_" + name);
    EXPECT_EQ(*TakeLife(run), 1);
    EXPECT_TRUE(WriteLifeStart(run, 1, testing::StartOf(plan)).ok());
    testing::WriteCheckpointOf(plan, run, 2, 1);
    for (const bool like : {false, true}) {
      const std::string home = absl::StrCat("home_", name, like);
      ExportRequest request{.from = run, .to = In(home), .shard_bytes = int64_t{5'000'000'000}};
      if (like) request.like = In(name);
      const absl::StatusOr<ExportedRun> exported = ExportRun(request, {});
      ASSERT_TRUE(exported.ok()) << exported.status();
      EXPECT_THAT(exported->findings.problems, IsEmpty());
      const absl::StatusOr<std::unique_ptr<WeightFiles>> files = WeightFiles::Open(In(home));
      ASSERT_TRUE(files.ok()) << files.status();
      std::map<std::string, std::vector<int64_t>> found, wanted;
      for (const auto& [tensor, of] : (*files)->all()) found[tensor] = of.shape;
      for (const auto& [tensor, of] : (like ? toy : Released(toy)).tensors) wanted[tensor] = of.shape;
      EXPECT_EQ(found, wanted) << like;
      EXPECT_THAT(Imported(home).findings.problems, IsEmpty());
    }
  }
}

// As Qwen3-VL-2B-Instruct and Qwen3-VL-30B-A3B-Instruct have them, with releases of transformers that call the vision
// model what the whole is. Nothing of them is refused.
TEST_F(Qwen3Vl, DeepStackOfReleasesIsLettersOfBothPatterns) {
  constexpr const char* kReleases[] = {
      R"({"architectures": ["Qwen3VLForConditionalGeneration"], "image_token_id": 151655, "model_type": "qwen3_vl",
          "text_config": {"attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 151643,
            "dtype": "bfloat16", "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048,
            "initializer_range": 0.02, "intermediate_size": 6144, "max_position_embeddings": 262144,
            "model_type": "qwen3_vl_text", "num_attention_heads": 16, "num_hidden_layers": 28,
            "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": {"mrope_interleaved": true,
            "mrope_section": [24, 20, 20], "rope_type": "default"}, "rope_theta": 5000000,
            "tie_word_embeddings": true, "use_cache": true, "vocab_size": 151936},
          "tie_word_embeddings": true, "transformers_version": "4.57.0.dev0", "video_token_id": 151656,
          "vision_config": {"deepstack_visual_indexes": [5, 11, 17], "depth": 24, "hidden_act": "gelu_pytorch_tanh",
            "hidden_size": 1024, "in_channels": 3, "initializer_range": 0.02, "intermediate_size": 4096,
            "model_type": "qwen3_vl", "num_heads": 16, "num_position_embeddings": 2304, "out_hidden_size": 2048,
            "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2},
          "vision_end_token_id": 151653, "vision_start_token_id": 151652})",
      R"({"architectures": ["Qwen3VLMoeForConditionalGeneration"], "image_token_id": 151655,
          "model_type": "qwen3_vl_moe",
          "text_config": {"attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 151643,
            "decoder_sparse_step": 1, "dtype": "bfloat16", "eos_token_id": 151645, "head_dim": 128,
            "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 6144,
            "max_position_embeddings": 262144, "mlp_only_layers": [], "model_type": "qwen3_vl_moe_text",
            "moe_intermediate_size": 768, "norm_topk_prob": true, "num_attention_heads": 32, "num_experts": 128,
            "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4, "rms_norm_eps": 1e-06,
            "rope_scaling": {"mrope_interleaved": true, "mrope_section": [24, 20, 20], "rope_type": "default"},
            "rope_theta": 5000000, "use_cache": true, "vocab_size": 151936},
          "tie_word_embeddings": false, "transformers_version": "4.57.0.dev0", "video_token_id": 151656,
          "vision_config": {"deepstack_visual_indexes": [8, 16, 24], "depth": 27, "hidden_act": "gelu_pytorch_tanh",
            "hidden_size": 1152, "in_channels": 3, "initializer_range": 0.02, "intermediate_size": 4304,
            "model_type": "qwen3_vl_moe", "num_heads": 16, "num_position_embeddings": 2304, "out_hidden_size": 2048,
            "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2},
          "vision_end_token_id": 151653, "vision_start_token_id": 151652})"};
  for (const char* release : kReleases) {
    Findings findings;
    const ordered_json config = ordered_json::parse(release);
    const SaidModel model = ReadModel(config, {}, findings);
    EXPECT_THAT(findings.problems, IsEmpty());
    ASSERT_TRUE(model.encoder && model.language);
    // Behind the blocks of these numbers, and behind as many first ones.
    int64_t block = -1;
    std::vector<int64_t> behind;
    for (const char letter : model.encoder->letters) letter == 'V' ? void(++block) : behind.push_back(block);
    EXPECT_EQ(behind, config["vision_config"]["deepstack_visual_indexes"].get<std::vector<int64_t>>());
    EXPECT_EQ(block + 1, config["vision_config"]["depth"].get<int64_t>());
    const bool moe = config["model_type"] == "qwen3_vl_moe";
    EXPECT_EQ(model.language->letters.substr(0, 12), moe ? "*ED*ED*ED*E*" : "*-D*-D*-D*-*");
    EXPECT_THAT(findings.notes,
                Contains(HasSubstr("video_token_id = 151656 is not taken over: videos are not trained")));
  }
  // Where the key is not there, transformers takes layers 8, 16 and 24.
  Toy silent = ReadToy("qwen3_vl");
  silent.config["vision_config"].erase("deepstack_visual_indexes");
  EXPECT_THAT(Imported(silent).findings.problems,
              ElementsAre(AllOf(Field(&Finding::where, "vision_config.deepstack_visual_indexes"),
                                Field(&Finding::value, "[8,16,24]"),
                                Field(&Finding::message, HasSubstr("cannot be expressed: there are ")))));
  // The number of a merger is the place of its block in the list.
  Toy descending = ReadToy("qwen3_vl");
  descending.config["vision_config"]["deepstack_visual_indexes"] = {1, 0};
  EXPECT_THAT(Imported(descending).findings.problems,
              ElementsAre(Field(&Finding::message, "cannot be expressed, only numbers that ascend")));
}

// Features of inner layers come from an encoder, and no folder of a language model says where they go.
TEST_F(Qwen3Vl, ALanguageModelWithFeaturesOfInnerLayersIsNotExportedAlone) {
  const std::string name = "qwen3_vl_deepstack";
  const Plan plan = OfType(TypeOf(name), Imported(ReadToy(name)).text, "source");
  EXPECT_EQ(*TakeLife(In("run")), 1);
  EXPECT_TRUE(WriteLifeStart(In("run"), 1, testing::StartOf(plan)).ok());
  testing::WriteCheckpointOf(plan, In("run"), 2, 1);
  ExportRequest request{.from = In("run"), .to = In("home"), .shard_bytes = int64_t{5'000'000'000}};
  request.module = "language";
  const absl::StatusOr<ExportedRun> exported = ExportRun(request, {});
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_THAT(exported->findings.problems,
              Contains(AllOf(Field(&Finding::where, "module language pattern"),
                             Field(&Finding::message, HasSubstr("cannot be exported alone, export the whole model")))));
}

// A recipe that was written by hand begins with none of them either.
TEST_F(Qwen3Vl, TensorsOfDeepStackAreLeftOver) {
  Toy toy = ReadToy("qwen3_vl");
  const std::string text = Imported(toy).text;
  toy.tensors["model.visual.deepstack_merger_list.0.norm.weight"] = {DType::kFp32, {128}, ""};
  WriteToy(In("taps"), toy);
  EXPECT_THAT(FitWeights(OfType("qwen3_vl", text, "taps")).problems,
              Contains(AllOf(HasSubstr("left over"), HasSubstr("model.visual.deepstack_merger_list.0.norm.weight"))));
}

// Names of other versions: one line for each beginning, and what has no other beginning is named as before.
TEST_F(Qwen3Vl, OtherBeginningsOfNamesAreOneLineEach) {
  Toy toy = ReadToy("qwen3_vl"), old = toy;
  old.tensors.clear();
  size_t eyes = 0, tongues = 0;
  for (const auto& [name, tensor] : toy.tensors) {
    const std::string eye = "model.visual.", tongue = "model.language_model.";
    eyes += name.starts_with(eye), tongues += name.starts_with(tongue);
    old.tensors[name.starts_with(eye)      ? "visual." + name.substr(eye.size())
                : name.starts_with(tongue) ? "model." + name.substr(tongue.size())
                                           : name] = tensor;
  }
  old.tensors["visual.extra.weight"] = {DType::kFp32, {3}, ""};
  const auto line = [](const std::string& first, size_t all, const std::string& begin) {
    return Field(&Finding::where,
                 AllOf(::testing::StartsWith(first),
                       HasSubstr(absl::StrCat(" and ", all - 1, " more tensors begin with ", begin, ": rename them"))));
  };
  ASSERT_TRUE(eyes > tongues && tongues > 4) << "the largest part comes first";
  EXPECT_THAT(
      Imported(old).findings.problems,
      ElementsAre(line("visual.", eyes, "visual., and those of qwen3_vl with model.visual."),
                  line("model.", tongues, "model., and those of qwen3_vl with model.language_model."),
                  Field(&Finding::where, "tensor visual.extra.weight [3] is of no part that can be expressed")));
  // With more in front of all.
  Toy more = toy;
  more.tensors.clear();
  for (const auto& [name, tensor] : toy.tensors) more.tensors["x." + name] = tensor;
  EXPECT_THAT(
      Imported(more, "more").findings.problems,
      ElementsAre(Field(&Finding::where,
                        HasSubstr(" more tensors begin with x., and those of qwen3_vl have nothing in its place: "
                                  "rename them"))));
  // Without what stands in front of all.
  Toy bare = toy;
  bare.tensors.clear();
  for (const auto& [name, tensor] : toy.tensors)
    bare.tensors[name.starts_with("model.") ? name.substr(6) : name] = tensor;
  EXPECT_THAT(
      Imported(bare, "bare").findings.problems,
      ElementsAre(Field(&Finding::where, HasSubstr(" more tensors lack model. in front, which those of qwen3_vl have: "
                                                   "rename them"))));
}

TEST_F(Qwen3Vl, WhatCannotBeExpressedIsNamedByKeyAndValue) {
  const testing::Refusal refusals[] = {
      {"qwen3_vl", "text_config/rope_parameters/rope_type", "\"yarn\"", "only \"default\""},
      {"qwen3_vl", "text_config/rope_parameters/mrope_interleaved", "false", "three axes alternate"},
      {"qwen3_vl", "text_config/rope_parameters/mrope_section/1", "0", "is no integer from 1"},
      {"qwen3_vl", "text_config/rope_parameters/mrope_section/2", "0", "is no integer from 1"},
      {"qwen3_vl", "text_config/quantization_config", "{\"bits\": 4}", "not quantized"},
      {"qwen3_vl", "quantization_config", "{\"bits\": 4}", "not quantized"},
      {"qwen3_vl", "vision_config/rope_parameters/rope_type", "\"default\"", "only \"axial\""},
      {"qwen3_vl", "vision_config/in_channels", "1", "three colours"},
      {"qwen3_vl", "vision_config/num_position_embeddings", "26", "is no square"},
      {"qwen3_vl", "vision_config/out_hidden_size", "40", "is not text_config.hidden_size, which is 36"},
      {"qwen3_vl", "vision_config/window_size", "112", "is not known"},
      {"qwen3_vl", "vision_config/deepstack_visual_indexes", "null", "is no list"},
      {"qwen3_vl", "vision_config/model_type", "\"qwen2_5_vl\"", "no table of positions"},
      {"qwen3_vl_moe", "text_config/norm_topk_prob", "false", "divided by their sum"},
      {"qwen3_vl_moe", "text_config/sliding_window", "128", "all earlier tokens"},
      {"qwen3_vl_moe", "text_config/moe_intermediate_size", "14", "hidden_size of 28: matrices of experts are square"},
      {"qwen3_vl_moe", "text_config/moe_intermediate_size", "28", "hidden_size of 28: matrices of experts are square"},
  };
  testing::ExpectRefusals(refusals);
}

// Without the list transformers takes its own; a list of two numbers it cannot read.
TEST_F(Qwen3Vl, WhatIsMissingOfTheSectionIsNamed) {
  Toy toy = ReadToy("qwen3_vl");
  toy.config["text_config"]["head_dim"] = 128;
  ordered_json& rope = toy.config["text_config"]["rope_parameters"];
  rope["mrope_section"] = {4, 2};
  Findings of_two;
  ReadModel(toy.config, {}, of_two);
  EXPECT_THAT(of_two.problems,
              ElementsAre(Field(&Finding::message, HasSubstr("the third number of mrope_section is missing"))));
  rope.erase("mrope_section");
  Findings of_none;
  const SaidModel model = ReadModel(toy.config, {}, of_none);
  EXPECT_THAT(of_none.problems, IsEmpty());
  EXPECT_EQ(model.language->Find("rope.height")->number(), 20);
  EXPECT_EQ(model.language->Find("rope.width")->number(), 20);
  Toy small = ReadToy("qwen3_vl");
  small.config["text_config"]["rope_parameters"].erase("mrope_section");
  EXPECT_THAT(Imported(small).findings.problems,
              Contains(AllOf(Field(&Finding::where, "default without rope_parameters.mrope_section"),
                             Field(&Finding::message, HasSubstr("is of no recipe")))));
}

// A head that a tied folder stores beside the embedding must be a copy of it, and leaves as one.
TEST_F(Qwen3Vl, AStoredHeadOfATiedModelIsACopy) {
  constexpr char kHead[] = "lm_head.weight", kEmbedding[] = "model.language_model.embed_tokens.weight";
  for (const std::string& name : kQwens) {
    SCOPED_TRACE(name);
    Toy toy = ReadToy(name);
    toy.config["tie_word_embeddings"] = true;
    toy.tensors[kHead] = toy.tensors.at(kEmbedding);
    const ImportedModel imported = Imported(toy, name);
    EXPECT_THAT(imported.findings.problems, IsEmpty());
    const Plan plan = OfType(TypeOf(name), imported.text, name);
    WeightsFit fit = FitWeights(plan);
    EXPECT_EQ(fit.problems, std::vector<std::string>());
    EXPECT_THAT(WrongExtras(fit), IsEmpty());
    const std::string run = In("run_" + name), home = In("home_" + name);
    EXPECT_EQ(*TakeLife(run), 1);
    EXPECT_TRUE(WriteLifeStart(run, 1, testing::StartOf(plan)).ok());
    testing::WriteCheckpointOf(plan, run, 2, 1);
    const ExportRequest like{.from = run, .to = home, .like = In(name), .shard_bytes = int64_t{5'000'000'000}};
    ASSERT_TRUE(ExportRun(like, {}).ok());
    EXPECT_TRUE((*WeightFiles::Open(home))->all().contains(kHead));
    EXPECT_THAT(Imported("home_" + name).findings.problems, IsEmpty());
    testing::ToyTensor& head = toy.tensors.at(kHead);
    head.bytes.assign(static_cast<size_t>(4 * ElementsOf(head.shape)), '\0');
    head.bytes[4 * 100 + 3] = 0x3f;
    const std::string wrong = absl::StrCat("lm_head.weight is no copy of ", kEmbedding, ": element 100");
    EXPECT_THAT(Imported(toy, name + "_other").findings.problems,
                ElementsAre(Field(&Finding::where, HasSubstr(wrong))));
    WeightsFit other = FitWeights(OfType(TypeOf(name), imported.text, name + "_other"));
    EXPECT_THAT(WrongExtras(other), ElementsAre(HasSubstr(wrong)));
  }
}

}  // namespace
}  // namespace planwright
