// PW05xx: models and their layers.
#include "planner/recipe/diagnostics/explanations/explanations.h"

namespace planwright {
namespace {

using enum DiagnosticKind;

constexpr Explanation kModelExplanations[] = {
    {kUnknownLayer,
     "A character of the layer pattern is not the letter of a layer kind. Lower-case letters are not used.",
     R"(models:
  nemotron_hybrid_moe_20l: {pattern: "MEmE*E"}
lints: {PW0704: off})",
     R"(models:
  nemotron_hybrid_moe_20l: {pattern: "MEME*E"}
lints: {PW0704: off})",
     "`plan explain models.<name>.pattern` lists the letters. `|` ends a pipeline stage."},

    {kPatternConflict,
     "Parts of the layer pattern contradict each other: it mixes attention with sparse or latent attention, its "
     "multi-token-prediction parts differ, or one of these parts contains a pipeline break. Or two layers of one block "
     "would have weights of one name: where some kinds of layers open a block, names have the number of the block.",
     R"(models:
  nemotron_hybrid_moe_20l: {pattern: "EM*MD"}
lints: {PW0704: off})",
     R"(models:
  nemotron_hybrid_moe_20l: {pattern: "EM*M*"}
lints: {PW0704: off})",
     "Use one kind of attention, the same layers after every `/`, and one layer of a name between two that open a "
     "block."},

    {kPatternSplit,
     "The layers cannot be divided among the pipeline stages so that each layer is in exactly one stage. Other "
     "frameworks build only a part of the model in such a case, without an error.",
     R"(models:
  nemotron_hybrid_moe_20l: {pattern: "MEM|E*E"}
lints: {PW0704: off})",
     R"(models:
  nemotron_hybrid_moe_20l: {pattern: "MEME*E"}
lints: {PW0704: off})",
     "With pp stages, use pp - 1 times `|` in the pattern, or stage_layers with pp numbers that sum to the layers, or "
     "a pp that divides the layers."},

    {kMissingModelSection,
     "The pattern contains a layer kind, but the model has no section with the sizes of this kind.",
     R"(models:
  small_lm:
    kind: hybrid_lm
    pattern: "M*"
    hidden: 2688
    vocabulary: 131072
    attention: {heads: 32, head_dim: 128, kv_groups: 8}
modules:
  language: {model: small_lm, parallel: {ep: 1}}
lints: {PW0704: off})",
     R"(models:
  small_lm:
    kind: hybrid_lm
    pattern: "M*"
    hidden: 2688
    vocabulary: 131072
    attention: {heads: 32, head_dim: 128, kv_groups: 8}
    mamba: {heads: 64, head_dim: 64, groups: 8, state: 128}
modules:
  language: {model: small_lm, parallel: {ep: 1}}
lints: {PW0704: off})",
     "Add the section that the message names. `plan explain models` lists its keys."},

    {kModelShape,
     "Two sizes of a model contradict each other, whatever the layout: the number of heads is not a multiple of their "
     "groups, a token uses more experts than there are, or the largest image is not a whole number of patches. Or a "
     "size exceeds the limits of a plan.",
     R"(models:
  nemotron_hybrid_moe_20l: {moe: {top_k: 256}})",
     R"(models:
  nemotron_hybrid_moe_20l: {moe: {top_k: 6}})",
     "Compare the sizes with the published configuration of the model."},

    {kUnevenStages,
     "A pipeline is as fast as its slowest stage: the other stages wait for it in every microbatch. Work is counted in "
     "floating-point operations for one token. The output head belongs to the last stage.",
     R"(cluster: {nodes: 2}
modules:
  radio_encoder: {placement: {ranks: 8}, parallel: {tp: 4}}
  language: {placement: {first_rank: 8, ranks: 8}, parallel: {pp: 2, stage_layers: [4, 16]}}
lints: {PW0704: off})",
     R"(cluster: {nodes: 2}
modules:
  radio_encoder: {placement: {ranks: 8}, parallel: {tp: 4}}
  language: {placement: {first_rank: 8, ranks: 8}, parallel: {pp: 2, stage_layers: [13, 7]}}
lints: {PW0704: off})",
     "Move layers to stages with less work, with stage_layers or `|` in the pattern. Remember the work of the output "
     "head."},

    {kFrozenCrop,
     "`positions: crop` uses a random part of the position table for every image. This is an augmentation for an "
     "encoder that is trained. A frozen encoder always resizes its table, as in evaluation, so the setting has no "
     "effect.",
     R"(modules:
  radio_encoder: {train: {backbone: frozen}}
models:
  radio_vit_h: {positions: crop}
lints: {PW0704: off})",
     R"(modules:
  radio_encoder: {train: {backbone: frozen}}
models:
  radio_vit_h: {positions: interpolate}
lints: {PW0704: off})",
     "Use positions: interpolate for a frozen encoder."},

    {kNothingTrains,
     "Backbone and projection of every module are frozen, so no parameter would ever change. A single module may be "
     "frozen: it then has no optimizer.",
     R"(modules:
  radio_encoder: {train: {backbone: frozen, projection: frozen}}
  language: {train: {backbone: frozen}}
models:
  radio_vit_h: {positions: interpolate})",
     R"(modules:
  radio_encoder: {train: {backbone: trained, projection: trained}}
  language: {train: {backbone: trained}})",
     "Train at least one part. Usual stages of training are: only the projection; then projection and language model; "
     "then everything."},

    {kNothingToRecompute,
     "`recompute` repeats the forward of layers during the backward to save memory. It has no effect on a layer kind "
     "that the module does not contain, or on a frozen encoder, whose layers have no backward.",
     R"(modules:
  radio_encoder: {recompute: attention}
lints: {PW0704: off})",
     R"(modules:
  radio_encoder: {recompute: block}
lints: {PW0704: off})",
     "Use full, or layer kinds of this module: `block` for an encoder, the kinds in its pattern for a language model."},

    {kNoPositions,
     "No layer of the pattern knows positions: none reads them, as rotary embedding does, and none goes through the "
     "tokens in their order, as Mamba-2 layers do. Then only the causal mask of attention tells the order of tokens, "
     "and a layer that is no attention either sees one token alone. That may do for a test. So only a training that is "
     "predicted to take more than an hour (docs/step_time.md) is warned of; on a device of unknown speed none is.",
     R"(models:
  nemotron_hybrid_moe_20l: {pattern: "*E*E*E*E*E*E*E*E*E*E"}
budget: {train_samples: 80000, learning_rate: {decay_samples: 80000}}
checkpoint: {every_steps: 2000})",
     R"(models:
  nemotron_hybrid_moe_20l: {pattern: "MEMEM*EMEMEM*EMEMEM*"}
budget: {train_samples: 80000, learning_rate: {decay_samples: 80000}}
checkpoint: {every_steps: 2000})",
     "Let some layers be of a kind that the message names, first of all the first one. If the model is meant so, "
     "silence "
     "the lint."},
};

}  // namespace

std::span<const Explanation> ModelExplanations() { return kModelExplanations; }

}  // namespace planwright
