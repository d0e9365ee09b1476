#include "planner/views/diff/field_rules.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

namespace planwright {
namespace {

using enum CompareAs;

constexpr std::string_view kMoved = "other ranks do the work; samples, weights and sums are the same";
constexpr std::string_view kConsequence = "follows from other changes";
constexpr std::string_view kProgram = "ranks run other instructions; what they compute is compared layer by layer";
constexpr std::string_view kGroups = "other ranks communicate; what they sum is the same";
constexpr std::string_view kInit = "other initial weights";
constexpr std::string_view kModel = "another model";
constexpr std::string_view kSamples = "other samples are read, or in another order";
constexpr std::string_view kRate = "the learning rate over samples";
constexpr std::string_view kDecay = "the weight decay over samples";
constexpr std::string_view kStorage = "tensors have other places in memory";
constexpr std::string_view kOptimizer = "the optimizer steps weights in another way";

// In the order of the plan's fields. Rows of fields that keep the loss curve say what stays the same.
constexpr FieldRow kRows[] = {
    {"", kValue, "run", "another setting of the run"},
    {"format_version", kValue, "run", "another format of the file"},
    {"name", kValue, "run", "what the plan and its runs are called"},
    {"precision", kValue, "arithmetic", "another rounding of all numbers"},
    {"deterministic", kValue, "arithmetic", "other kernels, which may round otherwise"},
    {"seed", kValue, "weights", kInit},
    {"world_size", kValue, "ranks", "another number of processes"},
    {"log_every_steps", kValue, "run", "how often a line about a step is printed"},

    {"cluster", kValue, "ranks", kMoved},
    {"cluster.host_memory", kValue, "memory", "host memory is planned for other nodes"},
    {"cluster.gpu", kValue, "ranks", "other devices, with other limits and rates"},

    {"budget", kValue, "budget", kConsequence},
    {"budget.train_samples", kValue, "budget", "the training is longer or shorter"},
    {"budget.global_samples", kValue, "budget", "each step averages over another number of samples"},
    {"budget.micro_samples", kValue, "budget",
     "a lane takes its samples in other portions; every token weighs the same"},
    {"budget.sequence_length", kValue, "data", "samples have another length"},
    {"budget.microbatches", kValue, "schedule", kConsequence},
    {"budget.block_samples", kValue, "schedule", kConsequence},
    {"budget.learning_rate", kValue, "budget", kRate},
    {"budget.weight_decay", kValue, "budget", kDecay},
    {"budget.segments", kWhole, "budget", kConsequence},

    {"optimizer", kValue, "arithmetic", kOptimizer},
    {"optimizer.clip_grad_norm", kValue, "arithmetic", "gradients are clipped at another norm"},
    {"optimizer.parts", kItems, "budget", "a part with rates of its own that the other plan does not have"},
    {"optimizer.parts[].match", kValue, "budget", "the part has other tensors"},
    {"optimizer.parts[].learning_rate", kValue, "budget", "the learning rate of the tensors of a part"},
    {"optimizer.parts[].weight_decay", kValue, "budget", "the weight decay of the tensors of a part"},

    {"data", kValue, "data", kSamples},
    {"data.image_token", kValue, "data", "another token stands for images"},
    {"data.pad_token", kValue, "data", "another token stands for padding"},
    {"data.end_token", kValue, "data", "another token ends documents"},
    {"data.vocabulary", kValue, "data", "tokens are drawn from another vocabulary"},
    {"data.image_grids", kValue, "data", "images of other sizes"},
    {"data.min_images", kValue, "data", "other numbers of images in a sample"},
    {"data.max_images", kValue, "data", "other numbers of images in a sample"},
    {"data.window", kValue, "data", "documents are shuffled and packed in other windows"},
    {"data.min_patches", kValue, "data", "images are resized to other sizes"},
    {"data.max_patches", kValue, "data", "images are resized to other sizes"},
    {"data.resize", kValue, "data", "images are resized by another filter"},
    {"data.grid", kValue, "data", "images are resized to other sizes"},
    {"data.orientation", kValue, "data", "images whose EXIF says so are turned, and have other patches and tokens"},
    {"data.sources", kItems, "data", "a source that the other plan does not have"},
    {"data.sources[]", kValue, "data", "the source has other documents"},
    {"data.sources[].weight", kValue, "data", "another share of the samples is of the source"},
    {"data.tokenizer", kValue, "data", "text is other tokens"},
    {"data.tokenizer_digest", kValue, "data", "text is tokens of another tokenizer"},
    {"data.template_digest", kValue, "data", "documents are written by another template"},
    {"data.shuffle", kValue, "data", "samples come in another order"},
    {"data.packing", kValue, "data", "other documents share a sample"},
    {"data.long", kValue, "data", "other documents are left out or cut"},
    {"data.damaged", kValue, "data", "documents with a damaged image are padding in their place, or end the run"},
    {"data.most_damaged", kValue, "data", "how many damaged documents stop a run before it begins"},
    {"data.balance", kValue, "data", "the samples of a step are dealt to other lanes; a step has the same samples"},
    {"data.packed_documents", kValue, "data", "attention and Mamba state end at other places"},
    {"data.counted", kValue, "memory", "what the index has counted: memory and times are planned for it"},
    {"data.encoders", kValue, "data", "images are cut into other patches, or make another number of tokens"},

    {"evaluation", kValue, "evaluation", "what is evaluated beside training; no step is another one"},
    {"evaluation.every_samples", kValue, "evaluation", "evaluations after other steps"},
    {"evaluation.sets", kItems, "evaluation", "a set that the other plan does not evaluate"},
    {"evaluation.sets[].samples", kValue, "evaluation", "the loss is of more or fewer samples"},
    {"evaluation.sets[].rounds", kValue, "evaluation", kConsequence},
    {"evaluation.sets[].data", kValue, "evaluation", "the loss is of other samples"},
    {"evaluation.sets[].data.sources", kItems, "evaluation", "a source that the other plan does not evaluate"},
    {"divergence", kValue, "run", "when a growing loss stops the run"},

    {"initialize", kValue, "weights", kInit},
    {"initialize.optimizer", kValue, "weights", "the optimizer starts from another state"},
    {"initialize.schedule", kValue, "budget", "samples and rates begin elsewhere"},
    {"initialize.sources", kItems, "weights", kInit},
    {"initialize.ignore", kValue, "weights", "which tensors of the file may stay unused"},

    {"checkpoint", kValue, "checkpoint", kConsequence},
    {"checkpoint.every_steps", kValue, "checkpoint", "checkpoints are written at other steps"},
    {"checkpoint.keep_last", kValue, "checkpoint", "other checkpoints stay"},
    {"checkpoint.keep_every_steps", kValue, "checkpoint", "other checkpoints stay"},
    {"checkpoint.keep_best", kValue, "checkpoint", "another checkpoint stays as the best"},
    {"checkpoint.copy_bytes", kValue, "memory", "checkpoints are copied through another amount of host memory"},
    {"checkpoint.common", kWhole, "checkpoint", "checkpoints keep other common state"},
    {"checkpoint.rules", kWhole, "checkpoint", "other ranks write, or other pieces; the whole tensors are the same"},

    {"accumulators", kWhole, "programs", kConsequence},

    {"symbols", kItems, "memory", "another run-time size"},
    {"symbols[]", kValue, "memory", kConsequence},
    {"symbols[].maximum", kValue, "memory", "memory is kept for another number of rows"},
    {"symbols[].expected", kValue, "memory", "memory is planned for another number of rows"},
    {"symbols[].what", kValue, "memory", "what the size is called"},

    {"modules", kItems, "weights", "another part is trained"},
    {"modules[]", kValue, "weights", kModel},
    {"modules[].name", kValue, "weights", kInit},
    {"modules[].model", kValue, "weights", "what the model is called"},
    {"modules[].constants", kMap, "arithmetic", "a number of the model: its weights, initial values or arithmetic"},
    {"modules[].constants.mamba.chunk", kHarmless, "memory", "the same recurrence in other portions"},
    {"modules[].constants.moe.normalized", kValue, "arithmetic",
     "whether the weights of a token's experts are divided by their sum"},
    {"modules[].grid", kValue, "ranks", kMoved},
    {"modules[].grid.tp", kValue, "ranks", "each weight is cut over another number of ranks; the sums are the same"},
    {"modules[].grid.cp", kValue, "ranks", "each sequence is cut over another number of ranks; the sums are the same"},
    {"modules[].grid.dp", kValue, "ranks",
     "another number of lanes share the samples of a step; the sums are the same"},
    {"modules[].grid.pp", kValue, "ranks", "layers are spread over another number of stages"},
    {"modules[].grid.expert_tp", kValue, "ranks",
     "each expert is cut over another number of ranks; the sums are the same"},
    {"modules[].grid.ep", kValue, "ranks", "experts are spread over another number of ranks"},
    {"modules[].grid.expert_dp", kValue, "ranks", "experts have another number of replicas; the sums are the same"},
    {"modules[].trains_backbone", kValue, "weights", "other weights are stepped"},
    {"modules[].adapter_targets", kValue, "weights", "other weights are stepped"},
    {"modules[].trains_projection", kValue, "weights", "other weights are stepped"},
    {"modules[].recompute", kValue, "memory", "other activations are computed again instead of kept"},
    {"modules[].dispatch", kValue, "ranks", "tokens reach the experts in another way; each token sums the same terms"},
    {"modules[].parameter_count", kValue, "weights", kConsequence},
    {"modules[].projector_count", kValue, "weights", kConsequence},
    {"modules[].embed_flops", kValue, "weights", kConsequence},
    {"modules[].head_flops", kValue, "weights", kConsequence},
    {"modules[].imbalance", kValue, "memory", "memory is planned for another imbalance of experts"},
    {"modules[].layers", kItems, "weights", "another layer"},
    {"modules[].layers[]", kValue, "weights", kConsequence},
    {"modules[].layers[].kind", kValue, "weights", "a layer of another kind"},
    {"modules[].layers[].stage", kValue, "schedule", "the layer is computed by another pipeline stage"},
    {"modules[].parameters", kItems, "weights", "another tensor; its random draws depend on its name"},
    {"modules[].parameters[]", kValue, "weights", kInit},
    {"modules[].parameters[].file_name", kValue, "weights", "weights are loaded from a tensor of another name"},
    {"modules[].parameters[].shape", kValue, "weights", kModel},
    {"modules[].parameters[].experts", kValue, "weights", kModel},
    {"modules[].parameters[].shard_dim", kValue, "ranks", "the tensor is cut along another dim"},
    {"modules[].parameters[].segments", kValue, "ranks", "the tensor is cut in other parts"},
    {"modules[].parameters[].padded", kValue, "ranks", "ranks do or do not divide the tensor"},
    {"modules[].parameters[].decay", kValue, "weights", "weight decay acts on other tensors"},
    {"modules[].parameters[].part", kValue, "budget", "with the rates of which part the tensor is stepped"},
    {"modules[].parameters[].trained", kValue, "weights", "other weights are stepped"},
    {"modules[].parameters[].buffer", kValue, "weights", "the tensor is kept in another precision"},
    {"modules[].storages", kWhole, "memory", kStorage},
    {"modules[].buckets", kWhole, "memory", "gradients are summed in other portions"},

    {"groups", kItems, "groups", kGroups},
    {"groups[]", kValue, "groups", kGroups},
    {"groups[].short_name", kValue, "groups", "what the group is called"},
    {"groups[].streams", kValue, "groups", "on which streams the group communicates"},

    {"bridges", kItems, "bridges", "the language model reads another encoder's output"},
    {"bridges[]", kValue, "bridges", "another bridge"},
    {"bridges[].name", kValue, "bridges", "what the bridge is called"},
    {"bridges[].from", kValue, "bridges", "the language model reads another encoder's output"},
    {"bridges[].to", kValue, "bridges", "another module reads the encoder's output"},
    {"bridges[].kind", kValue, "bridges", "samples are dealt to other lanes"},
    {"bridges[].token", kValue, "bridges", "the rows take the places of another token"},
    {"bridges[].max_mean_square", kValue, "bridges", "the run stops at another mean square of the rows"},
    {"bridges[].forward", kWhole, "bridges", "the same samples travel between other ranks"},
    {"bridges[].backward", kWhole, "bridges", "the same gradients travel between other ranks"},

    {"schedule", kItems, "schedule", "another pipeline stage"},
    {"schedule[]", kValue, "schedule", kConsequence},
    {"schedule[].warmup", kValue, "schedule", "another number of forwards before the first backward"},
    {"schedule[].order", kWhole, "schedule", "microbatches are computed in another order; their sum is the same"},

    {"blocks", kWhole, "programs", kProgram},

    {"roles", kItems, "programs", "other ranks share a program"},
    {"roles[]", kValue, "programs", kProgram},
    {"roles[].modules", kValue, "ranks", kMoved},
    {"roles[].ranks", kValue, "ranks", "other ranks share the program"},
    {"roles[].setup", kWhole, "programs", kProgram},
    {"roles[].resume", kWhole, "programs", kProgram},
    {"roles[].step", kWhole, "programs", kProgram},
    {"roles[].evaluate", kWhole, "programs", kProgram},
    {"roles[].score", kWhole, "programs", kProgram},
    {"roles[].save", kWhole, "programs", kProgram},
    {"roles[].teardown", kWhole, "programs", kProgram},

    {"instruction", kWhole, "programs", kProgram},
};

using FieldTraitsMap = std::map<std::string, FieldTraits, std::less<>>;

// The type that a field holds one or many of, and what its pattern ends with.
template <typename T>
struct ElementOf {
  using Type = T;
  static constexpr const char* kEnd = "";
};
template <typename T>
struct ElementOf<std::vector<T>> {
  using Type = T;
  static constexpr const char* kEnd = "[]";
};
template <typename T>
struct ElementOf<std::optional<T>> {
  using Type = T;
  static constexpr const char* kEnd = "";
};

// A visitor of plan_fields.h that notes what is said of each field. It visits a plan without content: the patterns
// follow from the types alone.
class TraitsCollector {
 public:
  static constexpr bool kFills = false;
  explicit TraitsCollector(std::string around) : around_(std::move(around)) {}

  template <typename T>
  void operator()(const char* key, const FieldTraits& of, const T&) {
    const std::string pattern = InstructionPattern(around_ + key);
    found_.emplace(pattern, of);
    using Held = typename ElementOf<T>::Type;
    TraitsCollector inner(pattern + ElementOf<T>::kEnd + ".");
    if constexpr (requires(const Held& held) { Describe(inner, held); }) {
      Describe(inner, Held());
      found_.merge(inner.found_);
    }
  }
  template <typename T>
  void Omittable(const char* key, const FieldTraits& of, const T& value, const std::type_identity_t<T>&) {
    (*this)(key, of, value);
  }
  template <typename T>
  void OutsideDigest(const char*, const T&, const std::type_identity_t<T>&) {}

  FieldTraitsMap Take() { return std::move(found_); }

 private:
  const std::string around_;
  FieldTraitsMap found_;  // by pattern
};

const FieldTraitsMap& AllFieldTraits() {
  static const FieldTraitsMap traits = [] {
    TraitsCollector fields("");
    Describe(fields, Plan());
    return fields.Take();
  }();
  return traits;
}

// Whether the field `inner` is `outer` or lies within it. A plain prefix is not enough: one name may begin with
// another.
bool Within(std::string_view inner, std::string_view outer) {
  if (outer.empty() || inner == outer) return true;
  return inner.starts_with(outer) && (inner[outer.size()] == '.' || inner[outer.size()] == '[');
}

// The innermost row around a field, which is the longest one. The first row has an empty pattern and is around all.
const FieldRow& RowOf(std::string_view pattern) {
  const FieldRow* found = kRows;
  for (const FieldRow& row : kRows) {
    if (Within(pattern, row.pattern) && row.pattern.size() > found->pattern.size()) found = &row;
  }
  return *found;
}

// The kMap row that a field is a value of, or null. Keys of a map are no fields, so plan_fields.h knows the map alone.
const FieldRow* MapAround(std::string_view pattern) {
  for (const FieldRow& row : kRows) {
    if (row.compare == kMap && pattern != row.pattern && Within(pattern, row.pattern)) return &row;
  }
  return nullptr;
}

bool InsideAWhole(std::string_view pattern) {
  return std::any_of(std::begin(kRows), std::end(kRows),
                     [&](const FieldRow& row) { return row.compare == kWhole && Within(pattern, row.pattern); });
}

}  // namespace

std::span<const FieldRow> FieldRows() { return kRows; }

std::optional<FieldRule> RuleOf(std::string_view pattern) {
  const FieldRow* map = MapAround(pattern);
  const auto& traits = AllFieldTraits();
  const auto field = traits.find(map ? map->pattern : pattern);
  if (field == traits.end()) return std::nullopt;
  const FieldRow& row = RowOf(pattern);
  const CompareAs compare = row.pattern == pattern ? row.compare : InsideAWhole(pattern) ? kPart : kValue;
  // The data of an evaluation set has the fields of the training's, and no step reads it.
  const bool keeps = compare == kHarmless || Within(pattern, "evaluation");
  return FieldRule{std::string(pattern), compare, keeps ? Curve::kKeeps : field->second.curve, row.area, row.effect};
}

std::string InstructionPattern(const std::string& pattern) {
  const auto inside = [&](const std::string& list) -> std::optional<std::string> {
    if (!pattern.starts_with(list)) return std::nullopt;
    return "instruction" + pattern.substr(list.size());
  };
  if (const auto found = inside("blocks[].body[]")) return *found;
  for (const RoleList& part : kRoleLists) {
    if (const auto found = inside(std::string("roles[].") + part.name + "[]")) return *found;
  }
  return pattern;
}

std::string ItemName(std::string_view pattern, const nlohmann::ordered_json& item) {
  if (pattern == "schedule") return item["module"].get<std::string>() + ".s" + std::to_string(item["stage"].get<int>());
  if (pattern == "modules[].layers") return item["frame"];
  if (pattern == "initialize.sources") return item["for"];
  if (pattern == "optimizer.parts") return item["match"];
  return item["name"];
}

std::string ItemValue(std::string_view pattern, const nlohmann::ordered_json& item) {
  return pattern == "initialize.sources" ? item["from"].get<std::string>() : ItemName(pattern, item);
}

}  // namespace planwright
