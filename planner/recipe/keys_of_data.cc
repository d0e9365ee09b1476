// The keys of what a training begins with: samples and initial weights.
#include "planner/recipe/key_tables.h"
#include "planner/recipe/recipe.h"

namespace planwright {
namespace {

using enum Need;

constexpr NumberRange kDocuments{1, static_cast<double>(kMostSamples)};
constexpr NumberRange kDocumentsOrNone{0, static_cast<double>(kMostSamples)};

constexpr KeySpec kDataKeys[] = {
    {"data", "", Section<&Recipe::data>, kRequired, "", kAny, "", "where samples come from"},
    {"data.kind", "", To<&DataRecipe::kind>, kOptional, "mock", kAny, kDataKindChoices, kDataKindHelp},
    {"data.seed", "", To<&DataRecipe::seed>, kOptional, "1234", kCountFromZero, "",
     "seed of all random numbers: weights, samples, position crops"},
    {"data.image_token", "", To<&DataRecipe::image_token>, kOptional, "", kCountFromZero, "",
     "token id whose places take image rows; required, except with tokenizer bytes, for mock data without an "
     "encoder, and for sources whose shards say it"},
    {"data.packed_documents", "", To<&DataRecipe::packed_documents>, kOptional, "false", kAny, "",
     "attention and Mamba-2 states stop at the end of each document; needs micro_samples 1"},
    {"data.balance", "", To<&DataRecipe::balance>, kOptional, "none", kAny, "none|images",
     "the order of samples within a step: as they are numbered, or so that all lanes have nearly equally many patches"},
    {"data.image_grids", "mock", To<&DataRecipe::image_grids>, kOptional, "", kSize, "",
     "[rows, columns] of patches that images are drawn from; required with an encoder"},
    {"data.min_images",
     "mock",
     To<&DataRecipe::min_images>,
     kOptional,
     "0",
     {0, 3},
     "",
     "smallest number of images of a sample; at most max_images"},
    {"data.max_images",
     "mock",
     To<&DataRecipe::max_images>,
     kOptional,
     "3",
     {0, 3},
     "",
     "largest number of images of a sample"},
    {"data.classes", "mock", To<&DataRecipe::classes>, kOptional, "8", kSize, "",
     "number of image classes, each with its own pattern and text"},
    {"data.text_tokens", "mock", To<&DataRecipe::text_tokens>, kOptional, "8", kSize, "",
     "number of text tokens of a class"},
    {"data.sources", "sources", kListOfMaps, kRequired, "", kAny, "", "where documents come from"},
    {"data.sources[].name", "", To<&SourceRecipe::name>, kOptional, "", kAny, "",
     "name in tables, traces and index files, and of the draws of its order: another name, and samples come in another "
     "order; without it source_0, source_1, ... by position"},
    {"data.sources[].kind", "", To<&SourceRecipe::kind>, kRequired, "", kAny, kSourceKindChoices, kSourceKindHelp},
    {"data.sources[].weight", "", To<&SourceRecipe::weight>, kOptional, "1", kShare, "",
     "share of the samples that are of this source, in proportion to the other weights; at most 6 digits after the "
     "point"},
    {"data.sources[].shards", "webdataset", To<&SourceRecipe::shards>, kRequired, "", kAny, "",
     "tar files in order, absolute or relative to this file; {000..099} is a range, * any characters"},
    {"data.sources[].ignore", "webdataset", To<&SourceRecipe::ignore>, kOptional, "", kAny, "",
     "extensions of members that are not read, such as json, without a dot; without it they are errors"},
    {"data.sources[].path", "tokens", To<&SourceRecipe::path>, kRequired, "", kAny, "",
     "PATH of PATH.bin and PATH.idx, absolute or relative to this file"},
    {"data.tokenizer", "sources", To<&DataRecipe::tokenizer>, kOptional, "bytes", kAny, "bytes|ids",
     "bytes: ids 0-255 are bytes, 256 image, 257 padding, 258 end; ids: text is ids that were made before the run"},
    {"data.tokenizer_digest", "sources", To<&DataRecipe::tokenizer_digest>, kOptional, "", kAny, "",
     "SHA-256 of the tokenizer.json that the ids of all shards are of: 64 hex digits"},
    {"data.template_digest", "sources", To<&DataRecipe::template_digest>, kOptional, "", kAny, "",
     "SHA-256 of the chat template that the documents of all shards were written with: 64 hex digits"},
    {"data.pad_token", "sources", To<&DataRecipe::pad_token>, kOptional, "", kCountFromZero, "",
     "token id of padding; required with tokenizer ids, except where shards say it"},
    {"data.end_token", "sources", To<&DataRecipe::end_token>, kOptional, "", kCountFromZero, "",
     "token id that ends a document; required with tokenizer ids, except where shards say it"},
    {"data.shuffle", "sources", To<&DataRecipe::shuffle>, kOptional, "all", kDocuments, "all|none",
     "all: any document can follow any; none: the order of the shards; N: shards are shuffled, and N documents "
     "together inside a shard"},
    {"data.packing", "sources", To<&DataRecipe::packing>, kOptional, "first_fit", kAny, "first_fit|none",
     "first_fit: documents of a window share samples; none: one document a sample"},
    {"data.window", "sources", To<&DataRecipe::window>, kOptional, "128", kSize, "",
     "number of documents that are packed together"},
    {"data.long", "sources", To<&DataRecipe::long_documents>, kOptional, "error", kAny, "error|cut|skip",
     "what happens with documents that are longer than a sample; cut: they go on in further pieces; skip: they are "
     "left out"},
    {"data.damaged", "sources", To<&DataRecipe::damaged>, kOptional, "error", kAny, "error|skip",
     "what happens with documents that cannot be read; skip: one with a damaged image is padding in its place, others "
     "are left out"},
    {"data.most_damaged", "sources", To<&DataRecipe::most_damaged>, kOptional, "100", kDocumentsOrNone, "",
     "most damaged documents with `damaged: skip`, in all sources together; with more the run does not begin"},
    {"data.min_patches", "sources", To<&DataRecipe::min_patches>, kOptional, "4", kSize, "",
     "smallest number of patches that an image is resized to"},
    {"data.max_patches", "sources", To<&DataRecipe::max_patches>, kOptional, "256", kSize, "",
     "largest number of patches that an image is resized to; at most the encoder's positions, (max_image / patch)^2"},
    {"data.resize", "sources", To<&DataRecipe::resize>, kOptional, "bilinear", kAny,
     "bilinear|bicubic|bicubic_8bit|bilinear_8bit",
     "filter that resizes images, with antialias; pixels are as those of transformers, with bicubic for "
     "nemotron_h_omni, and with bicubic_8bit and bilinear_8bit, which round them, for Qwen's models and SigLIP"},
    {"data.grid", "sources", To<&DataRecipe::grid>, kOptional, "ceil", kAny, "ceil|round_half_even|smart_resize|square",
     "how the patches of an image are counted; round_half_even: as transformers does for nemotron_h_omni; "
     "smart_resize: as it does for Qwen's models; square: each image is resized to max_image pixels a side, as for "
     "SigLIP"},
    {"data.orientation", "sources", To<&DataRecipe::orientation>, kOptional, "stored", kAny, "stored|exif",
     "whether images are turned as their EXIF says, as photos of phones need it; stored: they are taken as they are"},
    {"data.index", "sources", To<&DataRecipe::index>, kOptional, "data_index", kAny, "",
     "folder of the index files, which `plan data index` writes; absolute or relative to this file"},
    {"data.path", "recorded", To<&DataRecipe::path>, kRequired, "", kAny, "",
     "safetensors file of the batch; sample i is row i modulo the number of rows"},

    {"initialize", "", Section<&Recipe::initialize>, kOptional, "", kAny, "",
     "weights to start from; without it they are drawn"},
    {"initialize.from", "", To<&InitializeRecipe::from>, kOptional, "", kAny, "",
     "one source of all weights: a safetensors file, a Hugging Face folder, a checkpoint, or a run directory (its "
     "newest "
     "checkpoint at the launch); absolute or relative to this file"},
    {"initialize.sources", "", kListOfMaps, kOptional, "", kAny, "",
     "in the place of `from`: a source of each module, or of each part of it"},
    {"initialize.sources[].for", "", To<&WeightSourceRecipe::part>, kRequired, "", kAny, "",
     "module, or part of one: MODULE.backbone and MODULE.projection of an encoder, MODULE.adapter"},
    {"initialize.sources[].from", "", To<&WeightSourceRecipe::from>, kRequired, "", kAny, "",
     "a source, as in `initialize.from`; drawn: its weights are drawn, as without `initialize`"},
    {"initialize.ignore", "", To<&InitializeRecipe::ignore>, kOptional, "", kAny, "",
     "tensors of the sources, or parameters of a checkpoint, that may stay unused; NAME* is each that begins with "
     "NAME"},
    {"initialize.optimizer", "", To<&InitializeRecipe::optimizer>, kOptional, "false", kAny, "",
     "take the moments of the checkpoint too; without it they begin at zero"},
    {"initialize.schedule", "", To<&InitializeRecipe::schedule>, kOptional, "recipe", kAny, "recipe|checkpoint",
     "recipe: steps, samples and rates begin at the first; checkpoint: they go on where it stands"},
};

}  // namespace

std::span<const KeySpec> KeysOfData() { return kDataKeys; }

}  // namespace planwright
