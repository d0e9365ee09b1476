// PW03xx: bridges between modules.
#include "planner/recipe/diagnostics/explanations/explanations.h"

namespace planwright {
namespace {

using enum DiagnosticKind;

constexpr Explanation kBridgesExplanations[] = {
    {kUnknownBridgeModule, "A bridge names a module that the recipe does not have.",
     R"(bridges:
  - {from: vision, to: language})",
     R"(bridges:
  - {from: radio_encoder, to: language})",
     "Use names that are keys of `modules`."},

    {kBridgeDirection,
     "A bridge sends image rows from an encoder to the language module. It also returns their gradients, so the other "
     "direction needs no bridge.",
     R"(bridges:
  - {from: language, to: radio_encoder})",
     R"(bridges:
  - {from: radio_encoder, to: language})",
     "Write the encoder under `from` and the language module under `to`."},

    {kRepeatedBridge, "Two bridges connect the same modules. The rows of an encoder are sent once.",
     R"(bridges:
  - {from: radio_encoder, to: language}
  - {from: radio_encoder, to: language})",
     R"(bridges:
  - {from: radio_encoder, to: language})",
     "Remove one of them. Which lane sends to which lane follows from the grids, not from the bridges."},

    {kMissingBridge,
     "No bridge starts at this encoder. It would receive no gradients, and the image tokens of the text would receive "
     "no rows.",
     "bridges: []",
     R"(bridges:
  - {from: radio_encoder, to: language})",
     "Add a bridge, or remove the encoder. Note that a list replaces the list of an extended file."},

    {kBridgeCircle,
     "The bridges form a circle, so no module could start. A recipe file cannot cause this error, because bridges lead "
     "only from encoders to the language module (PW0302). Programs that build recipes by other means can.",
     "", "", "Remove a bridge, so that samples flow in one direction."},

    {kBridgeTokenMissing,
     "With several encoders, each bridge needs its own token id. The rows of an encoder take the places of its token "
     "in the text.",
     R"(cluster: {nodes: 2}
modules:
  diagrams: {model: radio_vit_h, placement: {first_rank: 8, ranks: 8}, parallel: {tp: 4}}
bridges:
  - {from: radio_encoder, to: language}
  - {from: diagrams, to: language}
data: {image_grids: [[64, 64]]}
lints: {PW0704: off})",
     R"(cluster: {nodes: 2}
modules:
  diagrams: {model: radio_vit_h, placement: {first_rank: 8, ranks: 8}, parallel: {tp: 4}}
bridges:
  - {from: radio_encoder, to: language, token: 511}
  - {from: diagrams, to: language, token: 512}
data: {image_grids: [[64, 64]]}
lints: {PW0704: off})",
     "Give every bridge a `token` that is an id of the vocabulary."},

    {kRepeatedBridgeToken, "Two bridges have the same token, so their rows would take the same places in the text.",
     R"(cluster: {nodes: 2}
modules:
  diagrams: {model: radio_vit_h, placement: {first_rank: 8, ranks: 8}, parallel: {tp: 4}}
bridges:
  - {from: radio_encoder, to: language, token: 511}
  - {from: diagrams, to: language, token: 511}
data: {image_grids: [[64, 64]]}
lints: {PW0704: off})",
     R"(cluster: {nodes: 2}
modules:
  diagrams: {model: radio_vit_h, placement: {first_rank: 8, ranks: 8}, parallel: {tp: 4}}
bridges:
  - {from: radio_encoder, to: language, token: 511}
  - {from: diagrams, to: language, token: 512}
data: {image_grids: [[64, 64]]}
lints: {PW0704: off})",
     "Give each bridge a different token."},

    {kBridgeTokenNotInData,
     "The token of a bridge and the image token of the data are different. Either the data never contains the token of "
     "the bridge: with tokenizer bytes every image has token 256. Or no bridge fills the places of data.image_token.",
     R"(cluster: {gpu: none}
bridges:
  - {from: radio_encoder, to: language, token: 300}
data: {kind: sources, sources: [{kind: webdataset, shards: /data/captions.tar}]}
lints: {PW0613: off})",
     R"(cluster: {gpu: none}
bridges:
  - {from: radio_encoder, to: language}
data: {kind: sources, sources: [{kind: webdataset, shards: /data/captions.tar}]}
lints: {PW0613: off})",
     "Remove `token` from the bridge, and use one encoder."},

    {kIdleLanes,
     "The encoder's lanes share the samples of a microbatch. A microbatch has micro_samples for each language lane. If "
     "there are fewer samples than encoder lanes, the last lanes never receive an image: their ranks wait, use memory, "
     "and train nothing.",
     R"(modules:
  radio_encoder: {parallel: {tp: 1}}
lints: {PW0704: off})",
     R"(modules:
  radio_encoder: {parallel: {tp: 1}}
batch: {micro_samples: 2}
lints: {PW0704: off})",
     "Give the encoder fewer ranks or a larger tp, or increase micro_samples."},
};

}  // namespace

std::span<const Explanation> BridgeExplanations() { return kBridgesExplanations; }

}  // namespace planwright
