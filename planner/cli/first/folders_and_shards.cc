#include "planner/cli/first/folders_and_shards.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "planner/base/digest/sha256.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/base/process/prepare_command.h"
#include "planner/base/text/bug.h"
#include "planner/base/text/utf8.h"
#include "planner/data/samples/shard_list.h"
#include "planner/exchange/config_file.h"
#include "planner/exchange/import_folder.h"
#include "planner/plan/source_rules.h"
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
  const nlohmann::ordered_json language = LanguageOfConfig(*config);
  const auto found = language.find("max_position_embeddings");
  return found != language.end() && found->is_number_unsigned() ? found->get<int64_t>() : 0;
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

// The option that shards are named by, and what a command needs that makes them.
struct AskedFor {
  std::string option, weights;

  // `out`: what they are to be called; empty: a name that says what they are.
  std::string HowToPrepare(const std::string& input, const std::string& out = "") const {
    const std::string name = !out.empty() ? out : option == "--data" ? "shards" : "held_out";
    return absl::StrCat("shards of ids are made first: `", PrepareCommand(), " --tokenizer ", Printable(weights),
                        " -o ", Printable(name), " ", Printable(input), "` (docs/training/prepare_data.md)");
  }
};

// A picture of a folder, or of a folder in it, as those of classes are; empty: it has none among its first entries.
std::string PictureIn(const std::string& folder) {
  constexpr int kMostLooked = 1000;
  int looked = 0;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && entry != fs::recursive_directory_iterator() && ++looked <= kMostLooked; entry.increment(error)) {
    if (entry.depth() > 0) entry.disable_recursion_pending();
    const std::string ending = absl::AsciiStrToLower(entry->path().extension().string());
    for (const char* known : {".jpg", ".jpeg", ".png", ".webp"}) {
      if (ending == known) return entry->path().lexically_normal().string();
    }
  }
  return "";
}

// What is wrong with a folder that `prepare` has not made.
std::string NoShardsIn(const std::string& folder, const AskedFor& asked) {
  const std::string picture = PictureIn(folder);
  if (picture.empty()) return absl::StrCat(" has no ", kPreparedFile, ": ", asked.HowToPrepare(folder));
  const nlohmann::ordered_json line = {
      {"images", {picture}},
      {"messages",
       {{{"role", "user"}, {"content", "<image>\nWhat is this?"}}, {{"role", "assistant"}, {"content", "..."}}}}};
  return absl::StrCat(
      " is a folder of pictures, and pictures alone are no documents: write a file with a line for "
      "each, such as\n  ",
      Printable(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)),
      "\n(docs/training/prepare_data.md#inputs); then ",
      asked.HowToPrepare(asked.option == "--data" ? "captions.jsonl" : "held_out.jsonl"));
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

// The name of a folder as one of a source: what such a name cannot have becomes `_`, a letter of several bytes one.
std::string SourceNameOf(const std::string& folder) {
  constexpr size_t kLongest = 60;  // a second one of the name gets a number
  std::string name;
  for (const char c : folder) {
    const bool more_of_letter = (static_cast<unsigned char>(c) & 0xC0) == 0x80;
    if (more_of_letter) continue;
    const bool good = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
    name += good ? c : '_';
  }
  name.resize(std::min(name.size(), kLongest));
  if (!name.empty() && name[0] == '.') name[0] = '_';
  return IsSourceName(name) ? name : "shards";
}

// A source of `word`, which `option` names.
absl::StatusOr<PreparedShards> ReadShards(const std::string& option, const std::string& word,
                                          const std::string& weights) {
  const AskedFor asked{option, weights};
  const std::string named = absl::StrCat("option `", option, "`: ", Printable(word));
  if (word.empty()) return absl::InvalidArgumentError(absl::StrCat("option `", option, "` has an empty name"));
  std::error_code error;
  PreparedShards shards{.pattern = word};
  if (fs::is_directory(word, error)) {
    if (!fs::exists(fs::path(word) / kPreparedFile, error))
      return absl::InvalidArgumentError(absl::StrCat(named, NoShardsIn(word, asked)));
    if (word.find_first_of("*?[{}\\") != std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat(named, " has one of * ? [ { } \\ in its name, which are patterns where a recipe names shards: ",
                       "rename the folder, or give a link to it"));
    }
    shards.pattern = (fs::path(word) / "*.tar").string();
  } else if (!absl::EndsWith(word, ".tar") && word.find_first_of("*?[{") == std::string::npos) {
    return absl::InvalidArgumentError(fs::exists(word, error)
                                          ? absl::StrCat(named, " is no tar file: ", asked.HowToPrepare(word))
                                          : absl::StrCat(named, " is not there: ", asked.HowToPrepare("INPUT", word)));
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
                                                   Printable(files->front()), ": ", asked.HowToPrepare("INPUT")));
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
  shards.name = SourceNameOf(fs::path(*folders.begin()).filename().string());
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
