// Each line of the dialects of decoders counts, as in dialect_mutants_test.
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
std::string WeightsOfDecoders(const DialectSet& dialects) {
  std::string text;
  for (const char* name :
       {"lm_head.weight", "language_model.lm_head.weight", "model.layers.12.self_attn.rotary_emb.inv_freq"}) {
    if (const DialectExtra* extra = dialects.FindExtra(name))
      absl::StrAppend(&text, name, extra->what, "|", extra->who, "|", absl::StrJoin(extra->copy_of, " "), "|",
                      extra->own_key, extra->own_value, "\n");
  }
  for (const auto& [kind, all] : FormsOf(dialects)) {
    for (const DialectForms& dialect : all) {
      for (const StoredForm& form : dialect.forms)
        absl::StrAppend(&text, kind, " ", dialect.names.front(), " ", form.text, " ",
                        form.NameOf("language_model.lm_head.weight", ""), " ", form.NameOf("language_model.c", ""),
                        "\n");
    }
  }
  return text;
}

// The toy with another rotary embedding, by its names of today and by those of older releases.
std::vector<Toy> WithRope(const Toy& toy, const ordered_json& rope) {
  Toy today = toy, older = toy, oldest = toy;
  today.config["rope_parameters"] = rope;
  older.config.erase("rope_parameters");
  older.config["rope_scaling"] = rope;
  oldest.config = older.config;
  oldest.config["rope_scaling"].erase("rope_type");
  oldest.config["rope_scaling"]["type"] = rope["rope_type"];
  return {today, older, oldest};
}

std::vector<Toy> RopesOf(const Toy& toy) {
  const ordered_json yarn = {{"rope_type", "yarn"},
                             {"rope_theta", 9000.0},
                             {"factor", 5.0},
                             {"original_max_position_embeddings", 12},
                             {"beta_fast", 30.0},
                             {"beta_slow", 2.0},
                             {"attention_factor", 1.3},
                             {"truncate", true},
                             {"partial_rotary_factor", 1.0}};
  std::vector<Toy> toys;
  for (const ordered_json& rope :
       {yarn, ordered_json{{"rope_type", "yarn"}, {"factor", 4.0}}, ordered_json{{"rope_type", "default"}},
        ordered_json{{"rope_type", "linear"}, {"factor", 4.0}},
        ordered_json{{"rope_type", "llama3"}, {"factor", 4.0}, {"low_freq_factor", 1.5}, {"high_freq_factor", 3.5}}}) {
    const std::vector<Toy> some = WithRope(toy, rope);
    toys.insert(toys.end(), some.begin(), some.end());
  }
  return toys;
}

std::vector<Toy> LlamasOf(const Toy& llama) {
  std::vector<Toy> toys = RopesOf(llama);
  Toy bare = llama, narrow = llama, tied = llama, copied = llama, headless = llama;
  for (const char* key : {"head_dim", "initializer_range", "rms_norm_eps", "num_key_value_heads", "attention_bias",
                          "tie_word_embeddings", "max_position_embeddings", "rope_parameters"})
    bare.config.erase(key);
  bare.config["rope_scaling"] = {{"type", "yarn"}, {"factor", 4.0}};
  narrow.config["hidden_size"] = 50;
  copied.config["tie_word_embeddings"] = true;
  tied.config = copied.config;
  tied.tensors.erase("lm_head.weight");
  headless.tensors.erase("lm_head.weight");
  toys.insert(toys.end(), {bare, narrow, tied, copied, headless});
  return toys;
}

// The plan of the oracle's recipe with another rotary embedding.
Plan PlanWith(const std::string& rope, const std::vector<std::string>& overrides) {
  std::ifstream file(InSource("tests/golden/llama_oracle/oracle.yaml"));
  std::string text(std::istreambuf_iterator<char>(file), {});
  const size_t begin = text.find("    rope: {"), end = text.find('\n', begin);
  EXPECT_NE(begin, std::string::npos);
  text.replace(begin, end - begin, "    rope: {theta: 900.0, " + rope + "}");
  const std::string path = ::testing::TempDir() + "llama.yaml";
  std::ofstream(path) << text;
  return CompiledFile(path, overrides);
}

// Qwen3-VL, with what its published folders say otherwise, or leave out.
std::vector<Toy> QwensOf(const Toy& qwen) {
  Toy older = qwen, bare = qwen, tied = qwen, taps = qwen;
  ordered_json& text = older.config["text_config"];
  text["rope_scaling"] = text["rope_parameters"], text["rope_theta"] = text["rope_parameters"]["rope_theta"];
  text["rope_scaling"].erase("rope_theta"), text.erase("rope_parameters");
  older.config["vision_config"].erase("rope_parameters");
  for (const char* key : {"head_dim", "num_key_value_heads", "rms_norm_eps", "initializer_range", "rope_parameters"})
    bare.config["text_config"].erase(key);
  for (const char* key : {"temporal_patch_size", "num_position_embeddings", "spatial_merge_size", "hidden_act",
                          "initializer_range", "rope_parameters"})
    bare.config["vision_config"].erase(key);
  tied.config["tie_word_embeddings"] = tied.config["text_config"]["tie_word_embeddings"] = true;
  tied.tensors.erase("lm_head.weight");
  taps.config["vision_config"]["deepstack_visual_indexes"] = {0, 1};
  Toy biased = qwen, silent = qwen, oblong = qwen, fine = qwen;
  biased.config["text_config"]["attention_bias"] = true;
  silent.config["vision_config"].erase("deepstack_visual_indexes");
  oblong.config["vision_config"]["num_position_embeddings"] = 26;
  // The largest side with such patches is not that of one pixel more.
  ordered_json& eye = fine.config["vision_config"];
  eye["patch_size"] = 17, eye["spatial_merge_size"] = 1;
  const std::string visual = "model.visual.";
  fine.tensors[visual + "patch_embed.proj.weight"].shape = {32, 3, 2, 17, 17};
  fine.tensors[visual + "merger.linear_fc1.weight"].shape = {32, 32};
  fine.tensors[visual + "merger.linear_fc1.bias"].shape = {32};
  fine.tensors[visual + "merger.linear_fc2.weight"].shape = {36, 32};
  return {qwen, older, bare, tied, taps, biased, silent, oblong, fine};
}

// With experts, where a file has their matrices transposed or not.
std::vector<Toy> ExpertsOf(const Toy& qwen) {
  Toy released = qwen, bare = qwen, sparse = qwen;
  for (auto& [name, tensor] : released.tensors) {
    if (name.find(".mlp.experts.") != std::string::npos) std::swap(tensor.shape[1], tensor.shape[2]);
  }
  ordered_json& text = released.config["text_config"];
  text["num_experts"] = text["num_local_experts"], text.erase("num_local_experts");
  text["norm_topk_prob"] = true, text.erase("output_router_logits"), text.erase("router_aux_loss_coef");
  for (const char* key : {"head_dim", "num_key_value_heads", "decoder_sparse_step", "mlp_only_layers"})
    bare.config["text_config"].erase(key);
  sparse.config["text_config"]["decoder_sparse_step"] = 2;
  sparse.config["text_config"]["mlp_only_layers"] = nlohmann::ordered_json::array();
  // Matrices that are squares.
  Toy square = qwen, square_down = qwen;
  square.config["text_config"]["moe_intermediate_size"] = 14;
  square_down.config["text_config"]["moe_intermediate_size"] = 28;
  return {qwen, released, bare, sparse, square, square_down};
}

void AddQwen3Vl(DialectJudge& judge) {
  for (const Toy& toy : QwensOf(ReadToy("qwen3_vl"))) {
    judge.AddImport(toy);
    judge.Vary(toy, *BuiltInDialects().Find("qwen3_vl"));
  }
  for (const Toy& toy : ExpertsOf(ReadToy("qwen3_vl_moe"))) {
    judge.AddImport(toy);
    judge.Vary(toy, *BuiltInDialects().Find("qwen3_vl_moe"));
  }
  judge.AddExport(CompiledFile(InSource("tests/golden/qwen3_vl_moe_oracle/oracle.yaml"), {}), {"", "language"});
  const std::string eye = "models.eye.", tongue = "models.tongue.";
  for (const std::vector<std::string>& overrides :
       std::vector<std::vector<std::string>>{{},
                                             {eye + "activation=gelu", eye + "pixel_shuffle=1", tongue + "tied=true"},
                                             {tongue + "attention.biases=all", tongue + "rope.height=1"},
                                             {tongue + "attention.normed=false"}})
    judge.AddExport(CompiledFile(InSource("tests/golden/qwen3_vl_oracle/oracle.yaml"), overrides), {"", "language"});
}

TEST(DialectMutants, OfQwen3Vl) {
  DialectJudge judge;
  AddQwen3Vl(judge);
  judge.Add(WeightsOfDecoders);
  judge.ExpectEachLineCounts({"qwen_vit"}, 100);
}

TEST(DialectMutants, OfDecoders) {
  DialectJudge judge;
  const Toy llama = ReadToy("llama"), mistral = ReadToy("mistral");
  Toy window = mistral, bare = mistral;
  window.config.erase("sliding_window");
  for (const char* key : {"head_dim", "num_key_value_heads", "max_position_embeddings"}) bare.config.erase(key);
  bare.config["rope_parameters"] = {{"rope_type", "yarn"}, {"factor", 4.0}};
  const Toy qwen2 = ReadToy("qwen2"), qwen3 = ReadToy("qwen3");
  Toy bare2 = qwen2, bare3 = qwen3, biased3 = qwen3;
  for (Toy* toy : {&bare2, &bare3}) {
    for (const char* key : {"head_dim", "num_key_value_heads", "max_position_embeddings", "attention_bias"})
      toy->config.erase(key);
    toy->config["rope_parameters"] = {{"rope_type", "yarn"}, {"factor", 4.0}};
  }
  biased3.config["attention_bias"] = true;
  const Toy experts = ReadToy("qwen3_moe");
  std::vector<Toy> moes(5, experts);
  for (const char* key : {"head_dim", "num_key_value_heads", "max_position_embeddings", "attention_bias",
                          "decoder_sparse_step", "norm_topk_prob", "mlp_only_layers"})
    moes[1].config.erase(key);
  moes[1].config["rope_parameters"] = {{"rope_type", "yarn"}, {"factor", 4.0}};
  moes[2].config["decoder_sparse_step"] = 2, moes[2].config["attention_bias"] = true;
  moes[3].config["mlp_only_layers"] = {0, 1, 2}, moes[3].config["router_aux_loss_coef"] = -1;
  moes[4].config["decoder_sparse_step"] = 3, moes[4].config["router_aux_loss_coef"] = 0;
  const std::vector<Toy> llamas = LlamasOf(llama);
  for (const Toy& toy : {llama, mistral, window, bare, qwen2, qwen3, bare2, bare3, biased3}) judge.AddImport(toy);
  for (const Toy& toy : llamas) judge.AddImport(toy);
  for (const Toy& toy : moes) judge.AddImport(toy);
  judge.Add(WeightsOfDecoders);
  // Of a rotary embedding, and what else the run has.
  const std::string model = "models.llama.", llama3 = "scaling: llama3, factor: 4.0, original: 10, low: 1.5, high: 3.5";
  const std::vector<std::pair<std::string, std::vector<std::string>>> runs = {
      {llama3, {}},
      // Heads do not divide the width: such a run is no Llama, but it is a Mistral.
      {llama3, {model + "hidden=14", model + "attention.biases=none"}},
      {"scaling: none", {model + "tied=true", "batch.sequence_length=8"}},
      {"features: 4", {}},
      {"features: 6", {}},  // whole heads
      {llama3, {model + "attention.biases=qkv"}},
      {llama3, {model + "attention.normed=true"}},
      {llama3, {model + "attention.normed=true", model + "attention.biases=none"}},
      {"scaling: linear, factor: 4.0", {}},
      {"scaling: yarn, factor: 4.0, original: 10, low: 1.5, high: 3.5, amplitude: 1.25", {}},
      {llama3, {"batch.sequence_length=128"}}};
  for (const auto& [rope, overrides] : runs) {
    Plan plan = PlanWith(rope, overrides);
    if (plan.budget.sequence_length != 16) plan.data.end_token = 3, plan.data.pad_token = 4;
    judge.AddExport(std::move(plan), {""});
  }
  const std::string moe = "models.qwen3_moe.";
  for (const std::vector<std::string>& overrides : std::vector<std::vector<std::string>>{
           {}, {moe + "attention.biases=all", moe + "moe.normalized=false"}, {moe + "attention.biases=qkv"}})
    judge.AddExport(CompiledFile(InSource("tests/golden/qwen3_moe_oracle/oracle.yaml"), overrides), {""});
  const auto vary = [&](const Toy& toy, const char* dialect) { judge.Vary(toy, *BuiltInDialects().Find(dialect)); };
  vary(llama, "llama"), vary(mistral, "mistral"), vary(qwen2, "qwen2"), vary(qwen3, "qwen3");
  for (const Toy& toy : llamas) vary(toy, "llama");
  for (const Toy& toy : moes) vary(toy, "qwen3_moe");
  AddQwen3Vl(judge);
  judge.ExpectEachLineCounts({"decoder"}, 500);
}

}  // namespace
}  // namespace planwright
