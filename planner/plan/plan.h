// The plan: everything every rank will ever do. Made by compile.cc, proved by verify/, carried by launch/, obeyed by
// executor/. Plain data. Lists are in a fixed order so that the same recipe gives the same bytes. No yaml and no torch
// here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/axis.h"
#include "planner/plan/instruction.h"

namespace planwright {

inline constexpr int kPlanFormatVersion = 2;
inline constexpr char kToolVersion[] = "0.1.0";

// A recipe line. Outside the plan digest.
struct Origin {
  std::string file;
  int line = 0, column = 0;
  std::string what;  // "module language"
};

struct Cluster {
  int nodes = 1, gpus_per_node = 8;
  std::string gpu = "none";
};

// How a weight starts. Draws are keyed by (seed, parameter name) and counted by the unsharded index.
struct Init {
  enum class Kind { kZeros, kOnes, kNormal, kUniform, kLogUniform, kDtBias };
  Kind kind = Kind::kZeros;
  double a = 0, b = 0;  // normal: a = std. uniform: [a, b). log_uniform: log of uniform(a, b) (A_log).
                        // dt_bias: inverse softplus of a log-uniform draw in [a, b], floored at 1e-4 (facts 3.5)
};

// A published tensor (or one per expert: "{expert}" in its names) and how it is cut over ranks.
struct Parameter {
  std::string name;            // module name + Hugging Face suffix
  std::string file_name;       // name in `initialize`, --probe and export files
  std::vector<int64_t> shape;  // whole, of one tensor
  int64_t experts = 0;         // > 0: this many tensors, expert e on ep coordinate e / (experts / ep)
  int shard_dim = -1;          // cut along tp, of experts along expert_tp; -1: every rank of that axis holds all of it
  // Sizes along shard_dim of parts that are each cut by themselves (Mamba's z|x|B|C|dt, RADIO's q|k|v). Sums to
  // shape[shard_dim].
  std::vector<int64_t> segments;
  bool decay = false;   // weight decay: neither 1-D nor a bias
  bool trained = true;  // false: saved and loaded, never stepped: a buffer, or a frozen part
  bool buffer = false;  // no weight: the expert bias, kept in fp32 at least
  Init init;
};

// How the ranks along tp share the gradient of a storage.
enum class TpGradient {
  kSharded,     // each rank owns its part: counted on every rank
  kReplicated,  // every rank computes the whole gradient: counted once
  kPartial,     // every rank has a term of the sum (sequence parallelism): summed over tp, counted once
};
std::string_view TpGradientName(TpGradient value);

// A tensor that a rank holds: one parameter, or several joined along dim 0 (q, k, v) or stacked (experts).
struct Storage {
  std::string frame;            // "language.layers.3"; a call's frame finds its slots here
  std::string slot;             // "in_proj"
  std::vector<int64_t> shape;   // of the rank's tensor; the same on every rank of the module
  std::vector<int> parameters;  // indices in Module::parameters, in joining order
  int bucket = -1;              // index in Module::buckets; -1: a buffer
  int64_t offset = 0;           // elements from the bucket's start
  int stage = 0;                // pipeline stage whose ranks hold it
};

// A flat run of storages of one kind whose parameters, gradients and optimizer state live together (facts 5.3). Rank i
// of the reduce group owns elements [i, i+1) * elements / shards.
struct Bucket {
  std::string name;  // "language.dense.sharded.0"
  View view = View::kDense;
  TpGradient tp = TpGradient::kSharded;
  int64_t elements = 0;      // padded
  std::string reduce_group;  // gradient sum and shards; empty: one rank, it owns everything
  std::string tp_group;      // kPartial with tp > 1: the shards are then summed over it
  int shards = 1;
  int stage = 0;               // pipeline stage whose ranks hold it
  DType dtype = DType::kFp32;  // of parameters, as forward and backward read them
  // of gradients, of the weights that are stepped and of their moments: never narrower than fp32
  DType master = DType::kFp32;
  std::vector<Axis> once_over;  // ranks along these hold the same shard: coordinate 0 of each counts it in a norm
};

struct LayerSummary {
  char kind = 0;  // pattern character, 'V' for an encoder block
  std::string frame;
  int64_t parameters = 0;
  int64_t forward_flops = 0;  // of one token (docs/flops.md)
  int stage = 0;              // pipeline stage
  int64_t mixing_flops = 0;   // of these: attention scores and the scan, which have no weights
  int expert_row = -1;        // of a layer with experts: its row of $expert_counts; -1: none
};

// What the executor and `show` must know of a model, resolved.
struct Module {
  std::string name;
  std::string model, kind;  // "nemotron_hybrid_moe_20l", "hybrid_lm"
  // What it can, whatever its kind is called: it turns images into rows; it reads text and carries the loss. (Experts:
  // experts() > 0.)
  bool has_images = false, carries_loss = false;
  // The numbers of the model, by the recipe's keys ("mamba.heads"); of an encoder also those of the language model that
  // it feeds ("output.hidden"). Every size, attribute, parameter and initial value of the module follows from them, its
  // layers and its grid.
  Attributes constants;
  Grid grid;
  bool trains_backbone = true, trains_projection = true;  // a language model has no projection: its second is the first
  // Layer kinds whose forward is run again in the backward pass instead of keeping what it saves, by their words
  // (layer_kinds.h).
  std::vector<std::string> recompute;
  std::vector<Parameter> parameters;
  std::vector<Storage> storages;
  std::vector<Bucket> buckets;
  std::vector<LayerSummary> layers;
  int64_t parameter_count = 0;  // whole model, buffers and projector left out; see projector_count
  int64_t projector_count = 0;
  // forward, of one token, before the first layer and behind the last (head or projector)
  int64_t embed_flops = 0, head_flops = 0;
  double imbalance = 0;  // expert rows on the busiest rank over the mean, for which memory is planned
  int origin = -1;

  bool trained() const { return trains_backbone || trains_projection; }  // some parameter is stepped
  // A constant; 0 where the model has none of this name.
  int64_t size(std::string_view constant) const;
  double real(std::string_view constant) const;
  int64_t experts() const { return size("moe.experts"); }
  int64_t top_k() const { return size("moe.top_k"); }
  int64_t expert_layers() const;  // layers with experts, of all stages
};

// A named set of disjoint process groups: a grid's view and axes, expanded on demand by MembersOf (groups.h).
struct Group {
  std::string name;        // unique: "language.tp", "world", "bridge.radio_encoder.language"
  std::string short_name;  // "tp"
  std::string module;      // empty: world or bridge
  View view = View::kDense;
  std::vector<Axis> axes;
  std::vector<int> ranks;  // bridge: explicit members; empty otherwise
  // Streams on which some program communicates over it, "" the main one first: each becomes a communicator. None: it is
  // not used.
  std::vector<std::string> streams;
  int origin = -1;

  bool used() const { return !streams.empty(); }
};

struct Transfer {
  int from_rank = 0, to_rank = 0;
  int64_t first_sample = 0, end_sample = 0;  // half-open, within the microbatch's block
};

struct Bridge {
  std::string name, from, to;
  std::string kind;                // equal | fan_out | fan_in | uneven | colocated
  int64_t token = -1;              // the token id whose places its rows take
  std::vector<Transfer> forward;   // encoder rows to language ranks
  std::vector<Transfer> backward;  // their gradients; from_rank is a language rank
  int origin = -1;
};

// A stretch of the learning-rate curve: warmup, stable, decay, end.
struct Segment {
  std::string kind;
  int64_t first_sample = 0, end_sample = 0;
};

struct LearningRate {
  double peak = 0, min = 0, init = 0;
  double warmup_samples = 0;  // may be fractional (a fraction of decay_samples)
  int64_t decay_samples = 0;
  std::string style;  // constant | linear | cosine | inverse_sqrt | wsd
  int64_t wsd_decay_samples = 0;
  std::string wsd_style;
};

struct WeightDecay {
  double start = 0, end = 0;
  std::string style;
  int64_t samples = 0;  // end of the ramp
};

struct Budget {
  int64_t train_samples = 0, global_samples = 0, micro_samples = 0, sequence_length = 0;
  int64_t microbatches = 0, steps = 0;
  int64_t block_samples = 0;        // of a microbatch, over all lanes: global_samples / microbatches
  int64_t samples_past_budget = 0;  // steps * global_samples - train_samples
  LearningRate learning_rate;
  WeightDecay weight_decay;
  std::vector<Segment> segments;
};

// As the recipe says it: the keys of `optimizer` are bound to these fields, and their defaults stand there
// (recipe_keys.cc).
struct OptimizerPlan {
  double beta1 = 0, beta2 = 0, eps = 0, clip_grad_norm = 0;
};

// Where samples come from. Paths are as written; `base` is the folder of the file that names them and is outside the
// digest.
struct DataPlan {
  std::string kind;  // mock | webdataset | recorded
  int64_t seed = 0;
  int64_t image_token = -1, pad_token = -1, end_token = -1, vocabulary = 0;
  std::vector<std::vector<int64_t>> image_grids;
  int64_t max_images = 0, classes = 0, text_tokens = 0;
  std::vector<std::string> shards;
  int64_t window = 0, min_patches = 0, max_patches = 0;
  std::string path, base;
  bool packed_documents = false;                        // attention and Mamba state end where a document ends
  int64_t patch = 0, pixel_shuffle = 0, max_image = 0;  // of the encoder; 0: no images
};

struct InitializePlan {
  std::string from, base;
  std::vector<std::string> ignore;
};

// A maximum for a run-time size.
struct Symbol {
  std::string name;
  int64_t maximum = 0;
  std::string what;
  int64_t expected = 0;  // for which memory is planned: expert rows at Module::imbalance times the mean; 0: the maximum
  int64_t mean = 0;      // on average, for FLOPs and time; 0: the maximum
};

// first, first + stride, ... (count of them)
struct RankRange {
  int first = 0, count = 1, stride = 1;
};

// How the tensors of some parameters are written to a checkpoint, and by whom, as a rule over the axes of `view`. The
// key of a parameter is its name (of each expert: with its number), that of its optimizer state NAME.STATE; the whole
// shape is the parameter's.
struct CheckpointRule {
  std::string module;
  std::vector<RankRange> parameters;  // indices in Module::parameters
  View view = View::kDense;
  int stage = 0;  // pp coordinate of the ranks that hold them
  // the tensor's parts lie along these: tp or expert_tp cuts shard_dim, ep deals experts
  std::vector<Axis> cut;
  std::vector<Axis> replicated;  // every rank along these holds the same part: coordinate 0 writes it
  // Optimizer state, in the parameter's own shape: each part lies in flat ranges, the shards of its bucket, along
  // `flat`; coordinate 0 of the other replicated axes writes. No states: a buffer or a frozen parameter.
  std::vector<std::string> states;  // names of optimizer_states.h: "exp_avg"
  std::vector<Axis> flat;
};

// A sum of the step over microbatches, then over ranks: one tensor on the device. `parts` names its elements in order
// ("loss_tokens"), each "$integers.loss_tokens" to instructions; none: it is one whole.
struct Accumulator {
  std::string name;  // "$integers"
  DType dtype = DType::kInt64;
  int64_t elements = 0;
  std::vector<std::string> parts;
};

// What a checkpoint holds.
struct CheckpointPlan {
  int64_t every_steps = 0;  // 0: none is asked for
  std::vector<CheckpointRule> rules;
  // keys of what is the same on all ranks; rank 0 writes it. No generator state: draws are counted
  std::vector<std::string> common;
};

// Ranks that do the same thing, and what they do.
struct Role {
  std::string name;  // "language.s0"; siblings of the bridge leader: "language.s0.sibling"
  std::vector<std::string> modules;
  std::vector<RankRange> ranks;
  std::vector<Instruction> setup, step, teardown;
  int origin = -1;
};

// One stage's order of forward and backward calls.
struct StageSchedule {
  std::string module;
  int stage = 0;
  int warmup = 0;
  std::vector<std::string> order;  // "F0", "B0", ...
};

struct Plan {
  int format_version = kPlanFormatVersion;
  std::string tool_version = kToolVersion;  // outside the digest
  std::string name;
  std::string recipe_digest;  // outside the digest
  std::string digest;         // SHA-256 over what ranks do, hex
  std::string precision;      // bf16 | fp32 | fp64
  int64_t seed = 0;
  int world_size = 0;
  int64_t log_every_steps = 1;
  Cluster cluster;
  std::vector<Module> modules;  // recipe order
  std::vector<Group> groups;    // creation order: world, modules' in recipe order, bridges
  std::vector<Bridge> bridges;
  Budget budget;
  OptimizerPlan optimizer;
  DataPlan data;
  std::optional<InitializePlan> initialize;
  CheckpointPlan checkpoint;
  std::vector<Accumulator> accumulators;
  std::vector<Symbol> symbols;
  std::vector<StageSchedule> schedule;
  std::vector<Block> blocks;  // shared by roles and layers
  std::vector<Role> roles;
  std::vector<Origin> origins;  // outside the digest

  const Module* FindModule(std::string_view name) const;
  const Group* FindGroup(std::string_view name) const;
  const Bridge* FindBridge(std::string_view name) const;
  const Block* FindBlock(std::string_view name) const;
  const Role* RoleOf(int rank) const;  // null when no role names the rank
  const Accumulator* FindAccumulator(std::string_view name) const;
  DType dtype() const;   // of `precision`; fp32 where it is no word of that kind
  DType master() const;  // fp64 in fp64, else fp32
};

bool Contains(const RankRange& range, int rank);
std::vector<int> Expand(const std::vector<RankRange>& ranges);   // ascending within each range
std::vector<RankRange> Compress(const std::vector<int>& ranks);  // of ascending ranks

// All subgroups of a group set, in creation order, members ascending.
std::vector<std::vector<int>> MembersOf(const Plan& plan, const Group& group);

// The part [first, end) of a block of `samples` that lane `lane` of `lanes` gets: contiguous, remainders to the first
// lanes.
struct LaneSamples {
  int64_t first = 0, end = 0;
};
LaneSamples SamplesOfLane(int64_t samples, int lanes, int lane);

}  // namespace planwright
