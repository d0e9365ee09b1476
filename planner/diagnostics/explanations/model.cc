#include "planner/diagnostics/explanations/rooms.h"

namespace planwright {
namespace {

using enum DiagnosticKind;

constexpr Explanation kExplanations[] = {
    {kUnknownLayer, "A character of the layer pattern is no kind of layer. Lower-case letters are none.",
     R"(models:
  nemotron_hybrid_moe_20l: {pattern: "MEmE*E"})",
     R"(models:
  nemotron_hybrid_moe_20l: {pattern: "MEME*E"})",
     "`plan explain models.<name>.pattern` lists the letters; `|` ends a pipeline stage."},

    {kPatternConflict,
     "Parts of a layer pattern contradict each other: attention beside sparse or latent attention, multi-token "
     "prediction parts that "
     "differ, or a pipeline break inside one.",
     R"(models:
  nemotron_hybrid_moe_20l: {pattern: "EM*MD"})",
     R"(models:
  nemotron_hybrid_moe_20l: {pattern: "EM*M*"})",
     "Use one kind of attention, and the same layers behind every `/`."},

    {kPatternSplit,
     "The layers cannot be dealt to the pipeline stages without losing some. Elsewhere a `|` too many builds a part of "
     "the model, and "
     "two sizes that do not add up drop layers, both without a word.",
     R"(models:
  nemotron_hybrid_moe_20l: {pattern: "MEM|E*E"})",
     R"(models:
  nemotron_hybrid_moe_20l: {pattern: "MEME*E"})",
     "Use one `|` less than there are stages, or stage sizes that add up to the layers, or a pp that divides them."},

    {kMissingModelSection, "The pattern has a kind of layer whose sizes the model does not give.",
     R"(models:
  small_lm:
    {kind: hybrid_lm, pattern: "M*", hidden: 2688, vocabulary: 131072, attention: {heads: 32, head_dim: 128, kv_groups: 8}}
modules:
  language: {model: small_lm, parallel: {ep: 1}})",
     R"(models:
  small_lm:
    {kind: hybrid_lm, pattern: "M*", hidden: 2688, vocabulary: 131072, attention: {heads: 32, head_dim: 128, kv_groups: 8},
     mamba: {heads: 64, head_dim: 64, groups: 8, state: 128}}
modules:
  language: {model: small_lm, parallel: {ep: 1}})",
     "Add the section that is named; `plan explain models` lists the keys of each."},

    {kModelShape,
     "Two sizes of a model contradict each other on any layout: heads that their groups do not divide, more experts a "
     "token than there "
     "are, a table of positions of half a patch.",
     R"(models:
  nemotron_hybrid_moe_20l: {moe: {top_k: 256}})",
     R"(models:
  nemotron_hybrid_moe_20l: {moe: {top_k: 6}})",
     "Compare with the published configuration of the model."},

    {kUnevenStages,
     "A pipeline goes at the pace of its slowest stage: the others wait for it in every microbatch. Work is counted in "
     "floating-point operations "
     "of a token, with the output head on the last stage.",
     R"(cluster: {nodes: 2}
modules:
  radio_encoder: {placement: {ranks: 8}, parallel: {tp: 4}}
  language: {placement: {first_rank: 8, ranks: 8}, parallel: {pp: 2, stage_layers: [4, 16]}})",
     R"(cluster: {nodes: 2}
modules:
  radio_encoder: {placement: {ranks: 8}, parallel: {tp: 4}}
  language: {placement: {first_rank: 8, ranks: 8}, parallel: {pp: 2, stage_layers: [13, 7]}})",
     "Move layers to lighter stages, with `|` in the pattern or sizes of stages. The output head is work too."},

    {kFrozenCrop,
     "`positions: crop` draws a random part of the position table for every image, an augmentation for an encoder that "
     "learns. A frozen "
     "one runs as in evaluation: its table is resized, and the setting is without effect.",
     R"(modules:
  radio_encoder: {train: {backbone: frozen}}
models:
  radio_vit_h: {positions: crop})",
     R"(modules:
  radio_encoder: {train: {backbone: frozen}}
models:
  radio_vit_h: {positions: interpolate})",
     "Use positions: interpolate for a frozen encoder."},

    {kNothingTrains,
     "Every module is frozen, backbone and projection, so that no parameter would ever be stepped. A module with "
     "nothing to train has no "
     "optimizer; a recipe of such modules has no training.",
     R"(modules:
  radio_encoder: {train: {backbone: frozen, projection: frozen}}
  language: {train: {backbone: frozen}}
models:
  radio_vit_h: {positions: interpolate})",
     R"(modules:
  radio_encoder: {train: {backbone: trained, projection: trained}}
  language: {train: {backbone: trained}})",
     "Train a part. The usual stages are the projection alone, then all but the encoder, then everything."},

    {kNothingToRecompute,
     "`recompute` runs the forward of layers again in the backward pass. A kind of layer that the module does not "
     "have, or that is frozen and has no "
     "backward, leaves memory as it was.",
     R"(modules:
  radio_encoder: {recompute: attention})",
     R"(modules:
  radio_encoder: {recompute: block})",
     "Use full, or words of the module's own layers: `block` of an encoder, those of the letters in its pattern of a "
     "language model."},
};

}  // namespace

std::span<const Explanation> ModelExplanations() { return kExplanations; }

}  // namespace planwright
