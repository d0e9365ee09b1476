#include <iostream>

#include "nlohmann/json.hpp"
#include "planner/cli/command.h"
#include "planner/diagnostics/explanation.h"
#include "planner/diagnostics/near_name.h"
#include "planner/plan/op_table.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/recipe_reference.h"
#include "planner/recipe/recipe_schema.h"
#include "planner/run_files/exit_status.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

std::string Line(DiagnosticKind kind) {
  return std::string(KindNumber(kind)) + " " + std::string(KindName(kind)) + ": " + (IsLint(kind) ? "(lint) " : "") +
         std::string(KindSummary(kind)) + "\n";
}

Json KindJson(DiagnosticKind kind) {
  const Explanation& explanation = ExplanationOf(kind);
  const auto example = [](std::string_view text) { return text.empty() ? Json(nullptr) : Json(ExampleText(text)); };
  return {{"kind", KindNumber(kind)},
          {"name", KindName(kind)},
          {"lint", IsLint(kind)},
          {"summary", KindSummary(kind)},
          {"meaning", explanation.meaning},
          {"wrong", example(explanation.wrong)},
          {"right", example(explanation.right)},
          {"mend", explanation.mend}};
}

int List(bool json) {
  if (json) {
    Json kinds = Json::array();
    for (DiagnosticKind kind : AllKinds()) kinds.push_back(KindJson(kind));
    // One example shows a wrong encoding. Escaping keeps the JSON valid UTF-8.
    std::cout << Json{{"kinds", kinds}}.dump(2, ' ', /*ensure_ascii=*/true) << "\n";
  } else {
    for (DiagnosticKind kind : AllKinds()) std::cout << Line(kind);
  }
  return kExitSuccess;
}

int UnknownWord(const std::string& word) {
  std::vector<std::string> names;
  for (DiagnosticKind kind : AllKinds()) {
    names.emplace_back(KindNumber(kind));
    names.emplace_back(KindName(kind));
  }
  for (const KeySpec& key : RecipeKeys()) names.emplace_back(key.path);
  return UsageError("`" + word + "` is neither a diagnostic kind nor a key of a recipe; " +
                    NearNameHelp(word, names, "`plan explain` lists the kinds"));
}

int Explain(const Arguments& arguments) {
  if (arguments.has("--markdown")) std::cout << DiagnosticsPage();
  if (arguments.has("--reference")) std::cout << RecipeReference();
  if (arguments.has("--operations")) std::cout << OperationsReference();
  if (arguments.has("--failures")) std::cout << FailuresPage();
  if (arguments.has("--schema")) std::cout << RecipeSchema().dump(2) << "\n";
  bool page = false;
  for (const char* option : {"--markdown", "--reference", "--operations", "--failures", "--schema"})
    page = page || arguments.has(option);
  const bool json = arguments.has("--json");
  if (arguments.words.empty()) return page ? static_cast<int>(kExitSuccess) : List(json);
  std::string said;
  Json kinds = Json::array();
  for (const std::string& word : arguments.words) {
    const std::optional<DiagnosticKind> kind = FindKind(word);
    const std::string text = kind ? ExplanationText(*kind) : ExplainKey(word);
    if (text.empty() || (json && !kind)) return UnknownWord(word);
    if (kind) kinds.push_back(KindJson(*kind));
    said += (said.empty() ? "" : "\n") + text;
  }
  std::cout << (json ? Json{{"kinds", kinds}}.dump(2, ' ', true) + "\n" : said);
  return kExitSuccess;
}

}  // namespace

CliCommand ExplainCommand() {
  return {"explain",
          "explains a diagnostic or a key of a recipe",
          "[PW0203 | GridDoesNotFit | batch.global_samples ...] [--json]",
          {{"--json", "", "", "print {\"kinds\"} for scripts"},
           {"--markdown", "", "", "print all kinds of diagnostics as a page (docs/diagnostics.md)"},
           {"--reference", "", "", "print all keys of a recipe as a page (docs/recipe_reference.md)"},
           {"--operations", "", "", "print all operations of a plan as a page (docs/operations.md)"},
           {"--failures", "", "", "print how a run can fail, with its exit statuses, as a page (docs/failures.md)"},
           {"--schema", "", "", "print the JSON schema of recipes, for editors (schemas/recipe.schema.json)"}},
          "Without a word, it lists all kinds of diagnostics.\n",
          Explain,
          "k"};
}

}  // namespace planwright
