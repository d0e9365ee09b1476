#include "planner/cli/fix_recipe.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "planner/base/files/file_io.h"
#include "planner/compile/compile.h"
#include "planner/recipe/format/format_recipe.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/recipe/tree_edits.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {
namespace {

// What makes an error the same one after a change: lines and numbers may be others.
using ErrorIdentity = std::pair<DiagnosticKind, std::string>;
using Errors = std::multiset<ErrorIdentity>;

void AddErrors(const std::vector<Diagnostic>& problems, Errors& errors) {
  for (const Diagnostic& problem : problems) {
    if (problem.severity == Severity::kError) errors.emplace(problem.kind, MessageWithoutNumbers(problem));
  }
}

// What is wrong with a tree; `problems`: of reading it.
Errors ErrorsOf(YamlNode tree, Diagnostics problems) {
  const Recipe recipe = RecipeOfTree(std::move(tree), problems);
  CompileRecipe(recipe, problems);
  Errors errors;
  AddErrors(problems.as_found(), errors);
  return errors;
}

bool FewerAndNoOther(const Errors& after, const Errors& before) {
  return after.size() < before.size() && std::includes(before.begin(), before.end(), after.begin(), after.end());
}

class Fixes {
 public:
  Fixes(const std::string& path, const YamlNode& own, const YamlNode& merged)
      : path_(path), own_(own), merged_(merged), errors_(ErrorsOf(merged, {})) {}

  // Takes the edits of a problem if they are for this file, and work.
  void Take(const Diagnostic& problem) {
    if (problem.severity != Severity::kError || problem.edits.empty()) return;
    if (!std::all_of(problem.edits.begin(), problem.edits.end(), [&](const Edit& edit) { return IsHere(edit); }))
      return;
    std::vector<Edit> edits = edits_;
    edits.insert(edits.end(), problem.edits.begin(), problem.edits.end());
    // The tree has been read as the edits of `extends` say.
    if (!IsOfExtends(problem.edits[0])) {
      std::vector<Edit> tried = edits;
      std::erase_if(tried, IsOfExtends);
      YamlNode tree = merged_;
      ApplyEdits(tried, tree);
      Errors errors = ErrorsOf(std::move(tree), {});
      if (!FewerAndNoOther(errors, errors_)) return;
      errors_ = std::move(errors);
    }
    edits_ = std::move(edits);
  }

  const std::vector<Edit>& edits() const { return edits_; }

 private:
  static bool IsOfExtends(const Edit& edit) { return edit.path.starts_with("extends"); }

  // Whether the value stands in the file, or in none.
  bool IsHere(const Edit& edit) const {
    if (IsOfExtends(edit)) return NodeAt(own_, edit.path) != nullptr;
    const size_t item = edit.path.rfind(']');
    if (item != std::string::npos && NodeAt(own_, edit.path.substr(0, item + 1)) == nullptr) return false;
    const YamlNode* node = NodeAt(merged_, edit.path);
    return node == nullptr || NodeAt(own_, edit.path) != nullptr || !node->where.file || *node->where.file == path_;
  }

  const std::string& path_;
  const YamlNode &own_, &merged_;
  Errors errors_;  // that the edits so far leave
  std::vector<Edit> edits_;
};

}  // namespace

absl::StatusOr<FixedText> FixRecipe(const std::string& path, const std::vector<std::string>& overrides,
                                    const std::vector<Diagnostic>& problems) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kLargestRecipe + 1);
  if (!text.ok()) return text.status();
  FixedText fixed{*text, *text};
  Diagnostics before;
  const std::optional<YamlNode> own = ParseValue(*text), merged = ReadRecipeTree(path, overrides, before);
  if (!own || !merged) return fixed;  // told with the other problems
  Fixes fixes(path, *own, *merged);
  for (const Diagnostic& problem : problems) fixes.Take(problem);
  if (fixes.edits().empty()) return fixed;
  Diagnostics not_told;  // of a text that has been parsed
  std::optional<absl::StatusOr<std::string>> after = FormatRecipe(*text, path, not_told, fixes.edits());
  if (!after) return fixed;
  if (!after->ok()) return after->status();
  Diagnostics reading;
  std::optional<YamlNode> tree = RecipeTreeOfText(**after, path, reading);
  if (!tree || !ApplyOverrides(overrides, *tree, reading)) return fixed;
  if (!FewerAndNoOther(ErrorsOf(*std::move(tree), reading), ErrorsOf(*merged, before))) return fixed;
  fixed.after = **std::move(after);
  return fixed;
}

}  // namespace planwright
