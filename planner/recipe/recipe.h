// A recipe as plain data: what the author wrote, every field with its place, nothing derived. Which key fills which
// field, and what it is when absent, says the table in recipe_keys.cc. Made by ReadRecipe (recipe_reader.h); read by
// every later planner room.
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
#include "planner/plan/plan.h"

namespace planwright {

struct ClusterRecipe {
  Located<int64_t> nodes;
  Located<int64_t> gpus_per_node;
  Located<std::string> gpu;  // none: CPU ranks
};

// RADIO-style vision transformer with pixel shuffle and projector (facts 3.9, 3.10).
struct RadioVitModel {
  Located<int64_t> layers, hidden, heads, ffn, patch, class_tokens, max_image, pixel_shuffle;
  Located<std::string> positions;  // interpolate | crop
  Located<int64_t> projector_hidden;
  Located<double> norm_eps;
  Located<double> projector_norm_eps;
  Located<double> init_std;
};

// Hybrid Mamba-2 / attention / MoE language model (facts 3.1 to 3.8).
struct HybridLmModel {
  Located<std::string> pattern;
  Located<int64_t> hidden, vocabulary;
  Located<double> init_std;
  Located<double> norm_eps;
  struct Attention {
    Located<int64_t> heads, head_dim, kv_groups;
  } attention;
  struct Mamba {
    Located<int64_t> heads, head_dim, groups, state, conv, chunk;
  } mamba;
  struct Moe {
    Located<int64_t> experts, top_k, ffn, shared_ffn;
    Located<double> scale, aux_loss, imbalance;
  } moe;
  Attributes constants;  // numbers that no code computes with, and so need no field: "moe.bias_rate"
  // "moe", ...: those that the recipe has; required where the pattern has such a layer
  std::set<std::string, std::less<>> sections;
  bool has(std::string_view section) const { return sections.contains(section); }
};

struct ModelRecipe {
  Located<std::string> name;  // key in `models`
  Located<std::string> kind;  // radio_vit | hybrid_lm
  std::variant<RadioVitModel, HybridLmModel> model;
};

struct ModuleRecipe {
  Located<std::string> name;
  ModelRecipe model;                     // resolved from `models`; model.name.where is the definition
  Located<std::string> model_reference;  // the name in `models`, where the module says it
  Located<int64_t> first_rank, ranks;
  Location placement;
  Located<int64_t> tp, cp, pp, ep, expert_tp;
  // How layers are dealt to pipeline stages; at most one of the two ways, and neither with `|` in the pattern.
  std::optional<Located<std::vector<int64_t>>> stage_layers;              // of every stage
  std::optional<Located<int64_t>> first_stage_layers, last_stage_layers;  // the rest is dealt evenly
  std::optional<Located<int64_t>> dp;           // only if written; checked against the derived one
  Located<std::string> train_backbone;          // trained | frozen
  Located<std::string> train_projection;        // trained | frozen
  std::vector<Located<std::string>> recompute;  // none | full, or words of layer kinds (plan/layer_kinds.def)
};

struct BridgeRecipe {
  Located<std::string> from, to;
  std::optional<Located<int64_t>> token;  // the token id whose places its rows take; data.image_token if not given
  Location where;
};

struct BatchRecipe {
  Located<int64_t> global_samples, micro_samples, sequence_length;
};

struct LearningRateRecipe {
  Located<double> peak, min, init;
  std::optional<Located<int64_t>> warmup_samples;
  std::optional<Located<double>> warmup_fraction;  // of decay_samples
  std::optional<Located<int64_t>> decay_samples;   // absolute end of decay; default train_samples
  Located<std::string> style;                      // constant | linear | cosine | inverse_sqrt | wsd
  std::optional<Located<int64_t>> wsd_decay_samples;
  std::optional<Located<std::string>> wsd_style;  // linear | cosine | exponential | minus_sqrt
};

struct WeightDecayRecipe {
  Located<double> start, end;
  Located<std::string> style;  // constant | linear | cosine
};

struct BudgetRecipe {
  Located<int64_t> train_samples;
  LearningRateRecipe learning_rate;
  WeightDecayRecipe weight_decay;
  Location where;
};

struct GradientsRecipe {
  Located<std::string> reduce_dtype;
  Located<bool> overlap_reduce, overlap_gather;
  Located<int64_t> buckets;
};

// The id that the bytes tokenizer gives image tokens; 0 to 255 are bytes.
inline constexpr int64_t kBytesImageToken = 256;

struct DataRecipe {
  Located<std::string> kind;  // mock | webdataset | recorded
  Located<int64_t> seed;
  std::optional<Located<int64_t>> image_token;
  // mock: grids of patches (rows, columns) that images are drawn from, and how many classes and text tokens an image
  // brings.
  Located<bool> packed_documents;
  std::vector<Located<std::vector<int64_t>>> image_grids;
  Located<int64_t> max_images;
  Located<int64_t> classes;
  Located<int64_t> text_tokens;  // length of each class's fixed sequence
  // webdataset
  std::vector<Located<std::string>> shards;
  Located<std::string> tokenizer;
  Located<int64_t> window;
  Located<int64_t> min_patches, max_patches;
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
  Located<int64_t> every_steps;
};

struct Recipe {
  Located<std::string> name;
  std::string digest;  // SHA-256 over the merged recipe, as hex; places and comments outside it
  ClusterRecipe cluster;
  std::vector<ModuleRecipe> modules;  // in recipe order
  std::vector<BridgeRecipe> bridges;
  BatchRecipe batch;
  BudgetRecipe budget;
  OptimizerPlan optimizer;  // as ranks obey it
  GradientsRecipe gradients;
  Located<std::string> precision;  // bf16 | fp32 | fp64
  DataRecipe data;
  std::optional<InitializeRecipe> initialize;
  CheckpointRecipe checkpoint;
  LogRecipe log;
  // Sections ("batch") with a value that is missing or wrong: what was read of them is not to be used. Other rooms look
  // at the rest for more problems, and nothing is planned.
  std::set<std::string> damaged;
  // The `launch` section is checked for known keys, and refused as not built yet when it asks for something.
};

}  // namespace planwright
