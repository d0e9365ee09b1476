// The keys of the machines, of the models on them, and of the connections between these.
#include <iterator>
#include <vector>

#include "planner/base/text/limits.h"
#include "planner/recipe/key_tables.h"
#include "planner/recipe/recipe.h"

namespace planwright {
namespace {

using enum Need;

constexpr NumberRange kStageLayers{0, 4096};
constexpr NumberRange kCount{0, 16777216};
// Of adapters.
constexpr NumberRange kRank{1, 65536}, kAlpha{1e-6, 1e6};

// In place of choices that kinds of models decide.
constexpr std::string_view kOfKinds = "of the kinds of models";

// Before the keys of the kinds of models.
constexpr KeySpec kKeysBefore[] = {
    {"name", "", To<&Recipe::name>, kRequired, "", kAny, "", "name of the plans and runs of this recipe"},
    {"extends", "", kTexts, kOptional, "", kAny, "",
     "recipe files to build on, absolute or relative to this file; maps merge, lists replace, later ones win"},

    {"cluster", "", Section<&Recipe::cluster>, kOptional, "", kAny, "", "the machines"},
    {"cluster.nodes", "", To<&ClusterRecipe::nodes>, kOptional, "1", kSize, "",
     "number of nodes; without GPUs no limit: ranks take as many as they need"},
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
};

// Behind them.
constexpr KeySpec kKeysBehind[] = {
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
    {"modules.<name>.recompute", "", To<&ModuleRecipe::recompute>, kOptional, "none", kAny, kOfKinds,
     "what repeats its forward in the backward to save memory: none, full (all layers), layer kinds (block is the kind "
     "of an encoder's layers), or elementwise: norms, activation functions and short convolutions of all other layers"},
    {"modules.<name>.train", "", kMap, kOptional, "", kAny, "", "which parts are trained"},
    {"modules.<name>.train.backbone", "", To<&ModuleRecipe::train_backbone>, kOptional, "trained", kAny,
     "trained|frozen", "all parts except the projector"},
    {"modules.<name>.train.projection", "", To<&ModuleRecipe::train_projection>, kOptional, "trained", kAny,
     "trained|frozen", "the projector of an encoder"},
    {"modules.<name>.adapter", "", Section<&ModuleRecipe::adapter>, kOptional, "", kAny, "",
     "low-rank adapters (LoRA) on products of its layers, whose own weights are frozen"},
    {"modules.<name>.adapter.rank", "", To<&AdapterRecipe::rank>, kRequired, "", kRank, "",
     "width between the two products of an adapter"},
    {"modules.<name>.adapter.alpha", "", To<&AdapterRecipe::alpha>, kRequired, "", kAlpha, "",
     "what an adapter adds is multiplied by alpha / rank"},
    {"modules.<name>.adapter.targets", "", To<&AdapterRecipe::targets>, kRequired, "", kAny, "",
     "products that have an adapter, by their published names in a layer or the last words of these: q_proj"},

    {"bridges", "", kListOfMaps, kOptional, "", kAny, "", "connections from encoders to the language module"},
    {"bridges[].from", "", To<&BridgeRecipe::from>, kRequired, "", kAny, "", "encoder that sends its rows"},
    {"bridges[].to", "", To<&BridgeRecipe::to>, kRequired, "", kAny, "", "language module that receives them"},

    {"bridges[].token", "", To<&BridgeRecipe::token>, kOptional, "", kCountFromZero, "",
     "token id whose places the rows take; without it data.image_token; required with several encoders"},
    {"bridges[].max_mean_square", "", To<&BridgeRecipe::max_mean_square>, kOptional, "", kMeanSquare, "",
     "the run stops after a step in which the mean square of the rows is beyond this; without it there is no limit"},
};

}  // namespace

std::span<const KeySpec> KeysOfModels() {
  static const auto* keys = [] {
    auto* all = new std::vector<KeySpec>(std::begin(kKeysBefore), std::end(kKeysBefore));
    const std::span<const KeySpec> kinds = KeysOfKinds();
    all->insert(all->end(), kinds.begin(), kinds.end());
    for (KeySpec key : kKeysBehind) {
      if (key.choices == kOfKinds) key.choices = WordsOfRecompute();
      all->push_back(key);
    }
    return all;
  }();
  return *keys;
}

}  // namespace planwright
