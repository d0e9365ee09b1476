// Low-rank adapters on frozen layers, of each kind of model, on every axis. A run begins with B = 0, so that A learns
// from the third step on.
#include "tests/numerics/layouts/decoder_words.h"

namespace planwright::testing {
namespace {

Overrides Adapted(const std::string& module, const std::string& targets, int rank = 4) {
  return {
      "modules." + module + ".train.backbone=frozen",
      "modules." + module + ".adapter={rank: " + std::to_string(rank) + ", alpha: 6.0, targets: [" + targets + "]}"};
}

// All products of a hybrid model's layers.
Overrides OfHybrid() {
  return Adapted("language",
                 "in_proj, out_proj, q_proj, k_proj, v_proj, o_proj, shared_experts.up_proj, "
                 "shared_experts.down_proj");
}
Overrides OfSome() { return Adapted("language", "q_proj, v_proj, in_proj, shared_experts.down_proj", 3); }
Overrides OfDense() {
  return Join(Adapted("language", "in_proj, mixer.up_proj, mixer.down_proj, k_proj"),
              {"models.hybrid_moe_tiny.pattern='M-*-'", "models.hybrid_moe_tiny.mlp={ffn: 24}"});
}
Overrides OfEncoder() {
  return Join(Adapted("radio_encoder", "attn.qkv, attn.proj, fc1, fc2", 2),
              {"modules.language.train.backbone=frozen", "modules.radio_encoder.train.projection=frozen"});
}
Overrides OfBoth() {
  return Join(Adapted("radio_encoder", "qkv, fc2"), Adapted("language", "in_proj, q_proj, o_proj", 2));
}
Overrides OfDecoder() { return Adapted("language", "q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj"); }
Overrides OfAttention() { return Adapted("language", "q_proj, v_proj", 2); }

Overrides Encoder(int ranks, const std::vector<AxisSize>& axes) {
  return Join(EncoderOn(ranks, 1), Parallel("radio_encoder", axes));
}

}  // namespace

std::vector<Layout> AdapterLayouts() {
  const auto text = [](const std::string& name, const char* recipe, const Overrides& overrides,
                       const Overrides& training) {
    return Layout{"adapters_" + name, overrides, training, recipe, {}};
  };
  const auto hybrid = [](const std::string& name, const Overrides& overrides, const Overrides& training) {
    return Layout{"adapters_" + name, overrides, training};
  };
  return {
      // Hybrid layers, alone and behind an encoder.
      text("hybrid_tp2", kTextRecipe, Language(2, {{"tp", 2}}), OfHybrid()),
      text("hybrid_tp4", kTextRecipe,
           Join(Language(4, {{"tp", 4}}, kElementwise), {"models.hybrid_moe_tiny.mamba.groups=4"}),
           Join(OfHybrid(), {"models.hybrid_moe_tiny.mamba.groups=4"})),
      text("hybrid_cp2_tp2", kTextRecipe,
           Join(Language(4, {{"tp", 2}, {"cp", 2}}, kFull), {"models.hybrid_moe_tiny.mamba.groups=8"}),
           Join(OfHybrid(), {"models.hybrid_moe_tiny.mamba.groups=8"})),
      text("hybrid_pp2_dp2", kTextRecipe, Language(4, {{"pp", 2}}, kOverlap), OfHybrid()),
      text("hybrid_ep2_tp2_overlapped", kTextRecipe, Language(2, {{"tp", 2}, {"ep", 2}}, Join(kSent, kOverlapped)),
           OfHybrid()),
      text("hybrid_ep4_gathered_overlapped", kTextRecipe, Language(4, {{"ep", 4}}, Join(kGathered, kOverlapped)),
           OfHybrid()),
      text("hybrid_some_expert_tp2", kTextRecipe, Language(2, {{"expert_tp", 2}}), OfSome()),
      text("hybrid_some_pp4", kTextRecipe, Language(4, {{"pp", 4}}), OfSome()),
      text("hybrid_dense_tp2_pp2", kTextRecipe, Language(4, {{"tp", 2}, {"pp", 2}}, kFull), OfDense()),
      hybrid("vlm_fed_by_trained_tp2", Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2)), OfHybrid()),
      hybrid("vlm_fed_by_frozen_colocated", Join(EncoderOn(4, 1), LanguageOn(0, 4, 2, 4)),
             Join(OfSome(), {"modules.radio_encoder.train={backbone: frozen, projection: frozen}"})),
      hybrid("encoder_tp2", Join(EncoderOn(2, 2), LanguageOn(2, 2, 1, 2)), OfEncoder()),
      hybrid("encoder_cp2_tp2", Join(Encoder(4, {{"tp", 2}, {"cp", 2}}), LanguageOn(4, 2, 2, 1)), OfEncoder()),
      hybrid("encoder_pp2", Join(Encoder(2, {{"pp", 2}}), LanguageOn(2, 1, 1, 1)), OfEncoder()),
      hybrid("both_uneven", Join(EncoderOn(3, 1), LanguageOn(3, 2, 2, 2)), OfBoth()),
      hybrid("both_colocated_4", Join(EncoderOn(4, 2), LanguageOn(0, 4, 2, 2), kOverlap), OfBoth()),
      // Decoders.
      text("llama_dp2", kLlama, Language(2, {}, kOverlap), OfDecoder()),
      text("llama_tp2", kLlama, Language(2, {{"tp", 2}}), OfDecoder()),
      text("llama_shared_keys_tp4", kLlama, Language(4, {{"tp", 4}}), OfDecoder()),
      text("llama_biases_tied_tp2_cp2", kLlama, Language(4, {{"tp", 2}, {"cp", 2}}),
           Join(OfDecoder(), {"models.decoder_tiny.attention.biases=all", "models.decoder_tiny.tied=true"})),
      text("qwen3_pp2_tp2", kQwen, Language(4, {{"tp", 2}, {"pp", 2}}, kFull), OfDecoder()),
      text("qwen3_attention_cp2", kQwen, Language(2, {{"cp", 2}}, {"modules.language.recompute=[attention]"}),
           Join(OfAttention(), {"data.packed_documents=true"})),
      text("qwen3_attention_pp4", kQwen, Language(4, {{"pp", 4}}), OfAttention()),
      text("qwen3_moe_ep2_tp2", kMoe, Language(2, {{"tp", 2}, {"ep", 2}}), OfAttention()),
      text("qwen3_moe_gathered_cp2_ep2", kMoe, Language(2, {{"cp", 2}, {"ep", 2}}, Join(kGathered, kElementwise)),
           OfAttention()),
      Layout{"adapters_qwen3_vlm_tp2_tp2", Behind(EncoderOn(2, 2), 2, 2, {{"tp", 2}}), OfDecoder(), kVlm},
  };
}

}  // namespace planwright::testing
