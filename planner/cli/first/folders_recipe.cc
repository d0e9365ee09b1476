#include "planner/cli/first/folders_recipe.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "planner/base/digest/sha256.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/bug.h"
#include "planner/base/text/status_macros.h"
#include "planner/base/text/utf8.h"
#include "planner/data/samples/prepared.h"
#include "planner/data/samples/shard_list.h"
#include "planner/exchange/config_file.h"
#include "planner/exchange/import_folder.h"
#include "planner/recipe/model_facts.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/recipe/scalar.h"
#include "planner/recipe/tree_edits.h"
#include "planner/recipe/yaml/yaml_comments.h"
#include "planner/recipe/yaml/yaml_text.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

constexpr char kTokenizerFile[] = "tokenizer.json";
constexpr size_t kLargestTokenizer = size_t{1} << 28;

// The longest sample that is chosen: more tokens need context parallelism or much memory. Overrides may ask for more.
constexpr int64_t kMostTokens = 8192;
// A photo of 1024 x 1024 pixels, of which text of usual size can be read.
constexpr int64_t kMostPatches = 4096;
// Samples of a step, if the data has enough for kSteps of them.
constexpr int64_t kMostSamples = 256, kSteps = 200, kFewestSteps = 20;

bool IsLanguage(const YamlNode& model) {
  const YamlEntry* kind = model.Find("kind");
  const ModelStatement* statement = kind ? StatementOf(kind->value.text) : nullptr;
  return statement && statement->carries_loss;
}

int64_t NumberAt(const YamlNode& tree, const std::string& path, int64_t otherwise) {
  const YamlNode* node = NodeAt(tree, path);
  int64_t number = otherwise;
  if (node) ReadInteger(*node, &number, nullptr);
  return number;
}

// ---- Folders.

struct Folder {
  std::string path, name;
  YamlNode models;  // with comments
  std::vector<std::string> languages, encoders;
  int64_t image_token = -1;  // that its config.json names
  int64_t positions = 0;     // that it was trained for; 0: config.json does not say it
  std::string digest;        // of its tokenizer.json; empty: it has none
};

// How many positions config.json names, of the model or of its language model.
int64_t PositionsOf(const std::string& folder) {
  const absl::StatusOr<nlohmann::ordered_json> config = ReadConfigFile(folder);
  if (!config.ok()) return 0;
  const auto in = [](const nlohmann::ordered_json& json) -> int64_t {
    const auto found = json.find("max_position_embeddings");
    return found != json.end() && found->is_number_unsigned() ? found->get<int64_t>() : 0;
  };
  for (const char* part : {"text_config", "llm_config"}) {
    if (const auto found = config->find(part); found != config->end() && found->is_object()) return in(*found);
  }
  return in(*config);
}

absl::StatusOr<Folder> ReadFolderOf(const std::string& path) {
  Folder folder{.path = path};
  folder.name = fs::path(path + "/.").lexically_normal().parent_path().filename().string();
  const absl::StatusOr<ImportedModel> imported = ImportFolder(path, {});
  if (!imported.ok()) return imported.status();
  if (!imported->findings.problems.empty()) {
    std::string text = absl::StrCat(Printable(path), " cannot be expressed as a recipe (docs/hugging_face.md):");
    for (const Finding& problem : imported->findings.problems) {
      absl::StrAppend(&text, "\n  ", Printable(problem.where), problem.value.empty() ? "" : " = ",
                      Printable(problem.value), " ", Printable(problem.message));
    }
    return absl::FailedPreconditionError(text);
  }
  std::optional<YamlNode> tree = ParseValue(imported->text);
  Require(tree && ReadComments(imported->text, path, *tree).ok() && tree->Find("models"), "an import can be read");
  folder.image_token = NumberAt(*tree, "data.image_token", -1);
  for (YamlEntry& entry : tree->entries) {
    if (entry.key == "models") folder.models = std::move(entry.value);
  }
  for (const YamlEntry& model : folder.models.entries)
    (IsLanguage(model.value) ? folder.languages : folder.encoders).push_back(model.key);
  folder.positions = PositionsOf(path);
  const std::string tokenizer = path + "/" + kTokenizerFile;
  std::error_code error;
  if (fs::exists(tokenizer, error)) {
    const absl::StatusOr<std::string> text = ReadWholeFile(tokenizer, kLargestTokenizer);
    if (!text.ok()) return text.status();
    folder.digest = Sha256Hex(*text);
  }
  return folder;
}

// ---- Shards.

std::string HowToPrepare(const std::string& weights, const std::string& input) {
  return absl::StrCat("shards of ids are made first: `./dev prepare --tokenizer ", Printable(weights), " -o shards ",
                      Printable(input), "` (docs/training/prepare_data.md)");
}

// How many images the documents of a prepared.json have; 0: none, or it does not count them.
int64_t ImagesOf(const Prepared& prepared) {
  const absl::StatusOr<std::string> text = ReadWholeFile(prepared.path, kPreparedJson.bytes);
  if (!text.ok()) return 0;
  const absl::StatusOr<nlohmann::json> json = ParseJson(*text, kPreparedJson);
  if (!json.ok() || !json->is_object()) return 0;
  const auto found = json->find("images");
  return found != json->end() && found->is_number_unsigned() ? found->get<int64_t>() : 0;
}

struct Shards {
  std::string pattern, name;
  std::shared_ptr<const Prepared> prepared;
  int64_t documents = 0, tokens = 0, images = 0;
};

// The parts of a text between its commas, but for those inside of braces.
std::vector<std::string> PatternsOf(const std::string& text) {
  std::vector<std::string> patterns(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (c == ',' && depth <= 0) {
      patterns.emplace_back();
    } else {
      patterns.back() += c;
    }
  }
  return patterns;
}

// A source of `word`, which `option` names.
absl::StatusOr<Shards> ReadShards(const std::string& option, const std::string& word, const std::string& weights) {
  const std::string named = absl::StrCat("option `", option, "`: ", Printable(word));
  if (word.empty()) return absl::InvalidArgumentError(absl::StrCat("option `", option, "` has an empty name"));
  std::error_code error;
  Shards shards{.pattern = word};
  if (fs::is_directory(word, error)) {
    if (!fs::exists(fs::path(word) / kPreparedFile, error))
      return absl::InvalidArgumentError(
          absl::StrCat(named, " has no ", kPreparedFile, ": ", HowToPrepare(weights, word)));
    shards.pattern = (fs::path(word) / "*.tar").string();
  } else if (!absl::EndsWith(word, ".tar") && word.find_first_of("*?[{") == std::string::npos) {
    const char* what = fs::exists(word, error) ? " is no tar file: " : " is not there: ";
    return absl::InvalidArgumentError(absl::StrCat(named, what, HowToPrepare(weights, word)));
  }
  const absl::StatusOr<std::vector<std::string>> files = ExpandShards("", shards.pattern);
  if (!files.ok()) return absl::InvalidArgumentError(absl::StrCat(named, ": ", files.status().message()));
  std::set<std::string> folders;
  for (const std::string& file : *files) {
    if (!fs::exists(file, error))
      return absl::InvalidArgumentError(absl::StrCat(named, ": there is no file ", Printable(file)));
    folders.insert(fs::path(file).parent_path().string());
  }
  if (folders.size() != 1)
    return absl::InvalidArgumentError(
        absl::StrCat(named, " is shards of ", folders.size(), " folders: name each, with commas between them"));
  absl::StatusOr<std::optional<Prepared>> prepared = FindPrepared(files->front());
  if (!prepared.ok()) return prepared.status();
  if (!prepared->has_value())
    return absl::InvalidArgumentError(absl::StrCat(named, ": there is no ", kPreparedFile, " beside ",
                                                   Printable(files->front()), ": ", HowToPrepare(weights, "INPUT")));
  shards.prepared = std::make_shared<const Prepared>(*std::move(*prepared));
  int64_t all = 0;
  for (const auto& [name, shard] : shards.prepared->shards) all += shard.documents;
  for (const std::string& file : *files) {
    const auto found = shards.prepared->shards.find(fs::path(file).filename().string());
    if (found == shards.prepared->shards.end())
      return absl::FailedPreconditionError(absl::StrCat(named, ": ", Printable(shards.prepared->path),
                                                        " does not list ", Printable(file),
                                                        ": name the shards that were prepared together"));
    shards.documents += found->second.documents, shards.tokens += found->second.tokens;
  }
  if (shards.documents == 0) return absl::FailedPreconditionError(absl::StrCat(named, " has no documents"));
  // Of a part of the shards images are not counted: as many as their documents have of all.
  shards.images = static_cast<int64_t>(static_cast<double>(ImagesOf(*shards.prepared)) *
                                       static_cast<double>(shards.documents) / static_cast<double>(all));
  shards.name = fs::path(*folders.begin()).filename().string();
  return shards;
}

absl::StatusOr<std::vector<Shards>> ReadAllShards(const std::string& option, const std::string& text,
                                                  const std::string& weights) {
  std::vector<Shards> all;
  std::map<std::string, int> names;
  for (const std::string& word : PatternsOf(text)) {
    absl::StatusOr<Shards> shards = ReadShards(option, word, weights);
    if (!shards.ok()) return shards.status();
    if (const int times = names[shards->name]++; times > 0) absl::StrAppend(&shards->name, "_", times + 1);
    all.push_back(*std::move(shards));
  }
  return all;
}

// ---- Whether they fit each other: a line for each mistake.

struct Parts {
  Folder weights;
  std::optional<Folder> encoder;
  std::vector<Shards> data, evaluation;
  YamlNode asked;  // what overrides say

  bool has_encoder() const { return encoder || !weights.encoders.empty(); }
  // All sources.
  std::vector<const Shards*> all() const {
    std::vector<const Shards*> sources;
    for (const auto* shards : {&data, &evaluation}) {
      for (const Shards& source : *shards) sources.push_back(&source);
    }
    return sources;
  }
};

std::vector<std::string> WrongFolders(const Parts& parts) {
  const Folder& weights = parts.weights;
  std::vector<std::string> problems;
  if (weights.languages.empty()) {
    problems.push_back(absl::StrCat("option `--weights`: ", Printable(weights.path), " is an encoder (",
                                    absl::StrJoin(weights.encoders, ", "),
                                    ") without a language model: name it by "
                                    "--encoder, and a language model's folder by --weights"));
  }
  if (!parts.encoder) return problems;
  const Folder& encoder = *parts.encoder;
  if (encoder.encoders.empty()) {
    problems.push_back(absl::StrCat("option `--encoder`: ", Printable(encoder.path), " is a language model (",
                                    absl::StrJoin(encoder.languages, ", "),
                                    ") and no encoder: name a folder of "
                                    "model_type radio, such as a C-RADIO (docs/hugging_face.md)"));
  } else if (!encoder.languages.empty()) {
    problems.push_back(absl::StrCat("option `--encoder`: ", Printable(encoder.path),
                                    " has a language model, too: name it by --weights, without --encoder"));
  }
  if (!weights.languages.empty() && !weights.encoders.empty()) {
    problems.push_back(absl::StrCat("option `--encoder`: ", Printable(weights.path), " has an encoder of its own (",
                                    absl::StrJoin(weights.encoders, ", "), "): leave --encoder out"));
  }
  return problems;
}

std::vector<std::string> WrongShards(const Parts& parts) {
  std::vector<std::string> problems;
  const Folder& weights = parts.weights;
  const std::string& language = weights.languages.front();
  const int64_t own = NumberAt(weights.models, absl::StrCat(language, ".vocabulary"), 0);
  const int64_t vocabulary = NumberAt(parts.asked, absl::StrCat("models.", language, ".vocabulary"), own);
  const YamlNode* pinned = NodeAt(parts.asked, "data.tokenizer_digest");
  std::set<std::string> seen;
  for (const Shards* shards : parts.all()) {
    const Prepared& prepared = *shards->prepared;
    if (!seen.insert(prepared.path).second) continue;
    const std::string path = Printable(prepared.path),
                      again = absl::StrCat("prepare the data again with --tokenizer ", Printable(weights.path));
    if (!weights.digest.empty() && prepared.tokenizer_digest != weights.digest && !pinned) {
      problems.push_back(absl::StrCat(
          path, ": its ids were made with ", Printable(prepared.tokenizer), " ",
          prepared.tokenizer_digest.substr(0, 12), ", and ", kTokenizerFile, " of ", Printable(weights.path), " is ",
          weights.digest.substr(0, 12), ": ", again,
          "; if its ids are those of the model nevertheless, add data.tokenizer_digest=", prepared.tokenizer_digest));
    }
    if (prepared.vocabulary > vocabulary) {
      problems.push_back(absl::StrCat(path, ": its ids need a vocabulary of ", prepared.vocabulary, ", and ",
                                      Printable(weights.path), " has ", vocabulary, ": ", again,
                                      "; or give the model rows that are drawn: models.", language,
                                      ".vocabulary=", prepared.vocabulary));
    }
    if (parts.has_encoder() && shards->images > 0 && prepared.image < 0)
      problems.push_back(absl::StrCat(path, ": it names no image token: prepare the data again with --image-token"));
    if (prepared.image >= 0 && weights.image_token >= 0 && prepared.image != weights.image_token) {
      problems.push_back(absl::StrCat(path, ": its image token is ", prepared.image, ", and that of ",
                                      Printable(weights.path), " ", weights.image_token,
                                      ": prepare the data again with --image-token ", weights.image_token));
    }
    if (!parts.has_encoder() && shards->images > 0) {
      problems.push_back(absl::StrCat(path, ": its documents have ", Counted(ImagesOf(prepared), "image"), ", and ",
                                      Printable(weights.path), " has no encoder: name one by --encoder"));
    }
  }
  if (parts.has_encoder()) {
    const auto data = parts.all();
    if (std::all_of(data.begin(), data.end(), [](const Shards* shards) { return shards->prepared->image < 0; }))
      problems.push_back(absl::StrCat(Printable(data.front()->prepared->path),
                                      ": an encoder needs an image token, and it names none: prepare the data again "
                                      "with --image-token"));
  }
  std::sort(problems.begin(), problems.end());
  problems.erase(std::unique(problems.begin(), problems.end()), problems.end());
  return problems;
}

// ---- Sizes that follow from the data.

int64_t PowerOfTwoFrom(int64_t least) {
  int64_t power = 1;
  while (power < least) power *= 2;
  return power;
}

struct Sizes {
  int64_t patches = 0;       // of an image at most; 0: no encoder
  int64_t image_tokens = 0;  // of such an image
  int64_t tokens = 0;        // of a sample
  int64_t epoch = 1;         // samples of the data, about
  int64_t step = 1;          // samples of a step
  int64_t steps = 1;
};

// With every image as large as one may be: how large they are, only an index knows.
int64_t TokensOf(const std::vector<Shards>& data, int64_t image_tokens) {
  int64_t tokens = 0;
  for (const Shards& shards : data) tokens += shards.tokens + shards.images * std::max<int64_t>(0, image_tokens - 1);
  return std::max<int64_t>(1, tokens);
}

Sizes SizesFor(const Parts& parts, const YamlNode& models, int64_t gpus) {
  Sizes sizes;
  for (const YamlEntry& model : models.entries) {
    if (IsLanguage(model.value)) continue;
    const int64_t patch = std::max<int64_t>(1, NumberAt(model.value, "patch", 16));
    const int64_t shuffle = std::max<int64_t>(1, NumberAt(model.value, "pixel_shuffle", 2));
    const int64_t side = std::max<int64_t>(1, NumberAt(model.value, "max_image", 1024) / patch);
    // A picture four times as wide as it is high has room in the table of positions.
    const int64_t fits = std::max(shuffle * shuffle, std::min(kMostPatches, side * side / 4));
    sizes.patches = NumberAt(parts.asked, "data.max_patches", fits);
    sizes.image_tokens = sizes.patches / (shuffle * shuffle);
  }
  int64_t documents = 0;
  for (const Shards& shards : parts.data) documents += shards.documents;
  const int64_t all = TokensOf(parts.data, sizes.image_tokens);
  // Room for four documents, and for the largest image with a text.
  int64_t room = PowerOfTwoFrom(std::max({int64_t{64}, 4 * (all / documents), sizes.image_tokens * 5 / 4}));
  room = std::min(room, kMostTokens);
  while (parts.weights.positions > 0 && room > parts.weights.positions && room > 1) room /= 2;
  sizes.tokens = NumberAt(parts.asked, "batch.sequence_length", room);
  sizes.epoch = std::max<int64_t>(1, (all + sizes.tokens - 1) / std::max<int64_t>(1, sizes.tokens));
  int64_t step = gpus;
  while (2 * step <= kMostSamples && sizes.epoch / (2 * step) >= kSteps) step *= 2;
  sizes.step = std::max<int64_t>(1, NumberAt(parts.asked, "batch.global_samples", step));
  sizes.steps = std::max(kFewestSteps, sizes.epoch / sizes.step);
  return sizes;
}

// ---- The recipe.

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

std::string SourcesText(const std::vector<Shards>& data, int64_t image_tokens) {
  std::vector<std::string> sources;
  for (const Shards& shards : data) {
    // As much of each as there is.
    const std::string weight = data.size() > 1 ? absl::StrCat(", weight: ", TokensOf({shards}, image_tokens)) : "";
    sources.push_back(absl::StrCat("{name: ", FlowText(ScalarNode(shards.name, {}, !IsWord(shards.name))),
                                   ", kind: webdataset", weight, ", shards: ", QuotedPath(shards.pattern), "}"));
  }
  return absl::StrCat("[", absl::StrJoin(sources, ", "), "]");
}

// The models of both folders. What no folder says of the projector is chosen.
YamlNode ModelsOf(Parts& parts, std::vector<std::string>& notes) {
  YamlNode models = std::move(parts.weights.models);
  if (parts.encoder) {
    std::vector<YamlEntry> encoders = std::move(parts.encoder->models.entries);
    for (YamlEntry& encoder : encoders) {
      YamlNode& model = encoder.value;
      if (model.Find("projector")) continue;
      if (model.style) {  // the remark that one has to be added
        YamlStyle style = *model.style;
        style.tail = {};
        model.style = std::make_shared<const YamlStyle>(std::move(style));
      }
      constexpr int64_t kShuffle = 2;
      // As the published Omni model has it: four times its input.
      const int64_t hidden = 4 * kShuffle * kShuffle * NumberAt(model, "hidden", 1);
      Require(LayOverrides({absl::StrCat("pixel_shuffle=", kShuffle), absl::StrCat("projector.hidden=", hidden)}, model)
                  .ok(),
              "sizes of a projector are overrides");
      notes.push_back(absl::StrCat("the projector, ", hidden,
                                   " wide inside, begins with drawn weights: no folder "
                                   "has one"));
    }
    models.entries.insert(models.entries.begin(), std::make_move_iterator(encoders.begin()),
                          std::make_move_iterator(encoders.end()));
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

std::string InitializeText(const Parts& parts, const std::string& module) {
  if (!parts.encoder) return absl::StrCat("initialize={from: ", FolderPath(parts.weights.path), "}");
  return absl::StrCat("initialize={sources: [{for: language, from: ", FolderPath(parts.weights.path),
                      "}, {for: ", module, ".backbone, from: ", FolderPath(parts.encoder->path), "}, {for: ", module,
                      ".projection, from: drawn}]}");
}

std::vector<std::string> KeysOf(const Parts& parts, const Sizes& sizes) {
  constexpr char kEncoder[] = "radio_encoder";
  const int64_t samples = sizes.steps * sizes.step;
  std::vector<std::string> keys = {
      absl::StrCat("batch.global_samples=", sizes.step),
      "batch.micro_samples=1",
      absl::StrCat("batch.sequence_length=", sizes.tokens),
      absl::StrCat("budget.train_samples=", samples),
      "budget.learning_rate.peak=2.0e-5",
      "budget.learning_rate.min=2.0e-6",
      absl::StrCat("budget.learning_rate.warmup_samples=", std::max<int64_t>(1, sizes.steps * 3 / 100) * sizes.step),
      absl::StrCat("budget.learning_rate.decay_samples=", samples),
      "budget.learning_rate.style=cosine",
      "budget.weight_decay.start=0.1",
      "budget.weight_decay.end=0.1",
      "optimizer.clip_grad_norm=1.0",
      "precision.params=bf16",
      "data.kind=sources",
      "data.seed=1234",
      absl::StrCat("data.sources=", SourcesText(parts.data, sizes.image_tokens)),
      "data.tokenizer=ids",
      absl::StrCat("data.tokenizer_digest=", QuotedPath(parts.data.front().prepared->tokenizer_digest)),
      "data.long=cut",
      InitializeText(parts, kEncoder),
      absl::StrCat("checkpoint.every_steps=", std::max<int64_t>(1, sizes.steps / 10)),
      "checkpoint.keep_last=2"};
  if (parts.has_encoder()) {
    for (const std::string& key :
         {absl::StrCat("data.max_patches=", sizes.patches), std::string("data.resize=bicubic"),
          std::string("data.grid=round_half_even"), std::string("data.orientation=exif"),
          std::string("data.damaged=skip"), absl::StrCat("modules.", kEncoder, ".train.backbone=frozen")})
      keys.push_back(key);
  }
  if (!parts.evaluation.empty()) {
    const int64_t in_set = (TokensOf(parts.evaluation, sizes.image_tokens) + sizes.tokens - 1) / sizes.tokens;
    keys.push_back(absl::StrCat("evaluation={every_samples: ", std::max<int64_t>(1, sizes.steps / 5) * sizes.step,
                                ", sets: [{name: held_out, samples: ", std::min<int64_t>(in_set, 64),
                                ", sources: ", SourcesText(parts.evaluation, sizes.image_tokens), "}]}"));
  }
  return keys;
}

absl::Status Together(const std::vector<std::string>& problems) {
  return absl::FailedPreconditionError(absl::StrJoin(problems, "\nerror: "));
}

}  // namespace

absl::StatusOr<FolderRecipe> StartFromFolders(const FolderWords& words, int64_t gpus,
                                              const std::vector<std::string>& overrides) {
  Parts parts;
  ABSL_ASSIGN_OR_RETURN(parts.weights, ReadFolderOf(words.weights));
  if (!words.encoder.empty()) {
    ABSL_ASSIGN_OR_RETURN(parts.encoder, ReadFolderOf(words.encoder));
  }
  if (const auto problems = WrongFolders(parts); !problems.empty()) return Together(problems);
  ABSL_ASSIGN_OR_RETURN(parts.data, ReadAllShards("--data", words.data, words.weights));
  if (!words.evaluation.empty()) {
    ABSL_ASSIGN_OR_RETURN(parts.evaluation, ReadAllShards("--evaluation", words.evaluation, words.weights));
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
  YamlEntry models{"models", {}, ModelsOf(parts, notes)};
  const Sizes sizes = SizesFor(parts, models.value, gpus);
  std::string about = absl::StrCat("an epoch of the data is about ", Counted(sizes.epoch, "sample"), " of ",
                                   WithCommas(sizes.tokens), " tokens");
  if (sizes.image_tokens > 0) absl::StrAppend(&about, ", if every image has ", WithCommas(sizes.image_tokens));
  notes.push_back(std::move(about));
  if (parts.has_encoder())
    notes.push_back("the encoder is frozen: modules.radio_encoder.train.backbone=trained trains it");
  recipe.started = StartWithModels(recipe.name, std::move(models), KeysOf(parts, sizes), gpus);
  return recipe;
}

}  // namespace planwright
