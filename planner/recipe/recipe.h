// A recipe as plain data: what the author wrote, each field with its location. Nothing is derived. The table of
// keys (recipe_keys.h) says which key fills which field, and with which default. ReadRecipe (recipe_reader.h) makes a
// Recipe; all later rooms of the planner read it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/text/location.h"
#include "planner/plan/instruction.h"
#include "planner/plan/plan.h"

namespace planwright {

struct YamlNode;

// A data sheet. Fields that are not given are those of cluster.gpu.
struct DeviceRecipe {
  std::optional<Located<double>> memory, peak, bandwidth, link, network;
};

struct ClusterRecipe {
  Located<int64_t> nodes;
  Located<int64_t> gpus_per_node;
  Located<std::string> gpu;                    // "none": CPU ranks
  std::optional<Located<double>> host_memory;  // GB of a node
  DeviceRecipe device;
  std::optional<Located<std::string>> profile;  // a file of `plan measure`
};

// Numbers by name, each with the place that gives it.
using LocatedNumbers = std::map<std::string, Located<Attribute>, std::less<>>;

// What a recipe gives of a model; the statement of its kind says which keys there are (model_facts.h).
struct ModelRecipe {
  Located<std::string> name;  // key in `models`
  Located<std::string> kind;  // of a statement: radio_vit | hybrid_lm | decoder
  // A letter for each layer, with `|` and `/` as the grammar of patterns has them (compile/model/layer_pattern.h). Of a
  // model whose recipe gives only a number: the letters, at the place of the number.
  Located<std::string> pattern;
  // Named as constants are, by sections and keys: "mamba.heads". A choice is the number of the constant that it sets.
  // In sections that the recipe does not have, numbers are their defaults, or 0. What may be left out, and is, is not
  // there.
  LocatedNumbers numbers;
  std::set<std::string, std::less<>> sections;  // that the recipe has ("moe")
};

// Low-rank adapters on the products of a frozen module's layers.
struct AdapterRecipe {
  Located<int64_t> rank;
  Located<double> alpha;
  std::vector<Located<std::string>> targets;  // names of products, or their last words: "q_proj"
};

struct ModuleRecipe {
  Located<std::string> name;
  ModelRecipe model;                     // the definition from `models`, found by name
  Located<std::string> model_reference;  // the name as the module gives it
  Located<int64_t> first_rank, ranks;
  Location placement;
  Located<int64_t> tp, cp, pp, ep, expert_tp;
  Located<std::string> dispatch;  // all_to_all | all_gather | auto
  Located<bool> overlap_dispatch;
  // How layers are divided among pipeline stages. At most one of the two ways, and none with `|` in the pattern.
  std::optional<Located<std::vector<int64_t>>> stage_layers;              // of each stage
  std::optional<Located<int64_t>> first_stage_layers, last_stage_layers;  // the other stages share the rest
  std::optional<Located<int64_t>> dp;     // only if written: compared with the derived dp
  Located<std::string> train_backbone;    // trained | frozen
  Located<std::string> train_projection;  // trained | frozen
  std::optional<AdapterRecipe> adapter;
  std::vector<Located<std::string>> recompute;  // none | full | elementwise | words of layers
};

struct BridgeRecipe {
  Located<std::string> from, to;
  std::optional<Located<int64_t>> token;  // its rows take the positions of this token id; default data.image_token
  std::optional<Located<double>> max_mean_square;  // of its rows in a step; beyond it the run stops
  Location where;
};

struct BatchRecipe {
  Located<int64_t> global_samples, micro_samples, sequence_length;
};

struct LearningRateRecipe {
  Located<double> peak, min, init;
  std::optional<Located<int64_t>> warmup_samples;
  std::optional<Located<double>> warmup_fraction;  // of decay_samples
  std::optional<Located<int64_t>>
      decay_samples;           // where the decay ends, from the start of training; default train_samples
  Located<std::string> style;  // constant | linear | cosine | inverse_sqrt | wsd
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

// Rates of some parameters (`optimizer.parts`).
struct RatePartRecipe {
  Located<std::string> match;  // a module, MODULE.backbone, MODULE.projection, or a published name with stars
  std::optional<Located<double>> learning_rate, weight_decay;
  Location where;
};

struct GradientsRecipe {
  Located<bool> overlap_reduce, overlap_gather;
  Located<int64_t> buckets;
};

// The image token of the bytes tokenizer. 0 to 255 are bytes (docs/training/data.md#text-as-bytes).
inline constexpr int64_t kBytesImageToken = 256;

// A number as its author wrote it, for those that must be exact: "0.1" is no double.
struct Decimal {
  std::string text;
};

// One of the words of its key, or a number from 1.
struct WordOrCount {
  std::string text;
};

struct SourceRecipe {
  std::optional<Located<std::string>> name;
  Located<SourceKind> kind;
  std::vector<Located<std::string>> shards, ignore;
  std::optional<Located<std::string>> path;
  Located<Decimal> weight;
  Location where;
};

struct DataRecipe {
  Located<DataKind> kind;
  Located<int64_t> seed;
  std::optional<Located<int64_t>> image_token;
  Located<bool> packed_documents;
  Located<std::string> balance;  // none | images
  // mock
  std::vector<Located<std::vector<int64_t>>> image_grids;  // [rows, columns] of patches that images are drawn from
  Located<int64_t> min_images, max_images;                 // of a sample
  Located<int64_t> classes;                                // kinds of images, each with its own text
  Located<int64_t> text_tokens;                            // length of the text of a class
  // sources
  std::vector<SourceRecipe> sources;
  Located<std::string> tokenizer;  // bytes | ids
  Located<int64_t> min_patches, max_patches;
  Located<std::string> resize;       // bilinear | bicubic | bicubic_8bit | bilinear_8bit
  Located<std::string> grid;         // ceil | round_half_even | smart_resize
  Located<std::string> orientation;  // stored | exif
  std::optional<Located<std::string>> tokenizer_digest, template_digest;
  std::optional<Located<int64_t>> pad_token, end_token;
  Located<WordOrCount> shuffle;         // all | none | N
  Located<std::string> packing;         // first_fit | none
  Located<int64_t> window;              // documents that are packed together
  Located<std::string> long_documents;  // error | cut | skip
  Located<std::string> damaged;         // error | skip
  Located<int64_t> most_damaged;
  Located<std::string> index;
  // recorded
  std::optional<Located<std::string>> path;
  Location where;
};

// Whether text is bytes, which are the ids of the tokenizer `bytes`. Other data brings its ids.
inline bool TextIsBytes(const DataRecipe& data) { return RowOf(*data.kind).tokenized && *data.tokenizer == "bytes"; }

// Samples that an evaluation reads: what the data of the recipe is made of, in other files or drawn with another seed.
struct EvaluationSetRecipe {
  Located<std::string> name;
  Located<WordOrCount> samples;  // all | N
  // One of these, by the kind of the data (DataKindRow::set).
  std::vector<SourceRecipe> sources;
  std::optional<Located<std::string>> path;
  std::optional<Located<int64_t>> seed;
  Location where;
};

struct EvaluationRecipe {
  Located<int64_t> every_samples;
  std::vector<EvaluationSetRecipe> sets;
  Location where;
};

struct DivergenceRecipe {
  Located<int64_t> window;  // steps
  Located<double> factor;
};

struct WeightSourceRecipe {
  Located<std::string> part;  // a module, or MODULE.backbone and MODULE.projection of an encoder
  Located<std::string> from;  // a path, or drawn
  Location where;
};

struct InitializeRecipe {
  std::optional<Located<std::string>> from;  // of everything
  std::vector<WeightSourceRecipe> sources;   // or of each module and part
  Location where;
  std::vector<Located<std::string>> ignore;  // names of tensors in the file that may stay unused
  Located<bool> optimizer;
  Located<std::string> schedule;  // recipe | checkpoint
};

struct CheckpointRecipe {
  std::optional<Located<int64_t>> every_steps, keep_last, keep_every_steps;
  std::optional<Located<std::string>> keep_best;  // an evaluation set
};

struct DeadlineRecipe {
  Located<double> floor, first_step;  // seconds
  Located<double> factor;
};

struct SlurmRecipe {
  std::optional<Located<std::string>> partition, account, qos, constraint, reservation, time, gres;
  std::optional<Located<int64_t>> cpus_per_task;
  std::optional<Located<std::string>> container;
  std::vector<Located<std::string>> mounts;
  std::vector<Located<std::string>> options;
};

struct LaunchRecipe {
  std::optional<Located<std::string>> interface;
  Located<int64_t> restarts;
  DeadlineRecipe deadline;
  std::vector<Located<std::string>> fallbacks;
  std::vector<Located<std::string>> env, setup;
  SlurmRecipe slurm;
};

struct LogRecipe {
  Located<int64_t> every_steps;
};

struct Recipe {
  Located<std::string> name;
  std::string digest;  // of the merged recipe (recipe_digest.h)
  ClusterRecipe cluster;
  std::vector<ModuleRecipe> modules;  // in the order of the recipe
  std::vector<BridgeRecipe> bridges;
  BatchRecipe batch;
  BudgetRecipe budget;
  OptimizerPlan optimizer;  // goes into the plan as it is, with its parts from here:
  std::vector<RatePartRecipe> rate_parts;
  GradientsRecipe gradients;
  Located<std::string> precision;  // bf16 | fp32 | fp64
  Located<bool> deterministic;
  DataRecipe data;
  std::optional<EvaluationRecipe> evaluation;
  std::optional<DivergenceRecipe> divergence;
  std::optional<InitializeRecipe> initialize;
  CheckpointRecipe checkpoint;
  LogRecipe log;
  LaunchRecipe launch;
  // Paths of values that are missing or wrong, as the table of keys has them ("modules.<name>.parallel.tp"). Their
  // fields are marked (Location::broken). Checks that do not need them still run, but nothing is planned.
  std::set<std::string, std::less<>> damaged;
  std::shared_ptr<const YamlNode> tree;  // what was read, before any repair; null for a recipe that was built in code
};

}  // namespace planwright
