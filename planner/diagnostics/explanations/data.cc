#include "planner/diagnostics/explanations/rooms.h"

namespace planwright {
namespace {

using enum DiagnosticKind;

constexpr Explanation kExplanations[] = {
    {kTokenOutsideVocabulary,
     "The id of image tokens, or an id that the tokenizer or made-up data needs, is no row of the embedding.",
     "data: {image_token: 131072}", "data: {image_token: 131071}",
     "Ids count from 0. Choose one below the vocabulary, or enlarge it."},

    {kImageGrid,
     "A grid of patches must lie on the table of positions (max_image / patch a side), and hold whole squares of "
     "pixel_shuffle patches, "
     "because each square becomes one token.",
     "data: {image_grids: [[64, 63]]}", "data: {image_grids: [[64, 64]]}",
     "Use multiples of pixel_shuffle, up to max_image / patch."},

    {kSampleTooLong,
     "A sample may draw max_images of the largest grid, each with its text, and that is longer than the sequence.",
     "batch: {sequence_length: 4096}", "batch: {sequence_length: 8192}",
     "Use fewer or smaller images, shorter text, or a longer sequence."},

    {kPackedSamples,
     "With packed documents each lane has one list of the places where documents end, for one sample: attention and "
     "Mamba state stop there.",
     R"(data: {packed_documents: true}
batch: {micro_samples: 2})",
     R"(data: {packed_documents: true}
batch: {micro_samples: 1})",
     "Use micro_samples: 1. A longer sequence does the same work with fewer calls."},

    {kMaskedTokensRaiseAuxLoss,
     "Each token with a loss weighs 1 / N (N: loss tokens of the step), and the auxiliary loss of each sample "
     "sequence_length / N, as in "
     "the reference. Image tokens and padding carry no loss: where they are most of a sequence, balancing the experts "
     "outweighs the text "
     "by as much, and aux_loss is not what it looks like.",
     "lints: {PW0605: warn}",
     R"(lints: {PW0605: warn}
models:
  nemotron_hybrid_moe_20l: {moe: {aux_loss: 0.0}})",
     "Choose aux_loss for the weight that it really has, then silence the lint. With made-up data the message says the "
     "factor."},

    {kEncoderWithoutImages,
     "Made-up samples draw 0 to max_images images each. With 0 the encoder runs on no rows at every step: its "
     "gradients are zero, and only weight "
     "decay moves it.",
     "data: {max_images: 0}", "data: {max_images: 3}",
     "Draw images, or train the language model alone. A run that tests how text-only batches pass may silence the "
     "lint."},

    {kNoLossTokens,
     "A position has a loss where the token behind it is text, not an image and not padding. Samples of a single text "
     "token have no such "
     "position: the number of loss tokens is 0 at every step, and nothing is learnt.",
     "data: {max_images: 0, text_tokens: 1}\nlints: {PW0606: off}",
     "data: {max_images: 0, text_tokens: 2}\nlints: {PW0606: off}",
     "Use two text tokens or more, or images before the text."},
};

}  // namespace

std::span<const Explanation> DataExplanations() { return kExplanations; }

}  // namespace planwright
