// Decoders as Llama and Qwen3 have them: rotary positions, gated MLPs, norms of heads, gated experts, and an encoder
// before them. One list for all of these families, so that one covering set has every axis and every feature.
#include "tests/numerics/layouts/decoder_words.h"

namespace planwright::testing {
namespace {

Overrides Model(const Overrides& keys) {
  Overrides overrides;
  for (const std::string& key : keys) overrides.push_back("models.decoder_tiny." + key);
  return overrides;
}

// What is trained: keys that go together, so that few runs on one rank are compared with all layouts. Wavelengths are
// stretched from texts that are shorter than the sample.
Overrides Stretched() {
  return Join(
      Model({"tied=true", "attention.biases=all", "rope.scaling=llama3", "rope.factor=4.0", "rope.original=16"}),
      {"batch.micro_samples=2"});
}
Overrides Partial() {
  return Join(
      Model({"attention.biases=qkv", "attention.kv_groups=1", "vocabulary=259", "rope.features=8", "rope.scaling=yarn",
             "rope.factor=8.0", "rope.original=16", "rope.low=1.0", "rope.high=32.0", "rope.amplitude=1.2"}),
      {"data.packed_documents=true"});
}
Overrides Packed() {
  return Join(Model({"attention.kv_groups=1", "rope.scaling=linear", "rope.factor=2.0"}),
              {"data.packed_documents=true"});
}
Overrides Undivided() {
  return Join(Model({"moe.top_k=3", "moe.normalized=false", "moe.aux_loss=0.0", "vocabulary=259"}),
              {"data.packed_documents=true"});
}

// An evaluation before the first step and after the second.
const Overrides kEvaluated = {"evaluation={every_samples: 16, sets: [{name: held_out, samples: 11, seed: 4711}]}"};
const Overrides kFrozenEncoder = {"data.packed_documents=true", "modules.radio_encoder.train.backbone=frozen"},
                kFrozenLanguage = {"modules.language.train.backbone=frozen"};

std::vector<Layout> Dense() {
  const auto text = [](const std::string& name, const char* recipe, const Overrides& overrides,
                       const Overrides& training = {}) {
    return Layout{name, overrides, training, recipe, {}};
  };
  return {
      text("llama_tp2", kLlama, Language(2, {{"tp", 2}})),
      text("llama_dp2", kLlama, Language(2, {})),
      text("llama_pp2_dp2", kLlama, Language(4, {{"pp", 2}}, kOverlap)),
      text("llama_pp4", kLlama, Language(4, {{"pp", 4}})),
      text("llama_cp4", kLlama, Language(4, {{"cp", 4}})),
      text("llama_shared_keys_tp4", kLlama, Language(4, {{"tp", 4}})),
      text("llama_stretched_tp2", kLlama, Language(2, {{"tp", 2}}, kElementwise), Stretched()),
      text("llama_stretched_cp2_dp2", kLlama, Language(4, {{"cp", 2}}, kOverlap), Stretched()),
      text("llama_stretched_tp4", kLlama, Language(4, {{"tp", 4}}), Stretched()),
      text("llama_partial_tp2_cp2", kLlama, Language(4, {{"tp", 2}, {"cp", 2}}), Partial()),
      text("llama_partial_tp4_pp2_inside_a_block", kLlama,
           Language(8, {{"tp", 4}, {"pp", 2}},
                    {"modules.language.recompute=[mlp]", "modules.language.parallel.stage_layers=[3, 1]"}),
           Partial()),
      text("llama_partial_dp2", kLlama, Language(2, {}, {"modules.language.recompute=[attention]"}), Partial()),
      text("qwen3_tp2", kQwen, Language(2, {{"tp", 2}})),
      text("qwen3_tp2_pp2", kQwen, Language(4, {{"tp", 2}, {"pp", 2}}, kFull)),
      text("qwen3_shared_keys_tp4", kQwen, Language(4, {{"tp", 4}}, {"modules.language.recompute=[attention]"})),
      text("qwen3_packed_cp2", kQwen, Language(2, {{"cp", 2}}), Packed()),
      text("qwen3_packed_tp2_cp2", kQwen, Language(4, {{"tp", 2}, {"cp", 2}}), Packed()),
      text("qwen3_packed_pp2_cp2", kQwen, Language(4, {{"pp", 2}, {"cp", 2}}, kFull), Packed()),
  };
}

std::vector<Layout> Experts() {
  const auto text = [](const std::string& name, const Overrides& overrides, const Overrides& training = {}) {
    return Layout{name, overrides, training, kMoe, {}};
  };
  return {
      text("qwen3_moe_ep2", Language(2, {{"ep", 2}}, kSent)),
      text("qwen3_moe_gathered_ep2", Language(2, {{"ep", 2}}, kGathered)),
      text("qwen3_moe_ep2_tp2", Language(2, {{"tp", 2}, {"ep", 2}})),
      text("qwen3_moe_tp2_dp2_ep4", Language(4, {{"tp", 2}, {"ep", 4}})),
      text("qwen3_moe_expert_tp2_dp2", Language(4, {{"expert_tp", 2}})),
      text("qwen3_moe_pp2_ep2", Language(4, {{"pp", 2}, {"ep", 2}}, Join(kSent, kOverlapped))),
      text("qwen3_moe_gathered_cp2_tp2_ep2_expert_tp2",
           Language(4, {{"cp", 2}, {"tp", 2}, {"ep", 2}, {"expert_tp", 2}}, Join(kGathered, kFull))),
      text("qwen3_moe_overlapped_ep4", Language(4, {{"ep", 4}}, Join(kOverlapped, kElementwise))),
      text("qwen3_moe_undivided_gathered_overlapped_ep2_tp4",
           Language(4, {{"tp", 4}, {"ep", 2}}, Join(kGathered, kOverlapped)), Undivided()),
      text("qwen3_moe_undivided_tp2_cp2_ep4",
           Language(4, {{"tp", 2}, {"cp", 2}, {"ep", 4}}, Join(kSent, {"modules.language.recompute=[moe]"})),
           Undivided()),
      text("qwen3_moe_undivided_pp2_expert_tp2_ep2",
           Language(8, {{"pp", 2}, {"expert_tp", 2}, {"ep", 2}}, Join(kGathered, kElementwise)), Undivided()),
      text("qwen3_moe_undivided_ep2_cp2", Language(2, {{"cp", 2}, {"ep", 2}}), Undivided()),
  };
}

std::vector<Layout> BehindAnEncoder() {
  const auto vlm = [](const std::string& name, const Overrides& overrides, const Overrides& training = {}) {
    return Layout{name, overrides, training, kVlm};
  };
  const auto encoder = [](int ranks, const std::vector<AxisSize>& axes) {
    return Join(EncoderOn(ranks, 1), Parallel("radio_encoder", axes));
  };
  return {
      vlm("qwen3_vlm_tp2_tp2", Behind(EncoderOn(2, 2), 2, 2, {{"tp", 2}}), kEvaluated),
      vlm("qwen3_vlm_colocated_4", Behind(EncoderOn(4, 1), 0, 4, {{"tp", 2}}, kOverlap), kEvaluated),
      vlm("qwen3_vlm_encoder_pp2_pp2", Behind(encoder(2, {{"pp", 2}}), 2, 2, {{"pp", 2}}, kFull), kEvaluated),
      vlm("qwen3_vlm_encoder_cp2_cp2", Behind(encoder(2, {{"cp", 2}}), 2, 2, {{"cp", 2}}), kEvaluated),
      vlm("qwen3_vlm_packed_uneven", Behind(EncoderOn(3, 1), 3, 4, {{"tp", 4}}), kFrozenEncoder),
      vlm("qwen3_vlm_packed_tp2", Behind(EncoderOn(2, 1), 2, 2, {{"tp", 2}}), kFrozenEncoder),
      vlm("qwen3_vlm_packed_colocated", Behind(EncoderOn(2, 2), 0, 2, {{"tp", 2}}), kFrozenEncoder),
      vlm("qwen3_vlm_frozen_language_pp2", Behind(EncoderOn(1, 1), 1, 2, {{"pp", 2}}), kFrozenLanguage),
  };
}

}  // namespace

std::vector<Layout> DecoderLayouts() {
  std::vector<Layout> all;
  for (auto* of : {Dense, Experts, BehindAnEncoder}) {
    for (Layout& layout : of()) all.push_back(std::move(layout));
  }
  return all;
}

}  // namespace planwright::testing
