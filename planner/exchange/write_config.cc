#include "planner/exchange/write_config.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "planner/exchange/config_dtype.h"
#include "planner/exchange/config_keys.h"
#include "planner/exchange/made_tensors.h"
#include "planner/state/dialect/pixel_norm.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kTransformers[] = "5.23.0";
// Epsilon of the norm in the projector, which nemotron_h_omni has in its code.
constexpr double kProjectorEps = 1e-5;

Json TokenOrNull(int64_t token) { return token < 0 ? Json() : Json(token); }

// The ratio by which int(hidden * ratio) is `ffn`, as transformers computes it; none: no double is.
std::optional<double> MlpRatio(int64_t hidden, int64_t ffn) {
  const double width = static_cast<double>(hidden);
  double ratio = static_cast<double>(ffn) / width;
  for (int i = 0; i < 2; ++i, ratio = std::nextafter(ratio, INFINITY)) {
    if (static_cast<int64_t>(width * ratio) == ffn) return ratio;
  }
  return std::nullopt;
}

Json LayerTypes(const std::string& pattern) {
  Json types = Json::array();
  for (const char letter : pattern) {
    types.push_back(letter == 'M'   ? "linear_attention"
                    : letter == '*' ? "full_attention"
                    : letter == 'E' ? "moe"
                                    : "mlp");
  }
  return types;
}

// Keys of layer kinds that the model does not have are left out: transformers then has its defaults, and uses none.
Json LanguageConfig(const Plan& plan, const LanguageSizes& sizes, bool final_norm, std::vector<std::string>& made_up) {
  Json config = {{"model_type", "nemotron_h"},
                 {"vocab_size", sizes.vocabulary.value},
                 {"hidden_size", sizes.hidden.value},
                 {"layers_block_type", LayerTypes(sizes.pattern.value)},
                 {"layer_norm_epsilon", sizes.norm_eps.value},
                 {"initializer_range", sizes.init_std.value},
                 {"mlp_hidden_act", "relu2"},
                 {"tie_word_embeddings", false},
                 {"use_bias", false},
                 {"mlp_bias", false},
                 {"residual_in_fp32", false},
                 {"num_nextn_predict_layers", final_norm ? 1 : 0},
                 {"max_position_embeddings", plan.budget.sequence_length},
                 {"bos_token_id", nullptr},
                 {"eos_token_id", TokenOrNull(plan.data.end_token)},
                 {"pad_token_id", TokenOrNull(plan.data.pad_token)},
                 {"use_cache", true}};
  if (sizes.has('*')) {
    config.update({{"num_attention_heads", sizes.heads.value},
                   {"num_key_value_heads", sizes.kv_groups.value},
                   {"head_dim", sizes.head_dim.value},
                   {"attention_bias", false}});
  }
  if (sizes.has('M')) {
    config.update({{"mamba_num_heads", sizes.mamba_heads.value},
                   {"mamba_head_dim", sizes.mamba_head_dim.value},
                   {"n_groups", sizes.mamba_groups.value},
                   {"ssm_state_size", sizes.mamba_state.value},
                   {"conv_kernel", sizes.mamba_conv.value},
                   {"chunk_size", sizes.mamba_chunk.value},
                   {"mamba_hidden_act", "silu"},
                   {"use_conv_bias", true},
                   {"mamba_proj_bias", false},
                   {"time_step_limit", {0.0, {{"__float__", "Infinity"}}}},
                   {"time_step_min", 0.0}});
    made_up.emplace_back("time_step_min 0: transformers 5.23 does not let a time step be below it, and a run does");
  }
  if (sizes.has('E')) {
    config.update({{"n_routed_experts", sizes.experts.value},
                   {"num_experts_per_tok", sizes.top_k.value},
                   {"moe_intermediate_size", sizes.ffn.value},
                   {"moe_shared_expert_intermediate_size", sizes.shared_ffn.value},
                   {"n_shared_experts", 1},
                   {"routed_scaling_factor", sizes.scale.value},
                   {"norm_topk_prob", sizes.normalized.value},
                   {"n_group", 1},
                   {"topk_group", 1},
                   {"moe_latent_size", nullptr}});
  }
  if (sizes.has('-')) config["intermediate_size"] = sizes.mlp_ffn.value;
  if (final_norm) {
    made_up.emplace_back(
        "num_nextn_predict_layers 1, without such layers: only by it transformers builds vision_final_layernorm");
  }
  return config;
}

Json EncoderConfig(const EncoderSizes& sizes, bool videos) {
  const ClassTokenSplit split = SplitClassTokens(sizes.class_tokens.value);
  Json config = {{"model_type", "radio"},
                 {"hidden_size", sizes.hidden.value},
                 {"num_hidden_layers", sizes.layers.value},
                 {"num_attention_heads", sizes.heads.value},
                 {"mlp_ratio", MlpRatio(sizes.hidden.value, sizes.ffn.value).value_or(0)},
                 {"hidden_act", sizes.activation.value == "gelu" ? "gelu" : "gelu_pytorch_tanh"},
                 {"layer_norm_eps", sizes.norm_eps.value},
                 {"patch_size", sizes.patch.value},
                 {"max_img_size", sizes.max_image.value},
                 {"image_size", sizes.max_image.value},
                 {"num_channels", 3},
                 {"num_cls_tokens", split.cls},
                 {"num_registers", split.registers},
                 {"summary_idxs", split.summary},
                 {"qkv_bias", true},
                 {"use_swiglu_ffn", false},
                 {"layerscale_value", 1.0},
                 {"norm_mean", kPixelMean},
                 {"norm_std", kPixelDeviation},
                 {"initializer_range", sizes.init_std.value}};
  if (videos) config["video_temporal_patch_size"] = kVideoFrames;
  return config;
}

}  // namespace

void CheckExpressible(const ModelSizes& sizes, ConfigKind kind, Findings& findings) {
  if (sizes.encoder) {
    const EncoderSizes& encoder = *sizes.encoder;
    if (!MlpRatio(encoder.hidden.value, encoder.ffn.value)) {
      findings.Problem(encoder.ffn.from, absl::StrCat(encoder.ffn.value),
                       absl::StrCat("is no multiple of ", encoder.hidden.value, " that a ratio can say"));
    }
    if (kind == ConfigKind::kEncoder && encoder.final_norm.value != "none") {
      findings.Problem(encoder.final_norm.from, encoder.final_norm.value,
                       "cannot be expressed: transformers' radio has no norm after its last block");
    }
  }
  if (kind != ConfigKind::kVisionLanguage || !sizes.projector) return;
  const ProjectorSizes& projector = *sizes.projector;
  if (projector.norm_eps.value != kProjectorEps) {
    findings.Problem(projector.norm_eps.from, ShortestText(projector.norm_eps.value),
                     absl::StrCat("cannot be expressed: nemotron_h_omni has ", ShortestText(kProjectorEps)));
  }
  if (projector.pixel_shuffle.value != 2) {
    findings.Problem(projector.pixel_shuffle.from, absl::StrCat(projector.pixel_shuffle.value),
                     "cannot be expressed: nemotron_h_omni joins squares of 2 x 2 patches");
  }
}

Json ConfigOf(const Plan& plan, const ModelSizes& sizes, ConfigKind kind, DType dtype,
              std::vector<std::string>& made_up) {
  const Json about = {{"dtype", TorchName(dtype)}, {"transformers_version", kTransformers}};
  if (kind == ConfigKind::kLanguage) {
    Json config = LanguageConfig(plan, *sizes.language, false, made_up);
    config["architectures"] = Json::array({"NemotronHForCausalLM"});
    config.update(about);
    return config;
  }
  if (kind == ConfigKind::kEncoder) {
    Json config = EncoderConfig(*sizes.encoder, false);
    config["architectures"] = Json::array({"RadioModel"});
    config.update(about);
    return config;
  }
  const bool final_norm = sizes.encoder->final_norm.value == "layernorm";
  Json config = {{"model_type", "nemotron_h_omni"},
                 {"architectures", Json::array({"NemotronH_Omni_Reasoning_V3"})},
                 {"text_config", LanguageConfig(plan, *sizes.language, final_norm, made_up)},
                 {"vision_config", EncoderConfig(*sizes.encoder, true)},
                 {"audio_config", nullptr},
                 {"projector_hidden_size", sizes.projector->hidden.value},
                 {"vision_hidden_size", sizes.encoder->hidden.value},
                 {"downsample_ratio", 1.0 / static_cast<double>(sizes.projector->pixel_shuffle.value)},
                 {"image_token_id", sizes.image_token ? TokenOrNull(sizes.image_token->value) : Json()},
                 {"video_token_id", nullptr},
                 {"audio_token_id", nullptr},
                 {"force_image_size", nullptr},
                 {"video_temporal_patch_size", kVideoFrames}};
  config.update(about);
  return config;
}

}  // namespace planwright
