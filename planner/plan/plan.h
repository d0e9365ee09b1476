// The plan: everything that every rank will do. The wing compile makes it, verify proves it, run hands it to the ranks,
// and the executor carries it out. It is plain data, without yaml and without torch. A plan's file is this struct as
// JSON (plan_json.h), under the same field names; plan_fields.h lists them with what a wrong value does.
//
// Lists are in a fixed order, so that the same recipe gives the same bytes. Units are in the field names or in the
// comments: sizes are elements (not bytes), times are counted in samples (not steps). "-1: none" is written where an
// index may be absent. Each struct says which room of the planner fills it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/axis.h"
#include "planner/plan/data_plan.h"
#include "planner/plan/device_profile.h"
#include "planner/plan/instruction.h"

namespace planwright {

inline constexpr int kPlanFormatVersion = 2;
// The version that CHANGELOG.md has on top. It is defined in plan.cc: a release compiles that file alone.
extern const char kToolVersion[];

// The line of the recipe that a part of the plan comes from. Not covered by the plan digest. Filled by compile.cc.
struct Origin {
  std::string file;          // relative to the recipe's folder, or "<command line>"
  int line = 0, column = 0;  // from 1
  std::string what;          // "module language"
};

// The machines of the recipe (`cluster`), by which memory and time are estimated.
struct Cluster {
  int nodes = 1, gpus_per_node = 8;
  std::string gpu = "none";  // a name of predict/rates/device.cc: "h100_sxm"; "none": CPU ranks, no memory limit
  double host_memory = 0;    // GB of a node's memory that ranks may use; 0: not given
  DeviceFigures device;      // in place of those of `gpu`; not covered by the digest
  DeviceProfile profile;     // what such a device was measured to take; not covered by the digest
};

// How ranks are started and watched (`launch`). It changes nothing that they compute, so the digest does not cover it.
// Filled by compile.cc.
struct LaunchPlan {
  std::string interface;  // the network interface of rendezvous, Gloo and NCCL; empty: the one that reaches the others
  int64_t restarts = 0;   // how often a run that failed is started again by itself
  // An instruction that takes longer than all of these (seconds) hangs. Until the first step is done, first_step counts
  // in the place of the floor.
  double deadline_floor = 0, deadline_first_step = 0;
  double deadline_factor = 0;  // times the estimate: of the instruction, or of a step where it waits for other ranks
  double predicted_step =
      0;  // seconds (docs/step_time.md); 0: the device is unknown, or an earlier version compiled it
  std::vector<std::string> fallbacks;  // recipes for fewer nodes, in the order in which they are tried
  std::string base;                    // folder of the file that names them
  // Variables of the ranks, "NAME=VALUE", or "NAME" with the value of the shell that launches; and lines of bash that
  // run before them, with `"$@"` as the command of a rank (launch_environment.h).
  std::vector<std::string> env, setup;
  // Options of sbatch; empty: not given.
  std::string partition, account, qos, constraint, reservation;
  std::string time;                  // "1-04:00:00"
  std::string gres;                  // "gpu:h100:8,nvme:1"; "none": the cluster does not count GPUs
  int64_t cpus_per_task = 0;         // cores of an agent with its ranks; 0: as the plan says
  std::string container;             // image that the nodes run the ranks in
  std::vector<std::string> mounts;   // "FROM:TO[:FLAGS]" of the container
  std::vector<std::string> options;  // others of sbatch, as it takes them: "--exclude=n17"

  bool operator==(const LaunchPlan&) const = default;
};

// How an initial weight is drawn. A draw depends on the seed, the parameter's name and the index of the element in the
// whole tensor, so no layout changes it (docs/training/layout_independence.md#draws). Filled by model/.
struct Init {
  enum class Kind {
    kZeros,
    kOnes,
    kNormal,      // mean 0, standard deviation a
    kUniform,     // in [a, b)
    kLogUniform,  // the log of a uniform draw in [a, b): Mamba's A_log
    // Inverse softplus of a log-uniform draw in [a, b], not below 1e-4 (docs/model/mamba.md#initial-values).
    kDtBias,
  };
  Kind kind = Kind::kZeros;
  double a = 0, b = 0;
};
// "zeros", "ones", "normal", "uniform", "log_uniform", "dt_bias"
std::string_view InitKindName(Init::Kind kind);
std::optional<Init::Kind> InitKindFromName(std::string_view name);

// A published tensor and how it is cut over ranks. With `experts`, one entry stands for a tensor of each expert, and
// its names contain "{expert}". Filled by model/.
struct Parameter {
  std::string name;            // module name and Hugging Face name; the key of draws and checkpoints
  std::string file_name;       // name in the files of `initialize`, --probe and export
  std::vector<int64_t> shape;  // of one whole tensor
  int64_t experts = 0;         // > 0: this many tensors; expert e belongs to ep coordinate e / (experts / ep)
  int shard_dim = -1;  // the dim that tp cuts (of experts: expert_tp); -1: every rank of that axis has all of it
  // Sizes along shard_dim of joined parts, each cut by itself (Mamba's z|x|B|C|dt, RADIO's q|k|v). They sum to
  // shape[shard_dim]. Empty: the dim is one part.
  std::vector<int64_t> segments;
  // tp does not divide shard_dim, which is one part. Each rank has room for as many rows as the first has; the rows
  // that are left over, of the last ranks, belong to no tensor and stay 0.
  bool padded = false;
  bool decay = false;   // weight decay applies: the tensor has more than one dim and is no bias
  bool trained = true;  // false: saved and loaded, but never stepped (a buffer, or a frozen part)
  bool buffer = false;  // not a weight: the expert bias, kept in fp32 at least
  Init init;
  int part = -1;  // index in OptimizerPlan::parts, whose rates it is stepped with; -1: those of the schedule
};

// Who has which part of a storage's gradient, over tp, before gradients are reduced.
enum class TpGradient {
  kSharded,     // the weight is cut over tp: each rank has the gradient of its part
  kReplicated,  // every rank computes the whole gradient: a norm counts it once
  kPartial,     // every rank has a term of the sum (sequence parallelism): summed over tp, then counted once
};
std::string_view TpGradientName(TpGradient value);  // "sharded", "replicated", "partial"
std::optional<TpGradient> TpGradientFromName(std::string_view name);

// A slot of another frame that a storage fills too: the head's "lm_head" of a model whose embedding is its head.
struct SharedSlot {
  std::string frame, slot;
  bool operator==(const SharedSlot&) const = default;
};

// A tensor as a rank holds it: one parameter, several joined along dim 0 (q, k, v), or experts stacked along a new
// dim 0, of each of which one or several parameters are joined along dim 1. shard_map.h maps its elements to the
// published tensors. Filled by model/.
struct Storage {
  std::string frame;            // "language.layers.3": the frame in which calls look up the slot
  std::string slot;             // "in_proj"
  std::vector<int64_t> shape;   // of the rank's tensor; the same on every rank that has it
  std::vector<int> parameters;  // indices in Module::parameters, in joining order
  int bucket = -1;              // index in Module::buckets; -1: none, for a buffer or a frozen parameter
  int64_t offset = 0;           // elements from the bucket's start
  int stage = 0;                // pipeline stage whose ranks hold it
  std::vector<SharedSlot> shared;

  // What the frame calls it; "": the frame has it not.
  std::string_view SlotIn(std::string_view frame_of_call) const;
};

// Storages that lie one after the other in flat buffers: parameters, gradients and optimizer state. Gradients are
// reduced, and parameters gathered, a bucket at a time (docs/training/step.md#gradient-buckets). Rank i of the reduce
// group owns the elements [i, i+1) * elements / shards. Filled by model/.
struct Bucket {
  std::string name;  // "language.dense.sharded.0"
  View view = View::kDense;
  TpGradient tp = TpGradient::kSharded;
  int64_t elements = 0;         // with padding, so that shards divide it
  std::string reduce_group;     // the group that sums gradients and shares shards; empty: one rank owns everything
  std::string tp_group;         // kPartial with tp > 1: the shards are then summed over this group
  int shards = 1;               // ranks of reduce_group
  int stage = 0;                // pipeline stage whose ranks hold it
  DType dtype = DType::kFp32;   // of the parameters that forward and backward read
  DType master = DType::kFp32;  // of gradients, master weights and moments: never narrower than fp32
  std::vector<Axis> once_over;  // ranks along these axes hold the same shard: only coordinate 0 counts it in a norm
};

// One layer of a module, in forward order. Filled by model/.
struct LayerSummary {
  char kind = 0;  // its letter in the statement of the module's kind: "M", "*", "E", "-", "V"
  std::string frame;
  int64_t parameters = 0;     // elements, of the whole layer
  int64_t forward_flops = 0;  // FLOPs of one token (docs/flops.md)
  int stage = 0;              // pipeline stage
  int64_t mixing_flops = 0;   // the part of forward_flops without weights: attention scores and the scan
  int expert_row = -1;        // a layer with experts: its row in $expert_counts; -1: no experts
  int64_t adapter_flops = 0;  // the part of forward_flops that is of adapters
};

// One model with its ranks. Filled by model/; `grid` by topology/.
struct Module {
  std::string name;
  std::string model, kind;  // name and kind of the recipe's model: "nemotron_hybrid_moe_20l", "hybrid_lm"
  // What the module does; code asks these and not `kind`. has_images: it turns images into rows. carries_loss: it reads
  // text and computes the loss. A module with experts has experts() > 0.
  bool has_images = false, carries_loss = false;
  // The numbers of the model, by the recipe's keys ("mamba.heads"). An encoder also has those of the language model
  // that it feeds ("output.hidden"). Sizes, attributes, parameters and initial values of the module follow from these
  // constants, its layers and its grid.
  Attributes constants;
  Grid grid;
  // False: frozen. The projection is what follows an encoder's layers; a language model has none, and the two are
  // equal.
  bool trains_backbone = true, trains_projection = true;
  // The products of its frozen layers that have low-rank adapters, by AdaptedNames ("self_attn.q_proj"). Empty: none
  // has. The constants then have adapter.rank and adapter.alpha (docs/training/adapters.md).
  std::vector<std::string> adapter_targets;
  // Layer kinds, by their words ("moe"), whose forward is run again in the backward, so that its values are not kept.
  std::vector<std::string> recompute;
  // How tokens reach the experts of other ep ranks: "all_to_all" or "all_gather"
  // (docs/model/mixture_of_experts.md#token-dispatch). "all_to_all" also where no token has to: without experts, and
  // with ep 1.
  std::string dispatch = "all_to_all";
  std::vector<Parameter> parameters;
  std::vector<Storage> storages;
  std::vector<Bucket> buckets;
  std::vector<LayerSummary> layers;
  int64_t parameter_count = 0;  // elements of the whole model, without buffers and the projector
  int64_t projector_count = 0;  // elements of the projector
  // Forward FLOPs of one token before the first layer, and after the last (output head or projector).
  int64_t embed_flops = 0, head_flops = 0;
  // Memory is planned for this many times the mean number of expert rows; 0: for all that can come, or no experts.
  double imbalance = 0;
  int origin = -1;  // index in Plan::origins; -1: none

  bool adapted() const { return !adapter_targets.empty(); }
  // Whether something learns before the head: a gradient comes to its layers.
  bool trains_layers() const { return trains_backbone || adapted(); }
  bool trained() const { return trains_layers() || trains_projection; }  // some parameter is stepped
  int64_t size(std::string_view constant) const;  // an integer constant; 0 if the model has none of this name
  double real(std::string_view constant) const;   // a real or integer constant; 0 if the model has none of this name
  int64_t experts() const { return size("moe.experts"); }
  int64_t top_k() const { return size("moe.top_k"); }
  bool gathers_tokens() const { return dispatch == "all_gather"; }
  int64_t expert_layers() const;  // number of layers with experts, of all stages
};

// Disjoint process groups of one name: a grid's view and axes. MembersOf expands them. Filled by groups/.
struct Group {
  std::string name;        // unique: "language.tp", "world", "bridge.radio_encoder.language"
  std::string short_name;  // "tp"
  std::string module;      // empty: the world, or a bridge
  View view = View::kDense;
  std::vector<Axis> axes;  // members of a group differ along these axes only
  std::vector<int> ranks;  // of a bridge: its members, ascending; else empty
  // Streams on which some program communicates over the group; the main stream, "", comes first. Each becomes a
  // communicator. Empty: no program uses the group.
  std::vector<std::string> streams;
  int origin = -1;  // index in Plan::origins; -1: none

  bool used() const { return !streams.empty(); }
};

// Samples [first_sample, end_sample) of a microbatch that one rank sends to another.
struct Transfer {
  int from_rank = 0, to_rank = 0;
  int64_t first_sample = 0, end_sample = 0;  // counted within the microbatch
};

// Who sends which samples between an encoder and the language model (docs/layouts/bridges.md). Filled by bridges/.
struct Bridge {
  std::string name, from, to;      // from, to: names of modules
  std::string kind;                // equal | fan_out | fan_in | uneven | colocated
  int64_t token = -1;              // the token id whose positions in the text its rows take
  double max_mean_square = 0;      // of its rows in a step; the executor stops a run that exceeds it; 0: no limit
  std::vector<Transfer> forward;   // image rows, from encoder ranks to language ranks
  std::vector<Transfer> backward;  // their gradients, from language ranks to encoder ranks
  int origin = -1;                 // index in Plan::origins; -1: none
};

// A part of the learning-rate curve, for display. Segments touch: each begins where the one before ends.
struct Segment {
  std::string kind;                          // warmup | stable | decay | end
  int64_t first_sample = 0, end_sample = 0;  // half-open
};

// The learning rate at a sample count: lr_schedule.h, docs/training/budget.md#learning-rate. Filled by budget/.
struct LearningRate {
  double peak = 0, min = 0, init = 0;  // learning rates: after warmup, at the end, at sample 0
  double warmup_samples = 0;           // may be fractional: a fraction of decay_samples
  int64_t decay_samples = 0;           // where the rate reaches `min`, counted from sample 0
  std::string style;                   // constant | linear | cosine | inverse_sqrt | wsd
  int64_t wsd_decay_samples = 0;       // wsd: length of the decay, which ends at decay_samples
  std::string wsd_style;               // wsd: linear | cosine | exponential | minus_sqrt
};

// The weight decay at a sample count: lr_schedule.h, docs/training/budget.md#weight-decay. Filled by budget/.
struct WeightDecay {
  double start = 0, end = 0;
  std::string style;    // constant | linear | cosine
  int64_t samples = 0;  // where `end` is reached
};

// How many samples, in which portions (docs/training/budget.md#steps). Filled by budget/.
struct Budget {
  int64_t train_samples = 0;        // the budget of the recipe
  int64_t global_samples = 0;       // samples of one step
  int64_t micro_samples = 0;        // samples of one microbatch on one lane of the language model
  int64_t sequence_length = 0;      // tokens of a sample
  int64_t microbatches = 0;         // of a step
  int64_t steps = 0;                // train_samples / global_samples, rounded up
  int64_t block_samples = 0;        // samples of one microbatch, of all lanes: global_samples / microbatches
  int64_t samples_past_budget = 0;  // steps * global_samples - train_samples
  LearningRate learning_rate;
  WeightDecay weight_decay;
  std::vector<Segment> segments;
};

// The rates of the parameters that `match` names and no part before it (docs/training/step.md#rates-by-part): those of
// the schedule, times a factor that is the same in all steps. A rate that the recipe leaves out is the schedule's.
struct RatePart {
  std::string match;         // a module, a part of it, or a published name, in which * is any text
  double learning_rate = 0;  // where that of the schedule is LearningRate::peak
  double weight_decay = 0;   // where that of the schedule is WeightDecay::end
};

// AdamW's constants and the gradient clip, as the recipe has them. The keys of `optimizer` fill these fields directly;
// their defaults are in the table of keys (recipe_keys.h). Formulas: docs/training/step.md#adamw.
struct OptimizerPlan {
  double beta1 = 0, beta2 = 0, eps = 0;
  double clip_grad_norm = 0;  // gradients are scaled down to this global norm
  // In the order of the recipe. Filled by compile.cc; a parameter says which one it is in (Parameter::part).
  std::vector<RatePart> parts;
};

// Where the weights of one module, or of a part of it, come from (docs/weights.md). Filled by compile.cc.
struct WeightSourcePlan {
  std::string part;  // "language"; of an encoder also "radio_encoder.backbone" and "radio_encoder.projection"
  std::string from;  // as InitializePlan::from, or "drawn": as without `initialize`
  std::string base;  // folder of the file that names it; not covered by the digest
};

// Published weights to start from (`initialize`). Filled by compile.cc.
struct InitializePlan {
  // A safetensors file, a Hugging Face folder, a checkpoint or a run directory, as in the recipe. All weights are from
  // there. Empty: each module and part has its own source, in `sources`.
  std::string from;
  std::string base;                       // folder of the file that names it; not covered by the digest
  std::vector<WeightSourcePlan> sources;  // every part of every module is in one
  std::vector<std::string> ignore;        // tensors of the sources that may stay unused; "a.*": all that begin so
  bool optimizer = false;                 // of a checkpoint: take its optimizer state too
  // Samples and rates go on where a checkpoint stands ("checkpoint"), or begin as the recipe says ("recipe").
  std::string schedule = "recipe";
};

// A size that is known only at run time: rows of images, rows of experts, documents. Dims refer to it by name. Filled
// by schedule/.
struct Symbol {
  std::string name;      // "language.expert_rows"
  int64_t maximum = 0;   // no data and no router can bring more
  std::string what;      // for people: "image tokens of a lane's microbatch"
  int64_t expected = 0;  // memory is planned for this, more stop a run: Module::imbalance times the mean; 0: maximum
  int64_t mean = 0;      // FLOPs and time are estimated for this; 0: the maximum
};

// Numbers in equal steps: first, first + stride, ..., `count` of them.
struct RankRange {
  int first = 0, count = 1, stride = 1;
};

// How the tensors of some parameters are written to a checkpoint, and by which ranks. The key of a parameter is its
// name (with the expert's number), the key of its optimizer state is NAME.STATE. Shapes are those of whole tensors.
// A weight that has a master among its states is not written itself. Filled by model/.
struct CheckpointRule {
  std::string module;
  std::vector<RankRange> parameters;  // indices in Module::parameters
  View view = View::kDense;           // the view of `cut`, `replicated` and `flat`
  bool kept = true;              // false: no checkpoint has them, as they are what adapters stand on, and never change
  int stage = 0;                 // pp coordinate of the ranks that hold them
  std::vector<Axis> cut;         // ranks along these have different parts: tp or expert_tp cuts shard_dim, ep experts
  std::vector<Axis> replicated;  // ranks along these have the same part: coordinate 0 writes it
  // Names of optimizer_states.h that are kept for each parameter ("exp_avg"). Empty: a buffer or a frozen parameter. A
  // rank writes the elements of its bucket shard, in flat ranges of the parameter.
  std::vector<std::string> states;
  // Bucket shards lie along these axes. Of the other replicated axes, coordinate 0 writes the states.
  std::vector<Axis> flat;
};

// A sum over the microbatches of a step, then over ranks: one tensor on the device. Filled by compile.cc.
struct Accumulator {
  std::string name;  // "$integers"
  DType dtype = DType::kInt64;
  int64_t elements = 0;
  // Names of its elements, in order: instructions call the first of $integers "$integers.loss_tokens". Empty: the
  // tensor is used as a whole.
  std::vector<std::string> parts;
};

// What a checkpoint holds, when one is written, and which stay (docs/checkpoints.md). Filled by model/.
struct CheckpointPlan {
  int64_t every_steps = 0;  // also after the last step; 0: no checkpoints are written
  // The newest `keep_last` stay, and those of a step that keep_every_steps divides. 0: all stay; no step is kept so.
  int64_t keep_last = 0, keep_every_steps = 0;
  std::string keep_best;   // an evaluation set: the checkpoint with its least loss stays too; empty: none does
  int64_t copy_bytes = 0;  // most host memory of a rank for the copies of one checkpoint; 0: as much as they need
  std::vector<CheckpointRule> rules;
  // Keys of what is the same on all ranks; rank 0 writes it. There is no generator state: draws are keyed and counted.
  std::vector<std::string> common;
};

// Ranks that run the same program. Filled by schedule/.
struct Role {
  std::string name;                  // "language.s0"; ranks that are no bridge leader: "language.s0.sibling"
  std::vector<std::string> modules;  // that its ranks belong to: several where modules are colocated
  std::vector<RankRange> ranks;
  // What its ranks run, list after list (kRoleLists). resume and save are empty where no checkpoints are written,
  // evaluate and score where nothing is evaluated.
  std::vector<Instruction> setup;     // of a run that begins
  std::vector<Instruction> resume;    // in its place: of a run that goes on from a checkpoint
  std::vector<Instruction> step;      // once for each step
  std::vector<Instruction> evaluate;  // once for each round of each evaluation set: forwards of one block of samples
  std::vector<Instruction> score;     // behind the last round of the last set: losses are summed up and recorded
  std::vector<Instruction> save;      // after a step that CheckpointPlan::every_steps divides, and after the last one
  std::vector<Instruction> teardown;  // at the end
  int origin = -1;                    // index in Plan::origins; -1: none
};

// The lists of a role, in the order in which they are linked.
struct RoleList {
  const char* name;
  std::vector<Instruction> Role::*list;
};
inline constexpr RoleList kRoleLists[] = {
    {"setup", &Role::setup}, {"resume", &Role::resume}, {"step", &Role::step},        {"evaluate", &Role::evaluate},
    {"score", &Role::score}, {"save", &Role::save},     {"teardown", &Role::teardown}};

// The order in which one stage runs forwards and backwards of microbatches (docs/layouts/pipeline.md#1f1b). Filled by
// schedule/.
struct StageSchedule {
  std::string module;
  int stage = 0;
  int warmup = 0;                  // forwards before the first backward
  std::vector<std::string> order;  // "F0", "F1", "B0", ...: forward or backward, and the microbatch
};

struct Plan {
  int format_version = kPlanFormatVersion;
  std::string tool_version = kToolVersion;  // of the planner that made it; not covered by the digest
  std::string name;                         // of the recipe
  std::string recipe_digest;                // SHA-256 of the recipe, hex; not covered by the digest
  std::string digest;                       // SHA-256 over what ranks do (PlanDigest), hex
  std::string precision;                    // bf16 | fp32 | fp64: of parameters and activations
  bool deterministic = false;               // only kernels that give the same bits in every run
  int64_t seed = 0;                         // of the draws of weights
  int world_size = 0;                       // ranks of all modules
  int64_t log_every_steps = 1;              // a step that this divides is logged
  Cluster cluster;
  LaunchPlan launch;            // not covered by the digest
  std::vector<Module> modules;  // recipe order
  std::vector<Group> groups;    // in the order in which ranks create them: world, modules in recipe order, bridges
  std::vector<Bridge> bridges;  // recipe order
  Budget budget;
  OptimizerPlan optimizer;
  DataPlan data;
  EvaluationPlan evaluation;
  DivergencePlan divergence;
  std::optional<InitializePlan> initialize;  // none: weights are drawn
  CheckpointPlan checkpoint;
  std::vector<Accumulator> accumulators;
  std::vector<Symbol> symbols;
  std::vector<StageSchedule> schedule;  // a stage of a module each
  std::vector<Block> blocks;            // called by roles and by each other
  std::vector<Role> roles;              // each rank is in one
  std::vector<Origin> origins;          // not covered by the digest

  // The first of this name, or null.
  const Module* FindModule(std::string_view name) const;
  const Group* FindGroup(std::string_view name) const;
  const Bridge* FindBridge(std::string_view name) const;
  const Block* FindBlock(std::string_view name) const;
  const Accumulator* FindAccumulator(std::string_view name) const;
  const Role* RoleOf(int rank) const;  // null: no role has the rank
  DType dtype() const;                 // `precision` as a type; fp32 if it is an unknown word
  DType master() const;                // type of master weights and gradients: fp64 in fp64 plans, else fp32
  // Whether steps add up their losses by source, beside their sum: where there are sources, and evaluations to compare
  // them with.
  bool sums_by_source() const { return !evaluation.empty() && !data.sources.empty(); }
};

bool Contains(const RankRange& range, int rank);
std::vector<int> Expand(const std::vector<RankRange>& ranges);   // all numbers, range by range
std::vector<RankRange> Compress(const std::vector<int>& ranks);  // the inverse; `ranks` ascend

// The member lists of all groups of this name, in creation order. Members ascend.
std::vector<std::vector<int>> MembersOf(const Plan& plan, const Group& group);

// The part [first, end) of `samples` that lane `lane` of `lanes` gets. Parts are contiguous; the first samples % lanes
// lanes get one sample more (docs/layouts/bridges.md#samples).
struct LaneSamples {
  int64_t first = 0, end = 0;
};
LaneSamples SamplesOfLane(int64_t samples, int lanes, int lane);

}  // namespace planwright
