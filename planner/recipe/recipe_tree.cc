#include "planner/recipe/recipe_tree.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/recipe/meant_file.h"
#include "planner/recipe/meant_text.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/scalar.h"
#include "planner/recipe/tree_edits.h"

namespace planwright {
namespace {

constexpr int kMostFiles = 64;  // per recipe; a file that is extended twice counts twice
constexpr size_t kMostOverrides = 1000;

// The content of a regular file, or its first kLargestRecipe + 1 bytes if it is larger. Folders, pipes and devices are
// refused.
absl::StatusOr<std::string> ReadRecipeFile(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return absl::NotFoundError("there is no such file");
  if (!fs::exists(status)) return absl::FailedPreconditionError(error.message());
  if (fs::is_directory(status)) return absl::FailedPreconditionError("it is a folder");
  if (!fs::is_regular_file(status)) return absl::FailedPreconditionError("it is not a plain file");
  // Some files of /proc look like regular files but block forever: with O_NONBLOCK reading them fails instead.
  const int file = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return absl::PermissionDeniedError(std::strerror(errno));
  std::string text;
  char chunk[1 << 14];
  ssize_t count = 1;
  while (count > 0 && text.size() <= kLargestRecipe) {  // one byte more than allowed, to notice that there is more
    count = read(file, chunk, std::min(sizeof chunk, kLargestRecipe + 1 - text.size()));
    if (count > 0) text.append(chunk, static_cast<size_t>(count));
  }
  close(file);
  if (count < 0) return absl::DataLossError("reading it failed");
  return text;
}

bool IsFromCommandLine(const Location& where) { return where.file && *where.file == kCommandLine; }

// Whether `overlay` names another kind than `base` has. Without a `kind` of its own an overlay keeps the kind of the
// base.
bool ChangesKind(const YamlNode& base, const YamlNode& overlay, const std::string& table_path) {
  if (base.entries.empty() || overlay.Find("kind") == nullptr) return false;
  const std::string old_kind = KindOf(base, table_path);
  return !old_kind.empty() && old_kind != KindOf(overlay, table_path);
}

// The path in the table of keys of the value under `key`: "batch" for a key of the table, "modules.<name>" for a name
// that the author chose.
std::string InnerTablePath(const std::string& table_path, const std::string& key) {
  const std::string named = table_path + ".<name>";
  if (!KeysOf(named).empty()) return named;
  return table_path.empty() ? key : Cat(table_path, ".", key);
}

// Lays `overlay` over `base`.
void Merge(YamlNode& base, YamlNode overlay, const std::string& table_path = "") {
  if (!base.is_map() || !overlay.is_map() || ChangesKind(base, overlay, table_path)) {
    base.Replace(std::move(overlay));
    return;
  }
  base.MarkChanged();
  // A missing key is reported at the location of its map. That is the last file that mentions the map, and not an
  // override of another key in the same map.
  const bool move_location = !IsFromCommandLine(overlay.where);
  if (move_location) base.where = overlay.where;
  // An index, because YamlNode::Find is linear and a recipe may have thousands of keys in one map.
  std::unordered_map<std::string, size_t> index;
  for (size_t i = 0; i < base.entries.size(); ++i) index.emplace(base.entries[i].key, i);
  for (YamlEntry& entry : overlay.entries) {
    const auto found = index.find(entry.key);
    if (found == index.end()) {
      base.entries.push_back(std::move(entry));
      continue;
    }
    YamlEntry& old = base.entries[found->second];
    if (move_location || !entry.value.is_map()) old.key_where = entry.key_where;
    Merge(old.value, std::move(entry.value), InnerTablePath(table_path, entry.key));
  }
}

// Reads a file and, recursively, the files that it extends.
class TreeReader {
 public:
  explicit TreeReader(Diagnostics& problems) : problems_(problems) {}

  // `named_at`: the item of `extends` that names the file; no location for the recipe itself.
  std::optional<YamlNode> ReadFile(const std::string& path, const Location& named_at) {
    if (++files_ > kMostFiles) {
      problems_.Error(
          DiagnosticKind::kTooLarge, named_at,
          Cat("this recipe extends more than ", kMostFiles, " files; a file counts each time it is extended"),
          "extend fewer files");
      return std::nullopt;
    }
    // The plan names its recipe and the folder of its data.
    std::error_code error;
    if (const std::string whole = std::filesystem::absolute(path, error); !IsPrintable(whole)) {
      problems_.Error(DiagnosticKind::kFileEncoding, named_at,
                      Cat("the path of the recipe has a control character: ", Quoted(whole, 200)),
                      "rename the file or the folder: terminals obey such a character, and a plan has no such text");
      return std::nullopt;
    }
    const absl::StatusOr<std::string> text = ReadRecipeFile(path);
    if (!text.ok()) {
      problems_.Error(DiagnosticKind::kFileUnreadable, named_at,
                      Cat("cannot read the recipe ", Quoted(path, 200), ": ", text.status().message()),
                      named_at.known() ? "paths are relative to the file that names them" : "");
      return std::nullopt;
    }
    bytes_ += text->size();
    // ParseYaml checks the size of a single file.
    if (files_ > 1 && bytes_ > kLargestRecipe) {
      problems_.Error(
          DiagnosticKind::kTooLarge, named_at,
          Cat("with this file, the recipe and the files that it extends have more than ", kLargestRecipe, " bytes"),
          "extend fewer files, or smaller ones");
      return std::nullopt;
    }
    return ReadText(*text, path, named_at);
  }

  std::optional<YamlNode> ReadText(const std::string& text, const std::string& path, const Location& named_at) {
    const YamlOrigin origin{std::make_shared<const std::string>(path)};
    Diagnostics as_written;
    std::optional<YamlNode> own = ParseYaml(text, origin, as_written);
    if (!own) own = MeantTree(text, origin, problems_);
    if (!own) {
      for (const Diagnostic& problem : as_written.as_found()) problems_.Add(problem);
    }
    if (own && !own->is_map()) {
      // Nothing has no place: it is missing from the beginning on.
      const Location where = own->where.known() ? own->where : Location{origin.file, 1, 1, 1};
      problems_.Error(DiagnosticKind::kWrongType, where, Cat("a recipe must be a map of keys, found ", Describe(*own)),
                      "start with a key, such as name: my_recipe");
      return std::nullopt;
    }
    return own ? Extend(path, named_at, *std::move(own)) : std::nullopt;
  }

 private:
  // A file whose `extends` is being read: to find cycles.
  struct OpenFile {
    std::filesystem::path canonical;
    std::string path;
    Location named_at;
  };

  // Merges the files that `own` extends, in order, and `own` over them. All of them are read even after a problem, so
  // that all problems are found.
  std::optional<YamlNode> Extend(const std::string& path, const Location& named_at, YamlNode own) {
    std::error_code error;
    open_.push_back({std::filesystem::weakly_canonical(path, error), path, named_at});
    YamlNode merged;
    merged.kind = YamlNode::Kind::kMap;
    bool good = true;
    for (const auto& [at, item] : TakeExtends(own)) {
      std::optional<YamlNode> base = ReadBase(item, at);
      good = good && base.has_value();
      if (good) Merge(merged, *std::move(base));
    }
    open_.pop_back();
    if (!good) return std::nullopt;
    Merge(merged, std::move(own));
    return merged;
  }

  // Removes the key `extends` from the tree and returns its items, each with its place in the file.
  static std::vector<std::pair<std::string, YamlNode>> TakeExtends(YamlNode& own) {
    std::vector<std::pair<std::string, YamlNode>> items;
    for (size_t i = 0; i < own.entries.size(); ++i) {
      if (own.entries[i].key != "extends") continue;
      YamlNode value = std::move(own.entries[i].value);
      if (value.is_null()) value.where = own.entries[i].key_where;
      own.entries.erase(own.entries.begin() + static_cast<std::ptrdiff_t>(i));
      if (!value.is_sequence()) return {{"extends", std::move(value)}};
      for (YamlNode& item : value.items) items.emplace_back(Cat("extends[", items.size(), "]"), std::move(item));
      break;
    }
    return items;
  }

  // Reads one file of `extends`, whose item is at this place of the file. A file that is not there is told, and read as
  // the one whose name is near.
  std::optional<YamlNode> ReadBase(const YamlNode& item, const std::string& at) {
    std::string named;
    if (!ReadString(item, &named, nullptr)) {
      problems_.Error(DiagnosticKind::kWrongType, item.where,
                      Cat("`extends` must be a list of files, found ", Describe(item)),
                      "write the paths of recipe files");
      return std::nullopt;
    }
    const std::string path = ResolvePath(named, item.where);
    std::error_code error;
    // Canonical paths, because different paths may lead to the same file.
    const std::filesystem::path canonical = std::filesystem::weakly_canonical(path, error);
    for (size_t i = 0; i < open_.size(); ++i) {
      if (open_[i].canonical != canonical) continue;
      Diagnostic& problem =
          problems_.Error(DiagnosticKind::kExtendsCycle, item.where, Cat(Quoted(open_[i].path, 200), " extends itself"),
                          "remove one of these files from `extends`");
      for (size_t j = i + 1; j < open_.size(); ++j) {
        problem.notes.push_back({open_[j].named_at, Cat("through ", Quoted(open_[j].path, 200))});
      }
      return std::nullopt;
    }
    if (!std::filesystem::exists(path, error)) {
      const std::filesystem::path own = open_.back().path;
      YamlNode near = item;
      near.text = NearFile(own.parent_path().string(), named, own.filename().string());
      if (!near.text.empty()) {
        Diagnostic& problem = problems_.Error(
            DiagnosticKind::kFileUnreadable, item.where,
            Cat("cannot read the recipe ", Quoted(path, 200), ": there is no such file"),
            Cat("did you mean `", near.text, "`? Paths in `extends` are relative to the file that has them"));
        if (open_.size() == 1) problem.edits = {{at, FlowText(near)}}, problem.restates = true;
        return ReadBase(near, at);
      }
    }
    return ReadFile(path, item.where);
  }

  Diagnostics& problems_;
  std::vector<OpenFile> open_;
  int files_ = 0;
  size_t bytes_ = 0;
};

// "batch.global_samples=64" -> {batch: {global_samples: 64}}
std::optional<YamlNode> ReadOverride(const std::string& text, int line, std::shared_ptr<const std::string> file,
                                     Diagnostics& problems) {
  Location where{file, line, 1, static_cast<int>(text.size())};  // the whole override
  const size_t equals = text.find('=');
  const std::vector<std::string> words = absl::StrSplit(text.substr(0, std::min(equals, text.size())), '.');
  // Line breaks would shift the lines of the text that messages show (see kCommandLine).
  bool good = equals != std::string::npos && text.find_first_of("\n\r") == std::string::npos;
  for (const std::string& word : words) good = good && !word.empty() && word != "extends";
  if (!good || words.size() > kDeepestRecipe) {
    problems.Error(DiagnosticKind::kBadOverride, where, Cat(Quoted(text), " is not an override"),
                   "write path.to.key=value, such as batch.global_samples=64");
    return std::nullopt;
  }
  std::optional<YamlNode> node =
      ParseYaml(text.substr(equals + 1), {file, line, static_cast<int>(equals) + 2}, problems);
  if (!node) return std::nullopt;
  if (node->is_null()) node->where = where;
  where.length = static_cast<int>(equals);  // from here on its path
  // From the inside out: a map for each word of the path.
  for (auto word = words.rbegin(); word != words.rend(); ++word) {
    YamlNode outer;
    outer.kind = YamlNode::Kind::kMap;
    outer.where = where;
    outer.entries.push_back({*word, where, *std::move(node)});
    node = std::move(outer);
  }
  return node;
}

constexpr size_t kLongestWritten = 200;  // bytes of a list that a help writes

// An override names keys of maps: one that leads into a list has no item to change. Tells it, with the list as it would
// be, and returns true. `text`: "data.sources.0.weight=2" or "data.sources[0].weight=2".
bool LeadsIntoList(const std::string& text, const YamlNode& above, const YamlNode& tree, Diagnostics& problems) {
  const std::string path = absl::StrReplaceAll(text.substr(0, text.find('=')), {{"[", "."}, {"]", ""}});
  const std::vector<std::string> words = absl::StrSplit(path, '.');
  const YamlNode* node = &tree;
  std::string table, list;
  size_t at = 0;
  for (bool found = false; !found; ++at) {
    if (at + 1 >= words.size()) return false;
    const YamlEntry* entry = node != nullptr && node->is_map() ? node->Find(words[at]) : nullptr;
    node = entry != nullptr ? &entry->value : nullptr;
    list = InsidePath(list, words[at]);
    const std::span<const KeySpec* const> keys = KeysOf(table);
    const bool of_maps = std::any_of(keys.begin(), keys.end(), [&](const KeySpec* spec) {
      return WordOf(*spec) == words[at] && spec->type == KeyType::kListOfMaps;
    });
    const bool numbered = words[at + 1].find_first_not_of("0123456789") == std::string::npos;
    found = (node != nullptr && node->is_sequence()) || (of_maps && numbered);
    table = InnerTablePath(table, words[at]);
  }
  // The list with the value in it. Paths of files in it would be relative to another folder.
  const bool of_files = list.starts_with("data.") || list.starts_with("evaluation.") || list.starts_with("initialize.");
  std::string whole;
  size_t item = 0;
  if (node != nullptr && !of_files && absl::SimpleAtoi(words[at], &item) && item < node->items.size()) {
    const YamlNode* value = &above;
    for (const std::string& word : std::vector<std::string>(absl::StrSplit(text.substr(0, text.find('=')), '.')))
      value = &value->Find(word)->value;
    YamlNode changed = tree;
    std::string inside = Cat(list, "[", item, "]");
    for (size_t i = at + 1; i < words.size(); ++i) inside = InsidePath(inside, words[i]);
    if (PutValue(inside, *value, changed)) whole = FlowText(*NodeAt(changed, list));
  }
  problems.Error(
      DiagnosticKind::kBadOverride, above.where,
      Cat(Quoted(text, 200), " leads into a list: `", list, "` is one value, and an override cannot change its items"),
      Cat("write the whole list", whole.empty() || whole.size() > kLongestWritten ? "" : Cat(": ", list, "=", whole),
          of_files ? " (paths of files are relative to your folder then)" : "", ", or change it in the recipe"));
  return true;
}

// Limits like those of files: overrides may come from a script.
bool CheckOverrides(const std::vector<std::string>& overrides, const std::shared_ptr<const std::string>& file,
                    Diagnostics& problems) {
  size_t bytes = 0;
  for (const std::string& text : overrides) bytes += text.size();
  if (overrides.size() <= kMostOverrides && bytes <= kLargestRecipe) return true;
  problems.Error(DiagnosticKind::kTooLarge, {file, 1, 1, 1},
                 Cat(overrides.size(), " overrides with ", bytes, " bytes exceed the limits of ", kMostOverrides,
                     " overrides and ", kLargestRecipe, " bytes"),
                 "write them into a recipe that extends this one");
  return false;
}

}  // namespace

std::string ResolvePath(const std::string& path, const Location& named_at) {
  std::filesystem::path named(path);
  if (!named.is_absolute() && named_at.file && *named_at.file != kCommandLine)
    named = std::filesystem::path(*named_at.file).parent_path() / named;
  // Without the `..` it is shorter, and the same file unless a folder before it is a link.
  const std::filesystem::path plain = named.lexically_normal();
  std::error_code error;
  const bool other = std::filesystem::exists(named, error) && !std::filesystem::equivalent(named, plain, error);
  return (other ? named : plain).string();
}

std::optional<YamlNode> RecipeTreeOfText(const std::string& text, const std::string& name, Diagnostics& problems) {
  return TreeReader(problems).ReadText(text, name, {});
}

namespace {

// Overrides are read even if the recipe is not, so that their problems are shown in the same run. One that cannot be
// read is left out: the problems of the others and of the recipe are told, too.
void LayOver(const std::vector<std::string>& overrides, const std::shared_ptr<const std::string>& file,
             std::optional<YamlNode>& tree, Diagnostics& problems) {
  for (size_t i = 0; i < overrides.size(); ++i) {
    std::optional<YamlNode> above = ReadOverride(overrides[i], static_cast<int>(i) + 1, file, problems);
    if (above && tree && LeadsIntoList(overrides[i], *above, *tree, problems)) continue;
    if (tree && above) Merge(*tree, *std::move(above));
  }
}

}  // namespace

bool ApplyOverrides(const std::vector<std::string>& overrides, YamlNode& tree, Diagnostics& problems) {
  const auto file = std::make_shared<const std::string>(kCommandLine);
  if (!CheckOverrides(overrides, file, problems)) return false;
  std::optional<YamlNode> changed = std::move(tree);
  LayOver(overrides, file, changed, problems);
  tree = *std::move(changed);
  return true;
}

absl::Status LayOverrides(const std::vector<std::string>& overrides, YamlNode& tree) {
  Diagnostics problems;
  ApplyOverrides(overrides, tree, problems);
  if (!problems.has_errors()) return absl::OkStatus();
  return absl::InvalidArgumentError(problems.as_found().front().message);
}

std::optional<YamlNode> ReadRecipeTree(const std::string& path, const std::vector<std::string>& overrides,
                                       Diagnostics& problems) {
  const auto file = std::make_shared<const std::string>(kCommandLine);
  if (!CheckOverrides(overrides, file, problems)) return std::nullopt;
  std::optional<YamlNode> recipe = TreeReader(problems).ReadFile(path, {});
  LayOver(overrides, file, recipe, problems);
  return recipe;
}

}  // namespace planwright
