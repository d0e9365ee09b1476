// A recipe as plain data: what the author wrote, every field with its place, nothing derived.
// Made by ReadRecipe (recipe_reader.h); read by every later planner room.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "planner/diagnostics/location.h"

namespace planwright {

struct ClusterRecipe {
  Located<int64_t> nodes = 1;
  Located<int64_t> gpus_per_node = 8;
  Located<std::string> gpu = std::string("none");  // none: CPU ranks
};

// RADIO-style vision transformer with pixel shuffle and projector (facts 3.9, 3.10).
struct RadioVitModel {
  Located<int64_t> layers, hidden, heads, ffn, patch, class_tokens, max_image, pixel_shuffle;
  Located<std::string> positions;  // interpolate | crop
  Located<int64_t> projector_hidden;
  Located<double> norm_eps = 1e-6;
  Located<double> projector_norm_eps = 1e-5;
  Located<double> init_std = 0.02;
};

// Hybrid Mamba-2 / attention / MoE language model (facts 3.1 to 3.8).
struct HybridLmModel {
  Located<std::string> pattern;
  Located<int64_t> hidden, vocabulary;
  Located<double> init_std;
  Located<double> norm_eps = 1e-5;
  struct Attention { Located<int64_t> heads, head_dim, kv_groups; } attention;
  struct Mamba { Located<int64_t> heads, head_dim, groups, state, conv, chunk; } mamba;
  struct Moe {
    Located<int64_t> experts, top_k, ffn, shared_ffn;
    Located<double> scale, aux_loss, bias_rate, imbalance;
  } moe;
  std::set<std::string, std::less<>> sections;  // "moe", ...: those that the recipe has; required where the pattern has such a layer
  bool has(std::string_view section) const { return sections.contains(section); }
};

struct ModelRecipe {
  Located<std::string> name;  // key in `models`
  Located<std::string> kind;  // radio_vit | hybrid_lm
  std::variant<RadioVitModel, HybridLmModel> model;
};

struct ModuleRecipe {
  Located<std::string> name;
  ModelRecipe model;  // resolved from `models`; model.name.where is the definition
  Location model_reference;  // where the module names its model
  Located<int64_t> first_rank, ranks;
  Location placement;
  Located<int64_t> tp = 1, cp = 1, pp = 1, ep = 1, expert_tp = 1;
  // How layers are dealt to pipeline stages; at most one of the two ways, and neither with `|` in the pattern.
  std::optional<Located<std::vector<int64_t>>> stage_layers;              // of every stage
  std::optional<Located<int64_t>> first_stage_layers, last_stage_layers;  // the rest is dealt evenly
  std::optional<Located<int64_t>> dp;  // only if written; checked against the derived one
  Located<std::string> train_backbone = std::string("trained");    // trained | frozen
  Located<std::string> train_projection = std::string("trained");  // trained | frozen
  std::vector<Located<std::string>> recompute;  // none | full, or words of layer kinds (plan/layer_kinds.def)
};

struct BridgeRecipe {
  Located<std::string> from, to;
  std::optional<Located<int64_t>> token;  // the token id whose places its rows take; data.image_token if not given
  Location where;
};

struct BatchRecipe {
  Located<int64_t> global_samples, micro_samples = 1, sequence_length;
};

struct LearningRateRecipe {
  Located<double> peak, min = 0.0, init = 0.0;
  std::optional<Located<int64_t>> warmup_samples;
  std::optional<Located<double>> warmup_fraction;  // of decay_samples
  std::optional<Located<int64_t>> decay_samples;   // absolute end of decay; default train_samples
  Located<std::string> style = std::string("constant");  // constant | linear | cosine | inverse_sqrt | wsd
  std::optional<Located<int64_t>> wsd_decay_samples;
  std::optional<Located<std::string>> wsd_style;  // linear | cosine | exponential | minus_sqrt
};

struct WeightDecayRecipe {
  Located<double> start = 0.0, end = 0.0;
  Located<std::string> style = std::string("constant");  // constant | linear | cosine
};

struct BudgetRecipe {
  Located<int64_t> train_samples;
  LearningRateRecipe learning_rate;
  WeightDecayRecipe weight_decay;
  Location where;
};

struct OptimizerRecipe {
  Located<std::string> name = std::string("adamw");
  Located<double> beta1 = 0.9, beta2 = 0.95, eps = 1e-8, clip_grad_norm = 1.0;
};

struct GradientsRecipe {
  Located<std::string> reduce_dtype = std::string("fp32");
  Located<bool> overlap_reduce = false, overlap_gather = false;
  Located<int64_t> buckets = 1;
};

// The id that the bytes tokenizer gives image tokens; 0 to 255 are bytes.
inline constexpr int64_t kBytesImageToken = 256;

struct DataRecipe {
  Located<std::string> kind = std::string("mock");  // mock | webdataset | recorded
  Located<int64_t> seed = 1234;
  std::optional<Located<int64_t>> image_token;
  // mock: grids of patches (rows, columns) that images are drawn from, and how many classes and text tokens an image brings.
  Located<bool> packed_documents = false;
  std::vector<Located<std::vector<int64_t>>> image_grids;
  Located<int64_t> max_images = 3;
  Located<int64_t> classes = 8;
  Located<int64_t> text_tokens = 8;  // length of each class's fixed sequence
  // webdataset
  std::vector<Located<std::string>> shards;
  Located<std::string> tokenizer = std::string("bytes");
  Located<int64_t> window = 64;
  Located<int64_t> min_patches = 4, max_patches = 256;
  // recorded
  std::optional<Located<std::string>> path;
  Location where;
};

struct InitializeRecipe {
  Located<std::string> from;
  std::vector<Located<std::string>> ignore;  // tensor names that may stay unused
};

struct CheckpointRecipe {
  std::optional<Located<int64_t>> every_steps;
};

struct LogRecipe {
  Located<int64_t> every_steps = 1;
};

struct Recipe {
  Located<std::string> name;
  std::string digest;  // SHA-256 over the merged recipe, as hex; places and comments outside it
  ClusterRecipe cluster;
  std::vector<ModuleRecipe> modules;  // in recipe order
  std::vector<BridgeRecipe> bridges;
  BatchRecipe batch;
  BudgetRecipe budget;
  OptimizerRecipe optimizer;
  GradientsRecipe gradients;
  Located<std::string> precision = std::string("bf16");  // bf16 | fp32 | fp64
  DataRecipe data;
  std::optional<InitializeRecipe> initialize;
  CheckpointRecipe checkpoint;
  LogRecipe log;
  // Sections ("batch") with a value that is missing or wrong: what was read of them is not to be used. Other rooms look at the rest for more
  // problems, and nothing is planned.
  std::set<std::string> damaged;
  // The `launch` section is checked for known keys, and refused as not built yet when it asks for something.
};

}  // namespace planwright
