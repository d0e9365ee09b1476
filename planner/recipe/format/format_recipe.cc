#include "planner/recipe/format/format_recipe.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "planner/base/text/text.h"
#include "planner/recipe/format/key_order.h"
#include "planner/recipe/recipe_digest.h"
#include "planner/recipe/tree_edits.h"
#include "planner/recipe/yaml/source_text.h"
#include "planner/recipe/yaml/yaml_comments.h"
#include "planner/recipe/yaml/yaml_text.h"

namespace planwright {
namespace {

bool Same(const YamlNode& a, const YamlNode& b) {
  if (a.kind != b.kind || a.text != b.text || a.quoted != b.quoted || a.items.size() != b.items.size() ||
      a.entries.size() != b.entries.size())
    return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!Same(a.items[i], b.items[i])) return false;
  }
  return std::all_of(a.entries.begin(), a.entries.end(), [&](const YamlEntry& entry) {
    const YamlEntry* other = b.Find(entry.key);
    return other != nullptr && Same(entry.value, other->value);
  });
}

// Whether most lines of a text end in "\r\n", as editors of Windows write them. A file with both kinds of ends is
// formatted to the more frequent one, which changes the fewest lines; as many of both: "\n".
bool HasLineEndsOfWindows(std::string_view text) {
  int64_t windows = 0, others = 0;
  for (size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1))
    ++(at > 0 && text[at - 1] == '\r' ? windows : others);
  return windows > others;
}

}  // namespace

bool SameRecipe(const YamlNode& a, const YamlNode& b) { return Same(a, b) && RecipeDigest(a) == RecipeDigest(b); }

std::optional<absl::StatusOr<std::string>> FormatRecipe(const std::string& text, const std::string& name,
                                                        Diagnostics& problems, std::span<const Edit> edits) {
  const std::optional<YamlNode> read = ParseYaml(text, {std::make_shared<const std::string>(name)}, problems);
  if (!read) return std::nullopt;
  YamlNode tree = *read;
  if (absl::Status status = ReadComments(text, name, tree); !status.ok()) return status;
  ApplyEdits(edits, tree);
  OrderKeys(tree);
  std::string formatted = YamlText(tree);
  if (HasLineEndsOfWindows(text)) formatted = absl::StrReplaceAll(formatted, {{"\n", "\r\n"}});
  const std::optional<YamlNode> again = ParseValue(formatted);
  std::vector<std::string> before = SourceText(text).Comments(*read);
  std::vector<std::string> after = again ? SourceText(formatted).Comments(*again) : std::vector<std::string>();
  std::sort(before.begin(), before.end());
  std::sort(after.begin(), after.end());
  if (!again || !SameRecipe(edits.empty() ? *read : tree, *again) || before != after) {
    return absl::UnimplementedError(
        Cat(name, ": formatted, it would say something else or lose a comment; the file stays as it is"));
  }
  return formatted;
}

}  // namespace planwright
