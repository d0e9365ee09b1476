#include "planner/cli/first/folders_recipe.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/status_macros.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/first/folder_counts.h"
#include "planner/cli/first/folders_and_shards.h"
#include "planner/cli/first/image_processor.h"
#include "planner/cli/first/misfits.h"
#include "planner/cli/first/projector.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/recipe/scalar.h"
#include "planner/recipe/tree_edits.h"
#include "planner/recipe/yaml/yaml_comments.h"
#include "planner/recipe/yaml/yaml_text.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

// The longest sample that is chosen: more tokens need context parallelism or much memory. Overrides may ask for more.
constexpr int64_t kMostTokens = 8192;
// A photo of 1024 x 1024 pixels, of which text of usual size can be read.
constexpr int64_t kMostPatches = 4096;
// Samples of a step, if the data has enough for kSteps of them.
constexpr int64_t kMostOfStep = 256, kSteps = 200, kFewestSteps = 20;
// Samples of an evaluation, if its data has as many.
constexpr int64_t kMostEvaluated = 64;
// Weights of several sources are parts of so many: the sum of weights has a limit (source_rules.h).
constexpr int64_t kParts = 100'000;
constexpr char kLanguageTrain[] = "modules.language.train.backbone", kFrozen[] = "frozen";

// The encoder of the recipe.
struct Encoder {
  std::string module;  // empty: there is none
  EncoderSizes sizes;
  ImageProcessor processor;

  std::string train() const { return absl::StrCat("modules.", module, ".train.backbone"); }
  // Unless it was asked for otherwise.
  bool FrozenIn(const FolderParts& parts) const { return !IsAt(parts.asked, train(), "trained"); }
};

int64_t PowerOfTwoFrom(int64_t least) {
  int64_t power = 1;
  while (power < least) power *= 2;
  return power;
}

struct Sizes {
  int64_t patches = 0, least_patches = 0;  // of an image at most, 0: no encoder; and at least, 0: as images come
  int64_t image_tokens = 0;                // of such an image
  int64_t tokens = 0;                      // of a sample
  int64_t epoch = 1;                       // samples of the data
  bool counted = false;                    // the epoch, by the index
  int64_t step = 1;                        // samples of a step
  int64_t steps = 1;
  int64_t samples = 1;  // of the run
};

// Tokens of each source: as the index counts them, or with every image as large as one may be.
std::vector<int64_t> TokensOf(const std::vector<PreparedShards>& data, const std::vector<SourceCounts>& counts,
                              int64_t image_tokens) {
  std::vector<int64_t> tokens;
  for (size_t i = 0; i < data.size(); ++i) {
    const int64_t most = data[i].tokens + data[i].images * std::max<int64_t>(0, image_tokens - 1);
    tokens.push_back(std::max<int64_t>(1, counts.size() == data.size() ? counts[i].tokens : most));
  }
  return tokens;
}

int64_t Sum(const std::vector<int64_t>& numbers) { return std::accumulate(numbers.begin(), numbers.end(), int64_t{0}); }

int64_t SamplesOf(const std::vector<SourceCounts>& counts) {
  int64_t samples = 0;
  for (const SourceCounts& source : counts) samples += source.samples;
  return samples;
}

EncoderSizes SizesOfEncoder(const YamlNode& model) {
  const YamlEntry* kind = model.Find("kind");
  EncoderSizes sizes{.kind = kind == nullptr ? "" : kind->value.text};
  sizes.patch = std::max<int64_t>(1, SizeOfModel(model, "patch", 16));
  sizes.pixel_shuffle = std::max<int64_t>(1, SizeOfModel(model, "pixel_shuffle", 1));
  sizes.max_image = SizeOfModel(model, "max_image", 1024);
  sizes.frames = SizeOfModel(model, "frames", 0);
  return sizes;
}

// Tokens that an image may have at most: a text stands beside it in a sample, which is no longer than was asked for or
// than the model knows positions.
int64_t MostImageTokens(const FolderParts& parts) {
  const int64_t positions = parts.weights.positions > 0 ? std::min(parts.weights.positions, kMostTokens) : kMostTokens;
  int64_t room = 1;
  while (2 * room <= positions) room *= 2;
  return std::max<int64_t>(1, std::min(NumberAt(parts.asked, "batch.sequence_length", room), kMostTokens) * 4 / 5);
}

Sizes SizesFor(const FolderParts& parts, const Encoder& encoder, const FolderCounts& counts, int64_t gpus) {
  Sizes sizes;
  if (!encoder.module.empty()) {
    const auto [kind, patch, shuffle, max_image, frames] = encoder.sizes;
    const ImageProcessor& processor = encoder.processor;
    const int64_t side = std::max<int64_t>(1, max_image / patch);
    // A picture four times as wide as it is high has room in the table of positions.
    int64_t fits = std::max(shuffle * shuffle, std::min(kMostPatches, side * side / 4));
    fits = std::min(fits, MostImageTokens(parts) * shuffle * shuffle);
    if (processor.most_pixels > 0) fits = std::clamp(processor.most_pixels / patch / patch, shuffle * shuffle, fits);
    sizes.patches = NumberAt(parts.asked, "data.max_patches", fits);
    if (processor.grid == "square") sizes.patches = side * side;
    sizes.least_patches = std::min(sizes.patches, processor.least_pixels / patch / patch);
    sizes.image_tokens = sizes.patches / (shuffle * shuffle);
  }
  int64_t documents = 0;
  for (const PreparedShards& shards : parts.data) documents += shards.documents;
  const int64_t all = Sum(TokensOf(parts.data, counts.data, sizes.image_tokens));
  // Room for four documents, and for the largest image with a text.
  int64_t room = PowerOfTwoFrom(std::max({int64_t{64}, 4 * (all / documents), sizes.image_tokens * 5 / 4}));
  room = std::min(room, kMostTokens);
  while (parts.weights.positions > 0 && room > parts.weights.positions && room > 1) room /= 2;
  sizes.tokens = NumberAt(parts.asked, "batch.sequence_length", room);
  sizes.counted = counts.sequence > 0 && counts.sequence == sizes.tokens;
  const int64_t about = (all + sizes.tokens - 1) / std::max<int64_t>(1, sizes.tokens);
  sizes.epoch = std::max<int64_t>(1, sizes.counted ? SamplesOf(counts.data) : about);
  int64_t step = gpus;
  while (2 * step <= kMostOfStep && sizes.epoch / (2 * step) >= kSteps) step *= 2;
  sizes.step = std::max<int64_t>(1, NumberAt(parts.asked, "batch.global_samples", step));
  sizes.samples =
      NumberAt(parts.asked, "budget.train_samples", std::max(kFewestSteps, sizes.epoch / sizes.step) * sizes.step);
  sizes.steps = std::max<int64_t>(1, sizes.samples / sizes.step);
  return sizes;
}

std::string QuotedPath(const std::string& path) { return FlowText(ScalarNode(path, {}, /*quoted=*/true)); }

// Not taken for a word, such as `drawn`.
std::string FolderPath(const std::string& path) {
  return QuotedPath(fs::path(path).is_absolute() ? path : "./" + path);
}

// Whether YAML takes it for a text without quotes: no number, and longer than the words that it takes for others.
bool IsWord(const std::string& name) {
  const auto usual = [](char c) { return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.'; };
  return name.size() > 5 && absl::ascii_isalpha(name[0]) && std::all_of(name.begin(), name.end(), usual);
}

std::string SourcesText(const std::vector<PreparedShards>& data, const std::vector<SourceCounts>& counts,
                        const Sizes& sizes) {
  // As much of each as there is.
  std::vector<int64_t> shares = TokensOf(data, counts, sizes.image_tokens);
  for (size_t i = 0; sizes.counted && counts.size() == data.size() && i < data.size(); ++i)
    shares[i] = counts[i].samples;
  const double all = static_cast<double>(Sum(shares)), parts = static_cast<double>(kParts);
  std::vector<std::string> sources;
  for (size_t i = 0; i < data.size(); ++i) {
    const int64_t share = all <= parts ? shares[i] : std::llround(static_cast<double>(shares[i]) / all * parts);
    const std::string weight = data.size() > 1 ? absl::StrCat(", weight: ", std::max<int64_t>(1, share)) : "";
    sources.push_back(absl::StrCat("{name: ", FlowText(ScalarNode(data[i].name, {}, !IsWord(data[i].name))),
                                   ", kind: webdataset", weight, ", shards: ", QuotedPath(data[i].pattern), "}"));
  }
  return absl::StrCat("[", absl::StrJoin(sources, ", "), "]");
}

// All samples of data that may have few.
std::string EvaluatedSamples(const FolderParts& parts, const FolderCounts& counts, const Sizes& sizes) {
  const bool counted = sizes.counted && counts.evaluation.size() == parts.evaluation.size();
  const int64_t fewest =  // with images of one token
      Sum(TokensOf(parts.evaluation, {}, 1)) / std::max<int64_t>(1, sizes.tokens);
  const int64_t samples = counted ? SamplesOf(counts.evaluation) : fewest;
  return samples > kMostEvaluated ? absl::StrCat(kMostEvaluated) : "all";
}

// These models with what overrides say of them.
absl::StatusOr<YamlNode> WithOverrides(const YamlNode& models, const std::vector<std::string>& overrides) {
  YamlNode recipe;
  recipe.kind = YamlNode::Kind::kMap;
  recipe.entries.push_back({"models", {}, models});
  if (absl::Status status = LayOverrides(overrides, recipe); !status.ok()) return status;
  return recipe.entries.front().value;
}

// The models of both folders. What no folder says of the projector is chosen as its kind says.
absl::StatusOr<YamlNode> ModelsOf(FolderParts& parts, const std::vector<std::string>& overrides,
                                  std::vector<std::string>& notes) {
  YamlNode models = std::move(parts.weights.models);
  if (parts.encoder) {
    const std::string language = models.entries.front().key;
    std::vector<YamlEntry> encoders = std::move(parts.encoder->models.entries);
    models.entries.insert(models.entries.begin(), encoders.begin(), encoders.end());
    ABSL_ASSIGN_OR_RETURN(const YamlNode whole, WithOverrides(models, overrides));
    for (size_t i = 0; i < encoders.size(); ++i) {
      YamlEntry& encoder = models.entries[i];
      YamlNode& model = encoder.value;
      if (model.style) {  // the remark that one has to be added
        YamlStyle style = *model.style;
        style.tail = {};
        model.style = std::make_shared<const YamlStyle>(std::move(style));
      }
      if (absl::Status status = ChooseProjector(whole, parts.asked, language, encoder); !status.ok()) return status;
      const int64_t hidden = NumberAt(parts.asked, absl::StrCat("models.", encoder.key, ".projector.hidden"),
                                      NumberAt(model, "projector.hidden", 0));
      const std::string wide = hidden > 0 ? absl::StrCat(", ", hidden, " wide inside,") : "";
      notes.push_back(absl::StrCat("the projector", wide, " begins with drawn weights: no folder has one"));
    }
  }
  std::string folders = Printable(parts.weights.path);
  if (parts.encoder) absl::StrAppend(&folders, " and ", Printable(parts.encoder->path));
  models.comments = std::make_shared<const YamlComments>(
      YamlComments{.blank = true,
                   .above = {absl::StrCat("# As config.json of ", folders,
                                          " has them: a comment says where each number came from.")}});
  for (size_t i = 0; i < models.entries.size(); ++i) {
    YamlNode& model = models.entries[i].value;
    YamlComments comments = model.comments ? *model.comments : YamlComments();
    comments.blank = i > 0;
    model.comments = std::make_shared<const YamlComments>(std::move(comments));
  }
  return models;
}

std::string InitializeText(const FolderParts& parts, const std::string& module) {
  if (!parts.encoder) return absl::StrCat("initialize={from: ", FolderPath(parts.weights.path), "}");
  return absl::StrCat("initialize={sources: [{for: language, from: ", FolderPath(parts.weights.path),
                      "}, {for: ", module, ".backbone, from: ", FolderPath(parts.encoder->path), "}, {for: ", module,
                      ".projection, from: drawn}]}");
}

std::vector<std::string> KeysOf(const FolderParts& parts, const Encoder& encoder, const FolderCounts& counts,
                                const Sizes& sizes) {
  const ImageProcessor& processor = encoder.processor;
  const bool projector_alone =
      parts.has_encoder() && IsAt(parts.asked, kLanguageTrain, kFrozen) && encoder.FrozenIn(parts);
  std::vector<std::string> keys = {
      absl::StrCat("batch.global_samples=", sizes.step), "batch.micro_samples=1",
      absl::StrCat("batch.sequence_length=", sizes.tokens), absl::StrCat("budget.train_samples=", sizes.samples),
      // Of a projector that begins with drawn weights, as LLaVA has it.
      projector_alone ? "budget.learning_rate.peak=1.0e-3" : "budget.learning_rate.peak=2.0e-5",
      projector_alone ? "budget.learning_rate.min=1.0e-4" : "budget.learning_rate.min=2.0e-6",
      absl::StrCat("budget.learning_rate.warmup_samples=", std::max<int64_t>(1, sizes.steps * 3 / 100) * sizes.step),
      absl::StrCat("budget.learning_rate.decay_samples=", sizes.samples), "budget.learning_rate.style=cosine",
      "budget.weight_decay.start=0.1", "budget.weight_decay.end=0.1", "optimizer.clip_grad_norm=1.0",
      "precision.params=bf16", "data.kind=sources", "data.seed=1234",
      absl::StrCat("data.sources=", SourcesText(parts.data, counts.data, sizes)), "data.tokenizer=ids",
      absl::StrCat("data.tokenizer_digest=", QuotedPath(parts.data.front().prepared->tokenizer_digest)),
      "data.long=cut", InitializeText(parts, encoder.module),
      absl::StrCat("checkpoint.every_steps=", std::max<int64_t>(1, sizes.steps / 10)), "checkpoint.keep_last=2"};
  if (parts.has_encoder()) {
    // Squares have one number of patches.
    if (processor.grid != "square") keys.push_back(absl::StrCat("data.max_patches=", sizes.patches));
    for (const std::string& key : {absl::StrCat("data.resize=", processor.resize),
                                   absl::StrCat("data.grid=", processor.grid), std::string("data.orientation=exif"),
                                   std::string("data.damaged=skip"), absl::StrCat(encoder.train(), "=", kFrozen)})
      keys.push_back(key);
    if (sizes.least_patches > 0) keys.push_back(absl::StrCat("data.min_patches=", sizes.least_patches));
  }
  if (!parts.evaluation.empty()) {
    keys.push_back(absl::StrCat("evaluation={every_samples: ", std::max<int64_t>(1, sizes.steps / 5) * sizes.step,
                                ", sets: [{name: held_out, samples: ", EvaluatedSamples(parts, counts, sizes),
                                ", sources: ", SourcesText(parts.evaluation, counts.evaluation, sizes), "}]}"));
  }
  return keys;
}

// Where the recipe's images have other bounds than the folder's processor, and nobody asked for them.
std::vector<std::string> BoundsNotes(const FolderParts& parts, const Encoder& encoder, const Sizes& sizes) {
  const ImageProcessor& processor = encoder.processor;
  if (!parts.has_encoder() || processor.grid == "square") return {};
  std::vector<std::string> notes;
  const auto patches = [&](int64_t pixels) { return pixels / encoder.sizes.patch / encoder.sizes.patch; };
  const int64_t least = patches(processor.least_pixels), most = patches(processor.most_pixels);
  if (most > sizes.patches && NodeAt(parts.asked, "data.max_patches") == nullptr)
    notes.push_back(absl::StrCat("images of more than ", WithCommas(sizes.patches), " patches become smaller, where ",
                                 "the processor of the folder takes ", WithCommas(most),
                                 ": data.max_patches=N takes others, if samples are long enough"));
  if (least > sizes.least_patches && NodeAt(parts.asked, "data.min_patches") == nullptr)
    notes.push_back(absl::StrCat("images of less than ", WithCommas(sizes.least_patches), " patches become larger, ",
                                 "where ", WithCommas(least), " are usual: none has more, by data.max_patches"));
  return notes;
}

// What learns, and how to have it otherwise.
std::vector<std::string> TrainingNotes(const FolderParts& parts, const Encoder& encoder) {
  if (!parts.has_encoder()) return {};
  const bool language = !IsAt(parts.asked, kLanguageTrain, kFrozen);
  if (!encoder.FrozenIn(parts)) return {};
  const std::string trains = absl::StrCat(encoder.train(), "=trained trains it");
  if (language) return {absl::StrCat("the encoder is frozen: ", trains)};
  return {absl::StrCat("the encoder and the language model are frozen, and the projector alone is trained: ", trains)};
}

// What the index of this recipe's data counts, as a recipe that is written to `file`. One that cannot be read is told
// of later.
FolderCounts CountsOf(const StartedRecipe& started, const std::vector<std::string>& overrides,
                      const std::string& file) {
  Diagnostics told_later;
  const absl::StatusOr<std::string> text = TextOfStarted(started, {}, "", file);
  std::optional<YamlNode> tree = text.ok() ? RecipeTreeOfText(*text, file, told_later) : std::nullopt;
  const std::optional<Recipe> recipe = tree ? ReadRecipe(*tree, overrides, told_later) : std::nullopt;
  return recipe && recipe->damaged.empty() && !told_later.has_errors() ? CountsAtHand(*recipe) : FolderCounts();
}

absl::Status Together(const std::vector<std::string>& problems) {
  return absl::FailedPreconditionError(absl::StrJoin(problems, "\nerror: "));
}

}  // namespace

absl::StatusOr<FolderRecipe> StartFromFolders(const FolderWords& words, int64_t gpus,
                                              const std::vector<std::string>& overrides) {
  FolderParts parts;
  ABSL_ASSIGN_OR_RETURN(parts.weights, ReadModelFolder(words.weights));
  if (!words.encoder.empty()) {
    ABSL_ASSIGN_OR_RETURN(parts.encoder, ReadModelFolder(words.encoder));
  }
  if (const auto problems = WrongFolders(parts); !problems.empty()) return Together(problems);
  ABSL_ASSIGN_OR_RETURN(parts.data, ReadPreparedShards("--data", words.data, words.weights));
  if (!words.evaluation.empty()) {
    ABSL_ASSIGN_OR_RETURN(parts.evaluation, ReadPreparedShards("--evaluation", words.evaluation, words.weights));
  }
  parts.asked.kind = YamlNode::Kind::kMap;
  if (absl::Status status = LayOverrides(overrides, parts.asked); !status.ok()) return status;
  if (const auto problems = WrongShards(parts); !problems.empty()) return Together(problems);

  FolderRecipe recipe{.name = parts.weights.name};
  std::vector<std::string>& notes = recipe.notes;
  if (parts.weights.digest.empty()) {
    notes.push_back(absl::StrCat(Printable(parts.weights.path), " has no ", kTokenizerFile,
                                 ": whether the ids of the shards are its own is not checked"));
  }
  YamlEntry models{"models", {}, {}};
  ABSL_ASSIGN_OR_RETURN(models.value, ModelsOf(parts, overrides, notes));
  ABSL_ASSIGN_OR_RETURN(const YamlNode whole, WithOverrides(models.value, overrides));
  Encoder encoder;
  for (const YamlEntry& model : models.value.entries) {
    if (IsLanguageModel(model.value)) continue;
    encoder.module = EncoderModule(model.value);
    // The processor is of the folder as it is.
    encoder.sizes = SizesOfEncoder(model.value);
    const std::string& folder = parts.encoder ? parts.encoder->path : parts.weights.path;
    ABSL_ASSIGN_OR_RETURN(encoder.processor, ReadImageProcessor(folder, encoder.sizes, parts.asked));
    if (const YamlEntry* as_asked = whole.Find(model.key)) encoder.sizes = SizesOfEncoder(as_asked->value);
    notes.insert(notes.end(), encoder.processor.notes.begin(), encoder.processor.notes.end());
  }
  FolderCounts counts;
  Sizes sizes;
  // What is counted may change how long samples are, and these are other samples then.
  constexpr int kPasses = 3;
  for (int pass = 0; pass < kPasses; ++pass) {
    sizes = SizesFor(parts, encoder, counts, gpus);
    recipe.started = StartWithModels(recipe.name, models, KeysOf(parts, encoder, counts, sizes), gpus);
    if (sizes.counted) break;
    FolderCounts now = CountsOf(recipe.started, overrides, words.file);
    counts.index = now.index;
    if (now.sequence == 0) break;
    counts = std::move(now);
  }
  std::string about = absl::StrCat("an epoch of the data is ", sizes.counted ? "" : "about ",
                                   Counted(sizes.epoch, "sample"), " of ", WithCommas(sizes.tokens), " tokens");
  if (sizes.counted) {
    absl::StrAppend(&about, ", as its index counts");
  } else if (sizes.image_tokens > 0) {
    absl::StrAppend(&about, ", if every image has ", WithCommas(sizes.image_tokens),
                    ": once `plan data index` has counted them",
                    counts.index.empty() ? "" : absl::StrCat(" in ", Printable(counts.index)),
                    ", the same command with --replace knows it");
  }
  notes.push_back(std::move(about));
  if (!counts.problem.empty())
    notes.push_back(absl::StrCat("what the index counts cannot be kept, so samples count as full of images: ",
                                 Printable(counts.problem)));
  for (std::string& note : BoundsNotes(parts, encoder, sizes)) notes.push_back(std::move(note));
  for (std::string& note : TrainingNotes(parts, encoder)) notes.push_back(std::move(note));
  return recipe;
}

}  // namespace planwright
