#include "planner/cli/fix_recipe.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "planner/base/files/file_io.h"
#include "planner/base/text/text.h"
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

// What is wrong with a tree; `problems`: of reading it.
Errors ErrorsOf(YamlNode tree, Diagnostics problems) {
  const Recipe recipe = RecipeOfTree(std::move(tree), problems);
  CompileRecipe(recipe, problems);
  Errors errors;
  for (const Diagnostic& problem : problems.as_found()) {
    if (problem.severity == Severity::kError) errors.emplace(problem.kind, MessageWithoutNumbers(problem));
  }
  return errors;
}

bool FewerAndNoOther(const Errors& after, const Errors& before) {
  return after.size() < before.size() && std::includes(before.begin(), before.end(), after.begin(), after.end());
}

class Fixes {
 public:
  // `own`, `merged`: the tree of the file alone, and of the recipe.
  Fixes(const std::string& path, const std::vector<std::string>& overrides, const YamlNode& own, const YamlNode& merged,
        Errors errors, FixedText& fixed)
      : path_(path), overrides_(overrides), own_(own), merged_(merged), errors_(std::move(errors)), fixed_(fixed) {}

  // Takes the edits of an error, or says why not.
  absl::Status Take(const Diagnostic& problem) {
    std::string why = WhyNot(problem);
    if (why.empty()) {
      std::vector<Edit> edits = edits_;
      edits.insert(edits.end(), problem.edits.begin(), problem.edits.end());
      const absl::StatusOr<bool> works = Try(std::move(edits));
      if (!works.ok()) return works.status();
      if (*works) return absl::OkStatus();
      why = "with this alone there are other errors";
    }
    fixed_.left.push_back({problem.kind, MessageWithoutNumbers(problem), std::move(why)});
    return absl::OkStatus();
  }

 private:
  static bool IsOfExtends(const Edit& edit) { return edit.path.starts_with("extends"); }

  // Whether the edits are for this file, and say what it says; empty: they are.
  std::string WhyNot(const Diagnostic& problem) const {
    constexpr const char* kWhichValue = "which value is right is for you to decide";
    if (problem.edits.empty()) {
      return problem.kind == DiagnosticKind::kOutOfRange ? kWhichValue
                                                         : "what is right here does not follow from the recipe";
    }
    for (const Edit& edit : problem.edits) {
      if (std::string why = WhyNotHere(edit, problem); !why.empty()) return why;
    }
    if (problem.restates) return "";
    const auto removes = [](const Edit& edit) { return edit.value.empty(); };
    return std::all_of(problem.edits.begin(), problem.edits.end(), removes)
               ? "without it the recipe would say something else, which is for you to decide"
               : kWhichValue;
  }

  // A key that stands here may move to where a file that is extended has a value: this one is laid over it.
  std::string WhyNotHere(const Edit& edit, const Diagnostic& problem) const {
    if (IsOfExtends(edit)) return NodeAt(own_, edit.path) != nullptr ? "" : "it stands in another file";
    const size_t item = edit.path.rfind(']');
    if (item != std::string::npos && NodeAt(own_, edit.path.substr(0, item + 1)) == nullptr)
      return Cat("`", edit.path.substr(0, item + 1), "` stands in another file");
    const YamlNode* node = NodeAt(merged_, edit.path);
    if (node == nullptr || !node->where.file) return "";
    if (*node->where.file == kCommandLine) return Cat("`", edit.path, "` is an override");
    if (*node->where.file == path_ || NodeAt(own_, edit.path) != nullptr) return "";
    const bool moves = !edit.value.empty() && problem.where.file && *problem.where.file == path_ &&
                       std::any_of(problem.edits.begin(), problem.edits.end(), [&](const Edit& other) {
                         return other.value.empty() && NodeAt(own_, other.path) != nullptr;
                       });
    return moves ? "" : Cat("`", edit.path, "` stands in ", *node->where.file);
  }

  // Whether the text with these edits has fewer errors and no other; then it is taken.
  absl::StatusOr<bool> Try(std::vector<Edit> edits) {
    Diagnostics not_told;  // of a text that has been parsed
    std::optional<absl::StatusOr<std::string>> text = FormatRecipe(fixed_.before, path_, not_told, edits);
    if (!text) return false;
    if (!text->ok()) return text->status();
    Diagnostics reading;
    std::optional<YamlNode> tree = RecipeTreeOfText(**text, path_, reading);
    if (!tree || !ApplyOverrides(overrides_, *tree, reading)) return false;
    Errors errors = ErrorsOf(*std::move(tree), std::move(reading));
    if (!FewerAndNoOther(errors, errors_)) return false;
    errors_ = std::move(errors);
    edits_ = std::move(edits);
    fixed_.after = **std::move(text);
    return true;
  }

  const std::string& path_;
  const std::vector<std::string>& overrides_;
  const YamlNode &own_, &merged_;
  Errors errors_;            // that the edits so far leave
  std::vector<Edit> edits_;  // so far
  FixedText& fixed_;
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
  Fixes fixes(path, overrides, *own, *merged, ErrorsOf(*merged, before), fixed);
  for (const Diagnostic& problem : problems) {
    if (problem.severity != Severity::kError) continue;
    if (const absl::Status status = fixes.Take(problem); !status.ok()) return status;
  }
  return fixed;
}

void TellWhyLeft(const std::vector<LeftError>& left, Diagnostics& problems) {
  std::vector<Diagnostic> told = problems.as_found();
  std::vector<LeftError> untold = left;
  for (Diagnostic& problem : told) {
    const auto found = std::find_if(untold.begin(), untold.end(), [&](const LeftError& error) {
      return problem.severity == Severity::kError && error.kind == problem.kind &&
             error.message == MessageWithoutNumbers(problem);
    });
    if (found == untold.end()) continue;
    problem.notes.push_back({{}, Cat("--fix leaves it: ", found->why)});
    untold.erase(found);
  }
  problems.Replace(std::move(told));
}

}  // namespace planwright
