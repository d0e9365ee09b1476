// `plan evaluate --against` with logits that transformers computed: it finds them again on every layout, sees damaged
// weights, and says what is wrong with what it is given (docs/training/evaluation.md#against-another-program).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "nlohmann/json.hpp"
#include "planner/base/files/exit_status.h"
#include "planner/run/outcome/tensor_file.h"
#include "tests/end_to_end/checkpoint_run.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Words = std::vector<std::string>;

const std::string kSame = "verdict: the same model.", kOther = "verdict: not the same model.";

TensorFile Read(const std::string& path) {
  absl::StatusOr<TensorFile> file = ReadTensorFile(path);
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? *std::move(file) : TensorFile();
}

// A folder of tests/golden is copied, so that weights can be damaged; its logits, which transformers computed in fp64,
// become a file as users make it.
class EvaluateAgainst : public CheckpointRun {
 protected:
  void SetUp() override {
    CheckpointRun::SetUp();
    Copy("nano_oracle");
  }

  void Copy(const std::string& golden) {
    fs::remove_all(Oracle());
    fs::copy(InSource("tests/golden/" + golden), Oracle(), fs::copy_options::recursive);
    const TensorFile batch = Read(Oracle() + "/batch.safetensors"), found = Read(Oracle() + "/expected.safetensors");
    TensorFile logits;
    logits.tensors["token_ids"] = batch.tensors.at("token_ids");
    logits.tensors["logits"] = found.tensors.at("outputs/logits");
    logits.metadata = {{"program", "transformers 5.23.0"}};
    Write(Logits(), logits);
    // A comparison needs no data of the recipe.
    fs::remove(Oracle() + "/batch.safetensors");
  }

  std::string Oracle() const { return Folder() + "/oracle"; }
  std::string Logits() const { return Folder() + "/logits.safetensors"; }
  std::string Weights() const { return Oracle() + "/weights.safetensors"; }
  static void Write(const std::string& path, TensorFile file) {
    EXPECT_TRUE(WriteTensorFile(path, std::move(file)).ok());
  }

  Ended Against(const Words& words) {
    Words all = {"evaluate", Oracle() + "/oracle.yaml", "--against", Logits()};
    all.insert(all.end(), words.begin(), words.end());
    return Plan(all);
  }
  void ExpectSame(const Words& words, const std::string& text) {
    const Ended ended = Against(words);
    EXPECT_EQ(ended.status, kExitSuccess) << ended.output;
    EXPECT_THAT(ended.output, AllOf(HasSubstr(kSame), HasSubstr(text)));
  }
  void ExpectOther(const Words& words, const std::string& hint) {
    const Ended ended = Against(words);
    EXPECT_EQ(ended.status, kExitInvalid) << ended.output;
    EXPECT_THAT(ended.output, AllOf(HasSubstr(kOther), HasSubstr(hint)));
  }
  void ExpectRefused(const Words& words, int status, const std::string& text) {
    const Ended ended = Against(words);
    EXPECT_EQ(ended.status, status) << ended.output;
    EXPECT_THAT(ended.output, AllOf(HasSubstr(text), Not(HasSubstr("ready in")))) << "before a rank starts";
  }
};

const std::string kRanks = "modules.language.placement.ranks=", kParallel = "modules.language.parallel.";

TEST_F(EvaluateAgainst, FindsTheSameModelOnEveryLayout) {
  ExpectSame({}, "ours: fp64 on 1 rank, sequences of 28\n");
  ExpectSame({kRanks + "2", kParallel + "tp=2", kParallel + "ep=2"}, "the same at 84 of 84 positions\n");
  ExpectSame({kRanks + "4", kParallel + "pp=2", kParallel + "cp=2", "models.nano.pattern=MEM|*E"},
             "ours: fp64 on 4 ranks, sequences of 28\n");
  // Sequences are as short as the layout lets them be, memory is for as many rows of experts as there can be, and the
  // last round has samples that are not compared.
  ExpectSame({kRanks + "4", kParallel + "ep=2", "batch.global_samples=8", "batch.micro_samples=2",
              "models.nano.moe.imbalance=1.0", "batch.sequence_length=65536"},
             "ours: fp64 on 4 ranks, sequences of 32\n");
}

TEST_F(EvaluateAgainst, TheToleranceIsThatOfTheCoarserPrecision) {
  ExpectSame({"precision.params=fp32", "--run-dir", RunDir()}, "0.0001 and 0.002 are allowed (fp32 beside");
  EXPECT_TRUE(fs::exists(RunDir() + "/plan.json") && !fs::exists(RunDir() + "/probe"));
  ExpectSame({"precision.params=bf16"}, "0.05 and 1 are allowed (bf16 beside fp64).");
  ExpectOther({"precision.params=bf16", "--tolerance", "0.0001"}, "compare in fp32");
  const Ended json = Against({"precision.params=fp32", "--json"});
  EXPECT_EQ(json.status, 0) << json.output;
  const nlohmann::json result = nlohmann::json::parse(json.output.substr(json.output.find("{\n")), nullptr, false);
  ASSERT_TRUE(result.is_object()) << json.output;
  EXPECT_EQ(result["same"], true);
  EXPECT_EQ(result["positions"], 84);
  EXPECT_LT(result["difference"], 1e-5);
}

// Each of these has the names and the shapes of the model.
TEST_F(EvaluateAgainst, SeesDamagedWeights) {
  const TensorFile good = Read(Weights());
  const std::string layer = "language_model.backbone.layers.", attention = layer + "3.mixer.";
  const auto exchanged = [&](const std::string& a, const std::string& b) {
    TensorFile file = good;
    std::swap(file.tensors.at(a).bytes, file.tensors.at(b).bytes);
    Write(Weights(), file);
  };
  exchanged(attention + "k_proj.weight", attention + "v_proj.weight");
  ExpectOther({}, "Already the first tokens of sequences differ");
  exchanged(layer + "0.norm.weight", layer + "2.norm.weight");
  ExpectOther({"precision.params=bf16"}, "Already the first tokens of sequences differ");

  // The rows of a head of q in another order: a token that sees itself alone does not show it.
  TensorFile file = good;
  std::string& rows = file.tensors.at(attention + "q_proj.weight").bytes;
  std::rotate(rows.begin(), rows.begin() + 2 * 46, rows.begin() + 7 * 2 * 46);
  Write(Weights(), file);
  ExpectOther({}, "The first tokens of sequences agree");

  // Of one expert alone, which few tokens choose.
  exchanged(layer + "1.mixer.experts.0.up_proj.weight", layer + "1.mixer.experts.1.up_proj.weight");
  ExpectOther({}, kOther);
}

// What goes wrong with rotary positions, and shapes do not show: another base or another stretch, and the rows of a
// head in the order of programs that turn neighbours (2i, 2i + 1) in place of halves (i, i + half).
TEST_F(EvaluateAgainst, SeesOtherPositionsOfADecoder) {
  Copy("llama_oracle");
  ExpectSame({kRanks + "4", kParallel + "tp=2", kParallel + "cp=2"}, "ours: fp64 on 4 ranks, sequences of 16\n");
  const std::string positions = "The first tokens of sequences agree";
  ExpectOther({"models.llama.rope.theta=1000.0", "precision.params=fp32"}, positions);
  ExpectOther({"models.llama.rope.factor=2.0"}, positions);

  const TensorFile good = Read(Weights());
  const std::string layer = "language_model.model.layers.1.";
  TensorFile file = good;
  for (const char* name : {"self_attn.q_proj.weight", "self_attn.k_proj.weight"}) {
    RawTensor& heads = file.tensors.at(layer + name);
    const size_t row = heads.bytes.size() / static_cast<size_t>(heads.shape[0]), half = 3;
    std::string neighbours;
    for (size_t head = 0; head < heads.bytes.size(); head += 2 * half * row) {
      for (size_t i = 0; i < half; ++i)
        neighbours += heads.bytes.substr(head + i * row, row) + heads.bytes.substr(head + (i + half) * row, row);
    }
    heads.bytes = neighbours;
  }
  Write(Weights(), file);
  ExpectOther({}, positions);

  file = good;
  std::swap(file.tensors.at(layer + "mlp.gate_proj.weight").bytes, file.tensors.at(layer + "mlp.up_proj.weight").bytes);
  Write(Weights(), file);
  ExpectOther({"precision.params=bf16"}, "Already the first tokens of sequences differ");
}

// Numbers of a config.json that no shape shows.
TEST_F(EvaluateAgainst, SeesAnotherModelOfTheSameShapes) {
  for (const char* number :
       {"norm_eps=1.0e-4", "moe.scale=2.4", "moe.top_k=2", "moe.normalized=false", "mamba.groups=2"}) {
    const Ended ended = Against({std::string("models.nano.") + number});
    if (std::string(number) == "mamba.groups=2") {
      EXPECT_EQ(ended.status, kExitUsage) << "it has other shapes: " << ended.output;
    } else {
      EXPECT_EQ(ended.status, kExitInvalid) << number << ended.output;
      EXPECT_THAT(ended.output, HasSubstr(kOther)) << number;
    }
  }
}

TEST_F(EvaluateAgainst, WhatCannotBeCompared) {
  ExpectRefused({"models.nano.vocabulary=91"}, kExitUsage,
                "logits has 90 token ids, and the model of the recipe has a vocabulary of 91");
  ExpectRefused({"batch.sequence_length=16"}, kExitUsage,
                "has a sequence of 28 tokens, and batch.sequence_length is 16");
  ExpectRefused({"models.nano.hidden=48"}, kExitUsage, "the weights do not fit the plan");
  ExpectRefused({"--tolerance", "0"}, kExitUsage, "--tolerance must be a number from 1e-15 to 10");
  ExpectRefused({"--run-dir", Oracle()}, kExitUsage, "is not empty; choose another --run-dir");
  const std::string drawn = Oracle() + "/drawn.yaml", text = ReadAll(Oracle() + "/oracle.yaml");
  std::ofstream(drawn) << text.substr(0, text.find("initialize:"));
  const Ended no_weights = Plan({"evaluate", drawn, "--against", Logits()});
  EXPECT_EQ(no_weights.status, kExitUsage);
  EXPECT_THAT(no_weights.output, HasSubstr(drawn + " has no `initialize`, so its weights are drawn"));
  const std::string drawn_part = Oracle() + "/drawn_part.yaml";
  std::ofstream(drawn_part) << "extends: drawn.yaml\ninitialize: {sources: [{for: language, from: drawn}]}\n";
  EXPECT_THAT(Plan({"evaluate", drawn_part, "--against", Logits()}).output,
              HasSubstr(drawn_part + " draws the weights of language (initialize.sources)"));
  EXPECT_THAT(Plan({"evaluate", "plan.json", "--against", Logits()}).output,
              HasSubstr("plan.json is a compiled plan, whose data is fixed"));
  EXPECT_THAT(Plan({"evaluate", drawn, "--against", Weights()}).output, HasSubstr(Weights() + ": has a tensor "));
  EXPECT_THAT(Plan({"evaluate", drawn, "--tolerance", "1"}).output, HasSubstr("it goes with --against"));
  EXPECT_THAT(Plan({"evaluate", drawn, drawn, "--against", Logits()}).output, HasSubstr(drawn));
}

// An encoder stands beside the language model, with drawn weights, and sees no image.
TEST_F(EvaluateAgainst, TextOfAVisionLanguageModel) {
  const std::string recipe = Oracle() + "/with_images.yaml";
  std::ofstream(recipe)
      << R"(
extends: oracle.yaml
models:
  eye:
    {kind: radio_vit, layers: 1, hidden: 8, heads: 2, ffn: 8, patch: 4, class_tokens: 1, max_image: 16,
     projector: {hidden: 8}}
modules:
  eye: {model: eye, placement: {first_rank: 0, ranks: 1}}
  language: {placement: {first_rank: 1, ranks: 2}, parallel: {tp: 2}}
bridges: [{from: eye, to: language}]
)"
      << "initialize: {sources: [{for: language, from: weights.safetensors}, {for: eye, from: drawn}]}\n";
  std::string text = ReadAll(Oracle() + "/oracle.yaml");
  std::ofstream(Oracle() + "/oracle.yaml") << text.substr(0, text.find("initialize:"));
  const auto compare = [&] { return Plan({"evaluate", recipe, "--against", Logits()}); };
  const Ended same = compare();
  EXPECT_EQ(same.status, kExitSuccess) << same.output;
  EXPECT_THAT(same.output,
              AllOf(HasSubstr("verdict: the same language model; the encoder (eye) is not compared, as the "
                              "tokens have no images."),
                    HasSubstr("ours: fp64 on 3 ranks"), Not(HasSubstr(kSame))));

  TensorFile logits = Read(Logits());
  const int64_t image = 18;
  std::memcpy(logits.tensors.at("token_ids").bytes.data() + 5 * sizeof image, &image, sizeof image);
  Write(Logits(), logits);
  const Ended refused = compare();
  EXPECT_EQ(refused.status, kExitUsage);
  EXPECT_THAT(refused.output, HasSubstr("sequence 0 has the image token 18 at position 5; images are not compared"));
}

TEST_F(EvaluateAgainst, WeightsOfACheckpoint) {
  fs::copy(InSource("tests/golden/nano_oracle/batch.safetensors"), Oracle());
  const std::string recipe = Oracle() + "/oracle.yaml";
  const Ended trained = Plan({"launch", recipe, "checkpoint.every_steps=1", "--local", "--run-dir", RunDir()});
  ASSERT_EQ(trained.status, 0) << trained.output;
  const Ended step = Plan({"evaluate", RunDir(), recipe, "--against", Logits()});
  EXPECT_EQ(step.status, kExitInvalid) << step.output;
  EXPECT_THAT(step.output, AllOf(HasSubstr("evaluating the weights of " + Checkpoints()), HasSubstr(kOther)));
  // The tolerance is a person's to set, and so is another model than that of the checkpoint.
  const Ended wide = Plan({"evaluate", RunDir(), recipe, "--against", Logits(), "--tolerance", "5"});
  EXPECT_EQ(wide.status, kExitSuccess) << wide.output;
  const Ended other = Plan({"evaluate", RunDir(), recipe, "models.nano.moe.scale=2", "--against", Logits()});
  EXPECT_EQ(other.status, kExitUsage) << other.output;
  EXPECT_THAT(other.output, HasSubstr("the recipe has another model than " + Checkpoints()));
}

}  // namespace
}  // namespace planwright::testing
