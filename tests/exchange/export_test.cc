// `plan export`: what leaves is bit for bit what the checkpoint's masters say, a folder appears as a whole or not at
// all, and with a source nothing but the trained weights changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <set>

#include "planner/exchange/export_run.h"
#include "planner/exchange/import_folder.h"
#include "planner/state/checkpoint/run_lives.h"
#include "tests/exchange/toy_folder.h"
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
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// The tiny recipe with its encoder on rank 0 and its language model on ranks 1 to 4, so that tensors lie in many parts.
Plan TinyPlan(std::vector<std::string> more = {"precision.params=bf16"}) {
  std::vector<std::string> overrides = {"modules.language.placement.first_rank=1", "modules.language.placement.ranks=4",
                                        "modules.language.parallel.tp=2", "modules.language.parallel.ep=2"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"), overrides);
}
const Plan& Bf16Plan() {
  static const Plan plan = TinyPlan();
  return plan;
}
// As published encoders are: with the exact GELU, and without a final norm.
const Plan& PublishedPlan() {
  static const Plan plan = TinyPlan(
      {"precision.params=bf16", "models.radio_vit_tiny.activation=gelu", "models.radio_vit_tiny.final_norm=none"});
  return plan;
}

std::string FloatBytes(const std::vector<float>& numbers) {
  return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
}

// All bytes of a tensor of a checkpoint that tests wrote.
std::string StoredBytes(const std::string& key, int64_t elements, int64_t width) {
  std::string bytes(static_cast<size_t>(elements * width), '\0');
  for (int64_t i = 0; i < elements; ++i)
    testing::FillElement(key, i, width, reinterpret_cast<std::byte*>(bytes.data()) + i * width);
  return bytes;
}

// fp32 numbers as bf16, by a search for the nearest.
std::string AsBf16(const std::string& floats) {
  std::string bytes;
  for (size_t at = 0; at < floats.size(); at += 4) {
    float number = 0;
    std::memcpy(&number, floats.data() + at, 4);
    auto near = static_cast<uint16_t>(std::bit_cast<uint32_t>(number) >> 16);
    const auto value = [](uint16_t bits) { return double{std::bit_cast<float>(static_cast<uint32_t>(bits) << 16)}; };
    const auto next = static_cast<uint16_t>(near + 1);
    const double down = std::fabs(number - value(near)), up = std::fabs(value(next) - number);
    if (up < down || (up == down && near % 2 == 1)) near = next;
    bytes.append(reinterpret_cast<const char*>(&near), 2);
  }
  return bytes;
}

// Every tensor of the folder, by name: type and bytes.
struct Stored {
  std::string type, bytes;
  std::vector<int64_t> shape;
};
std::map<std::string, Stored> AllTensors(const WeightFiles& files) {
  std::map<std::string, Stored> all;
  for (const auto& [name, tensor] : files.all()) {
    std::string bytes(static_cast<size_t>(tensor.bytes), '\0');
    EXPECT_TRUE(files.ReadBytes(tensor, 0, std::as_writable_bytes(std::span(bytes))).ok()) << name;
    all[name] = {tensor.type, std::move(bytes), tensor.shape};
  }
  return all;
}

class Export : public testing::FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    run_ = In("run");
  }
  void MakeRun(const Plan& plan) {
    EXPECT_EQ(*TakeLife(run_), 1);
    EXPECT_TRUE(WriteLifeStart(run_, 1, testing::StartOf(plan)).ok());
    testing::WriteCheckpointOf(plan, run_, 2, 1);
    checkpoint_ = testing::WriteCheckpointOf(plan, run_, 4, 1);
  }
  ExportRequest Request() const { return {.from = run_, .to = In("out"), .shard_bytes = int64_t{5'000'000'000}}; }
  ExportedRun Exported(const ExportRequest& request) {
    absl::StatusOr<ExportedRun> exported = ExportRun(request, {});
    EXPECT_TRUE(exported.ok()) << exported.status();
    return exported.ok() ? *std::move(exported) : ExportedRun{};
  }
  static std::map<std::string, Stored> Read(const std::string& folder) {
    const absl::StatusOr<std::unique_ptr<WeightFiles>> files = WeightFiles::Open(folder);
    EXPECT_TRUE(files.ok()) << files.status();
    if (!files.ok()) return {};
    EXPECT_THAT((*files)->warnings(), IsEmpty());
    for (const WeightFiles::File& file : (*files)->files()) EXPECT_EQ(file.metadata.at("format"), "pt") << file.path;
    return AllTensors(**files);
  }
  ordered_json Config(const std::string& folder) const {
    std::ifstream file(folder + "/config.json");
    return ordered_json::parse(file);
  }
  // Names beside the run, so that a test sees what an export has left.
  std::vector<std::string> Left() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) names.push_back(entry.path().filename());
    return names;
  }

  std::string run_, checkpoint_;
};

// The name that a parameter has in a folder of a whole model.
std::string PublishedName(std::string name) {
  const std::string norm = "vision_model.final_norm.";
  return name.starts_with(norm) ? "vision_final_layernorm." + name.substr(norm.size()) : name;
}

struct Expected {
  std::string name, key;
  int64_t elements = 0;
  bool buffer = false;
};
std::vector<Expected> ParametersOf(const Plan& plan, bool masters) {
  std::vector<Expected> expected;
  for (const Module& module : plan.modules) {
    for (const Parameter& parameter : module.parameters) {
      for (int64_t expert = 0; expert < std::max<int64_t>(parameter.experts, 1); ++expert) {
        const int64_t number = parameter.experts > 0 ? expert : -1;
        expected.push_back({PublishedName(ExpertName(parameter.file_name, number)),
                            ExpertName(parameter.name, number) + (masters && parameter.trained ? ".master" : ""),
                            ElementsOf(parameter.shape), parameter.buffer});
      }
    }
  }
  return expected;
}

TEST_F(Export, EveryTensorIsTheMasterBitForBit) {
  MakeRun(Bf16Plan());
  ExportRequest request = Request();
  request.dtype = DType::kFp32;
  const ExportedRun exported = Exported(request);
  EXPECT_EQ(exported.step, 4);
  EXPECT_EQ(exported.checkpoint, checkpoint_);
  const auto stored = Read(In("out"));
  const std::vector<Expected> all = ParametersOf(Bf16Plan(), true);
  EXPECT_GT(all.size(), 80U);
  for (const Expected& expected : all) {
    ASSERT_TRUE(stored.contains(expected.name)) << expected.name;
    EXPECT_EQ(stored.at(expected.name).type, "F32");
    EXPECT_TRUE(stored.at(expected.name).bytes == StoredBytes(expected.key, expected.elements, 4)) << expected.name;
  }
  EXPECT_EQ(stored.size(), all.size() + 4 + 2) << "scales of two blocks, video embedder, summary";
}

TEST_F(Export, WithoutATypeTheRunsPrecisionLeaves) {
  MakeRun(Bf16Plan());
  const ExportedRun exported = Exported(Request());
  EXPECT_EQ(exported.dtype, DType::kBf16);
  const auto stored = Read(In("out"));
  for (const Expected& expected : ParametersOf(Bf16Plan(), true)) {
    const Stored& tensor = stored.at(expected.name);
    const std::string masters = StoredBytes(expected.key, expected.elements, 4);
    EXPECT_EQ(tensor.type, expected.buffer ? "F32" : "BF16") << expected.name;
    EXPECT_TRUE(tensor.bytes == (expected.buffer ? masters : AsBf16(masters))) << expected.name;
  }
  EXPECT_EQ(Config(In("out"))["dtype"], "bfloat16");
}

TEST_F(Export, AFrozenEncoderLeavesAsItIsAndFp64StaysFp64) {
  const Plan frozen = TinyPlan({"precision.params=fp64", "modules.radio_encoder.train.backbone=frozen"});
  MakeRun(frozen);
  Exported(Request());
  const auto stored = Read(In("out"));
  for (const Expected& expected : ParametersOf(frozen, false)) {
    EXPECT_EQ(stored.at(expected.name).type, "F64") << expected.name;
    EXPECT_TRUE(stored.at(expected.name).bytes == StoredBytes(expected.key, expected.elements, 8)) << expected.name;
  }
}

TEST_F(Export, ShardsAreOfTheSizeThatIsAskedFor) {
  MakeRun(Bf16Plan());
  ExportRequest request = Request();
  request.shard_bytes = 30'000;
  const ExportedRun exported = Exported(request);
  ASSERT_GT(exported.written.shards.size(), 5U);
  const auto many = Read(In("out"));
  int64_t bytes = 0, largest = 0;
  for (const auto& [name, tensor] : many) {
    bytes += static_cast<int64_t>(tensor.bytes.size());
    largest = std::max(largest, static_cast<int64_t>(tensor.bytes.size()));
  }
  ASSERT_LT(largest, 40'000);
  for (const std::string& shard : exported.written.shards)
    EXPECT_LT(std::filesystem::file_size(In("out/" + shard)), 40'000 + 10'000) << shard;
  std::ifstream file(In("out/model.safetensors.index.json"));
  const ordered_json index = ordered_json::parse(file);
  EXPECT_EQ(index["metadata"]["total_size"], bytes);
  EXPECT_EQ(index["metadata"]["total_parameters"], exported.written.parameters);
  EXPECT_EQ(index["weight_map"].size(), many.size());
  EXPECT_EQ(exported.written.shards.front(),
            "model-00001-of-000" + std::to_string(exported.written.shards.size()) + ".safetensors");
  request.to = In("one"), request.shard_bytes = int64_t{1} << 40;
  EXPECT_THAT(Exported(request).written.shards, ElementsAre("model-00001-of-00001.safetensors"));
  for (const auto& [name, tensor] : Read(In("one"))) EXPECT_TRUE(many.at(name).bytes == tensor.bytes) << name;
}

// The rule by which a run weighed the experts of a token is what leaves, also where its plan lacks it.
TEST_F(Export, WritesTheRuleForTheWeightsOfExperts) {
  const std::string moe = "models.hybrid_moe_tiny.moe.";
  const std::vector<std::pair<std::vector<std::string>, bool>> cases = {
      {{}, true},
      {{moe + "normalized=false"}, false},
      {{moe + "top_k=1", moe + "normalized=true"}, true},
      {{moe + "top_k=1", moe + "normalized=false"}, false},
      {{moe + "top_k=8", moe + "normalized=false"}, false}};
  for (size_t i = 0; i < cases.size(); ++i) {
    run_ = In("run" + std::to_string(i));
    MakeRun(TinyPlan(cases[i].first));
    ExportRequest request = Request();
    request.to = In("out" + std::to_string(i));
    Exported(request);
    EXPECT_EQ(Config(request.to)["text_config"]["norm_topk_prob"], cases[i].second) << i;
  }
}

TEST_F(Export, WhatWasExportedIsImportedAsTheSameModel) {
  MakeRun(Bf16Plan());
  Exported(Request());
  const absl::StatusOr<ImportedModel> imported = ImportFolder(In("out"), {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(imported->findings.problems, IsEmpty());
  EXPECT_THAT(imported->text, AllOf(HasSubstr("pattern: \"ME*E\""), HasSubstr("activation: gelu_tanh"),
                                    HasSubstr("final_norm: layernorm"), HasSubstr("class_tokens: 2"),
                                    HasSubstr("data: {image_token: 255}")));
}

// A language model alone, as transformers names it.
TEST_F(Export, AModuleAloneHasNoPrefix) {
  MakeRun(Bf16Plan());
  ExportRequest request = Request();
  request.module = "language";
  const ExportedRun exported = Exported(request);
  EXPECT_EQ(exported.model_type, "nemotron_h");
  const auto stored = Read(In("out"));
  EXPECT_TRUE(stored.contains("backbone.layers.0.mixer.A_log"));
  EXPECT_TRUE(stored.contains("lm_head.weight"));
  for (const auto& [name, tensor] : stored)
    EXPECT_FALSE(name.starts_with("language_model.") || name.starts_with("vision")) << name;
  request.module = "tongue", request.to = In("other");
  EXPECT_THAT(Exported(request).findings.problems,
              ElementsAre(AllOf(Field(&Finding::value, "tongue"),
                                Field(&Finding::message, HasSubstr("radio_encoder, language")))));
}

TEST_F(Export, AnEncoderAloneLeavesWithoutItsProjector) {
  MakeRun(PublishedPlan());
  ExportRequest request = Request();
  request.module = "radio_encoder", request.dtype = DType::kFp32;
  const ExportedRun exported = Exported(request);
  EXPECT_EQ(exported.model_type, "radio");
  EXPECT_THAT(exported.findings.notes, ElementsAre(HasSubstr("left behind: 3 tensors of the projector")));
  const auto stored = Read(In("out"));
  size_t ours = 0;
  for (const Expected& expected : ParametersOf(PublishedPlan(), true)) {
    if (!expected.name.starts_with("vision_model.")) continue;
    const std::string name = expected.name.substr(std::string("vision_model.").size());
    ASSERT_TRUE(stored.contains(name)) << name;
    EXPECT_TRUE(stored.at(name).bytes == StoredBytes(expected.key, expected.elements, 4)) << name;
    ++ours;
  }
  EXPECT_EQ(stored.size(), ours + 4 + 3) << "scales of two blocks, summary, mean and deviation";
  EXPECT_EQ(stored.at("radio_model.model.blocks.1.layer_scale2.lambda1").bytes,
            FloatBytes(std::vector<float>(32, 1.0F)));
  EXPECT_EQ(stored.at("radio_model.input_conditioner.norm_std").bytes,
            FloatBytes({0.26862954F, 0.26130258F, 0.27577711F}));
  EXPECT_EQ(Config(In("out"))["hidden_act"], "gelu");
}

TEST_F(Export, DenseLayersLeaveToo) {
  const Plan plan = TinyPlan(
      {"precision.params=fp32", "models.hybrid_moe_tiny.pattern=\"M-*E\"", "models.hybrid_moe_tiny.mlp.ffn=96"});
  MakeRun(plan);
  Exported(Request());
  const auto stored = Read(In("out"));
  EXPECT_EQ(stored.at("language_model.backbone.layers.1.mixer.up_proj.weight").shape, (std::vector<int64_t>{96, 64}));
  EXPECT_EQ(Config(In("out"))["text_config"]["intermediate_size"], 96);
  const absl::StatusOr<ImportedModel> imported = ImportFolder(In("out"), {});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(imported->findings.problems, IsEmpty());
  EXPECT_THAT(imported->text, AllOf(HasSubstr("pattern: \"M-*E\""), ::testing::ContainsRegex("mlp:\n      ffn: 96 ")));
}

TEST_F(Export, WhatTransformersCannotSayIsOneList) {
  const Plan plan = TinyPlan({"models.radio_vit_tiny.projector.norm_eps=1.0e-6",
                              "models.radio_vit_tiny.pixel_shuffle=1", "batch.sequence_length=128"});
  MakeRun(plan);
  const ExportedRun exported = Exported(Request());
  EXPECT_THAT(exported.findings.problems, UnorderedElementsAre(Field(&Finding::where, HasSubstr("projector.norm_eps")),
                                                               Field(&Finding::where, HasSubstr("pixel_shuffle"))));
  ExportRequest request = Request();
  request.module = "radio_encoder";
  EXPECT_THAT(Exported(request).findings.problems, ElementsAre(Field(&Finding::where, HasSubstr("final_norm"))));
  EXPECT_THAT(Left(), ElementsAre("run"));
}

TEST_F(Export, AFolderThatHoldsSomethingIsNotTouched) {
  MakeRun(Bf16Plan());
  std::filesystem::create_directories(In("out"));
  std::ofstream(In("out/mine")) << "1";
  EXPECT_THAT(std::string(ExportRun(Request(), {}).status().message()), HasSubstr("is not empty"));
  EXPECT_THAT(Left(), UnorderedElementsAre("run", "out"));
  std::filesystem::remove(In("out/mine"));
  EXPECT_TRUE(ExportRun(Request(), {}).ok()) << "an empty folder is taken";
  ExportRequest nowhere = Request();
  nowhere.to = In("no/such/folder");
  EXPECT_THAT(std::string(ExportRun(nowhere, {}).status().message()), HasSubstr("no/such"));
}

TEST_F(Export, ADamagedCheckpointLeavesNothing) {
  MakeRun(Bf16Plan());
  const std::string shard = checkpoint_ + "/rank-00002.safetensors";
  std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
  const auto at = static_cast<std::streamoff>(std::filesystem::file_size(shard) - 5);
  file.seekg(at);
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(at).put(byte).flush();
  // The last tensor of the shard may be a moment, which does not leave; so all of its bytes are changed in turn.
  int refused = 0;
  const absl::StatusOr<SafetensorsFile> header = SafetensorsFile::Open(shard);
  ASSERT_TRUE(header.ok());
  for (const auto& [key, tensor] : header->tensors()) {
    if (!key.ends_with(".master")) continue;
    file.seekg(tensor.offset);
    const char before = static_cast<char>(file.get());
    file.seekp(tensor.offset).put(static_cast<char>(before ^ 1)).flush();
    const absl::StatusOr<ExportedRun> exported = ExportRun(Request(), {});
    EXPECT_TRUE(absl::IsDataLoss(exported.status())) << exported.status();
    EXPECT_THAT(std::string(exported.status().message()), AllOf(HasSubstr("rank-00002"), HasSubstr(key)));
    EXPECT_THAT(Left(), ElementsAre("run"));
    file.seekp(tensor.offset).put(before).flush();
    if (++refused == 3) break;
  }
  EXPECT_EQ(refused, 3);
}

// ---- With a source.

// A folder like the run's export, with what a published model has beside: audio, multi-token prediction, a tokenizer.
class ExportLike : public Export {
 protected:
  void SetUp() override {
    Export::SetUp();
    MakeSource(Bf16Plan());
  }
  void MakeSource(const Plan& plan) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    MakeRun(plan);
    ExportRequest request = Request();
    request.to = In("first");
    Exported(request);
    source_ = Read(In("first"));
    const std::string ones = FloatBytes(std::vector<float>(6, 1.5F));
    for (const std::string name :
         {"sound_encoder.encoder.layers.0.norm.weight", "sound_projection.linear1.weight", "mtp.layers.0.norm.weight"})
      source_[name] = {"F32", ones, {2, 3}};
    for (auto& [name, tensor] : source_) {
      // Other numbers than the run's; a scale stays 1.
      const bool scale = name.ends_with(".lambda1");
      if (tensor.type == "BF16" && !scale) std::fill(tensor.bytes.begin(), tensor.bytes.end(), '\x11');
    }
    std::filesystem::create_directories(In("source/additional_chat_templates"));
    WriteSource();
    config_ = Config(In("first"));
    WriteConfig();
    for (const char* name :
         {"generation_config.json", "tokenizer.json", "chat_template.jinja", "modeling.py", "processor_config.json",
          "additional_chat_templates/tools.jinja", "README.md", "pytorch_model.bin"})
      std::ofstream(In(std::string("source/") + name)) << "of " << name;
    request_ = Request();
    request_.like = In("source");
  }
  // The source's tensors as they are in source_.
  void WriteSource() {
    std::vector<TensorBytes> tensors;
    for (const auto& [name, tensor] : source_) {
      const DType dtype = tensor.type == "BF16" ? DType::kBf16 : tensor.type == "I64" ? DType::kInt64 : DType::kFp32;
      tensors.push_back({name, dtype, tensor.shape, tensor.bytes});
    }
    EXPECT_TRUE(WriteSafetensors(In("source/model.safetensors"), tensors).ok());
  }
  void WriteConfig() { std::ofstream(In("source/config.json")) << config_.dump(3); }
  static std::string Slurp(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  std::map<std::string, Stored> source_;
  ordered_json config_;
  ExportRequest request_;
};

TEST_F(ExportLike, OnlyTrainedWeightsChange) {
  const ExportedRun exported = Exported(request_);
  ASSERT_THAT(exported.findings.problems, IsEmpty());
  const auto stored = Read(In("out"));
  ASSERT_EQ(stored.size(), source_.size());
  size_t ours = 0;
  for (const Expected& expected : ParametersOf(Bf16Plan(), true)) {
    const std::string masters = StoredBytes(expected.key, expected.elements, 4);
    EXPECT_TRUE(stored.at(expected.name).bytes == (expected.buffer ? masters : AsBf16(masters))) << expected.name;
    source_.erase(expected.name);
    ++ours;
  }
  EXPECT_EQ(source_.size() + ours, stored.size());
  for (const auto& [name, tensor] : source_) {
    EXPECT_TRUE(stored.at(name).bytes == tensor.bytes) << name;
    EXPECT_EQ(stored.at(name).type, tensor.type) << name;
  }
  EXPECT_EQ(Slurp(In("out/config.json")), Slurp(In("source/config.json")));
  for (const char* name : {"generation_config.json", "tokenizer.json", "chat_template.jinja", "modeling.py",
                           "processor_config.json", "additional_chat_templates/tools.jinja"})
    EXPECT_EQ(Slurp(In(std::string("out/") + name)), std::string("of ") + name);
  EXPECT_FALSE(std::filesystem::exists(In("out/README.md")));
  EXPECT_FALSE(std::filesystem::exists(In("out/pytorch_model.bin")));
  EXPECT_THAT(exported.findings.notes, Contains(AllOf(HasSubstr("left behind"), HasSubstr("README.md"))));
  EXPECT_THAT(exported.made_up, IsEmpty());
}

// transformers loads weights as config.json says: fp32 would be rounded to what SOURCE has.
TEST_F(ExportLike, ConfigSaysTheTypesThatAreWritten) {
  config_["dtype"] = "bfloat16", config_["torch_dtype"] = "torch.bfloat16";
  config_["text_config"]["dtype"] = "bfloat16";
  config_["text_config"]["mamba_ssm_cache_dtype"] = "bfloat16";
  config_["vision_config"]["torch_dtype"] = "bfloat16";
  config_["vision_config"]["note"] = "\"dtype\": \"bfloat16\", \\";
  config_["audio_config"] = {{"dtype", "bfloat16"}, {"inner", {{"dtype", "bfloat16"}}}};
  WriteConfig();
  request_.ignored = {"vision_config.note"};
  Exported(request_);
  EXPECT_EQ(Slurp(In("out/config.json")), Slurp(In("source/config.json"))) << "it is right already";
  std::filesystem::remove_all(In("out"));
  request_.dtype = DType::kFp32;
  const ExportedRun exported = Exported(request_);
  ASSERT_THAT(exported.findings.problems, IsEmpty());
  ordered_json wanted = config_;
  wanted["dtype"] = "float32", wanted["torch_dtype"] = "torch.float32";
  wanted["text_config"]["dtype"] = wanted["vision_config"]["torch_dtype"] = "float32";
  EXPECT_EQ(Slurp(In("out/config.json")), wanted.dump(3));
  EXPECT_THAT(exported.findings.notes, Contains(HasSubstr("dtype float32 instead of bfloat16, dtype float32")));
  std::filesystem::remove_all(In("out"));
  // Of a part alone, the words of the others stay.
  request_.module = "language";
  Exported(request_);
  wanted["vision_config"]["torch_dtype"] = "bfloat16";
  EXPECT_EQ(Slurp(In("out/config.json")), wanted.dump(3));
}

// A tensor of SOURCE that is wider than the run's must not be rounded either.
TEST_F(ExportLike, ConfigSaysATypeThatAllTensorsHave) {
  config_["dtype"] = config_["text_config"]["dtype"] = "float32";
  WriteConfig();
  const ExportedRun exported = Exported(request_);
  ordered_json wanted = config_;
  wanted["text_config"]["dtype"] = "bfloat16";
  EXPECT_EQ(Slurp(In("out/config.json")), wanted.dump(3)) << "sound_encoder is in fp32";
  EXPECT_THAT(exported.findings.notes, Contains(HasSubstr("text_config.dtype bfloat16 instead of float32")));
}

// Who makes a folder could name any file that its user may read, and what is exported is shown to others.
TEST_F(ExportLike, LinksOutOfTheFolderAreNotCopied) {
  std::ofstream(In("secret")) << "precious";
  for (const char* name : {"tokenizer.json", "additional_chat_templates/tools.jinja"}) {
    std::filesystem::remove(In(std::string("source/") + name));
    std::filesystem::create_symlink(In("secret"), In(std::string("source/") + name));
  }
  std::filesystem::create_symlink("modeling.py", In("source/same.py"));
  const ExportedRun exported = Exported(request_);
  ASSERT_THAT(exported.findings.problems, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(In("out/tokenizer.json")));
  EXPECT_FALSE(std::filesystem::exists(In("out/additional_chat_templates")));
  EXPECT_EQ(Slurp(In("out/same.py")), "of modeling.py") << "a link that stays in the folder";
  EXPECT_THAT(exported.findings.notes, Contains(AllOf(HasSubstr("tokenizer.json is a link to "), HasSubstr("secret"),
                                                      HasSubstr("left behind"))));
  std::filesystem::remove_all(In("out"));
  std::filesystem::rename(In("source/config.json"), In("config"));
  std::filesystem::create_symlink(In("config"), In("source/config.json"));
  EXPECT_THAT(Exported(request_).findings.problems,
              ElementsAre(Field(&Finding::message, HasSubstr("copy the file into the folder"))));
  EXPECT_FALSE(std::filesystem::exists(In("out")));
}

// models--NAME/snapshots/REVISION/FILE -> ../../blobs/HASH
TEST_F(ExportLike, TheCacheOfAHubIsMadeOfLinks) {
  namespace fs = std::filesystem;
  fs::create_directories(In("cache/models--a/blobs"));
  fs::create_directories(In("cache/models--a/snapshots/rev/additional_chat_templates"));
  int number = 0;
  for (const fs::directory_entry& file : fs::recursive_directory_iterator(In("source"))) {
    if (!file.is_regular_file()) continue;
    const std::string inner = fs::relative(file.path(), In("source")), blob = "blobs/" + std::to_string(number++);
    fs::copy(file.path(), In("cache/models--a/" + blob));
    const std::string up = inner.find('/') == std::string::npos ? "../../" : "../../../";
    fs::create_symlink(up + blob, In("cache/models--a/snapshots/rev/" + inner));
  }
  fs::create_directory_symlink(In("cache/models--a/snapshots/rev"), In("by_link"));
  for (const std::string like : {"cache/models--a/snapshots/rev", "cache/models--a/snapshots/rev/", "by_link"}) {
    request_.like = In(like);
    ASSERT_THAT(Exported(request_).findings.problems, IsEmpty()) << like;
    for (const char* name : {"tokenizer.json", "additional_chat_templates/tools.jinja"})
      EXPECT_EQ(Slurp(In(std::string("out/") + name)), std::string("of ") + name) << like;
    EXPECT_FALSE(fs::is_symlink(In("out/tokenizer.json")));
    fs::remove_all(In("out"));
  }
}

// layerscale_value of config.json is an initial value: the scales themselves may have been trained.
TEST_F(ExportLike, ScalesOfTheSourceThatAreNotOneAreAnotherModel) {
  const std::string name = "vision_model.radio_model.model.blocks.1.layer_scale2.lambda1";
  ASSERT_TRUE(source_.contains(name));
  source_[name].bytes[2 * 5 + 1] = '\x40';
  WriteSource();
  EXPECT_THAT(Exported(request_).findings.problems,
              ElementsAre(Field(&Finding::where, AllOf(HasSubstr("source/model.safetensors: tensor " + name),
                                                       HasSubstr("element 5 is not 1, and the model has no such")))));
  request_.module = "language";
  EXPECT_THAT(Exported(request_).findings.problems, ElementsAre(Field(&Finding::where, HasSubstr("element 5"))))
      << "transformers would compute with them";
  EXPECT_FALSE(std::filesystem::exists(In("out")));
}

TEST_F(ExportLike, ALanguageModelAloneReplacesItsPartOfTheWhole) {
  request_.module = "language";
  const ExportedRun exported = Exported(request_);
  ASSERT_THAT(exported.findings.problems, IsEmpty());
  const auto stored = Read(In("out"));
  EXPECT_EQ(stored.size(), source_.size());
  for (const auto& [name, tensor] : source_) {
    if (name.starts_with("language_model.") && tensor.type == "BF16") {
      EXPECT_FALSE(stored.at(name).bytes == tensor.bytes) << name;
    } else if (!name.starts_with("language_model.")) {
      EXPECT_TRUE(stored.at(name).bytes == tensor.bytes) << name;
    }
  }
}

TEST_F(ExportLike, ALeastTimeStepIsCopiedWithANote) {
  config_["text_config"]["time_step_min"] = 0.001;
  WriteConfig();
  EXPECT_THAT(Exported(request_).findings.notes,
              Contains(HasSubstr("text_config.time_step_min = 0.001 is copied: transformers 5.23")));
}

TEST_F(ExportLike, WhatDiffersIsOneListByKey) {
  config_["text_config"]["routed_scaling_factor"] = 1.5;
  config_["text_config"]["num_experts_per_tok"] = 3;
  config_["text_config"]["norm_topk_prob"] = false;
  config_["text_config"]["num_nextn_predict_layers"] = 0;
  config_["vision_config"]["hidden_act"] = "gelu";
  config_["image_token_id"] = 18;
  WriteConfig();
  EXPECT_THAT(
      Exported(request_).findings.problems,
      UnorderedElementsAre(Field(&Finding::where, HasSubstr("vision_final_layernorm.weight is of a final norm")),
                           Field(&Finding::where, HasSubstr("vision_final_layernorm.bias is of a final norm"))))
      << "the source contradicts itself";
  std::erase_if(source_, [](const auto& tensor) { return tensor.first.starts_with("vision_final_layernorm."); });
  WriteSource();
  const ExportedRun exported = Exported(request_);
  EXPECT_THAT(
      exported.findings.problems,
      UnorderedElementsAre(
          AllOf(Field(&Finding::where, "text_config.routed_scaling_factor"), Field(&Finding::value, "1.5"),
                Field(&Finding::message, HasSubstr("module language moe.scale is 2.5"))),
          Field(&Finding::where, "text_config.num_experts_per_tok"),
          AllOf(Field(&Finding::where, "text_config.norm_topk_prob"), Field(&Finding::value, "false"),
                Field(&Finding::message, HasSubstr("module language moe.normalized is true"))),
          AllOf(Field(&Finding::where, "text_config.num_nextn_predict_layers = 0"), Field(&Finding::value, ""),
                Field(&Finding::message, HasSubstr("means final_norm none, which is not that of the run"))),
          Field(&Finding::where, HasSubstr("vision_config.hidden_act")), Field(&Finding::where, "image_token_id")));
  EXPECT_THAT(Left(), UnorderedElementsAre("run", "first", "source"));
}

// What vLLM's loader of these models reads (vllm/model_executor/models/nano_nemotron_vl.py and its processor).
constexpr const char* kKeysOfVllm[] = {
    "architectures",   "force_image_size",      "patch_size",    "template",    "downsample_ratio",
    "ps_version",      "image_tag_type",        "use_thumbnail", "norm_mean",   "norm_std",
    "vit_hidden_size", "projector_hidden_size", "llm_config",    "sound_config"};
constexpr const char* kVisionKeysOfVllm[] = {"args", "preferred_resolution", "video_temporal_patch_size",
                                             "separate_video_embedder"};
constexpr const char* kArgumentsOfVllm[] = {
    "model",           "teachers",       "cpe_max_size", "register_multiple", "cls_token_per_teacher",
    "min_num_patches", "max_num_patches"};
constexpr const char* kNamesOfVllm[] = {"language_model.backbone.",
                                        "language_model.lm_head.",
                                        "mlp1.0.",
                                        "mlp1.1.",
                                        "mlp1.3.",
                                        "vision_model.radio_model.model.patch_generator.",
                                        "vision_model.radio_model.model.blocks.",
                                        "vision_model.radio_model.summary_idxs",
                                        "sound_encoder.",
                                        "sound_projection.",
                                        "mtp."};

// vLLM does not run here: the names and keys are compared with the lists above.
TEST_F(ExportLike, NamesAndKeysThatVllmReadsPassThrough) {
  MakeSource(PublishedPlan());
  ordered_json text = config_["text_config"];
  config_ = {{"architectures", {"NemotronH_Nano_Omni_Reasoning_V3"}},
             {"model_type", "NemotronH_Nano_Omni_Reasoning_V3"},
             {"llm_config", text},
             {"vit_hidden_size", 32},
             {"projector_hidden_size", 64},
             {"sound_config", {{"hidden_size", 3}}},
             {"force_image_size", 512},
             {"patch_size", 4},
             {"template", "toy"},
             {"downsample_ratio", 0.5},
             {"ps_version", "v2"},
             {"image_tag_type", "internvl"},
             {"img_context_token_id", 255},
             {"use_thumbnail", true},
             {"norm_mean", {0.48145466, 0.4578275, 0.40821073}},
             {"norm_std", {0.26862954, 0.26130258, 0.27577711}}};
  config_["vision_config"] = {{"hidden_size", 32},
                              {"num_hidden_layers", 2},
                              {"num_attention_heads", 4},
                              {"intermediate_size", 64},
                              {"patch_size", 4},
                              {"preferred_resolution", {64, 64}},
                              {"video_temporal_patch_size", 2},
                              {"separate_video_embedder", true}};
  config_["vision_config"]["args"] = {{"model", "toy"},
                                      {"teachers", ordered_json::array({{{"name", "a"}}})},
                                      {"cpe_max_size", 64},
                                      {"register_multiple", 2},
                                      {"cls_token_per_teacher", true},
                                      {"min_num_patches", 4},
                                      {"max_num_patches", 256}};
  WriteConfig();
  ASSERT_THAT(Exported(request_).findings.problems, IsEmpty());
  const ordered_json config = Config(In("out"));
  EXPECT_EQ(config, config_);
  for (const char* key : kKeysOfVllm) EXPECT_TRUE(config.contains(key)) << key;
  for (const char* key : kVisionKeysOfVllm) EXPECT_TRUE(config["vision_config"].contains(key)) << key;
  for (const char* key : kArgumentsOfVllm) EXPECT_TRUE(config["vision_config"]["args"].contains(key)) << key;
  std::set<std::string> used;
  for (const auto& [name, tensor] : Read(In("out"))) {
    const auto known = std::find_if(std::begin(kNamesOfVllm), std::end(kNamesOfVllm),
                                    [&, &of = name](const char* begin) { return of.starts_with(begin); });
    ASSERT_NE(known, std::end(kNamesOfVllm)) << name;
    used.insert(*known);
  }
  EXPECT_EQ(used.size(), std::size(kNamesOfVllm));
}

}  // namespace
}  // namespace planwright
