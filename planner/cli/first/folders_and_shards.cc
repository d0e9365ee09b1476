#include "planner/cli/first/folders_and_shards.h"

#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "planner/base/digest/sha256.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/bug.h"
#include "planner/base/text/utf8.h"
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

namespace fs = std::filesystem;

bool IsLanguageModel(const YamlNode& model) {
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

bool IsAt(const YamlNode& tree, const std::string& path, std::string_view word) {
  const YamlNode* node = NodeAt(tree, path);
  return node && node->is_scalar() && node->text == word;
}

namespace {

constexpr size_t kLargestTokenizer = size_t{1} << 28;

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

}  // namespace

absl::StatusOr<ModelFolder> ReadModelFolder(const std::string& path) {
  ModelFolder folder{.path = path};
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
    (IsLanguageModel(model.value) ? folder.languages : folder.encoders).push_back(model.key);
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

int64_t ImagesOf(const Prepared& prepared) {
  const absl::StatusOr<std::string> text = ReadWholeFile(prepared.path, kPreparedJson.bytes);
  if (!text.ok()) return 0;
  const absl::StatusOr<nlohmann::json> json = ParseJson(*text, kPreparedJson);
  if (!json.ok() || !json->is_object()) return 0;
  const auto found = json->find("images");
  return found != json->end() && found->is_number_unsigned() ? found->get<int64_t>() : 0;
}

namespace {

std::string HowToPrepare(const std::string& weights, const std::string& input) {
  return absl::StrCat("shards of ids are made first: `./dev prepare --tokenizer ", Printable(weights), " -o shards ",
                      Printable(input), "` (docs/training/prepare_data.md)");
}

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
absl::StatusOr<PreparedShards> ReadShards(const std::string& option, const std::string& word,
                                          const std::string& weights) {
  const std::string named = absl::StrCat("option `", option, "`: ", Printable(word));
  if (word.empty()) return absl::InvalidArgumentError(absl::StrCat("option `", option, "` has an empty name"));
  std::error_code error;
  PreparedShards shards{.pattern = word};
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

}  // namespace

absl::StatusOr<std::vector<PreparedShards>> ReadPreparedShards(const std::string& option, const std::string& text,
                                                               const std::string& weights) {
  std::vector<PreparedShards> all;
  std::map<std::string, int> names;
  for (const std::string& word : PatternsOf(text)) {
    absl::StatusOr<PreparedShards> shards = ReadShards(option, word, weights);
    if (!shards.ok()) return shards.status();
    if (const int times = names[shards->name]++; times > 0) absl::StrAppend(&shards->name, "_", times + 1);
    all.push_back(*std::move(shards));
  }
  return all;
}

std::vector<const PreparedShards*> FolderParts::all() const {
  std::vector<const PreparedShards*> sources;
  for (const auto* shards : {&data, &evaluation}) {
    for (const PreparedShards& source : *shards) sources.push_back(&source);
  }
  return sources;
}

}  // namespace planwright
