#include "planner/cli/first/projector.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/base/text/bug.h"
#include "planner/plan/statement/model_statement.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/search/results/started_recipe.h"

namespace planwright {

void ChooseProjector(const YamlNode& language, YamlNode& encoder) {
  const YamlEntry* kind = encoder.Find("kind");
  const ModelStatement* statement = kind ? StatementOf(kind->value.text) : nullptr;
  if (!statement) return;
  const auto number_of = [&](const std::string& name) {
    constexpr std::string_view kOutput = "output.";
    const bool of_language = name.starts_with(kOutput);
    const int64_t number =
        of_language ? SizeOfModel(language, name.substr(kOutput.size()), 0) : SizeOfModel(encoder, name, 0);
    return number > 0 ? static_cast<double>(number) : std::nan("");
  };
  for (const StatedFirst& first : statement->firsts) {
    std::string value = first.word;
    if (first.formula) {
      const double number = std::floor(first.formula->Evaluate(number_of));
      if (!(std::fabs(number) < 1e15)) continue;
      value = absl::StrCat(static_cast<int64_t>(number));
    }
    Require(LayOverrides({absl::StrCat(first.key, "=", value)}, encoder).ok(), "keys of a kind are overrides");
  }
}

}  // namespace planwright
