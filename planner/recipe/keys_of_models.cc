// The keys of the machines, of the models on them, and of the connections between these.
#include "planner/base/text/limits.h"
#include "planner/recipe/key_tables.h"
#include "planner/recipe/recipe.h"

namespace planwright {
namespace {

using enum Need;

// A plan lists layers and microbatches one by one. With more of them the planner would run out of memory before it
// could refuse the plan (docs/limits.md).
constexpr NumberRange kLayers{1, static_cast<double>(kMostLayers)};
constexpr NumberRange kStageLayers{0, 4096};
constexpr NumberRange kImageSide{1, static_cast<double>(kMostGridSide)};
constexpr NumberRange kClassTokens{1, 4096};
constexpr NumberRange kPixelShuffle{1, static_cast<double>(kMostPixelShuffle)};
constexpr NumberRange kCount{0, 16777216};

// The words of all layer kinds, and the meaning of their letters in a pattern.
#define LAYER(id, letter, word, title) "|" word
#define ENCODER_LAYER(letter, word, title) "|" word
constexpr char kRecompute[] = "none|full|elementwise"
#include "planner/plan/layer_kinds.def"
    ;
#define LAYER(id, letter, word, title) "; " letter " " title
constexpr char kPatternHelp[] = "one character for each layer, in quotes"
#include "planner/plan/layer_kinds.def"
    ;

constexpr KeySpec kModelKeys[] = {
    {"name", "", To<&Recipe::name>, kRequired, "", kAny, "", "name of the plans and runs of this recipe"},
    {"extends", "", kTexts, kOptional, "", kAny, "",
     "recipe files to build on, absolute or relative to this file; maps merge, lists replace, later ones win"},

    {"cluster", "", Section<&Recipe::cluster>, kOptional, "", kAny, "", "the machines"},
    {"cluster.nodes", "", To<&ClusterRecipe::nodes>, kOptional, "1", kSize, "", "number of nodes"},
    {"cluster.gpus_per_node", "", To<&ClusterRecipe::gpus_per_node>, kOptional, "8", kSize, "",
     "number of GPUs of a node; without GPUs, of ranks of a node"},
    {"cluster.gpu", "", To<&ClusterRecipe::gpu>, kOptional, "none", kAny, "none|a100_sxm|h100_sxm|h200_sxm|other",
     "device type, which decides memory limit and speed; none: ranks on CPUs; other: GPUs of which `device` has all "
     "figures"},
    {"cluster.host_memory", "", To<&ClusterRecipe::host_memory>, kOptional, "", kDeviceMemory, "",
     "GB of a node's memory that ranks may use; copies of checkpoints are planned to fit"},
    {"cluster.device", "", Section<&ClusterRecipe::device>, kOptional, "", kAny, "",
     "figures of the device's data sheet, in place of those of `gpu`"},
    {"cluster.device.memory", "", To<&DeviceRecipe::memory>, kOptional, "", kDeviceMemory, "",
     "memory in GB (10^9 bytes), as CUDA reports it"},
    {"cluster.device.peak", "", To<&DeviceRecipe::peak>, kOptional, "", kDevicePeak, "",
     "TFLOP/s of dense matrix products in the recipe's precision"},
    {"cluster.device.bandwidth", "", To<&DeviceRecipe::bandwidth>, kOptional, "", kDeviceSpeed, "",
     "GB/s of the device's memory"},
    {"cluster.device.link", "", To<&DeviceRecipe::link>, kOptional, "", kDeviceSpeed, "",
     "GB/s to the other devices of its node, in one direction"},
    {"cluster.device.network", "", To<&DeviceRecipe::network>, kOptional, "", kDeviceSpeed, "",
     "GB/s of the device's share of the network between nodes, in one direction"},
    {"cluster.profile", "", To<&ClusterRecipe::profile>, kOptional, "", kAny, "",
     "file of times that `plan measure` wrote on such devices, absolute or relative to this file; "
     "recipes/profiles has those of an H100 and of H200s"},

    {"models", "", kNamedMaps, kOptional, "", kAny, "", "model definitions by name"},
    {"models.<name>.kind", "", To<&ModelRecipe::kind>, kRequired, "", kAny, "radio_vit|hybrid_lm",
     "family of the model"},

    {"models.<name>.layers", "radio_vit", To<&RadioVitModel::layers>, kRequired, "", kLayers, "", "transformer blocks"},
    {"models.<name>.hidden", "radio_vit", To<&RadioVitModel::hidden>, kRequired, "", kSize, "",
     "width of the residual stream"},
    {"models.<name>.heads", "radio_vit", To<&RadioVitModel::heads>, kRequired, "", kSize, "",
     "number of attention heads; `hidden` is a multiple of it"},
    {"models.<name>.ffn", "radio_vit", To<&RadioVitModel::ffn>, kRequired, "", kSize, "", "width inside the MLP"},
    {"models.<name>.patch", "radio_vit", To<&RadioVitModel::patch>, kRequired, "", kSize, "",
     "side of a patch in pixels"},
    {"models.<name>.class_tokens", "radio_vit", To<&RadioVitModel::class_tokens>, kRequired, "", kClassTokens, "",
     "tokens added before the patches of each image and dropped after the encoder"},
    {"models.<name>.max_image", "radio_vit", To<&RadioVitModel::max_image>, kRequired, "", kImageSide, "",
     "largest side of an image in pixels; decides the size of the position table"},
    {"models.<name>.pixel_shuffle", "radio_vit", To<&RadioVitModel::pixel_shuffle>, kOptional, "2", kPixelShuffle, "",
     "side of the square of patches that becomes one image token"},
    {"models.<name>.positions", "radio_vit", To<&RadioVitModel::positions>, kOptional, "interpolate", kAny,
     "interpolate|crop",
     "how the position table is fitted to an image: resized (interpolate), or a random crop as augmentation"},
    {"models.<name>.activation", "radio_vit", To<&RadioVitModel::activation>, kOptional, "gelu_tanh", kAny,
     "gelu_tanh|gelu",
     "function inside the MLP: the tanh form of GELU (gelu_tanh), or the exact one, by the error function"},
    {"models.<name>.final_norm", "radio_vit", To<&RadioVitModel::final_norm>, kOptional, "layernorm", kAny,
     "layernorm|none", "norm between the last block and the pixel shuffle"},
    {"models.<name>.norm_eps", "radio_vit", To<&RadioVitModel::norm_eps>, kOptional, "1.0e-6", kEpsilon, "",
     "epsilon of the layer norms"},
    {"models.<name>.init_std", "radio_vit", To<&RadioVitModel::init_std>, kOptional, "0.02", kDeviation, "",
     "standard deviation of initial linear weights"},
    {"models.<name>.projector", "radio_vit", kMap, kRequired, "", kAny, "",
     "layers from image tokens to the width of the language model: norm, linear, squared ReLU, linear"},
    {"models.<name>.projector.hidden", "", To<&RadioVitModel::projector_hidden>, kRequired, "", kSize, "",
     "width inside the projector"},
    {"models.<name>.projector.norm_eps", "", To<&RadioVitModel::projector_norm_eps>, kOptional, "1.0e-5", kEpsilon, "",
     "epsilon of the projector's norm"},

    {"models.<name>.pattern", "hybrid_lm", To<&HybridLmModel::pattern>, kRequired, "", kAny, "", kPatternHelp},
    {"models.<name>.hidden", "hybrid_lm", To<&HybridLmModel::hidden>, kRequired, "", kSize, "",
     "width of the residual stream"},
    {"models.<name>.vocabulary", "hybrid_lm", To<&HybridLmModel::vocabulary>, kRequired, "", kSize, "",
     "number of token ids: rows of the embedding and of the output head"},
    {"models.<name>.init_std", "hybrid_lm", To<&HybridLmModel::init_std>, kOptional, "0.02", kDeviation, "",
     "standard deviation of initial linear weights"},
    {"models.<name>.norm_eps", "hybrid_lm", To<&HybridLmModel::norm_eps>, kOptional, "1.0e-5", kEpsilon, "",
     "epsilon of the RMS norms"},
    {"models.<name>.attention", "hybrid_lm", Section<&HybridLmModel::attention>, kOptional, "", kAny, "",
     "sizes of * layers; required if the pattern has any"},
    {"models.<name>.attention.heads", "", To<&HybridLmModel::Attention::heads>, kRequired, "", kSize, "",
     "number of query heads"},
    {"models.<name>.attention.head_dim", "", To<&HybridLmModel::Attention::head_dim>, kRequired, "", kSize, "",
     "size of a head"},
    {"models.<name>.attention.kv_groups", "", To<&HybridLmModel::Attention::kv_groups>, kRequired, "", kSize, "",
     "number of key and value heads; `heads` is a multiple of it"},
    {"models.<name>.mamba", "hybrid_lm", Section<&HybridLmModel::mamba>, kOptional, "", kAny, "",
     "sizes of M layers; required if the pattern has any"},
    {"models.<name>.mamba.heads", "", To<&HybridLmModel::Mamba::heads>, kRequired, "", kSize, "", "number of heads"},
    {"models.<name>.mamba.head_dim", "", To<&HybridLmModel::Mamba::head_dim>, kRequired, "", kSize, "",
     "size of a head"},
    {"models.<name>.mamba.groups", "", To<&HybridLmModel::Mamba::groups>, kRequired, "", kSize, "",
     "number of groups of heads that share B and C; `heads` is a multiple of it"},
    {"models.<name>.mamba.state", "", To<&HybridLmModel::Mamba::state>, kRequired, "", kSize, "",
     "state size of each head channel"},
    {"models.<name>.mamba.conv", "", To<&HybridLmModel::Mamba::conv>, kOptional, "4", kSize, "",
     "width of the causal convolution"},
    {"models.<name>.mamba.chunk", "", To<&HybridLmModel::Mamba::chunk>, kOptional, "128", kSize, "",
     "tokens of one chunk of the scan"},
    {"models.<name>.moe", "hybrid_lm", Section<&HybridLmModel::moe>, kOptional, "", kAny, "",
     "sizes of E layers; required if the pattern has any"},
    {"models.<name>.moe.experts", "", To<&HybridLmModel::Moe::experts>, kRequired, "", kSize, "",
     "number of routed experts"},
    {"models.<name>.moe.top_k", "", To<&HybridLmModel::Moe::top_k>, kRequired, "", kSize, "",
     "number of experts that each token uses"},
    {"models.<name>.moe.ffn", "", To<&HybridLmModel::Moe::ffn>, kRequired, "", kSize, "",
     "width inside a routed expert"},
    {"models.<name>.moe.shared_ffn", "", To<&HybridLmModel::Moe::shared_ffn>, kRequired, "", kSize, "",
     "width inside the shared expert"},
    {"models.<name>.moe.normalized", "", To<&HybridLmModel::Moe::normalized>, kOptional, "", kAny, "",
     "whether the weights of a token's experts are divided by their sum, before `scale`; without it they are; required "
     "if `top_k` is 1, where published models differ"},
    {"models.<name>.moe.scale", "", To<&HybridLmModel::Moe::scale>, kOptional, "1.0", kExpertScale, "",
     "factor on the weights of routed experts"},
    {"models.<name>.moe.aux_loss", "", To<&HybridLmModel::Moe::aux_loss>, kOptional, "0.0", kCoefficient, "",
     "coefficient of the load-balancing loss"},
    {"models.<name>.moe.bias_rate", "", ToConstant<&HybridLmModel::constants, double>, kOptional, "0.0", kCoefficient,
     "", "step size of the expert bias, which balances the load"},
    {"models.<name>.moe.imbalance", "", To<&HybridLmModel::Moe::imbalance>, kOptional, "", kImbalance, "",
     "expert rows of the busiest rank that memory is planned for, as a multiple of the mean; a step with more "
     "stops the run; without it, memory is planned for as many as there can be"},

    {"models.<name>.mlp", "hybrid_lm", Section<&HybridLmModel::mlp>, kOptional, "", kAny, "",
     "sizes of - layers; required if the pattern has any"},
    {"models.<name>.mlp.ffn", "", To<&HybridLmModel::Mlp::ffn>, kRequired, "", kSize, "", "width inside the MLP"},

    {"modules", "", kNamedMaps, kRequired, "", kAny, "", "models to train together, each with its ranks"},
    {"modules.<name>.model", "", To<&ModuleRecipe::model_reference>, kRequired, "", kAny, "",
     "name of a model in `models`"},
    {"modules.<name>.placement", "", kMap, kRequired, "", kAny, "", "ranks of the module"},
    {"modules.<name>.placement.first_rank", "", To<&ModuleRecipe::first_rank>, kRequired, "", kCount, "",
     "first rank of the module"},
    {"modules.<name>.placement.ranks", "", To<&ModuleRecipe::ranks>, kRequired, "", kSize, "",
     "number of consecutive ranks"},
    {"modules.<name>.parallel", "", kMap, kOptional, "", kAny, "", "sizes of the module's grid"},
    {"modules.<name>.parallel.tp", "", To<&ModuleRecipe::tp>, kOptional, "1", kSize, "", "tensor-parallel size"},
    {"modules.<name>.parallel.cp", "", To<&ModuleRecipe::cp>, kOptional, "1", kSize, "", "context-parallel size"},
    {"modules.<name>.parallel.pp", "", To<&ModuleRecipe::pp>, kOptional, "1", kSize, "",
     "pipeline-parallel size: number of stages"},
    {"modules.<name>.parallel.dp", "", To<&ModuleRecipe::dp>, kOptional, "", kSize, "",
     "data-parallel size; follows from the other sizes, and is only checked if given"},
    {"modules.<name>.parallel.ep", "", To<&ModuleRecipe::ep>, kOptional, "1", kSize, "", "expert-parallel size"},
    {"modules.<name>.parallel.expert_tp", "", To<&ModuleRecipe::expert_tp>, kOptional, "1", kSize, "",
     "tensor-parallel size inside experts"},
    {"modules.<name>.parallel.dispatch", "", To<&ModuleRecipe::dispatch>, kOptional, "auto", kAny,
     "auto|all_to_all|all_gather",
     "how tokens reach the experts of other ep ranks: each row to its expert's rank, or all tokens to all ranks; auto: "
     "the faster one"},
    {"modules.<name>.parallel.overlap_dispatch", "", To<&ModuleRecipe::overlap_dispatch>, kOptional, "false", kAny, "",
     "run the shared expert while tokens travel to the experts and back"},
    {"modules.<name>.parallel.stage_layers", "", To<&ModuleRecipe::stage_layers>, kOptional, "", kStageLayers, "",
     "number of layers of each pipeline stage, in order; without it the split is even"},
    {"modules.<name>.parallel.first_stage_layers", "", To<&ModuleRecipe::first_stage_layers>, kOptional, "",
     kStageLayers, "", "number of layers of the first pipeline stage; the other stages share the rest evenly"},
    {"modules.<name>.parallel.last_stage_layers", "", To<&ModuleRecipe::last_stage_layers>, kOptional, "", kStageLayers,
     "", "number of layers of the last pipeline stage; the other stages share the rest evenly"},
    {"modules.<name>.recompute", "", To<&ModuleRecipe::recompute>, kOptional, "none", kAny, kRecompute,
     "what repeats its forward in the backward to save memory: none, full (all layers), layer kinds (block is the kind "
     "of an encoder's layers), or elementwise: norms, activation functions and short convolutions of all other layers"},
    {"modules.<name>.train", "", kMap, kOptional, "", kAny, "", "which parts are trained"},
    {"modules.<name>.train.backbone", "", To<&ModuleRecipe::train_backbone>, kOptional, "trained", kAny,
     "trained|frozen", "all parts except the projector"},
    {"modules.<name>.train.projection", "", To<&ModuleRecipe::train_projection>, kOptional, "trained", kAny,
     "trained|frozen", "the projector of an encoder"},

    {"bridges", "", kListOfMaps, kOptional, "", kAny, "", "connections from encoders to the language module"},
    {"bridges[].from", "", To<&BridgeRecipe::from>, kRequired, "", kAny, "", "encoder that sends its rows"},
    {"bridges[].to", "", To<&BridgeRecipe::to>, kRequired, "", kAny, "", "language module that receives them"},

    {"bridges[].token", "", To<&BridgeRecipe::token>, kOptional, "", kCountFromZero, "",
     "token id whose places the rows take; without it data.image_token; required with several encoders"},
    {"bridges[].max_mean_square", "", To<&BridgeRecipe::max_mean_square>, kOptional, "", kMeanSquare, "",
     "the run stops after a step in which the mean square of the rows is beyond this; without it there is no limit"},
};

}  // namespace

std::span<const KeySpec> KeysOfModels() { return kModelKeys; }

}  // namespace planwright
