// What a plan says of samples: where those of the training come from, and those that are evaluated. A part of plan.h,
// which says how these structs are written to a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/data_kinds.h"
#include "planner/plan/pixel_norm.h"

namespace planwright {

// What an encoder makes of an image.
struct EncoderData {
  std::string module;
  int64_t token = -1;                                // the id whose positions in the text its rows take: the bridge's
  int64_t patch = 0;                                 // pixels along a patch
  int64_t pixel_shuffle = 0;                         // patches along an image token
  int64_t max_image = 0;                             // pixels along the largest image
  std::string pixels = std::string(kClipNorm.name);  // by what they are normalized (pixel_norm.h)

  // Patches along the largest image; patches of an image token; tokens of an image of so many patches.
  int64_t side() const { return max_image / patch; }
  int64_t merged() const { return pixel_shuffle * pixel_shuffle; }
  int64_t TokensOf(int64_t patches) const { return patches / merged(); }
  // CLIP's in a damaged plan, which V11 refuses.
  const PixelNorm& norm() const {
    const PixelNorm* found = FindPixelNorm(pixels);
    return found ? *found : kClipNorm;
  }
};

// One source of a mixture (docs/training/data.md#sources).
struct SourcePlan {
  std::string name;
  SourceKind kind{};
  std::vector<std::string> shards;  // webdataset: tar files, brace ranges and globs, as written in the recipe
  std::vector<std::string> ignore;  // webdataset: extensions of members that are not read
  std::string path;                 // tokens: PATH.bin and PATH.idx, as written in the recipe
  // Of the first n samples weight / (sum of weights) n are of this source, less than one off. The weights have no
  // common divisor.
  int64_t weight = 1;
};

// What the samples of one source bring to one encoder. Every epoch has the same samples, in another order.
struct CountedImages {
  std::string encoder, source;
  int64_t samples = 0;                      // of an epoch
  int64_t images = 0, patches = 0;          // of all of them
  int64_t max_images = 0, max_patches = 0;  // of the sample that has most
  // Patches of an image, ascending: the images by size in groups of equally many, and the rounded mean of each.
  std::vector<int64_t> sizes;

  bool operator==(const CountedImages&) const = default;
};

// How long the documents of the samples of one source are, where each is alone in its sample
// (DataPlan::packed_documents). Padding is a document, too.
struct CountedDocuments {
  std::string source;
  int64_t samples = 0;       // of an epoch
  int64_t documents = 0;     // of all of them
  int64_t mean_squares = 0;  // of a sample, rounded: the sum of the squares of its documents' tokens

  // Of the scores of one document as long as a sample, those within documents. `sequence`: tokens of a sample.
  double ShareOfScores(int64_t sequence) const {
    return static_cast<double>(mean_squares) / (static_cast<double>(sequence) * static_cast<double>(sequence));
  }
  bool operator==(const CountedDocuments&) const = default;
};

// What the index says of the samples of the run (docs/training/data.md#counted). Without it a sample counts as full of
// images, and as one document.
struct CountedSamples {
  std::string digest;                 // of the index (SampleSource::digest), 64 hex digits; empty: nothing is counted
  std::vector<CountedImages> images;  // by DataPlan::encoders, and for each by DataPlan::sources
  // Patches of the first samples of the run for the first encoder, in the order of their numbers.
  std::vector<int64_t> first_patches;
  // With packed documents, else empty; empty also of what is evaluated. By DataPlan::sources; and of the first samples
  // of the run, in the order of their numbers, the sums of the squares of their documents' tokens.
  std::vector<CountedDocuments> documents;
  std::vector<int64_t> first_squares;

  bool known() const { return !digest.empty(); }
  bool operator==(const CountedSamples&) const = default;
};

// Where samples come from (docs/training/data.md). Filled by data/.
struct DataPlan {
  DataKind kind{};
  int64_t seed = 0;  // of the draws of samples
  // Token ids; -1: none. image_token: that of the first encoder, or what the recipe says where there is none.
  int64_t image_token = -1, pad_token = -1, end_token = -1;
  int64_t vocabulary = 0;  // of the language model: token ids are below it
  // mock: sizes of images, [rows, columns] of patches, drawn evenly; a sample has min_images to max_images
  // images.
  std::vector<std::vector<int64_t>> image_grids;
  int64_t min_images = 0, max_images = 0;
  int64_t classes = 0, text_tokens = 0;  // mock: kinds of image; tokens of the text of a kind
  // The following are of `sources`.
  int64_t window = 0;                        // documents that are packed together
  int64_t min_patches = 0, max_patches = 0;  // limits of the patches that an image is resized to
  std::string resize = "bilinear";           // bilinear | bicubic | bicubic_8bit | bilinear_8bit
  std::string grid = "ceil";                 // how patches are counted: ceil | round_half_even | smart_resize
  std::string orientation = "stored";        // stored | exif: images are turned as it says
  std::vector<SourcePlan> sources;
  std::string tokenizer = "bytes";                // bytes | ids: text is ids, made before the run
  std::string tokenizer_digest, template_digest;  // SHA-256, 64 hex digits, that prepared shards must name; or nothing
  std::string shuffle = "all";                    // all | none | N: documents that are shuffled together
  std::string packing = "first_fit";              // first_fit | none: one document a sample
  std::string long_documents = "error";           // error | cut | skip: documents that are longer than a sample
  std::string damaged = "error";                  // error | skip
  int64_t most_damaged = 0;                       // skip: with more damaged documents than this the run does not begin
  std::string index;                              // folder of the index files; not covered by the digest
  std::string balance = "none";                   // every kind; none | images: the order of samples within a step
  std::string path;                               // recorded: a safetensors batch, as written in the recipe
  std::string base;                               // folder of the file that names the paths; not covered by the digest
  bool packed_documents = false;                  // attention and Mamba state end where a document ends
  // Every encoder sees every image. In the order of the bridges; empty: text alone.
  std::vector<EncoderData> encoders;
  CountedSamples counted;

  const EncoderData* FindEncoder(std::string_view module) const;  // null: there is none
};

// Samples that an evaluation reads (docs/training/evaluation.md). Filled by data/; `rounds` by budget/.
struct EvaluationSet {
  std::string name;     // "held_out"
  int64_t samples = 0;  // its first so many; 0: all of sources, which no index has counted yet: ranks refuse it
  // Runs of the list `evaluate`, of Budget::block_samples each: what is past `samples` in the last one has no weight.
  int64_t rounds = 0;
  DataPlan data;  // complete, as Plan::data; never balanced

  // What its losses are added up by, and their names in logs: its sources; itself, where the data has no sources.
  int64_t parts() const { return data.sources.empty() ? 1 : static_cast<int64_t>(data.sources.size()); }
};

// Evaluation beside training (`evaluation`): before the first step, whenever `every_samples` divides the samples that
// were consumed, and after the last step. Without sets there is none, and roles have no lists for it.
struct EvaluationPlan {
  int64_t every_samples = 0;
  std::vector<EvaluationSet> sets;

  bool empty() const { return sets.empty(); }
  // Elements of the sums of an evaluation: the parts of the sets, one set after the other.
  int64_t parts() const;
  int64_t rounds() const;  // of all sets, one set after the other
};

// When a run stops because its loss grows (`divergence`): a step's loss is more than `factor` times the least of the
// `window` steps before it. window 0: never.
struct DivergencePlan {
  int64_t window = 0;
  double factor = 0;

  bool operator==(const DivergencePlan&) const = default;
};

}  // namespace planwright
