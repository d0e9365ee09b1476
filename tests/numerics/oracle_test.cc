// The results of another implementation, Hugging Face transformers in fp64, are reproduced in the ordinary way: a
// recipe, published weights, a recorded batch, --probe. tests/interop/README.md says how they came to be. Its gradients
// are of the summed loss; ours are divided by the number of loss tokens.
#include "tests/numerics/oracle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_replace.h"
#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"

namespace planwright::testing {
namespace {

// `trained`: how names of what is trained begin; none: all. Of other parameters there is no gradient.
void ExpectOracle(const std::vector<std::string>& layout, const std::string& recipe = kOracleRecipe,
                  const std::vector<std::string>& trained = {}) {
  const auto is_trained = [&](const std::string& name) {
    return trained.empty() || std::any_of(trained.begin(), trained.end(),
                                          [&](const std::string& begin) { return name.starts_with(begin); });
  };
  const TrainingRun run = Launch({recipe, layout, 0, ""});
  ASSERT_EQ(run.exit_code, 0) << run.output;
  ASSERT_EQ(run.steps.size(), 1u);
  const auto& rows = run.steps[0].bridge_mean_square;
  OracleDifferences found = CompareWithOracle({.values = run.values_first,
                                               .gradients = run.gradients_first,
                                               .loss = run.steps[0].loss,
                                               .mean_square = rows.empty() ? 0 : rows.begin()->second},
                                              recipe);
  constexpr std::string_view kGradients = "gradients/", kMissing = " is not there";
  std::erase_if(found.beyond, [&](const std::string& what) {
    return what.starts_with(kGradients) && what.ends_with(kMissing) && !is_trained(what.substr(kGradients.size()));
  });
  EXPECT_THAT(found.beyond, ::testing::IsEmpty());
  EXPECT_GT(found.outputs, 0u);
  EXPECT_EQ(found.outputs, run.values_first.size());
  if (trained.empty()) EXPECT_EQ(found.gradients, run.gradients_first.size());
  EXPECT_FALSE(run.gradients_first.empty());
  for (const auto& [name, gradient] : run.gradients_first) EXPECT_TRUE(is_trained(name)) << name;
  std::printf("worst output %.1e, worst gradient %.1e of %zu\n", found.worst_output, found.worst_gradient,
              found.gradients);
}

TEST(Oracle, OneRank) { ExpectOracle({}); }
TEST(Oracle, OneRankBothSamplesAtOnce) { ExpectOracle({"batch.micro_samples=2"}); }
TEST(Oracle, Tp2Tp2WithEp2) { ExpectOracle(Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2))); }
TEST(Oracle, Cp2WithEp2) {
  ExpectOracle(Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 2), Parallel("language", {{"cp", 2}})));
}
TEST(Oracle, ExpertTp2WithEp2) {
  ExpectOracle(Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 2), Parallel("language", {{"expert_tp", 2}})));
}
TEST(Oracle, EncoderCp2) {
  ExpectOracle(Join(EncoderOn(2, 1), Parallel("radio_encoder", {{"cp", 2}}), LanguageOn(2, 1, 1, 1)));
}
TEST(Oracle, Dp2Dp2) { ExpectOracle(Join(EncoderOn(2, 1), LanguageOn(2, 2, 1, 1))); }
TEST(Oracle, Pp2) { ExpectOracle(Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 1), Parallel("language", {{"pp", 2}}))); }
TEST(Oracle, EncoderPp3AndPp4) {
  ExpectOracle(Join(Join(EncoderOn(3, 1), Parallel("radio_encoder", {{"pp", 3}})), LanguageOn(3, 4, 1, 1),
                    Parallel("language", {{"pp", 4}})));
}
TEST(Oracle, PpCpAndExpertTpTogether) {
  ExpectOracle(
      Join(EncoderOn(1, 1), LanguageOn(1, 4, 1, 1), Parallel("language", {{"pp", 2}, {"cp", 2}, {"expert_tp", 2}})));
}

TEST(Oracle, PublishedModelOnOneRank) { ExpectOracle({}, kPublishedOracleRecipe); }
TEST(Oracle, PublishedModelTp2WithEp2) {
  ExpectOracle(Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2)), kPublishedOracleRecipe);
}

std::vector<std::string> LanguageAlone(int ranks, int tp, int ep) { return LanguageOn(0, ranks, tp, ep); }
std::vector<std::string> OverTwo(const char* axis) {
  return Join(LanguageAlone(2, 1, 1), Parallel("language", {{axis, 2}}));
}

// Nemotron 3 Nano. On four ranks each two share a kv head, and have unequal parts of the vocabulary.
void ExpectNano(const std::vector<std::string>& layout) {
  ExpectOracle(layout, "tests/golden/nano_oracle/oracle.yaml");
}
TEST(Nano, OneRank) { ExpectNano({}); }
TEST(Nano, Tp2Ep2) { ExpectNano(LanguageAlone(2, 2, 2)); }
TEST(Nano, Tp4OfTwoKvHeads) { ExpectNano(LanguageAlone(4, 4, 2)); }
TEST(Nano, Pp2) { ExpectNano(Join(OverTwo("pp"), {"models.nano.pattern=MEM|*E"})); }
TEST(Nano, Cp2) { ExpectNano(OverTwo("cp")); }

// The weights of a token's experts, divided by their sum and not: of one expert and of all, by both kinds of dispatch.
void ExpectExperts(const std::string& name, const std::vector<std::string>& layout) {
  ExpectOracle(layout, "tests/golden/" + name + "_oracle/oracle.yaml");
}
const std::vector<std::string> kExpertTp2Ep2 = Join(LanguageAlone(4, 2, 2), Parallel("language", {{"expert_tp", 2}}));
TEST(ExpertWeights, OneExpert) { ExpectExperts("one_expert", {}); }
TEST(ExpertWeights, OneExpertOnExpertTp2Ep2) { ExpectExperts("one_expert", kExpertTp2Ep2); }
TEST(ExpertWeights, OneExpertUndivided) { ExpectExperts("one_expert_undivided", {}); }
TEST(ExpertWeights, OneExpertUndividedOnEp2) { ExpectExperts("one_expert_undivided", LanguageAlone(2, 1, 2)); }
TEST(ExpertWeights, AllExperts) { ExpectExperts("all_experts", {}); }
TEST(ExpertWeights, AllExpertsGathered) {
  ExpectExperts("all_experts", Join(LanguageAlone(2, 1, 2), {"modules.language.parallel.dispatch=all_gather"}));
}
TEST(ExpertWeights, AllExpertsUndivided) { ExpectExperts("all_experts_undivided", {}); }
TEST(ExpertWeights, AllExpertsUndividedOnExpertTp2Ep2) { ExpectExperts("all_experts_undivided", kExpertTp2Ep2); }

// Nemotron Nano v2, with dense MLPs.
void ExpectNanoV2(const std::vector<std::string>& layout) {
  ExpectOracle(layout, "tests/golden/nano_v2_oracle/oracle.yaml");
}
TEST(NanoV2, OneRank) { ExpectNanoV2({}); }
TEST(NanoV2, Tp2) { ExpectNanoV2(LanguageAlone(2, 2, 1)); }
TEST(NanoV2, Tp4) { ExpectNanoV2(LanguageAlone(4, 4, 1)); }
TEST(NanoV2, Pp2) { ExpectNanoV2(Join(OverTwo("pp"), {"models.nano_v2.pattern=M-M|*-"})); }
TEST(NanoV2, Cp2) { ExpectNanoV2(OverTwo("cp")); }

// Llama 3, with biases and stretched positions. On four ranks each two share a key head.
void ExpectLlama(const std::vector<std::string>& layout) {
  ExpectOracle(layout, "tests/golden/llama_oracle/oracle.yaml");
}
TEST(Llama, OneRank) { ExpectLlama({}); }
TEST(Llama, Tp2) { ExpectLlama(LanguageAlone(2, 2, 1)); }
TEST(Llama, Tp4OfTwoKvHeads) { ExpectLlama(LanguageAlone(4, 4, 1)); }
TEST(Llama, Pp2) { ExpectLlama(Join(OverTwo("pp"), {"models.llama.pattern=\"*-*|-\""})); }
TEST(Llama, Cp2) { ExpectLlama(OverTwo("cp")); }
TEST(Llama, Cp2Tp2) { ExpectLlama(Join(LanguageAlone(4, 2, 1), Parallel("language", {{"cp", 2}}))); }

// Qwen3, tied, with norms of heads, YaRN and packed documents, whose positions begin anew.
void ExpectQwen3(const std::vector<std::string>& layout) {
  ExpectOracle(layout, "tests/golden/qwen3_oracle/oracle.yaml");
}
TEST(Qwen3, OneRank) { ExpectQwen3({}); }
TEST(Qwen3, Tp2) { ExpectQwen3(LanguageAlone(2, 2, 1)); }
TEST(Qwen3, Tp4OfTwoKvHeads) { ExpectQwen3(LanguageAlone(4, 4, 1)); }
TEST(Qwen3, Cp2) { ExpectQwen3(OverTwo("cp")); }
TEST(Qwen3, Cp2Tp2) { ExpectQwen3(Join(LanguageAlone(4, 2, 1), Parallel("language", {{"cp", 2}}))); }

// Qwen3 with experts and a dense block; and with weights of experts that are not divided by their sum.
void ExpectQwen3Moe(const std::vector<std::string>& layout, const std::string& name = "qwen3_moe") {
  ExpectOracle(layout, "tests/golden/" + name + "_oracle/oracle.yaml");
}
TEST(Qwen3Moe, OneRank) { ExpectQwen3Moe({}); }
TEST(Qwen3Moe, Tp2Ep2) { ExpectQwen3Moe(LanguageAlone(2, 2, 2)); }
TEST(Qwen3Moe, Tp4OfTwoKvHeads) { ExpectQwen3Moe(LanguageAlone(4, 4, 2)); }
TEST(Qwen3Moe, ExpertTp2Ep2) { ExpectQwen3Moe(kExpertTp2Ep2); }
TEST(Qwen3Moe, Pp2) { ExpectQwen3Moe(Join(OverTwo("pp"), {"models.qwen3_moe.pattern=\"*-*|E\""})); }
TEST(Qwen3Moe, Cp2) { ExpectQwen3Moe(OverTwo("cp")); }
TEST(Qwen3Moe, Gathered) {
  ExpectQwen3Moe(Join(LanguageAlone(2, 1, 2), {"modules.language.parallel.dispatch=all_gather"}));
}
TEST(Qwen3Moe, Undivided) { ExpectQwen3Moe({}, "qwen3_moe_undivided"); }
TEST(Qwen3Moe, UndividedOnEp2) { ExpectQwen3Moe(LanguageAlone(2, 1, 2), "qwen3_moe_undivided"); }

// Nemotron 3 Nano Omni: RADIO as it is published, projector and language model.
void ExpectOmni(const std::vector<std::string>& layout) {
  ExpectOracle(layout, "tests/golden/omni_oracle/oracle.yaml");
}
TEST(Omni, Colocated) { ExpectOmni({}); }
TEST(Omni, ColocatedTp2Ep2) { ExpectOmni(Join(EncoderOn(2, 2), LanguageAlone(2, 2, 2))); }
TEST(Omni, Tp2AndTp2Ep2) { ExpectOmni(Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2))); }
TEST(Omni, Tp2AndPp2) {
  ExpectOmni(Join(Join(EncoderOn(2, 2), LanguageOn(2, 2, 1, 1)), Parallel("language", {{"pp", 2}}),
                  {"models.tongue.pattern=ME|M*E"}));
}
TEST(Omni, Cp2AndCp2) {
  ExpectOmni(Join(Join(EncoderOn(2, 1), LanguageOn(2, 2, 1, 1)),
                  Join(Parallel("radio_encoder", {{"cp", 2}}), Parallel("language", {{"cp", 2}}))));
}

// RADIO by itself, before a projector and one layer of attention.
void ExpectRadio(const std::vector<std::string>& layout) {
  ExpectOracle(layout, "tests/golden/radio_oracle/oracle.yaml");
}
TEST(Radio, OneRank) { ExpectRadio({}); }
TEST(Radio, Tp2) { ExpectRadio(Join(EncoderOn(2, 2), LanguageOn(2, 1, 1, 1))); }
TEST(Radio, Pp3) { ExpectRadio(Join(EncoderOn(3, 1), Parallel("radio_encoder", {{"pp", 3}}), LanguageOn(3, 1, 1, 1))); }

// LLaVA with SigLIP, whose images have pixels behind their last patches; and SigLIP by itself, with the norm behind its
// last block and squares of patches, before a decoder.
void ExpectSiglip(const std::string& name, std::vector<std::string> layout,
                  const std::vector<std::string>& trained = {}) {
  for (std::string& each : layout) absl::StrReplaceAll({{"radio_encoder", "eye_encoder"}}, &each);
  ExpectOracle(layout, "tests/golden/" + name + "_oracle/oracle.yaml", trained);
}
TEST(Llava, Colocated) { ExpectSiglip("llava", {}); }
TEST(Llava, AllSamplesAtOnce) { ExpectSiglip("llava", {"batch.micro_samples=3"}); }
TEST(Llava, Tp2AndTp2) { ExpectSiglip("llava", Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 1))); }
TEST(Llava, Cp2AndCp2) {
  ExpectSiglip("llava", Join(Join(EncoderOn(2, 1), LanguageOn(2, 2, 1, 1)),
                             Join(Parallel("radio_encoder", {{"cp", 2}}), Parallel("language", {{"cp", 2}}))));
}
TEST(Llava, EncoderTp2Dp2ApartFromPp2) {
  ExpectSiglip("llava", Join(Join(EncoderOn(4, 2), LanguageOn(4, 2, 1, 1)),
                             Join(Parallel("language", {{"pp", 2}}), {"batch.micro_samples=3"})));
}
TEST(Llava, EncoderPp3AndCp2Tp2) {
  ExpectSiglip("llava", Join(Join(EncoderOn(3, 1), Parallel("radio_encoder", {{"pp", 3}})),
                             Join(LanguageOn(3, 4, 2, 1), Parallel("language", {{"cp", 2}}))));
}
TEST(Llava, ProjectorAlone) {
  ExpectSiglip("llava",
               Join(Join(EncoderOn(2, 2), LanguageOn(2, 1, 1, 1)),
                    {"modules.radio_encoder.train.backbone=frozen", "modules.language.train.backbone=frozen"}),
               {"multi_modal_projector."});
}
TEST(Llava, EncoderAlone) {
  ExpectSiglip("llava", {"modules.radio_encoder.train.projection=frozen", "modules.language.train.backbone=frozen"},
               {"vision_tower."});
}
TEST(Llava, Recomputed) {
  ExpectSiglip("llava", {"modules.radio_encoder.recompute=full", "modules.language.recompute=full"});
}
TEST(Siglip, OneRank) { ExpectSiglip("siglip", {}); }
TEST(Siglip, Tp2Cp2) {
  ExpectSiglip("siglip", Join(Join(EncoderOn(4, 2), Parallel("radio_encoder", {{"cp", 2}})), LanguageOn(4, 1, 1, 1)));
}
TEST(Siglip, Dp2Dp2) { ExpectSiglip("siglip", Join(EncoderOn(2, 1), LanguageOn(2, 2, 1, 1))); }
TEST(Siglip, Pp2) {
  ExpectSiglip("siglip", Join(EncoderOn(2, 1), Parallel("radio_encoder", {{"pp", 2}}), LanguageOn(2, 1, 1, 1)));
}

// Qwen3-VL without DeepStack: its encoder, whose images are smaller and larger than its table of positions, and a
// decoder with positions of three axes.
void ExpectQwen3Vl(std::vector<std::string> layout, const std::string& name = "qwen3_vl",
                   const std::vector<std::string>& trained = {}) {
  for (std::string& each : layout) absl::StrReplaceAll({{"radio_encoder", "eye_encoder"}}, &each);
  ExpectOracle(layout, "tests/golden/" + name + "_oracle/oracle.yaml", trained);
}
TEST(Qwen3Vl, Colocated) { ExpectQwen3Vl({}); }
TEST(Qwen3Vl, AllSamplesAtOnce) { ExpectQwen3Vl({"batch.micro_samples=3"}); }
TEST(Qwen3Vl, EncoderTp2Dp2ApartFromPp2) {
  ExpectQwen3Vl(Join(Join(EncoderOn(4, 2), LanguageOn(4, 2, 1, 1)),
                     Join(Parallel("language", {{"pp", 2}}), {"batch.micro_samples=3"})));
}
TEST(Qwen3Vl, Cp2AndCp2) {
  ExpectQwen3Vl(Join(Join(EncoderOn(2, 1), LanguageOn(2, 2, 1, 1)),
                     Join(Parallel("radio_encoder", {{"cp", 2}}), Parallel("language", {{"cp", 2}}))));
}
TEST(Qwen3Vl, EncoderTp2Cp2AndTp4OfTwoKvHeads) {
  ExpectQwen3Vl(Join(Join(EncoderOn(4, 2), Parallel("radio_encoder", {{"cp", 2}})), LanguageOn(4, 4, 4, 1)));
}
TEST(Qwen3Vl, EncoderPp3AndCp2Tp2) {
  ExpectQwen3Vl(Join(Join(EncoderOn(3, 1), Parallel("radio_encoder", {{"pp", 3}})),
                     Join(LanguageOn(3, 4, 2, 1), Parallel("language", {{"cp", 2}}))));
}
TEST(Qwen3Vl, MergerAlone) {
  ExpectQwen3Vl(Join(Join(EncoderOn(2, 2), LanguageOn(2, 1, 1, 1)),
                     {"modules.radio_encoder.train.backbone=frozen", "modules.language.train.backbone=frozen"}),
                "qwen3_vl", {"visual.merger."});
}
TEST(Qwen3Vl, LanguageFrozen) { ExpectQwen3Vl({"modules.language.train.backbone=frozen"}, "qwen3_vl", {"visual."}); }
// A frozen merger hands the gradient on.
TEST(Qwen3Vl, BlocksOfTheEncoderAlone) {
  ExpectQwen3Vl({"modules.radio_encoder.train.projection=frozen", "modules.language.train.backbone=frozen"}, "qwen3_vl",
                {"visual.blocks.", "visual.patch_embed.", "visual.pos_embed."});
}
TEST(Qwen3Vl, RecomputedApart) {
  ExpectQwen3Vl(Join(Join(EncoderOn(2, 1), LanguageOn(2, 2, 2, 1)),
                     Join(Parallel("radio_encoder", {{"cp", 2}}),
                          {"modules.radio_encoder.recompute=full", "modules.language.recompute=elementwise"})));
}

// The same with a dense block and one with experts.
TEST(Qwen3VlMoe, Colocated) { ExpectQwen3Vl({}, "qwen3_vl_moe"); }
TEST(Qwen3VlMoe, EncoderTp2AndTp2Ep2) { ExpectQwen3Vl(Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2)), "qwen3_vl_moe"); }
TEST(Qwen3VlMoe, Pp2) {
  ExpectQwen3Vl(Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 1),
                     Join(Parallel("language", {{"pp", 2}}), {"models.tongue.pattern=\"*-*|E\""})),
                "qwen3_vl_moe");
}

// With features of two inner layers of the encoder (DeepStack).
void ExpectDeepStack(const std::vector<std::string>& layout, const std::vector<std::string>& trained = {}) {
  ExpectQwen3Vl(layout, "qwen3_vl_deepstack", trained);
}
TEST(Qwen3VlDeepStack, Colocated) { ExpectDeepStack({}); }
TEST(Qwen3VlDeepStack, AllSamplesAtOnce) { ExpectDeepStack({"batch.micro_samples=3"}); }
// Both stages of the language model take features.
TEST(Qwen3VlDeepStack, EncoderTp2Dp2ApartFromPp2) {
  ExpectDeepStack(Join(Join(EncoderOn(4, 2), LanguageOn(4, 2, 1, 1)),
                       Join(Parallel("language", {{"pp", 2}}), {"batch.micro_samples=3"})));
}
// The stage in the middle hands them on.
TEST(Qwen3VlDeepStack, Pp3AndStagesOfTheEncoder) {
  ExpectDeepStack(
      Join(Join(EncoderOn(2, 1), LanguageOn(2, 3, 1, 1)),
           Join(Parallel("radio_encoder", {{"pp", 2}}), Parallel("language", {{"pp", 3}})),
           {"modules.language.parallel.stage_layers=[3, 2, 3]", "modules.radio_encoder.parallel.stage_layers=[3, 2]"}));
}
TEST(Qwen3VlDeepStack, Cp2Tp2OfBoth) {
  ExpectDeepStack(Join(Join(EncoderOn(4, 2), Parallel("radio_encoder", {{"cp", 2}})),
                       Join(LanguageOn(4, 4, 2, 1), Parallel("language", {{"cp", 2}}))));
}
TEST(Qwen3VlDeepStack, Cp2OfBoth) {
  ExpectDeepStack(Join(Join(EncoderOn(2, 1), LanguageOn(2, 2, 1, 1)), Parallel("radio_encoder", {{"cp", 2}}),
                       Parallel("language", {{"cp", 2}})));
}
TEST(Qwen3VlDeepStack, Tp2Pp2) {
  ExpectDeepStack(Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 1), Parallel("language", {{"pp", 2}})));
}
TEST(Qwen3VlDeepStack, MergersAlone) {
  ExpectDeepStack({"modules.radio_encoder.train.backbone=frozen", "modules.language.train.backbone=frozen"},
                  {"visual.merger.", "visual.deepstack_merger_list."});
}
// What comes back between the stages of the encoder is the gradient of the carry alone.
TEST(Qwen3VlDeepStack, MergersAloneOverStages) {
  ExpectDeepStack(Join(Join(EncoderOn(2, 1), LanguageOn(2, 2, 1, 1)),
                       Join(Parallel("radio_encoder", {{"pp", 2}}), Parallel("language", {{"pp", 2}})),
                       {"modules.radio_encoder.parallel.stage_layers=[3, 2]",
                        "modules.radio_encoder.train.backbone=frozen", "modules.language.train.backbone=frozen"}),
                  {"visual.merger.", "visual.deepstack_merger_list."});
}
TEST(Qwen3VlDeepStack, LanguageFrozen) { ExpectDeepStack({"modules.language.train.backbone=frozen"}, {"visual."}); }
TEST(Qwen3VlDeepStack, LanguageFrozenTp2Cp2) {
  ExpectDeepStack(Join(Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 1)),
                       Join(Parallel("language", {{"cp", 2}}), {"modules.language.train.backbone=frozen"})),
                  {"visual."});
}
TEST(Qwen3VlDeepStack, EncoderFrozen) {
  ExpectDeepStack({"modules.radio_encoder.train={backbone: frozen, projection: frozen}"}, {"language_model."});
}
TEST(Qwen3VlDeepStack, Recomputed) {
  ExpectDeepStack({"modules.radio_encoder.recompute=full", "modules.language.recompute=full"});
}

}  // namespace
}  // namespace planwright::testing
