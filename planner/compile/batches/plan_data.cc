#include "planner/compile/batches/plan_data.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "planner/compile/batches/lint_samples.h"
#include "planner/compile/batches/plan_sources.h"
#include "planner/compile/bridges/check_tokens.h"
#include "planner/plan/sample_images.h"
#include "planner/plan/source_rules.h"
#include "planner/recipe/model_facts.h"

namespace planwright {
namespace {

// Nobody reads it, nor the classes and texts of data that is not drawn; but the digest, by which a run is known, has
// always covered them.
constexpr int64_t kWindowOfNoDocuments = 64;

// Sizes of an encoder that decide which images it takes. fixed: those of max_image pixels a side alone.
struct ImageSizes {
  Located<int64_t> patch, pixel_shuffle, max_image;
  bool fixed = false;
  bool known() const { return AllKnown(patch, pixel_shuffle, max_image); }
  int64_t side() const { return max_image / patch; }  // of the largest image, in patches
  int64_t patches_of_token() const { return pixel_shuffle * pixel_shuffle; }
};

ImageSizes ImageSizesOf(const ModelRecipe& encoder) {
  const LocatedNumbers& numbers = encoder.numbers;
  return {SizeOf(numbers, "patch"), SizeOf(numbers, "pixel_shuffle"), SizeOf(numbers, "max_image"),
          numbers.contains("fixed_positions") && *SizeOf(numbers, "fixed_positions") != 0};
}

// A table that is not resized has as many positions as images have patches.
void CheckTable(const ModelRecipe& encoder, Diagnostics& diagnostics) {
  const ImageSizes sizes = ImageSizesOf(encoder);
  if (!sizes.known() || !sizes.fixed || !encoder.numbers.contains("table")) return;
  const Located<int64_t> table = SizeOf(encoder.numbers, "table");
  if (!AllKnown(table) || *table == sizes.side()) return;
  diagnostics
      .Error(DiagnosticKind::kImageGrid, table.where,
             absl::StrCat("the table has ", *table, " x ", *table, " positions, but images of max_image ",
                          *sizes.max_image, " have ", sizes.side(), " x ", sizes.side(), " patches"),
             "leave table out; or write positions: resized, and the table is resized to images")
      .notes.push_back({sizes.max_image.where, "max_image is given here"});
}

// Whether it is known which modules are encoders.
bool KnowsEncoders(const Recipe& recipe) {
  return !recipe.damaged.contains("modules") &&
         std::all_of(recipe.modules.begin(), recipe.modules.end(),
                     [](const ModuleRecipe& module) { return AllKnown(module.model.kind); });
}

std::vector<ImageSizes> EncodersOf(const Recipe& recipe) {
  std::vector<ImageSizes> encoders;
  for (const ModuleRecipe& module : recipe.modules) {
    if (AllKnown(module.model.kind) && !CarriesLoss(module.model)) encoders.push_back(ImageSizesOf(module.model));
  }
  return encoders;
}

// All token ids that the data can contain must have a row in the embedding. Three cases, of which at most one is
// reported: tokenizer bytes has fixed ids, mock data needs some ids, and the image token is any id. Those of tokenizer
// ids are checked with each other (plan_sources.cc).
void CheckVocabulary(const Located<int64_t>& vocabulary, const DataPlan& data, const DataRecipe& recipe,
                     Diagnostics& diagnostics) {
  if (TextIsIds(data) || !AllKnown(vocabulary, recipe.tokenizer, recipe.image_token)) return;
  const Location& where = recipe.image_token          ? recipe.image_token->where
                          : recipe.kind.where.known() ? recipe.kind.where
                                                      : recipe.where;
  if (data.end_token >= *vocabulary) {
    diagnostics
        .Error(DiagnosticKind::kTokenOutsideVocabulary, where,
               absl::StrCat("tokenizer bytes needs a vocabulary of ", kBytesVocabulary, ", but the model has ",
                            *vocabulary),
               absl::StrCat("give the model a vocabulary of ", kBytesVocabulary, " or more"))
        .notes.push_back({vocabulary.where, "the vocabulary is given here"});
  } else if (const int64_t least = MockVocabulary(data); RowOf(data.kind).drawn && *vocabulary < least) {
    const char* ids = least == 2   ? "padding and text"
                      : least == 3 ? "image, padding and text"
                                   : "one for the images of each encoder, padding and text";
    diagnostics.Error(DiagnosticKind::kTokenOutsideVocabulary, vocabulary.where,
                      absl::StrCat("mock data needs a vocabulary of at least ", least, " (", ids,
                                   "), but the model has ", *vocabulary),
                      "give the model a larger vocabulary");
  } else if (data.image_token >= *vocabulary) {
    diagnostics
        .Error(DiagnosticKind::kTokenOutsideVocabulary, where,
               absl::StrCat("`data.image_token` ", data.image_token, " is outside the vocabulary of ", *vocabulary),
               absl::StrCat("use an id from 0 to ", *vocabulary - 1))
        .notes.push_back({vocabulary.where, "the vocabulary is given here"});
  }
}

// The shape of a grid. Checked without an encoder too, because the plan contains the grids in any case.
void CheckGridSizes(const Located<std::vector<int64_t>>& grid, Diagnostics& diagnostics) {
  if (!AllKnown(grid)) return;
  if (grid->size() == 2 && (*grid)[0] > 0 && (*grid)[1] > 0) return;
  diagnostics.Error(DiagnosticKind::kImageGrid, grid.where,
                    "an image grid must be two numbers above 0: rows and columns of patches",
                    "write it as [rows, columns]");
}

// The sides of a grid must be at most those of the position table, and multiples of pixel_shuffle
// (docs/model/vision_encoder.md#output); of an encoder whose table is not resized, those of the table. False: told that
// they are not.
bool CheckGrid(const Located<std::vector<int64_t>>& grid, const ImageSizes& encoder, Diagnostics& diagnostics) {
  if (!AllKnown(grid) || !encoder.known()) return true;
  const int64_t side = encoder.side(), factor = encoder.pixel_shuffle;
  const auto fail = [&](std::string message, std::string help) {
    diagnostics.Error(DiagnosticKind::kImageGrid, grid.where, std::move(message), std::move(help));
    return false;
  };
  if (grid->size() != 2)
    return fail("an image grid must be two numbers: rows and columns of patches", "write it as [rows, columns]");
  // One side of a grid is told, not both.
  for (int64_t size : *grid) {
    if (size < 1 || size > side) {
      return fail(
          absl::StrCat("a side of the grid is ", size, " patches, but must be 1 to ", side),
          absl::StrCat("the limit is max_image ", *encoder.max_image, " / patch ", *encoder.patch, " = ", side));
    }
    if (encoder.fixed && size != side) {
      return fail(absl::StrCat("a side of the grid is ", size, " patches, but the encoder has positions for ", side),
                  absl::StrCat("use [", side, ", ", side, "]; with positions: resized it takes smaller images too"));
    }
    if (size % factor != 0) {
      return fail(
          absl::StrCat("a side of the grid is ", size, " patches, which is not a multiple of pixel_shuffle ", factor),
          absl::StrCat("use a multiple of ", factor));
    }
  }
  return true;
}

// Whether two encoders accept the same grids. Then only the first is checked, so that a problem is reported once.
bool SameGrids(const ImageSizes& a, const ImageSizes& b) {
  return a.known() && b.known() && a.side() == b.side() && a.pixel_shuffle == b.pixel_shuffle && a.fixed == b.fixed;
}

// A position has a loss if the next token is text (docs/training/data.md#mock). The first token of a sample is not the
// next token of any position, so that samples of one text token have no loss at all. Without images a sample has
// several texts, but with packed documents each of them is a document of its own.
void CheckLossTokens(const DataRecipe& data, bool images, Diagnostics& diagnostics) {
  if (!AllKnown(data.max_images, data.text_tokens, data.packed_documents)) return;
  if ((images && data.max_images > 0) || data.text_tokens > 1) return;
  if (!images && !*data.packed_documents) return;
  diagnostics
      .Error(DiagnosticKind::kNoLossTokens, data.text_tokens.where.known() ? data.text_tokens.where : data.where,
             "samples of one text token and no image have no token with a loss: no token precedes the text",
             images ? "use text_tokens: 2 or more, or max_images: 1 or more" : "use text_tokens: 2 or more")
      .notes.push_back(images ? Note{data.max_images.where, "max_images is 0 here"}
                              : Note{data.packed_documents.where, "each text is a document of its own here"});
}

// Also without an encoder: the two keys contradict each other whatever the sample.
void CheckImageNumbers(const DataRecipe& data, Diagnostics& diagnostics) {
  if (!AllKnown(data.min_images, data.max_images) || *data.min_images <= *data.max_images) return;
  diagnostics
      .Error(DiagnosticKind::kMoreImagesThanMost, data.min_images.where,
             absl::StrCat("min_images is ", *data.min_images, ", but max_images is ", *data.max_images,
                          ": no number of images fits both"),
             absl::StrCat("use a min_images of at most ", *data.max_images, ", or a max_images of at least ",
                          *data.min_images))
      .notes.push_back({data.max_images.where, absl::StrCat("max_images is ", *data.max_images, " here")});
}

// Tells that there are no grids, with one that the encoder takes: a square of its patches.
void AddImageGrids(const DataRecipe& data, const ImageSizes& encoder, Diagnostics& diagnostics) {
  constexpr int64_t kUsual = 32;
  const bool known = encoder.known() && *encoder.patch > 0 && *encoder.pixel_shuffle > 0;
  const int64_t most = !known ? 0 : encoder.fixed ? encoder.side() : std::min(kUsual, encoder.side());
  const int64_t side = known ? most / *encoder.pixel_shuffle * *encoder.pixel_shuffle : int64_t{0};
  const std::string grids = side > 0 ? absl::StrCat("[[", side, ", ", side, "]]") : "[[ROWS, COLUMNS]]";
  Diagnostic& problem = diagnostics.Error(
      DiagnosticKind::kImageGrid, data.where, "`data.image_grids` is missing: mock data for an encoder needs it",
      absl::StrCat("add image_grids: ", grids, ", the rows and columns of patches of each size of images"));
  if (side > 0) problem.edits = {{"data.image_grids", grids}};
}

// Every encoder processes every image, and the sequence contains the rows of all of them.
void CheckMock(const Recipe& recipe, const std::vector<ImageSizes>& encoders, Diagnostics& diagnostics) {
  const DataRecipe& data = recipe.data;
  CheckImageNumbers(data, diagnostics);
  if (!KnowsEncoders(recipe)) return;
  if (encoders.empty()) {
    for (const auto& grid : data.image_grids) CheckGridSizes(grid, diagnostics);
    CheckLossTokens(data, /*images=*/false, diagnostics);
    return;
  }
  if (data.image_grids.empty()) {
    AddImageGrids(data, encoders[0], diagnostics);
  }
  CheckLossTokens(data, /*images=*/true, diagnostics);
  // The tokens of the largest image, summed over all encoders.
  int64_t largest = 0;
  for (const auto& grid : data.image_grids) {
    int64_t tokens = 0;
    bool good = true;  // how long a sample is with a grid that is refused is no problem of its own
    for (const ImageSizes& encoder : encoders) {
      const auto same_grids = [&](const ImageSizes& other) { return SameGrids(other, encoder); };
      if (&*std::find_if(encoders.begin(), encoders.end(), same_grids) == &encoder)
        good = CheckGrid(grid, encoder, diagnostics) && good;
      if (grid->size() == 2 && encoder.known()) tokens += (*grid)[0] * (*grid)[1] / encoder.patches_of_token();
    }
    if (good) largest = std::max(largest, tokens);
  }
  const bool sizes_known =
      std::all_of(encoders.begin(), encoders.end(), [](const ImageSizes& encoder) { return encoder.known(); });
  if (!sizes_known || !AllKnown(data.image_grids, data.max_images, data.text_tokens, recipe.batch.sequence_length))
    return;
  // A sample without images has one text.
  const int64_t most = std::max(data.max_images * (largest + data.text_tokens), *data.text_tokens);
  if (most > recipe.batch.sequence_length) {
    diagnostics
        .Error(DiagnosticKind::kSampleTooLong, data.max_images.where.known() ? data.max_images.where : data.where,
               absl::StrCat("a sample can have ", most, " tokens, but sequence_length is ",
                            *recipe.batch.sequence_length, ": ", *data.max_images, " images, each with ", largest,
                            " image tokens and ", *data.text_tokens, " text tokens"),
               "use fewer or smaller images, shorter text, or a larger sequence_length")
        .notes.push_back({recipe.batch.sequence_length.where, "the sequence length is given here"});
  }
}

// A lane has one list of document ends for its microbatch (docs/training/data.md#packed-documents).
void CheckPacked(const Recipe& recipe, Diagnostics& diagnostics) {
  const Located<int64_t>& samples = recipe.batch.micro_samples;
  if (!AllKnown(recipe.data.packed_documents, samples) || !*recipe.data.packed_documents || *samples == 1) return;
  diagnostics
      .Error(DiagnosticKind::kPackedSamples, recipe.data.packed_documents.where,
             absl::StrCat("packed_documents needs micro_samples 1, found ", *samples), "use micro_samples: 1")
      .notes.push_back({samples.where, "micro_samples is given here"});
}

// A square must fit into a sample together with the end token (hence >=).
void CheckSquares(const Recipe& recipe, const ImageSizes& encoder, Diagnostics& diagnostics) {
  const int64_t side = encoder.side(), tokens = side * side / encoder.patches_of_token();
  if (tokens < recipe.batch.sequence_length) return;
  diagnostics
      .Error(DiagnosticKind::kSampleTooLong, recipe.data.grid.where,
             absl::StrCat("a square of ", side, " x ", side, " patches has ", tokens,
                          " tokens and does not fit into sequence_length ", *recipe.batch.sequence_length),
             absl::StrCat("use a sequence_length above ", tokens, ", or an encoder with fewer patches"))
      .notes.push_back({recipe.batch.sequence_length.where, "the sequence length is given here"});
}

void NeedSquares(const DataRecipe& data, const ImageSizes& encoder, Diagnostics& diagnostics) {
  diagnostics
      .Error(DiagnosticKind::kImageGrid, data.grid.where.known() ? data.grid.where : data.where,
             absl::StrCat("grid ", *data.grid, data.grid.where.known() ? "" : ", the default,",
                          " gives images of many sizes, but the encoder has positions for ", encoder.side(), " x ",
                          encoder.side(), " patches alone"),
             "write grid: square, and each image becomes one of them; with positions: resized the encoder takes "
             "smaller images too")
      .edits = {{"data.grid", "square"}};
}

// Images of shards are resized to min_patches .. max_patches patches (docs/model/vision_encoder.md#image-sizes). The
// largest must fit into a sample together with the end token (hence >=), the smallest must give one image token, and
// min_patches must not exceed the position table.
void CheckTarImages(const Recipe& recipe, const ImageSizes& encoder, Diagnostics& diagnostics) {
  const DataRecipe& data = recipe.data;
  if (!encoder.known() || !AllKnown(data.min_patches, data.max_patches, data.grid, recipe.batch.sequence_length))
    return;
  if (*data.grid == "square") return CheckSquares(recipe, encoder, diagnostics);
  if (encoder.fixed) return NeedSquares(data, encoder, diagnostics);
  const int64_t side = encoder.side(), tokens = data.max_patches / encoder.patches_of_token();
  if (tokens >= recipe.batch.sequence_length) {
    diagnostics
        .Error(DiagnosticKind::kSampleTooLong, data.max_patches.where.known() ? data.max_patches.where : data.where,
               absl::StrCat("an image with max_patches ", *data.max_patches, " has ", tokens,
                            " tokens and does not fit into sequence_length ", *recipe.batch.sequence_length),
               "use a smaller max_patches, or a larger sequence_length")
        .notes.push_back({recipe.batch.sequence_length.where, "the sequence length is given here"});
  }
  if (data.max_patches < encoder.patches_of_token()) {
    diagnostics.Error(DiagnosticKind::kImageGrid, data.max_patches.where.known() ? data.max_patches.where : data.where,
                      absl::StrCat("max_patches is ", *data.max_patches, ", but one image token needs ",
                                   *encoder.pixel_shuffle, " x ", *encoder.pixel_shuffle, " patches"),
                      absl::StrCat("use at least ", encoder.patches_of_token()));
  }
  const Location& where = data.max_patches.where.known() ? data.max_patches.where : data.where;
  // Where min_patches is above it, that is told.
  if (data.max_patches > side * side && data.min_patches <= side * side && side * side >= encoder.patches_of_token()) {
    const bool given = data.max_patches.where.known();
    Diagnostic& problem = diagnostics.Error(
        DiagnosticKind::kImageGrid, where,
        absl::StrCat("max_patches is ", *data.max_patches, given ? "" : " by default", ", but the encoder has ", side,
                     " x ", side, " = ", side * side, " positions"),
        absl::StrCat("write max_patches: ", side * side, ", and larger images are scaled down; a side has max_image ",
                     *encoder.max_image, " / patch ", *encoder.patch, " positions"));
    problem.edits = {{"data.max_patches", absl::StrCat(side * side)}};
    problem.restates = !given;  // "as many as there can be" is what a recipe without the key means
  }
  if (data.min_patches > side * side) {
    diagnostics.Error(DiagnosticKind::kImageGrid, data.min_patches.where.known() ? data.min_patches.where : data.where,
                      absl::StrCat("min_patches is ", *data.min_patches, ", but the largest image has ", side, " x ",
                                   side, " patches"),
                      absl::StrCat("use at most ", side * side, "; a side has max_image ", *encoder.max_image,
                                   " / patch ", *encoder.patch, " = ", side, " patches"));
  }
}

// In the order of the bridges. An encoder without a bridge is a problem of another room.
std::vector<EncoderData> EncoderDataOf(const Recipe& recipe) {
  std::vector<EncoderData> encoders;
  for (const BridgeRecipe& bridge : recipe.bridges) {
    for (const ModuleRecipe& module : recipe.modules) {
      if (!AllKnown(module.model.kind) || CarriesLoss(module.model) || *module.name != *bridge.from) continue;
      const ImageSizes sizes = ImageSizesOf(module.model);
      encoders.push_back({*module.name, TokenOf(bridge, recipe.data), sizes.patch, sizes.pixel_shuffle, sizes.max_image,
                          StatementOfModel(module.model).pixels});
    }
  }
  return encoders;
}

}  // namespace

std::string FolderOf(const Location& where) {
  if (!where.file) return "";
  std::error_code error;  // without a working folder the path stays as it is
  const std::filesystem::path file = std::filesystem::absolute(*where.file, error);
  return (error ? std::filesystem::path(*where.file) : file).lexically_normal().parent_path().string();
}

std::optional<DataPlan> PlanData(const Recipe& recipe, Diagnostics& diagnostics) {
  std::optional<DataPlan> plan = CheckedData(recipe, diagnostics);
  if (plan && recipe.damaged.empty()) LintSamples(recipe, diagnostics);  // about data that is valid
  return plan;
}

std::optional<DataPlan> CheckedData(const Recipe& recipe, Diagnostics& diagnostics) {
  const DataRecipe& data = recipe.data;
  const std::vector<ImageSizes> encoders = EncodersOf(recipe);
  // Problems of this room only: whether the plan can be returned must not depend on earlier problems.
  Diagnostics found;
  if (recipe.damaged.contains("data") || !AllKnown(data.kind)) return std::nullopt;
  DataPlan plan;
  plan.kind = data.kind;
  const DataKindRow& kind = RowOf(plan.kind);
  plan.tokenizer = *data.tokenizer;
  plan.seed = data.seed;
  if (!kind.mixed) {
    plan.classes = data.classes;
    plan.text_tokens = data.text_tokens;
    plan.window = kWindowOfNoDocuments;
  }
  // Without an encoder mock samples are text only.
  const bool no_images = encoders.empty() || kind.mixed;
  plan.min_images = no_images ? 0 : *data.min_images;
  plan.max_images = no_images ? 0 : *data.max_images;
  plan.balance = *data.balance;
  plan.min_patches = data.min_patches;
  plan.max_patches = data.max_patches;
  plan.resize = data.resize;
  plan.grid = data.grid;
  plan.orientation = data.orientation;
  plan.packed_documents = data.packed_documents;
  if (data.image_token) plan.image_token = *data.image_token;
  for (const auto& grid : data.image_grids) plan.image_grids.push_back(*grid);
  if (TextIsBytes(data)) {
    plan.image_token = kBytesImageToken;
    plan.pad_token = kBytesPadToken;
    plan.end_token = kBytesEndToken;
  } else if (kind.tokenized) {
    if (data.pad_token) plan.pad_token = **data.pad_token;
    if (data.end_token) plan.end_token = **data.end_token;
  }
  if (data.path) {
    plan.path = *data.path;
    plan.base = FolderOf(data.path->where);
  }
  plan.encoders = EncoderDataOf(recipe);
  if (const ModuleRecipe* language = LanguageOf(recipe)) {
    const Located<int64_t> vocabulary = SizeOf(language->model.numbers, "vocabulary");
    plan.vocabulary = *vocabulary;
    if (KnowsEncoders(recipe) && !recipe.damaged.contains("bridges") && AllKnown(data.image_grids, data.classes))
      CheckVocabulary(vocabulary, plan, data, found);
  }
  if (kind.mixed && !recipe.damaged.contains("data.sources")) PlanSources(recipe, plan, found);
  for (const ModuleRecipe& module : recipe.modules) {
    if (AllKnown(module.model.kind) && !CarriesLoss(module.model)) CheckTable(module.model, found);
  }
  if (kind.drawn) CheckMock(recipe, encoders, found);
  CheckPacked(recipe, found);
  if (kind.resized) {
    for (const ImageSizes& encoder : encoders) CheckTarImages(recipe, encoder, found);
  }
  // CheckBridgeTokens compares the bridges' tokens with what the data writes.
  if (!plan.encoders.empty()) plan.image_token = plan.encoders.front().token;
  const bool fine = !found.has_errors();
  for (const Diagnostic& diagnostic : found.sorted()) diagnostics.Add(diagnostic);
  if (!fine) return std::nullopt;
  return plan;
}

}  // namespace planwright
