#include "planner/diagnostics/explanations/rooms.h"

namespace planwright {
namespace {

using enum DiagnosticKind;

constexpr Explanation kExplanations[] = {
    {kUnknownBridgeModule, "A bridge names a module that the recipe does not have.",
     R"(bridges:
  - {from: vision, to: language})",
     R"(bridges:
  - {from: radio_encoder, to: language})",
     "Use the names under `modules`."},

    {kBridgeDirection,
     "A bridge carries image rows from an encoder to the language module. Gradients find their way back by themselves "
     "and need no "
     "bridge.",
     R"(bridges:
  - {from: language, to: radio_encoder})",
     R"(bridges:
  - {from: radio_encoder, to: language})",
     "Write it from the encoder to the language module."},

    {kRepeatedBridge, "Two bridges join the same modules. Each encoder's rows arrive once.",
     R"(bridges:
  - {from: radio_encoder, to: language}
  - {from: radio_encoder, to: language})",
     R"(bridges:
  - {from: radio_encoder, to: language})",
     "Remove one. How lanes are dealt to lanes follows from the grids."},

    {kMissingBridge,
     "An encoder's output goes nowhere: it would be trained on nothing, and the image places of the text would stay "
     "empty.",
     "bridges: []",
     R"(bridges:
  - {from: radio_encoder, to: language})",
     "Add a bridge, or take the encoder out. A list in a file replaces that of the files below it."},

    {kBridgeCircle,
     "Modules feed each other in a circle, so that none could start. Bridges of today lead from encoders to the "
     "language module alone "
     "(PW0302), so that no recipe can say so; plans that are made by other means can.",
     "", "", "Remove a bridge, so that samples flow one way."},

    {kBridgeTokenMissing,
     "With several encoders the text must say whose rows stand where: each bridge has a token of its own, whose places "
     "its rows take.",
     R"(cluster: {nodes: 2}
modules:
  diagrams: {model: radio_vit_h, placement: {first_rank: 8, ranks: 8}, parallel: {tp: 4}}
bridges:
  - {from: radio_encoder, to: language}
  - {from: diagrams, to: language}
data: {image_grids: [[64, 64]]})",
     R"(cluster: {nodes: 2}
modules:
  diagrams: {model: radio_vit_h, placement: {first_rank: 8, ranks: 8}, parallel: {tp: 4}}
bridges:
  - {from: radio_encoder, to: language, token: 511}
  - {from: diagrams, to: language, token: 512}
data: {image_grids: [[64, 64]]})",
     "Give every bridge a `token`, an id of the vocabulary."},

    {kRepeatedBridgeToken, "Two bridges fill the places of one token, so that nothing tells their rows apart.",
     R"(cluster: {nodes: 2}
modules:
  diagrams: {model: radio_vit_h, placement: {first_rank: 8, ranks: 8}, parallel: {tp: 4}}
bridges:
  - {from: radio_encoder, to: language, token: 511}
  - {from: diagrams, to: language, token: 511}
data: {image_grids: [[64, 64]]})",
     R"(cluster: {nodes: 2}
modules:
  diagrams: {model: radio_vit_h, placement: {first_rank: 8, ranks: 8}, parallel: {tp: 4}}
bridges:
  - {from: radio_encoder, to: language, token: 511}
  - {from: diagrams, to: language, token: 512}
data: {image_grids: [[64, 64]]})",
     "Give each bridge another token."},

    {kBridgeTokenNotInData,
     "The bridge waits for a token that the data never has: with the tokenizer bytes every image stands at token 256, "
     "and rows for another would "
     "have no place. Or the other way round: images stand at data.image_token, and the places of that are filled by no "
     "bridge.",
     R"(cluster: {gpu: none}
bridges:
  - {from: radio_encoder, to: language, token: 300}
data: {kind: webdataset, shards: [a.tar]})",
     R"(cluster: {gpu: none}
bridges:
  - {from: radio_encoder, to: language}
data: {kind: webdataset, shards: [a.tar]})",
     "Leave `token` out, and keep one encoder."},

    {kIdleLanes,
     "The samples of a microbatch, micro_samples for each language lane, are dealt to the encoder's lanes. With fewer "
     "samples than lanes the last "
     "ones never have an image: their ranks wait, take memory, and train nothing. The reference asks that its lanes "
     "divide the microbatch.",
     R"(modules:
  radio_encoder: {parallel: {tp: 1}})",
     R"(modules:
  radio_encoder: {parallel: {tp: 1}}
batch: {micro_samples: 2})",
     "Give the encoder fewer ranks or a larger tp, or take more samples at a time."},
};

}  // namespace

std::span<const Explanation> BridgeExplanations() { return kExplanations; }

}  // namespace planwright
