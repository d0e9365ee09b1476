#include "planner/recipe/recipe_tree.h"

#include <filesystem>
#include <memory>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_split.h"
#include "planner/diagnostics/text.h"
#include "planner/diagnostics/utf8.h"
#include "planner/recipe/recipe_file.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/scalar.h"

namespace planwright {
namespace {

constexpr int kMostFiles = 64;  // read for one recipe, each time it is named
constexpr size_t kMostOverrides = 1000;

bool IsFromCommandLine(const Location& where) { return where.file && *where.file == kCommandLine; }

// The `kind` of the map at `table_path`: written, or else the table's default.
std::string KindOf(const YamlNode& map, const std::string& table_path) {
  if (const YamlEntry* kind = map.Find("kind")) return kind->value.text;
  const KeySpec* spec = FindKey(table_path, "kind", "");
  return spec != nullptr ? std::string(spec->default_text) : "";
}

bool NamesAnotherKind(const YamlNode& below, const YamlNode& above, const std::string& table_path) {
  if (below.entries.empty() || above.Find("kind") == nullptr) return false;
  const std::string old_kind = KindOf(below, table_path);
  return !old_kind.empty() && old_kind != KindOf(above, table_path);
}

// The path in the table of what stands under `key`: an own key, or a name of the author's.
std::string Below(const std::string& table_path, const std::string& key) {
  const std::string named = table_path + ".<name>";
  if (!KeysOf(named).empty()) return named;
  return table_path.empty() ? key : Cat(table_path, ".", key);
}

void Merge(YamlNode& below, YamlNode above, const std::string& table_path = "") {
  if (!below.is_map() || !above.is_map() || NamesAnotherKind(below, above, table_path)) {
    below = std::move(above);
    return;
  }
  // A missing key is reported at its map: at the author's last mention in a file, not at an override that passed
  // through.
  const bool move_place = !IsFromCommandLine(above.where);
  if (move_place) below.where = above.where;
  std::unordered_map<std::string, size_t> index;
  for (size_t i = 0; i < below.entries.size(); ++i) index.emplace(below.entries[i].key, i);
  for (YamlEntry& entry : above.entries) {
    const auto found = index.find(entry.key);
    if (found == index.end()) {
      below.entries.push_back(std::move(entry));
      continue;
    }
    YamlEntry& old = below.entries[found->second];
    if (move_place || !entry.value.is_map()) old.key_where = entry.key_where;
    Merge(old.value, std::move(entry.value), Below(table_path, entry.key));
  }
}

class TreeReader {
 public:
  explicit TreeReader(Diagnostics& problems) : problems_(problems) {}

  // `named_at`: the item of `extends` that named the file; no place for the recipe itself.
  std::optional<YamlNode> ReadFile(const std::string& path, const Location& named_at) {
    if (++files_ > kMostFiles) {
      problems_.Error(DiagnosticKind::kTooLarge, named_at,
                      Cat("more than ", kMostFiles, " recipes are read for this one"), "");
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
    if (files_ > 1 && bytes_ > kLargestRecipe) {
      problems_.Error(DiagnosticKind::kTooLarge, named_at,
                      Cat("with this one, the recipes that are read have more than ", kLargestRecipe, " bytes"), "");
      return std::nullopt;
    }
    const std::optional<YamlNode> own = ParseYaml(*text, {std::make_shared<const std::string>(path)}, problems_);
    if (!own) return std::nullopt;
    if (!own->is_map()) {
      problems_.Error(DiagnosticKind::kWrongType, own->where,
                      Cat("a recipe must be a map of keys, found ", Describe(*own)), "");
      return std::nullopt;
    }
    return Extend(path, named_at, *own);
  }

 private:
  struct OpenFile {
    std::filesystem::path canonical;
    std::string path;
    Location named_at;
  };

  std::optional<YamlNode> Extend(const std::string& path, const Location& named_at, YamlNode own) {
    std::error_code error;
    open_.push_back({std::filesystem::weakly_canonical(path, error), path, named_at});
    YamlNode merged;
    merged.kind = YamlNode::Kind::kMap;
    bool good = true;
    for (const YamlNode& item : TakeExtends(own)) {
      std::optional<YamlNode> base = ReadBase(item);
      good = good && base.has_value();
      if (good) Merge(merged, *std::move(base));
    }
    open_.pop_back();
    if (!good) return std::nullopt;
    Merge(merged, std::move(own));
    return merged;
  }

  // The items of `extends`, which leaves the tree.
  static std::vector<YamlNode> TakeExtends(YamlNode& own) {
    for (size_t i = 0; i < own.entries.size(); ++i) {
      if (own.entries[i].key != "extends") continue;
      YamlNode value = std::move(own.entries[i].value);
      if (value.is_null()) value.where = own.entries[i].key_where;
      own.entries.erase(own.entries.begin() + static_cast<std::ptrdiff_t>(i));
      return value.is_sequence() ? std::move(value.items) : std::vector<YamlNode>{std::move(value)};
    }
    return {};
  }

  std::optional<YamlNode> ReadBase(const YamlNode& item) {
    std::string named;
    if (!ReadString(item, &named, nullptr)) {
      problems_.Error(DiagnosticKind::kWrongType, item.where,
                      Cat("`extends` must be a list of files, found ", Describe(item)), "");
      return std::nullopt;
    }
    const std::string path = ResolvePath(named, item.where);
    std::error_code error;
    const std::filesystem::path canonical = std::filesystem::weakly_canonical(path, error);
    for (size_t i = 0; i < open_.size(); ++i) {
      if (open_[i].canonical != canonical) continue;
      Diagnostic& problem =
          problems_.Error(DiagnosticKind::kExtendsCycle, item.where, Cat(Quoted(open_[i].path, 200), " extends itself"),
                          "take one of these out");
      for (size_t j = i + 1; j < open_.size(); ++j) {
        problem.notes.push_back({open_[j].named_at, Cat("by way of ", Quoted(open_[j].path, 200))});
      }
      return std::nullopt;
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
  Location where{file, line, 1, static_cast<int>(text.size())};
  const size_t equals = text.find('=');
  const std::vector<std::string> words = absl::StrSplit(text.substr(0, std::min(equals, text.size())), '.');
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
  where.length = static_cast<int>(equals);
  for (auto word = words.rbegin(); word != words.rend(); ++word) {
    YamlNode outer;
    outer.kind = YamlNode::Kind::kMap;
    outer.where = where;
    outer.entries.push_back({*word, where, *std::move(node)});
    node = std::move(outer);
  }
  return node;
}

bool CheckOverrides(const std::vector<std::string>& overrides, const std::shared_ptr<const std::string>& file,
                    Diagnostics& problems) {
  size_t bytes = 0;
  for (const std::string& text : overrides) bytes += text.size();
  if (overrides.size() <= kMostOverrides && bytes <= kLargestRecipe) return true;
  problems.Error(
      DiagnosticKind::kTooLarge, {file, 1, 1, 1},
      Cat(overrides.size(), " overrides of ", bytes, " bytes; there may be ", kMostOverrides, " of ", kLargestRecipe),
      "write them into a recipe that extends this one");
  return false;
}

}  // namespace

std::optional<YamlNode> ReadRecipeTree(const std::string& path, const std::vector<std::string>& overrides,
                                       Diagnostics& problems) {
  const auto file = std::make_shared<const std::string>(kCommandLine);
  if (!CheckOverrides(overrides, file, problems)) return std::nullopt;
  std::optional<YamlNode> recipe = TreeReader(problems).ReadFile(path, {});
  bool good = recipe.has_value();
  for (size_t i = 0; i < overrides.size(); ++i) {
    std::optional<YamlNode> above = ReadOverride(overrides[i], static_cast<int>(i) + 1, file, problems);
    good = good && above.has_value();
    if (good) Merge(*recipe, *std::move(above));
  }
  return good ? std::move(recipe) : std::nullopt;
}

}  // namespace planwright
