#include "planner/data/plan_data.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "planner/data/lint_samples.h"

namespace planwright {
namespace {

// Of made-up samples: image, pad and text, or pad and text.
constexpr int64_t kMockVocabulary = 3, kMockTextVocabulary = 2;

std::vector<const RadioVitModel*> EncodersOf(const Recipe& recipe) {
  std::vector<const RadioVitModel*> encoders;
  for (const ModuleRecipe& module : recipe.modules) {
    if (const auto* model = std::get_if<RadioVitModel>(&module.model.model)) encoders.push_back(model);
  }
  return encoders;
}

const HybridLmModel* LanguageOf(const Recipe& recipe) {
  for (const ModuleRecipe& module : recipe.modules) {
    if (const auto* model = std::get_if<HybridLmModel>(&module.model.model)) return model;
  }
  return nullptr;
}

void CheckVocabulary(const HybridLmModel& language, const DataPlan& data, const DataRecipe& recipe,
                     Diagnostics& diagnostics) {
  const Location& where = recipe.image_token          ? recipe.image_token->where
                          : recipe.kind.where.known() ? recipe.kind.where
                                                      : recipe.where;
  if (data.end_token >= language.vocabulary) {
    diagnostics
        .Error(
            DiagnosticKind::kTokenOutsideVocabulary, where,
            absl::StrCat("the bytes tokenizer needs ", kBytesVocabulary, " ids, the model has ", *language.vocabulary),
            absl::StrCat("give the model a vocabulary of ", kBytesVocabulary, " or more"))
        .notes.push_back({language.vocabulary.where, "the vocabulary is given here"});
  } else if (const bool images = data.image_token >= 0;
             data.kind == "mock" && *language.vocabulary < (images ? kMockVocabulary : kMockTextVocabulary)) {
    diagnostics.Error(DiagnosticKind::kTokenOutsideVocabulary, language.vocabulary.where,
                      absl::StrCat("mock data needs ", images ? kMockVocabulary : kMockTextVocabulary,
                                   images ? " ids, image, pad and text" : " ids, pad and text", ", the model has ",
                                   *language.vocabulary),
                      "give the model a larger vocabulary");
  } else if (data.image_token >= language.vocabulary) {
    diagnostics
        .Error(DiagnosticKind::kTokenOutsideVocabulary, where,
               absl::StrCat("image token ", data.image_token, " is outside the vocabulary of ", *language.vocabulary),
               "choose an id below the vocabulary")
        .notes.push_back({language.vocabulary.where, "the vocabulary is given here"});
  }
}

// Whoever draws it or not, a grid is two sizes.
void CheckGridSizes(const Located<std::vector<int64_t>>& grid, Diagnostics& diagnostics) {
  if (grid->size() == 2 && (*grid)[0] > 0 && (*grid)[1] > 0) return;
  diagnostics.Error(DiagnosticKind::kImageGrid, grid.where,
                    "an image grid is two numbers above 0: rows and columns of patches", "write it as [rows, columns]");
}

// A grid of patches must be whole squares of the pixel shuffle and lie on the position table.
void CheckGrid(const Located<std::vector<int64_t>>& grid, const RadioVitModel& encoder, Diagnostics& diagnostics) {
  const int64_t side = encoder.max_image / encoder.patch, factor = encoder.pixel_shuffle;
  const auto fail = [&](std::string message, std::string help) {
    diagnostics.Error(DiagnosticKind::kImageGrid, grid.where, std::move(message), std::move(help));
  };
  if (grid->size() != 2)
    return fail("an image grid is two numbers: rows and columns of patches", "write it as [rows, columns]");
  for (int64_t size : *grid) {
    if (size < 1 || size > side) {
      fail(absl::StrCat("a grid side of ", size, " patches, where images have 1 to ", side),
           absl::StrCat("max_image ", *encoder.max_image, " of patch ", *encoder.patch, " allows ", side));
    } else if (size % factor != 0) {
      fail(absl::StrCat("a grid side of ", size, " patches, which pixel_shuffle ", factor, " does not divide"),
           "use a multiple of pixel_shuffle");
    }
  }
}

// Whether two encoders take the same grids: one of them is checked.
bool SameGrids(const RadioVitModel& a, const RadioVitModel& b) {
  return a.max_image / a.patch == b.max_image / b.patch && *a.pixel_shuffle == *b.pixel_shuffle;
}

// A position has a loss where its label is text. One text token behind nothing is no label, and the reference asks for
// two.
void CheckLossTokens(const DataRecipe& data, Diagnostics& diagnostics) {
  if (data.max_images > 0 || data.text_tokens > 1) return;
  diagnostics
      .Error(DiagnosticKind::kNoLossTokens, data.text_tokens.where.known() ? data.text_tokens.where : data.where,
             "samples of one text token and no image have no token with loss: nothing stands before the text",
             "use text_tokens: 2 or more, or images")
      .notes.push_back({data.max_images.where, "max_images is 0 here"});
}

// Every encoder sees every image, and the sequence has the rows that each makes of it.
void CheckMock(const Recipe& recipe, const std::vector<const RadioVitModel*>& encoders, Diagnostics& diagnostics) {
  const DataRecipe& data = recipe.data;
  if (encoders.empty()) {
    for (const auto& grid : data.image_grids) CheckGridSizes(grid, diagnostics);
    return;
  }
  if (data.image_grids.empty()) {
    diagnostics.Error(DiagnosticKind::kImageGrid, data.where, "mock data for an encoder needs image_grids",
                      "add data.image_grids: [[rows, columns], ...], in patches");
  }
  CheckLossTokens(data, diagnostics);
  int64_t largest = 0;
  for (const auto& grid : data.image_grids) {
    int64_t tokens = 0;
    for (const RadioVitModel* encoder : encoders) {
      const auto alike = [&](const RadioVitModel* other) { return SameGrids(*other, *encoder); };
      if (*std::find_if(encoders.begin(), encoders.end(), alike) == encoder) CheckGrid(grid, *encoder, diagnostics);
      if (grid->size() == 2) tokens += (*grid)[0] * (*grid)[1] / (encoder->pixel_shuffle * encoder->pixel_shuffle);
    }
    largest = std::max(largest, tokens);
  }
  // without images one text stands alone
  const int64_t most = std::max(data.max_images * (largest + data.text_tokens), *data.text_tokens);
  if (most > recipe.batch.sequence_length) {
    diagnostics
        .Error(
            DiagnosticKind::kSampleTooLong, data.max_images.where.known() ? data.max_images.where : data.where,
            absl::StrCat(*data.max_images, " images of ", largest, " tokens and ", *data.text_tokens,
                         " text tokens each are ", most, ", more than the sequence of ", *recipe.batch.sequence_length),
            "use fewer or smaller images, shorter text, or a longer sequence_length")
        .notes.push_back({recipe.batch.sequence_length.where, "the sequence length is given here"});
  }
}

// Facts 7.6: where documents end is one list for a lane's microbatch.
void CheckPacked(const Recipe& recipe, Diagnostics& diagnostics) {
  const Located<int64_t>& samples = recipe.batch.micro_samples;
  if (!*recipe.data.packed_documents || *samples == 1) return;
  diagnostics
      .Error(DiagnosticKind::kPackedSamples, recipe.data.packed_documents.where,
             absl::StrCat("packed documents need microbatches of one sample, not of ", *samples),
             "use micro_samples: 1")
      .notes.push_back({samples.where, "micro_samples is given here"});
}

// An image is made smaller until it has at most max_patches: those must be tokens that a sample can hold, with its end
// behind them, and no image can have min_patches that the table of positions lacks.
void CheckTarImages(const Recipe& recipe, const RadioVitModel& encoder, Diagnostics& diagnostics) {
  const DataRecipe& data = recipe.data;
  const int64_t side = encoder.max_image / encoder.patch,
                tokens = data.max_patches / (encoder.pixel_shuffle * encoder.pixel_shuffle);
  if (tokens >= recipe.batch.sequence_length) {
    diagnostics
        .Error(DiagnosticKind::kSampleTooLong, data.max_patches.where.known() ? data.max_patches.where : data.where,
               absl::StrCat("an image of max_patches ", *data.max_patches, " is ", tokens, " tokens, and a sample has ",
                            *recipe.batch.sequence_length),
               "lower max_patches, or use a longer sequence_length")
        .notes.push_back({recipe.batch.sequence_length.where, "the sequence length is given here"});
  }
  if (data.max_patches < encoder.pixel_shuffle * encoder.pixel_shuffle) {
    diagnostics.Error(DiagnosticKind::kImageGrid, data.max_patches.where.known() ? data.max_patches.where : data.where,
                      absl::StrCat("max_patches ", *data.max_patches, ", where one image token is ",
                                   *encoder.pixel_shuffle, " x ", *encoder.pixel_shuffle, " patches"),
                      absl::StrCat("use at least ", encoder.pixel_shuffle * encoder.pixel_shuffle));
  }
  if (data.min_patches > side * side) {
    diagnostics.Error(DiagnosticKind::kImageGrid, data.min_patches.where.known() ? data.min_patches.where : data.where,
                      absl::StrCat("min_patches ", *data.min_patches, ", where the largest image has ", side, " x ",
                                   side, " patches"),
                      absl::StrCat("use at most ", side * side, ", from max_image ", *encoder.max_image, " and patch ",
                                   *encoder.patch));
  }
}

}  // namespace

std::string FolderOf(const Location& where) {
  if (!where.file) return "";
  std::error_code error;  // without a working folder the path stays as it is
  const std::filesystem::path file = std::filesystem::absolute(*where.file, error);
  return (error ? std::filesystem::path(*where.file) : file).lexically_normal().parent_path().string();
}

std::optional<DataPlan> PlanData(const Recipe& recipe, Diagnostics& diagnostics) {
  const DataRecipe& data = recipe.data;
  const std::vector<const RadioVitModel*> encoders = EncodersOf(recipe);
  const RadioVitModel* encoder = encoders.empty() ? nullptr : encoders.front();
  const HybridLmModel* language = LanguageOf(recipe);
  Diagnostics found;
  DataPlan plan;
  plan.kind = data.kind;
  plan.seed = data.seed;
  plan.max_images = encoder ? *data.max_images : 0;
  plan.classes = data.classes;
  plan.text_tokens = data.text_tokens;
  plan.window = data.window;
  plan.min_patches = data.min_patches;
  plan.max_patches = data.max_patches;
  plan.packed_documents = data.packed_documents;
  if (data.image_token) plan.image_token = *data.image_token;
  for (const auto& grid : data.image_grids) plan.image_grids.push_back(*grid);
  for (const auto& shard : data.shards) plan.shards.push_back(*shard);
  if (plan.kind == "webdataset") {
    plan.image_token = kBytesImageToken;
    plan.pad_token = kBytesPadToken;
    plan.end_token = kBytesEndToken;
    if (!data.shards.empty()) plan.base = FolderOf(data.shards.front().where);
  }
  if (data.path) {
    plan.path = *data.path;
    plan.base = FolderOf(data.path->where);
  }
  if (encoder) {
    plan.patch = encoder->patch;
    plan.pixel_shuffle = encoder->pixel_shuffle;
    plan.max_image = encoder->max_image;
  }
  if (language) {
    plan.vocabulary = language->vocabulary;
    CheckVocabulary(*language, plan, data, found);
  }
  if (plan.kind == "mock") CheckMock(recipe, encoders, found);
  CheckPacked(recipe, found);
  if (plan.kind == "webdataset") {
    for (const RadioVitModel* encoder : encoders) CheckTarImages(recipe, *encoder, found);
  }
  // The token of the first bridge stands for images in the text. CheckBridgeTokens compares it with what the data
  // writes.
  if (!recipe.bridges.empty() && recipe.bridges.front().token) plan.image_token = **recipe.bridges.front().token;
  const bool fine = !found.has_errors();
  for (const Diagnostic& diagnostic : found.sorted()) diagnostics.Add(diagnostic);
  if (!fine) return std::nullopt;
  LintSamples(recipe, diagnostics);
  return plan;
}

}  // namespace planwright
