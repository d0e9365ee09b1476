#include "tests/attack/layouts.h"

#include "tests/numerics/layouts.h"

namespace planwright::attack {

using testing::EncoderOn;
using testing::Join;
using testing::kTextRecipe;
using testing::kTinyRecipe;
using testing::LanguageOn;
using testing::OneRankOnly;
using testing::Parallel;

std::vector<Target> Targets() {
  // Four steps of four samples: plans stay small, and a run of one takes seconds.
  const std::vector<std::string> small = {"batch.global_samples=4", "budget.train_samples=16",
                                          "budget.learning_rate.init=1.0e-3", "budget.learning_rate.warmup_samples=4",
                                          "budget.learning_rate.decay_samples=16"};
  const std::vector<std::string> saves = {"checkpoint.every_steps=2"}, fp64 = {"precision.params=fp64"},
                                 bf16 = {"precision.params=bf16"},
                                 overlap = {"gradients.overlap_reduce=true", "gradients.overlap_gather=true",
                                            "gradients.buckets=3"},
                                 full = {"modules.language.recompute=[full]", "modules.radio_encoder.recompute=[full]"};
  const auto frozen = [](const char* module, const char* part) {
    return std::string("modules.") + module + ".train." + part + "=frozen";
  };
  const std::vector<std::string> apart = Join(EncoderOn(1, 1), LanguageOn(1, 1, 1, 1));
  const auto text = [&](int ranks, int tp, int ep) { return LanguageOn(0, ranks, tp, ep); };
  std::vector<Target> targets = {
      {"one_rank", kTinyRecipe, Join(OneRankOnly(), saves, fp64)},
      {"one_rank_recompute", kTinyRecipe, Join(OneRankOnly(), full, bf16)},
      {"text_one_rank", kTextRecipe, saves},
      {"text_bf16", kTextRecipe, Join(bf16, saves)},
      {"apart", kTinyRecipe, Join(apart, saves, fp64)},
      {"text_dp2_overlap", kTextRecipe, Join(text(2, 1, 1), overlap, saves)},
      {"text_tp2", kTextRecipe, Join(text(2, 2, 1), bf16)},
      {"text_ep2", kTextRecipe, Join(text(2, 1, 2), saves, fp64)},
      {"text_ep2_gathered_overlapped", kTextRecipe,
       Join(text(2, 1, 2),
            {"modules.language.parallel.dispatch=all_gather", "modules.language.parallel.overlap_dispatch=true"})},
      {"text_pp2", kTextRecipe, Join(text(2, 1, 1), Parallel("language", {{"pp", 2}}), saves)},
      {"text_cp2", kTextRecipe, Join(text(2, 1, 1), Parallel("language", {{"cp", 2}}), fp64)},
      {"text_expert_tp2", kTextRecipe, Join(text(2, 1, 1), Parallel("language", {{"expert_tp", 2}}), saves)},
      {"text_pp2_dp2_ep2", kTextRecipe, Join(text(4, 1, 2), Parallel("language", {{"pp", 2}}), saves)},
      {"text_packed", kTextRecipe, Join(text(2, 2, 2), {"data.packed_documents=true"})},
      {"colocated_2", kTinyRecipe, Join(EncoderOn(2, 2), LanguageOn(0, 2, 1, 2), saves)},
      {"fan_out", kTinyRecipe, Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 2), bf16)},
      {"fan_in", kTinyRecipe, Join(EncoderOn(2, 1), LanguageOn(2, 1, 1, 1), Join({"batch.micro_samples=2"}, saves))},
      {"tp2_tp2", kTinyRecipe, Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 1), saves)},
      {"encoder_cp2", kTinyRecipe,
       Join(EncoderOn(2, 1), LanguageOn(2, 1, 1, 1), Parallel("radio_encoder", {{"cp", 2}}))},
      {"encoder_pp2_pp2", kTinyRecipe,
       Join(EncoderOn(2, 1), LanguageOn(2, 2, 1, 1),
            Join(Parallel("radio_encoder", {{"pp", 2}}), Parallel("language", {{"pp", 2}}), saves))},
      {"frozen_encoder", kTinyRecipe,
       Join(apart, saves, {frozen("radio_encoder", "backbone"), frozen("radio_encoder", "projection")})},
      {"frozen_language", kTinyRecipe, Join(apart, saves, {frozen("language", "backbone")})},
      {"stage1_colocated", kTinyRecipe,
       Join(OneRankOnly(), saves, {frozen("radio_encoder", "backbone"), frozen("language", "backbone")})},
      {"adapters_pp2_tp2", kTextRecipe,
       Join(text(4, 2, 2), Parallel("language", {{"pp", 2}}),
            Join(saves, {frozen("language", "backbone"),
                         "modules.language.adapter={rank: 2, alpha: 3.0, targets: [in_proj, q_proj, v_proj, o_proj, "
                         "shared_experts.down_proj]}"}))},
      {"adapters_apart", kTinyRecipe,
       Join(apart, saves,
            {frozen("language", "backbone"), frozen("radio_encoder", "backbone"),
             "modules.radio_encoder.adapter={rank: 2, alpha: 3.0, targets: [qkv, fc2]}"})},
      {"recompute_moe", kTextRecipe, Join(text(2, 1, 2), {"modules.language.recompute=[moe]"})},
      {"two_encoders", "recipes/nemotron_moe_two_encoders_tiny.yaml", saves},
      // Features of inner layers of the encoder, over stages of both modules.
      {"features", "tests/verify/carries.yaml",
       Join({"modules.eye_encoder={model: eye, placement: {first_rank: 0, ranks: 2}, parallel: {pp: 2}}",
             "modules.language={model: tongue, placement: {first_rank: 2, ranks: 2}, parallel: {pp: 2, stage_layers: "
             "[3, 7]}}"},
            saves)},
      {"features_frozen", "tests/verify/carries.yaml",
       Join(saves, {"modules.eye_encoder.train={backbone: frozen}", "modules.language.placement.ranks=2",
                    "modules.language.parallel.tp=2"})},
      {"initialize", kTextRecipe, Join(text(2, 1, 2), saves, {"initialize.from=weights.safetensors"})},
      {"initialize_go_on", kTextRecipe,
       Join(saves, {"initialize.from=checkpoint", "initialize.optimizer=true", "initialize.schedule=checkpoint"})},
      {"tar", kTinyRecipe,
       Join(
           OneRankOnly(), saves,
           {"models.hybrid_moe_tiny.vocabulary=260",
            "data={kind: sources, seed: 1, sources: [{kind: webdataset, shards: samples/all.tar}], max_patches: 16}"})},
  };
  for (Target& target : targets) target.overrides = Join(small, target.overrides);
  return targets;
}

std::vector<std::vector<std::string>> DonorOverrides() {
  return {{"name=wider", "batch.global_samples=8", "budget.train_samples=32"},
          {"name=other_buckets", "gradients.buckets=2", "seed=7"},
          {"name=recomputed", "modules.language.recompute=[full]", "precision.params=fp64"},
          {"name=micro", "batch.micro_samples=2", "checkpoint.every_steps=0"},
          {"name=frozen", "modules.language.train.backbone=frozen"},
          {"name=pairs", "modules.language.placement.ranks=2", "modules.language.parallel.ep=2"},
          {"name=lanes", "modules.language.placement.ranks=2", "modules.language.parallel.ep=1",
           "modules.language.parallel.tp=1", "modules.language.parallel.pp=1", "modules.language.parallel.cp=1"},
          {"name=cut", "modules.language.placement.ranks=2", "modules.language.parallel.tp=2",
           "modules.language.parallel.ep=1"},
          {"name=rates", "budget.learning_rate.peak=1.0e-3", "budget.weight_decay.end=0.1", "optimizer.beta2=0.9"},
          {"name=saved", "checkpoint.every_steps=1", "precision.params=bf16"},
          {"name=overlapped", "gradients.overlap_reduce=true", "gradients.overlap_gather=true"}};
}

}  // namespace planwright::attack
