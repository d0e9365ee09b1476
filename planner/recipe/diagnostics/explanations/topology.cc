// PW02xx: modules on ranks.
#include "planner/recipe/diagnostics/explanations/explanations.h"

namespace planwright {
namespace {

using enum DiagnosticKind;

constexpr Explanation kTopologyExplanations[] = {
    {kLanguageModuleCount,
     "A recipe has exactly one module with a language model. This module has the loss, and its lanes decide the number "
     "of microbatches and how the data is divided.",
     R"(cluster: {nodes: 2}
modules:
  second: {model: nemotron_hybrid_moe_20l, placement: {first_rank: 8, ranks: 8}})",
     R"(cluster: {nodes: 2}
modules:
  radio_encoder: {placement: {first_rank: 0, ranks: 16}}
  language: {placement: {first_rank: 0, ranks: 16}})",
     "Keep one language module. To use more ranks for it, enlarge its placement: the ranks become data-parallel "
     "lanes."},

    {kRepeatedModule,
     "Two modules have the same name. A recipe file cannot cause this error, because a repeated key is PW0103 and "
     "extended files are merged. Programs that build recipes by other means can.",
     "", "", "Give each module its own name."},

    {kGridDoesNotFit,
     "The ranks of a module form a grid with the axes tp, cp, dp and pp. dp is the quotient ranks / (tp x cp x pp), so "
     "the number of ranks must be a multiple of tp x cp x pp.",
     R"(modules:
  radio_encoder: {placement: {ranks: 3}, parallel: {tp: 2}}
  language: {placement: {first_rank: 3}})",
     R"(modules:
  radio_encoder: {placement: {ranks: 4}, parallel: {tp: 2}}
  language: {placement: {first_rank: 4}})",
     "Change the ranks or the parallel sizes. The help shows the nearest numbers of ranks that fit."},

    {kExpertGridDoesNotFit,
     "For the experts, the same ranks form another grid, with the axes expert_tp, ep, expert_dp and pp. Ranks that "
     "differ only in tp count here too. The number of ranks must be a multiple of expert_tp x ep x pp.",
     R"(modules:
  language: {placement: {ranks: 4}, parallel: {ep: 8}})",
     R"(modules:
  language: {placement: {ranks: 4}, parallel: {ep: 4}})",
     "Choose an ep that divides ranks / (expert_tp x pp)."},

    {kDataParallelMismatch,
     "dp follows from the ranks and the other parallel sizes. A recipe may also write dp, as a check. This check "
     "failed: at least one of the numbers is not what the author expects.",
     R"(modules:
  language: {parallel: {dp: 4}})",
     R"(modules:
  language: {parallel: {dp: 2}})",
     "Correct dp, remove it, or change the number of ranks. The help shows the numbers that fit."},

    {kPlacementsOverlap,
     "Two modules share some of their ranks, but not all. Modules are either disjoint, or colocated: on exactly the "
     "same ranks, where they take turns. With a partial overlap there is no order in which the ranks could work.",
     R"(modules:
  language: {placement: {first_rank: 2}})",
     R"(modules:
  language: {placement: {first_rank: 4}})",
     "Move one module, or give both the same first_rank and ranks."},

    {kRanksNotCovered,
     "A rank belongs to no module, although a module is placed on higher ranks. The rank would be started, join the "
     "groups of the whole world, and then wait forever.",
     R"(modules:
  radio_encoder: {placement: {ranks: 2}})",
     R"(modules:
  radio_encoder: {placement: {ranks: 4}})",
     "Place modules without gaps between them. GPUs after the last module are allowed: they are idle (PW0212)."},

    {kOutsideWorld,
     "A module needs ranks beyond the last GPU of the cluster. Ranks on CPUs (`gpu: none`) have no such end: each node "
     "takes gpus_per_node of them, and there are as many nodes as the ranks need, whatever `nodes` says.",
     R"(modules:
  language: {placement: {ranks: 8}})",
     R"(cluster: {nodes: 2}
modules:
  radio_encoder: {placement: {ranks: 16}}
  language: {placement: {first_rank: 0, ranks: 16}})",
     "Use fewer ranks or more nodes. The help says how many."},

    {kLayoutDoesNotDivide,
     "Each parallel axis cuts certain sizes of the model into equal parts, and one of these sizes is not a multiple of "
     "its parallel size. tp cuts heads, groups, widths and sequence; ep cuts the experts; expert_tp cuts "
     "the width of an expert; cp cuts the sequence and the heads of Mamba-2 layers. Without this check the run would "
     "fail when the model is built, or at the first batch.",
     R"(models:
  nemotron_hybrid_moe_20l: {moe: {shared_ffn: 3713}})",
     R"(models:
  nemotron_hybrid_moe_20l: {moe: {shared_ffn: 3712}})",
     "Choose another parallel size, or pad the size of the model."},

    {kExpertGroupAcrossNodes,
     "In every MoE layer the ep group sends the rows of tokens to the ranks of their experts and back. Inside a node "
     "this traffic uses NVLink. Between nodes it is many times slower, and no computation hides it.",
     R"(cluster: {nodes: 3, gpus_per_node: 4}
modules:
  language: {placement: {first_rank: 4, ranks: 8}, parallel: {ep: 8}}
lints: {PW0704: off})",
     R"(cluster: {nodes: 3, gpus_per_node: 4}
modules:
  language: {placement: {first_rank: 4, ranks: 8}, parallel: {ep: 4}}
lints: {PW0704: off})",
     "Use an ep that fits into a node, and start the module at the first rank of a node. If the experts need more "
     "memory than one node has, silence the lint."},

    {kTensorGroupAcrossNodes,
     "Every layer gathers and reduces its activations over the tp group, several times in forward and backward, and "
     "waits for the result. MoE layers do the same over the expert_tp group. Between nodes this takes most of the time "
     "of a step.",
     R"(cluster: {nodes: 3, gpus_per_node: 4}
modules:
  radio_encoder: {placement: {ranks: 8}, parallel: {tp: 8}}
  language: {placement: {first_rank: 8}}
lints: {PW0704: off})",
     R"(cluster: {nodes: 3, gpus_per_node: 4}
modules:
  radio_encoder: {placement: {ranks: 8}, parallel: {tp: 4}}
  language: {placement: {first_rank: 8}}
lints: {PW0704: off})",
     "Use a tp that divides the number of GPUs of a node, and start the module at a rank that is a multiple of tp."},

    {kIdleGpus,
     "The cluster has more GPUs than the modules use. The other GPUs are reserved and paid for, but do nothing.",
     "cluster: {nodes: 2}", "cluster: {nodes: 1}", "Give a module more ranks, or use a smaller cluster."},

    {kModuleSplitsNode,
     "A module that covers several nodes begins or ends inside a node. There it shares the network cards of the node "
     "with another module. The slowest member of a group sets the pace of the group.",
     R"(cluster: {nodes: 2}
modules:
  radio_encoder: {placement: {ranks: 12}, parallel: {tp: 4}}
  language: {placement: {first_rank: 12}, parallel: {tp: 1}}
lints: {PW0704: off})",
     R"(cluster: {nodes: 2}
modules:
  radio_encoder: {placement: {ranks: 8}}
  language: {placement: {first_rank: 8, ranks: 8}}
lints: {PW0704: off})",
     "Give whole nodes to each module that is larger than a node."},

    {kEncoderAlone,
     "The recipe has encoders but no language module, so there is no loss. An encoder learns only from the gradients "
     "that the language module sends back over a bridge.",
     R"(name: encoder_alone
extends: [models/nemotron_moe_vlm_20l.yaml]
modules:
  radio_encoder: {model: radio_vit_h, placement: {first_rank: 0, ranks: 1}}
batch: {global_samples: 8, sequence_length: 8192}
budget: {train_samples: 80, learning_rate: {peak: 1.0e-3}}
data: {image_token: 511, image_grids: [[64, 64]]})",
     R"(name: encoder_and_language
extends: [models/nemotron_moe_vlm_20l.yaml]
modules:
  radio_encoder: {model: radio_vit_h, placement: {first_rank: 0, ranks: 1}}
  language: {model: nemotron_hybrid_moe_20l, placement: {first_rank: 0, ranks: 1}}
bridges:
  - {from: radio_encoder, to: language}
batch: {global_samples: 8, sequence_length: 8192}
budget: {train_samples: 80, learning_rate: {peak: 1.0e-3}}
data: {image_token: 511, image_grids: [[64, 64]]}
lints: {PW0605: off})",
     "Add the language module, and a bridge from the encoder to it."},

    {kNoExperts,
     "ep and expert_tp divide experts among ranks, but the model of this module has no experts. The sizes would have "
     "no effect.",
     R"(modules:
  radio_encoder: {parallel: {ep: 2}})",
     R"(modules:
  radio_encoder: {parallel: {tp: 2}})",
     "Remove ep, expert_tp, dispatch and overlap_dispatch. Use tp and dp for a model without experts."},

    {kColocatedLayout,
     "Colocated modules take turns on the same ranks for each microbatch, and the bridge redistributes rows between "
     "their tp and dp layouts. This does not work with pipeline stages or with a sequence that is cut over cp.",
     R"(modules:
  radio_encoder: {placement: {first_rank: 0, ranks: 8}}
  language: {placement: {first_rank: 0, ranks: 8}, parallel: {pp: 2}})",
     R"(modules:
  radio_encoder: {placement: {first_rank: 0, ranks: 8}}
  language: {placement: {first_rank: 0, ranks: 8}, parallel: {pp: 1}})",
     "Use pp: 1 and cp: 1, or place the modules on disjoint ranks."},

    {kDispatchUnused,
     "dispatch says how tokens reach the experts of other ranks, and overlap_dispatch what runs meanwhile. With ep 1 "
     "every rank has all experts, and no token goes to another rank. (With expert_tp 2 or more rows still travel, and "
     "overlap_dispatch has an effect.)",
     R"(cluster: {gpu: none}
modules: {language: {parallel: {ep: 1, dispatch: all_gather}}})",
     R"(cluster: {gpu: none}
modules: {language: {parallel: {ep: 4, dispatch: all_gather}}})",
     "Leave the key out, or use ep 2 or more."},
};

}  // namespace

std::span<const Explanation> TopologyExplanations() { return kTopologyExplanations; }

}  // namespace planwright
