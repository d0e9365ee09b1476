#include "planner/exchange/read_language.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace planwright {
namespace {

using Json = ConfigKeys::Json;

const std::string kDialect = "nemotron_h";

// A word of layers_block_type as a letter of a pattern; 0: it is none. transformers 4 called two of them otherwise.
char LetterOf(const std::string& word) {
  if (word == "linear_attention" || word == "mamba") return 'M';
  if (word == "full_attention" || word == "attention") return '*';
  if (word == "moe") return 'E';
  if (word == "mlp") return '-';
  return 0;
}

// The letters of all words that are layer types. The others are problems; what the rest of the config says of layers
// that are known can still be checked.
std::string LettersOf(ConfigKeys& keys, const std::string& path, const Json& words) {
  std::string letters;
  if (!words.is_array()) {
    keys.findings().Problem(path, ValueText(words), "is no list of layer types");
    return "";
  }
  for (size_t i = 0; i < words.size(); ++i) {
    const char letter = words[i].is_string() ? LetterOf(words[i].get<std::string>()) : 0;
    if (letter != 0) {
      letters += letter;
    } else {
      keys.findings().Problem(absl::StrCat(path, "[", i, "]"), ValueText(words[i]),
                              "is no layer type that can be expressed: linear_attention, full_attention, moe or mlp");
    }
  }
  return letters;
}

// The pattern, from the list of layer types or from the older text of letters.
Sourced<std::string> ReadPattern(ConfigKeys& keys) {
  const size_t problems = keys.findings().problems.size();
  Sourced<std::string> pattern;
  std::string path;
  std::optional<Sourced<std::string>> text = keys.Word({"hybrid_override_pattern"});
  if (text && text->value.find_first_not_of("M*E-") != std::string::npos) {
    keys.findings().Problem(text->from, ValueText(Json(text->value)), "has a letter that is none of M, *, E and -");
    std::erase_if(text->value, [](char letter) { return std::string_view("M*E-").find(letter) == std::string::npos; });
  }
  if (const Json* words = keys.Find({"layers_block_type", "layer_types"}, &path)) {
    pattern = {LettersOf(keys, path, *words), path};
    if (text && text->value != pattern.value) {
      keys.findings().Problem(text->from, ValueText(Json(text->value)),
                              "is not what " + path + " says: " + pattern.value);
    }
  } else if (text) {
    pattern = *text;
  } else {
    keys.findings().Problem(keys.PathOf("layers_block_type"), "", "is missing");
  }
  const std::optional<Sourced<int64_t>> layers = keys.Count({"num_hidden_layers"});
  const auto letters = static_cast<int64_t>(pattern.value.size());
  if (layers && keys.findings().problems.size() == problems && layers->value != letters) {
    keys.findings().Problem(layers->from, absl::StrCat(layers->value),
                            absl::StrCat("is not the number of layers in ", pattern.from, ": ", letters));
  }
  return pattern;
}

// transformers 5.23 takes it for the least time step in every forward, where others take it for an initial value alone.
void ReadLeastTimeStep(ConfigKeys& keys, LanguageSizes& sizes) {
  for (const char* key : {"time_step_min", "mamba_dt_min"}) {
    const Json* found = keys.Find({key});
    if (found == nullptr) continue;
    const double least = found->is_number() ? found->get<double>() : -1;
    if (!std::isfinite(least) || least < 0) {
      keys.WrongValue(key, *found, "is no number from 0");
    } else if (least > 0) {
      sizes.least_time_step = {least, keys.PathOf(key)};
      keys.NotTaken({key}, "a run does not limit time steps, and transformers 5.23 lets none be below it");
    }
  }
}

void ReadMamba(ConfigKeys& keys, LanguageSizes& sizes) {
  sizes.mamba_heads = keys.Size({"mamba_num_heads"});
  sizes.mamba_head_dim = keys.Size({"mamba_head_dim"});
  sizes.mamba_groups = keys.Size({"n_groups", "mamba_n_groups"});
  sizes.mamba_state = keys.Size({"ssm_state_size"});
  sizes.mamba_conv = keys.Size({"conv_kernel", "mamba_d_conv"}, 4, kDialect);
  sizes.mamba_chunk = keys.Size({"chunk_size", "mamba_chunk_size"}, 128, kDialect);
  keys.Only("mamba_hidden_act", "silu", "the activation of Mamba-2 layers");
  keys.Only("use_conv_bias", true, "the convolution of a Mamba-2 layer has a bias");
  keys.Only("mamba_conv_bias", true, "the convolution of a Mamba-2 layer has a bias");
  for (const char* limit : {"time_step_limit", "mamba_dt_limit"}) {
    const Json* found = keys.Find({limit});
    if (found == nullptr) continue;
    const bool open = found->is_array() && found->size() == 2 && (*found)[0].is_number() &&
                      (*found)[0].get<double>() == 0 && (*found)[1] == Json{{"__float__", "Infinity"}};
    if (!open) keys.WrongValue(limit, *found, "cannot be expressed, only 0 and infinity: time steps are not clamped");
  }
  ReadLeastTimeStep(keys, sizes);
}

void ReadAttention(ConfigKeys& keys, LanguageSizes& sizes) {
  sizes.heads = keys.Size({"num_attention_heads"});
  sizes.head_dim = keys.Size({"head_dim", "attention_head_dim"});
  sizes.kv_groups = keys.Has({"num_key_value_heads"}) ? keys.Size({"num_key_value_heads"}) : sizes.heads;
  keys.Nothing("sliding_window", "attention sees all earlier tokens");
}

void ReadExperts(ConfigKeys& keys, LanguageSizes& sizes) {
  sizes.experts = keys.Size({"n_routed_experts", "num_local_experts"});
  sizes.top_k = keys.Size({"num_experts_per_tok"});
  sizes.ffn = keys.Size({"moe_intermediate_size"});
  sizes.shared_ffn = keys.Size({"moe_shared_expert_intermediate_size"});
  sizes.normalized = keys.Flag({"norm_topk_prob"}, true, kDialect);
  sizes.scale = keys.Number({"routed_scaling_factor"}, 1.0, kDialect);
  keys.Only("n_shared_experts", 1, "a layer has one shared expert");
  keys.Only("n_group", 1, "all experts are one group");
  keys.Only("topk_group", 1, "all experts are one group");
  keys.Nothing("moe_latent_size", "experts read the residual stream, and no latent of it");
}

// Keys of layer kinds that the pattern does not have change nothing.
void KnowKeysOfOtherLayers(ConfigKeys& keys, const LanguageSizes& sizes) {
  if (!sizes.has('M')) {
    keys.Known({"mamba_num_heads", "mamba_head_dim", "n_groups", "mamba_n_groups", "ssm_state_size", "conv_kernel",
                "mamba_d_conv", "chunk_size", "mamba_chunk_size", "mamba_hidden_act", "use_conv_bias",
                "mamba_conv_bias", "time_step_limit", "mamba_dt_limit"});
  }
  if (!sizes.has('*'))
    keys.Known({"num_attention_heads", "head_dim", "attention_head_dim", "num_key_value_heads", "sliding_window"});
  if (!sizes.has('E')) {
    keys.Known({"n_routed_experts", "num_local_experts", "num_experts_per_tok", "moe_intermediate_size",
                "moe_shared_expert_intermediate_size", "routed_scaling_factor", "n_shared_experts", "n_group",
                "topk_group", "norm_topk_prob", "moe_latent_size"});
  }
  if (!sizes.has('-')) keys.Known({"intermediate_size"});
}

void ReadWholeModel(ConfigKeys& keys, LanguageSizes& sizes) {
  sizes.hidden = keys.Size({"hidden_size"});
  sizes.vocabulary = keys.Size({"vocab_size"});
  sizes.init_std = keys.Number({"initializer_range"}, 0.02, kDialect);
  sizes.norm_eps = keys.Number({"layer_norm_epsilon", "norm_eps", "rms_norm_eps"}, 1e-5, kDialect);
  keys.Nothing("tie_word_embeddings", "embedding and output head are two tensors");
  keys.Nothing("residual_in_fp32", "the residual stream has the precision of the run");
  for (const char* bias : {"attention_bias", "mlp_bias", "use_bias", "mamba_proj_bias"})
    keys.Nothing(bias, "linear layers of the language model have no bias");
  keys.Only("mlp_hidden_act", "relu2", "the activation of experts and dense layers; they have no gate");
  keys.Only("hidden_act", "relu2", "the activation of experts and dense layers; they have no gate");
  for (const char* dropout : {"attention_dropout", "hidden_dropout"}) keys.Nothing(dropout, "there is no dropout");
  // Published configs have these two, though no code of nemotron_h reads them: the model has no position embedding.
  keys.NotTaken({"rope_theta", "partial_rotary_factor"}, "nemotron_h has no position embedding, and reads no such key");
  for (const char* rope : {"rope_scaling", "rope_parameters", "position_embedding_type"})
    keys.Nothing(rope, "there is no position embedding, so no RoPE");
  keys.Nothing("quantization_config", "weights are not quantized");
}

}  // namespace

void KnowCommonKeys(ConfigKeys& keys) {
  keys.Known({"architectures",
              "auto_map",
              "model_type",
              "dtype",
              "torch_dtype",
              "transformers_version",
              "_name_or_path",
              "_attn_implementation",
              "_attn_implementation_autoset",
              "attn_implementation",
              "return_dict",
              "output_hidden_states",
              "output_attentions",
              "torchscript",
              "use_bfloat16",
              "tf_legacy_loss",
              "pruned_heads",
              "tie_encoder_decoder",
              "chunk_size_feed_forward",
              "is_encoder_decoder",
              "is_decoder",
              "cross_attention_hidden_size",
              "add_cross_attention",
              "finetuning_task",
              "id2label",
              "label2id",
              "tokenizer_class",
              "prefix",
              "bos_token_id",
              "pad_token_id",
              "eos_token_id",
              "sep_token_id",
              "decoder_start_token_id",
              "task_specific_params",
              "problem_type",
              "max_length",
              "min_length",
              "do_sample",
              "early_stopping",
              "num_beams",
              "num_beam_groups",
              "diversity_penalty",
              "temperature",
              "top_k",
              "top_p",
              "typical_p",
              "repetition_penalty",
              "length_penalty",
              "no_repeat_ngram_size",
              "encoder_no_repeat_ngram_size",
              "bad_words_ids",
              "num_return_sequences",
              "output_scores",
              "return_dict_in_generate",
              "forced_bos_token_id",
              "forced_eos_token_id",
              "remove_invalid_values",
              "exponential_decay_length_penalty",
              "suppress_tokens",
              "begin_suppress_tokens",
              "use_cache"});
}

LanguageSizes ReadLanguage(ConfigKeys& keys, const std::set<std::string>& ignored) {
  LanguageSizes sizes;
  KnowCommonKeys(keys);
  sizes.pattern = ReadPattern(keys);
  ReadWholeModel(keys, sizes);
  if (sizes.has('M')) ReadMamba(keys, sizes);
  if (sizes.has('*')) ReadAttention(keys, sizes);
  if (sizes.has('E')) ReadExperts(keys, sizes);
  if (sizes.has('-')) sizes.mlp_ffn = keys.Size({"intermediate_size"});
  KnowKeysOfOtherLayers(keys, sizes);
  if (const auto depths = keys.Count({"num_nextn_predict_layers"})) sizes.mtp_layers = *depths;
  if (sizes.mtp_layers.value > 0) {
    keys.findings().notes.push_back(absl::StrCat(sizes.mtp_layers.from, " = ", sizes.mtp_layers.value,
                                                 ": multi-token prediction cannot be expressed; the main model is "
                                                 "imported without it"));
  }
  keys.Known({"mtp_layers_block_type", "mtp_hybrid_override_pattern",
              // Of initial values, and of other programs: `expand` is that of a Mamba whose heads are not given.
              "expand", "mamba_expand", "time_step_min", "time_step_max", "time_step_floor", "mamba_dt_min",
              "mamba_dt_max", "mamba_dt_init_floor", "rescale_prenorm_residual", "max_position_embeddings",
              "num_logits_to_keep", "use_mamba_kernels", "mamba_ssm_cache_dtype", "moe_shared_expert_overlap",
              "output_router_logits", "router_aux_loss_coef"});
  keys.Rest(ignored);
  return sizes;
}

}  // namespace planwright
