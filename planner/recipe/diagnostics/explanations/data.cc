// PW06xx: samples.
#include "planner/recipe/diagnostics/explanations/explanations.h"

namespace planwright {
namespace {

using enum DiagnosticKind;

constexpr Explanation kDataExplanations[] = {
    {kTokenOutsideVocabulary,
     "The model's embedding has no row for a token id: for the image token, or for an id that the tokenizer or mock "
     "data needs.",
     "data: {image_token: 131072}", "data: {image_token: 131071}",
     "Ids count from 0. Use an id below the vocabulary, or a larger vocabulary."},

    {kImageGrid,
     "An image is a grid of patches. Each side of a grid of mock data has at most max_image / patch patches, the size "
     "of the position table; images of files, for which the table is resized, have at most as many patches as it has "
     "positions. A side is also a multiple of pixel_shuffle, because each square of pixel_shuffle x pixel_shuffle "
     "patches becomes one token.",
     R"(data: {image_grids: [[64, 63]]}
lints: {PW0704: off})",
     R"(data: {image_grids: [[64, 64]]}
lints: {PW0704: off})",
     "Use multiples of pixel_shuffle that are at most max_image / patch, and a max_patches that is at most its "
     "square: larger images are scaled down."},

    {kSampleTooLong,
     "A sample can have max_images images of the largest grid, each with its text. Such a sample is longer than "
     "sequence_length.",
     "batch: {sequence_length: 4096}", "batch: {sequence_length: 8192}",
     "Use fewer or smaller images, shorter text, or a larger sequence_length."},

    {kPackedSamples,
     "With packed documents, attention and Mamba-2 states stop at the end of each document. A lane has one list of "
     "document ends, and it describes one sample.",
     R"(data: {packed_documents: true}
batch: {micro_samples: 2})",
     R"(data: {packed_documents: true}
batch: {micro_samples: 1})",
     "Use micro_samples: 1. A larger sequence_length does the same work in fewer calls."},

    {kMaskedTokensRaiseAuxLoss,
     "Let N be the number of tokens with a loss in a step. Each of them weighs 1 / N in the total loss, and the "
     "auxiliary loss of each sample weighs sequence_length / N. Image tokens and padding have no loss. If they are "
     "most of a sequence, the auxiliary loss weighs much more than its coefficient aux_loss says, and balancing the "
     "experts can outweigh the text.",
     "lints: {PW0605: warn}",
     R"(lints: {PW0605: warn}
models:
  nemotron_hybrid_moe_20l: {moe: {aux_loss: 0.0}})",
     "Choose aux_loss with this factor in mind, then silence the lint. With mock data the message shows the factor."},

    {kEncoderWithoutImages,
     "Each sample of mock data has between min_images and max_images images. With max_images 0 the encoder processes "
     "no rows in "
     "any step. Its gradients are zero, and only weight decay changes its weights.",
     R"(data: {max_images: 0}
lints: {PW0704: off})",
     R"(data: {max_images: 3}
lints: {PW0704: off})",
     "Increase max_images, or remove the encoder. If the run tests batches without images, silence the lint."},

    {kNoLossTokens,
     "A position has a loss if the next token is text. Samples of a single text token and no image have no such "
     "position. Every step would have 0 tokens with a loss, and nothing would be learned. The samples of files are "
     "looked at "
     "by `plan data index` and before a run: where all masks are 0, it is refused, too.",
     "data: {max_images: 0, text_tokens: 1}\nlints: {PW0606: off, PW0704: off}",
     "data: {max_images: 0, text_tokens: 2}\nlints: {PW0606: off, PW0704: off}",
     "Use at least two text tokens, or images before the text."},

    {kMoreImagesThanMost,
     "A sample of mock data has between min_images and max_images images, so min_images is at most max_images. For "
     "samples that all have the same number of images, both keys have that number.",
     R"(data: {min_images: 3, max_images: 2}
lints: {PW0704: off})",
     R"(data: {min_images: 2, max_images: 2}
lints: {PW0704: off})",
     "Use a smaller min_images or a larger max_images."},

    {kSourceWeights,
     "Of the first n samples, a source has n times its weight divided by the sum of all weights, less than one off, "
     "for every n. That is computed in whole numbers, and the order of the sources repeats after as many samples as "
     "the sum of the weights, once they are whole numbers without a common divisor. A weight has at most 6 digits "
     "after the point, and the sum is at most 1,000,000.",
     R"(extends: [icons_8r_toy.yaml]
data:
  kind: sources
  sources:
    - {kind: webdataset, shards: /data/captions.tar, weight: 0.3333333}
    - {kind: webdataset, shards: /data/pages.tar, weight: 0.6666667}
lints: {PW0613: off})",
     R"(extends: [icons_8r_toy.yaml]
data:
  kind: sources
  sources:
    - {kind: webdataset, shards: /data/captions.tar, weight: 1}
    - {kind: webdataset, shards: /data/pages.tar, weight: 2}
lints: {PW0613: off})",
     "Write the proportions in small numbers, such as 1 and 2. The message shows the nearest weights that fit."},

    {kRepeatedTokenId,
     "image_token has an id of its own. A position whose next token is an image has no loss. So if the end of a "
     "document "
     "had the same id, the model would never learn where one ends. Padding and end may have one id, as with many "
     "tokenizers: padding is known by its place.",
     R"(extends: [icons_8r_toy.yaml]
data:
  kind: sources
  sources: [{kind: webdataset, shards: /data/captions.tar}]
  tokenizer: ids
  image_token: 2
  pad_token: 1
  end_token: 2
lints: {PW0613: off})",
     R"(extends: [icons_8r_toy.yaml]
data:
  kind: sources
  sources: [{kind: webdataset, shards: /data/captions.tar}]
  tokenizer: ids
  image_token: 256
  pad_token: 0
  end_token: 2
lints: {PW0613: off})",
     "Use an id for images that the tokenizer never gives. Many tokenizers have reserved ones."},

    {kPreparedShards,
     "Prepared shards have a file prepared.json beside them. It says of which tokenizer and template their ids are, "
     "which ids stand for images, padding and the end of a document, and below which number all ids are. All shards of "
     "a recipe must say the same, and the recipe must not say something else. The model's vocabulary must have all "
     "ids.",
     "", "",
     "Prepare all sources with one tokenizer and one template, those of the model. Remove keys of ids that the shards "
     "say too. `tokenizer_digest` and `template_digest` keep ids of others out of the run: change them only if the ids "
     "are known to be the same."},

    {kDataFile,
     "The folder of a source is on this machine, but a file in it is missing or is something else: no file matches a "
     "pattern, a shard is no tar file, or the index of a .bin file is damaged.",
     R"(extends: [icons_8r_toy.yaml]
data:
  kind: sources
  sources: [{kind: webdataset, shards: recipe.yaml}])",
     R"(extends: [icons_8r_toy.yaml]
data:
  kind: sources
  sources: [{kind: webdataset, shards: "/data/captions-{000..099}.tar"}]
lints: {PW0613: off})",
     "Correct the path. It is absolute or relative to the file that names it."},

    {kDataNotHere,
     "The folder of a source's files does not exist on this machine. A recipe may be checked where its data is not "
     "mounted, so this is no error. But whether the files exist, and what they say of tokens, is then not known before "
     "the run.",
     R"(extends: [icons_8r_toy.yaml]
data:
  kind: sources
  sources: [{kind: webdataset, shards: /data/captions.tar}]
lints: {PW0613: warn})",
     R"(extends: [icons_8r_toy.yaml]
data:
  kind: sources
  sources: [{kind: webdataset, shards: /data/captions.tar}]
lints: {PW0613: off})",
     "Check the recipe on a machine that has the data. If this one never has it, silence the lint."},

    {kBalanceWithoutImages,
     "With `balance: images` the samples of a step take an order in which all lanes have nearly equally many patches "
     "of "
     "images. Samples without images are all equal, so that their order stays.",
     R"(data: {max_images: 0, balance: images}
lints: {PW0606: off, PW0704: off})",
     R"(data: {max_images: 3, balance: images}
lints: {PW0704: off})",
     "Remove `balance`, or set it to none."},

    {kEvaluatesTrainingData,
     "An evaluation says how well the model does on samples that it has not seen. A set with the files or the seed of "
     "the training says how well it remembers. Files are compared by their names.",
     R"(evaluation: {every_samples: 80, sets: [{name: held_out, samples: 16, seed: 1234}]}
lints: {PW0704: off})",
     R"(evaluation: {every_samples: 80, sets: [{name: held_out, samples: 16, seed: 4321}]}
lints: {PW0704: off})",
     "Give the set other files, or another seed, or leave its files out of the training."},

    {kFilesDoNotFit,
     "`initialize` names weights, or `data.path` a recorded batch, that are on this machine and do not fit the plan: "
     "tensors have other names or shapes, or the batch has another sequence length, other images or other tokens. "
     "Files that are not on this machine are compared by the ranks, before the first step. Or shards of a source name "
     "images by path, and these are not there, though the index has seen them.",
     "", "",
     "Name the files of this model, or give the model and the batch the sizes of the files. `plan weights` lists what "
     "of the weights fits. Bring images back to where they were, or prepare their shards again."},
};

}  // namespace

std::span<const Explanation> DataExplanations() { return kDataExplanations; }

}  // namespace planwright
