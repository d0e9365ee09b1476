// The numbers of a model, as a config.json or a run gives them: what `plan import` writes as a recipe, and what
// `plan export` compares. Each number knows where it came from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace planwright {

template <typename T>
struct Sourced {
  T value{};
  std::string from;  // "text_config.hidden_size"; of a number that is not written there: "default of nemotron_h"
};

// A language model of kind hybrid_lm (docs/model/language_model.md#sizes). Numbers of a layer kind that the pattern
// does not have are 0.
struct LanguageSizes {
  Sourced<std::string> pattern;  // a letter for each layer: M, *, E, -
  Sourced<int64_t> hidden, vocabulary;
  Sourced<double> init_std, norm_eps;
  Sourced<int64_t> heads, head_dim, kv_groups;                                                       // of *
  Sourced<int64_t> mamba_heads, mamba_head_dim, mamba_groups, mamba_state, mamba_conv, mamba_chunk;  // of M
  Sourced<int64_t> experts, top_k, ffn, shared_ffn;                                                  // of E
  Sourced<bool> normalized;                                                                          // of E
  Sourced<double> scale;                                                                             // of E
  Sourced<int64_t> mlp_ffn;                                                                          // of -
  Sourced<double> least_time_step;  // of M, 0: none; a recipe cannot have one
  Sourced<int64_t> mtp_layers;      // depths of multi-token prediction; a recipe cannot have them

  bool has(char kind) const { return pattern.value.find(kind) != std::string::npos; }
};

// An encoder of kind radio_vit (docs/model/vision_encoder.md#sizes).
struct EncoderSizes {
  Sourced<int64_t> layers, hidden, heads, ffn, patch, class_tokens, max_image;
  Sourced<double> init_std, norm_eps;
  Sourced<std::string> activation;  // gelu | gelu_tanh
  Sourced<std::string> final_norm;  // layernorm | none
};

// What leads from an encoder to a language model.
struct ProjectorSizes {
  Sourced<int64_t> hidden, pixel_shuffle;
  Sourced<double> norm_eps;
};

struct ModelSizes {
  std::optional<LanguageSizes> language;
  std::optional<EncoderSizes> encoder;
  std::optional<ProjectorSizes> projector;      // with both of them
  std::optional<Sourced<int64_t>> image_token;  // the id whose places in a text take image rows
};

// Calls `visit(key, number)` for every number that a recipe gives for the model and that what it computes depends on,
// with the recipe's key. `Sizes`: LanguageSizes, EncoderSizes or ProjectorSizes.
template <typename Visit>
void EachSize(const LanguageSizes& sizes, Visit visit) {
  visit("pattern", sizes.pattern);
  visit("hidden", sizes.hidden);
  visit("vocabulary", sizes.vocabulary);
  visit("norm_eps", sizes.norm_eps);
  if (sizes.has('*')) {
    visit("attention.heads", sizes.heads);
    visit("attention.head_dim", sizes.head_dim);
    visit("attention.kv_groups", sizes.kv_groups);
  }
  if (sizes.has('M')) {
    visit("mamba.heads", sizes.mamba_heads);
    visit("mamba.head_dim", sizes.mamba_head_dim);
    visit("mamba.groups", sizes.mamba_groups);
    visit("mamba.state", sizes.mamba_state);
    visit("mamba.conv", sizes.mamba_conv);
  }
  if (sizes.has('E')) {
    visit("moe.experts", sizes.experts);
    visit("moe.top_k", sizes.top_k);
    visit("moe.ffn", sizes.ffn);
    visit("moe.shared_ffn", sizes.shared_ffn);
    visit("moe.normalized", sizes.normalized);
    visit("moe.scale", sizes.scale);
  }
  if (sizes.has('-')) visit("mlp.ffn", sizes.mlp_ffn);
}

template <typename Visit>
void EachSize(const EncoderSizes& sizes, Visit visit) {
  visit("layers", sizes.layers);
  visit("hidden", sizes.hidden);
  visit("heads", sizes.heads);
  visit("ffn", sizes.ffn);
  visit("patch", sizes.patch);
  visit("class_tokens", sizes.class_tokens);
  visit("max_image", sizes.max_image);
  visit("norm_eps", sizes.norm_eps);
  visit("activation", sizes.activation);
  visit("final_norm", sizes.final_norm);
}

template <typename Visit>
void EachSize(const ProjectorSizes& sizes, Visit visit) {
  visit("pixel_shuffle", sizes.pixel_shuffle);
  visit("projector.hidden", sizes.hidden);
  visit("projector.norm_eps", sizes.norm_eps);
}

}  // namespace planwright
