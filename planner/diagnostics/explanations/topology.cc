#include "planner/diagnostics/explanations/rooms.h"

namespace planwright {
namespace {

using enum DiagnosticKind;

constexpr Explanation kExplanations[] = {
    {kLanguageModuleCount,
     "There is exactly one module whose model is of kind hybrid_lm: the loss, the number of microbatches and the data "
     "lanes are its.",
     R"(cluster: {nodes: 2}
modules:
  second: {model: nemotron_hybrid_moe_20l, placement: {first_rank: 8, ranks: 8}})",
     R"(cluster: {nodes: 2}
modules:
  radio_encoder: {placement: {first_rank: 0, ranks: 8}}
  language: {placement: {first_rank: 8, ranks: 8}})",
     "Keep one. More ranks for the same model go into its placement, and become data-parallel lanes."},

    {kRepeatedModule,
     "Two modules have one name. A recipe file cannot say so, because a key given twice is PW0103 and files that are "
     "laid over each "
     "other merge; plans that are made by other means can.",
     "", "", "Give each module its own name."},

    {kGridDoesNotFit,
     "A module's ranks form a grid of tp x cp x dp x pp, of which dp is what remains: the ranks must be a multiple of "
     "tp x cp x pp.",
     R"(modules:
  radio_encoder: {placement: {ranks: 3}, parallel: {tp: 2}}
  language: {placement: {first_rank: 3}})",
     R"(modules:
  radio_encoder: {placement: {ranks: 4}, parallel: {tp: 2}}
  language: {placement: {first_rank: 4}})",
     "Change the ranks or the parallel sizes; the help names the nearest numbers of ranks that fit."},

    {kExpertGridDoesNotFit,
     "For its experts a module's ranks are seen as another grid, expert_tp x ep x expert_dp x pp, over the same ranks, "
     "tensor-parallel "
     "ones included: the ranks must be a multiple of expert_tp x ep x pp.",
     R"(modules:
  language: {placement: {ranks: 4}, parallel: {ep: 8}})",
     R"(modules:
  language: {placement: {ranks: 4}, parallel: {ep: 4}})",
     "Choose ep among the divisors of ranks / (expert_tp x pp)."},

    {kDataParallelMismatch,
     "dp follows from the ranks and the other sizes. When it is written too, it is a check, and here it fails: one of "
     "the numbers is not "
     "what its author thinks.",
     R"(modules:
  language: {parallel: {dp: 4}})",
     R"(modules:
  language: {parallel: {dp: 2}})",
     "Correct dp, leave it out, or change the ranks; the help has the number for each."},

    {kPlacementsOverlap,
     "Two modules share some of their ranks. They stand on disjoint ranks, or on exactly the same ones, where they "
     "take turns "
     "(colocated); anything between has no order in which ranks could work.",
     R"(modules:
  language: {placement: {first_rank: 2}})",
     R"(modules:
  language: {placement: {first_rank: 4}})",
     "Move a module, or give both the same first_rank and ranks."},

    {kRanksNotCovered,
     "A rank below the last module belongs to no module. It would be started, join the groups of the whole world, and "
     "wait there for "
     "ever.",
     R"(modules:
  radio_encoder: {placement: {ranks: 2}})",
     R"(modules:
  radio_encoder: {placement: {ranks: 4}})",
     "Place modules one behind the other, without gaps. GPUs behind the last module are only idle (PW0212)."},

    {kOutsideWorld, "A module reaches past the last GPU of the cluster.",
     R"(modules:
  language: {placement: {ranks: 8}})",
     R"(cluster: {nodes: 2}
modules:
  radio_encoder: {placement: {ranks: 8}}
  language: {placement: {first_rank: 8, ranks: 8}})",
     "Use fewer ranks or more nodes; the help says how many."},

    {kLayoutDoesNotDivide,
     "A size of the model is cut over a parallel axis in equal parts, and does not divide: heads, groups, widths, "
     "vocabulary and "
     "sequence by tp, experts by ep, the experts' width by expert_tp. Elsewhere such a recipe fails when the model is "
     "built, or at the "
     "first batch.",
     R"(models:
  nemotron_hybrid_moe_20l: {vocabulary: 131071})",
     R"(models:
  nemotron_hybrid_moe_20l: {vocabulary: 131072})",
     "Choose another parallel size, or pad the size of the model."},

    {kExpertGroupAcrossNodes,
     "Every MoE layer sends each token's row to the ranks of its experts and back, over the ep group. Inside a node "
     "that runs over "
     "NVLink; between nodes it is many times slower, and nothing hides it.",
     R"(cluster: {nodes: 3, gpus_per_node: 4}
modules:
  language: {placement: {first_rank: 4, ranks: 8}, parallel: {ep: 8}})",
     R"(cluster: {nodes: 3, gpus_per_node: 4}
modules:
  language: {placement: {first_rank: 4, ranks: 8}, parallel: {ep: 4}})",
     "Use an ep that fits into a node, and start the module where a node starts. Where the experts do not fit "
     "otherwise, accept it and "
     "silence the lint."},

    {kTensorGroupAcrossNodes,
     "Every layer gathers and reduces its activations over the tp group, several times in each direction, and waits "
     "for it; so does every "
     "MoE layer over the expert_tp group. Between nodes that dominates the step.",
     R"(cluster: {nodes: 3, gpus_per_node: 4}
modules:
  radio_encoder: {placement: {ranks: 8}, parallel: {tp: 8}}
  language: {placement: {first_rank: 8}})",
     R"(cluster: {nodes: 3, gpus_per_node: 4}
modules:
  radio_encoder: {placement: {ranks: 8}, parallel: {tp: 4}}
  language: {placement: {first_rank: 8}})",
     "Use a tp that divides the GPUs of a node, and start the module at a multiple of it."},

    {kIdleGpus, "The cluster has more GPUs than the modules use. The rest is reserved and paid for, and does nothing.",
     "cluster: {nodes: 2}", "cluster: {nodes: 1}", "Give a module more ranks, or ask for a smaller cluster."},

    {kModuleSplitsNode,
     "A module that fills several nodes begins or ends inside one. The ranks of that node share its network cards with "
     "another module, "
     "and the slowest member sets the pace of every group.",
     R"(cluster: {nodes: 2}
modules:
  radio_encoder: {placement: {ranks: 12}, parallel: {tp: 4}}
  language: {placement: {first_rank: 12}, parallel: {tp: 1}})",
     R"(cluster: {nodes: 2}
modules:
  radio_encoder: {placement: {ranks: 8}}
  language: {placement: {first_rank: 8, ranks: 8}})",
     "Give modules of more than a node whole nodes."},

    {kEncoderAlone,
     "A recipe with encoders and no language module has no loss: an encoder learns from the gradients that come back "
     "over its bridge.",
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
     "Add the language module and a bridge to it."},

    {kNoExperts,
     "ep and expert_tp cut experts over ranks, and the module's model has none: the sizes would be without effect.",
     R"(modules:
  radio_encoder: {parallel: {ep: 2}})",
     R"(modules:
  radio_encoder: {parallel: {tp: 2}})",
     "Leave them out; tp and dp cut a model without experts."},

    {kColocatedLayout,
     "Modules on the same ranks take turns with each microbatch, and rows are regathered between their layouts of tp "
     "and dp. There are no "
     "stages to fill, so that pp and cp above 1 have no meaning there.",
     R"(modules:
  radio_encoder: {placement: {first_rank: 0, ranks: 8}}
  language: {placement: {first_rank: 0, ranks: 8}, parallel: {pp: 2}})",
     R"(modules:
  radio_encoder: {placement: {first_rank: 0, ranks: 8}}
  language: {placement: {first_rank: 0, ranks: 8}, parallel: {pp: 1}})",
     "Use pp: 1 and cp: 1, or place the modules on ranks of their own."},
};

}  // namespace

std::span<const Explanation> TopologyExplanations() { return kExplanations; }

}  // namespace planwright
