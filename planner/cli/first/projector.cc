#include "planner/cli/first/projector.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/exchange/folder_names.h"
#include "planner/plan/statement/model_statement.h"
#include "planner/plan/statement/whole_value.h"
#include "planner/recipe/tree_edits.h"
#include "planner/search/results/started_recipe.h"

namespace planwright {
namespace {

YamlNode& Under(const std::string& key, YamlNode& map) {
  for (YamlEntry& entry : map.entries) {
    if (entry.key == key) return entry.value;
  }
  map.entries.push_back({key, {}, {}});
  return map.entries.back().value;
}

// The value of "final_norm" or "projector.hidden". A section that is made is a block, which has room for comments.
YamlNode& PlaceOf(const std::string& key, YamlNode& model) {
  const size_t dot = key.find('.');
  if (dot == std::string::npos) return Under(key, model);
  YamlNode& section = Under(key.substr(0, dot), model);
  if (!section.is_map()) {
    section.kind = YamlNode::Kind::kMap;
    section.style = std::make_shared<const YamlStyle>(YamlStyle{.form = YamlStyle::Form::kBlock});
  }
  return Under(key.substr(dot + 1), section);
}

}  // namespace

absl::Status ChooseProjector(const YamlNode& models, const YamlNode& asked, const std::string& language,
                             YamlEntry& encoder) {
  const YamlEntry* kind = encoder.value.Find("kind");
  const ModelStatement* statement = kind ? StatementOf(kind->value.text) : nullptr;
  if (!statement) return absl::OkStatus();
  const auto number_of = [&](std::string_view name) -> std::optional<int64_t> {
    constexpr std::string_view kOutput = "output.";
    const bool of_language = name.starts_with(kOutput);
    const YamlEntry* model = models.Find(of_language ? language : encoder.key);
    if (of_language) name.remove_prefix(kOutput.size());
    const int64_t number = model ? SizeOfModel(model->value, std::string(name), 0) : 0;
    return number > 0 ? std::optional(number) : std::nullopt;
  };
  for (const StatedFirst& first : statement->firsts) {
    const std::string path = absl::StrCat("models.", encoder.key, ".", first.key);
    if (NodeAt(asked, path) != nullptr) continue;
    std::string value = first.word, from = absl::StrCat("# first recipe of ", statement->kind);
    if (first.formula) {
      const std::string& text = first.formula->text();
      const std::vector<std::string>& names = first.formula->names();
      if (!std::all_of(names.begin(), names.end(), number_of)) continue;
      const double number =
          first.formula->Evaluate([&](const std::string& name) { return static_cast<double>(*number_of(name)); });
      const std::optional<int64_t> whole = WholeValue(number);
      if (!whole || !statement->FindKey(first.key)->range.Holds(static_cast<double>(*whole))) {
        const std::string why = whole ? absl::StrCat("is ", *whole, ", outside of the range of the key")
                                : std::isfinite(number) ? absl::StrCat("is ", number, ", no whole number")
                                                        : "divides by 0";
        return absl::FailedPreconditionError(
            absl::StrCat(TextOf({PlaceOf(first.line, text, "is "), absl::StrCat("`", text, "` ", why), {}}),
                         "; say it yourself: ", path, "=NUMBER"));
      }
      value = absl::StrCat(*whole);
      absl::StrAppend(&from, ": ", text);
    }
    YamlNode& place = PlaceOf(first.key, encoder.value);
    if (place.is_scalar() && place.text != value) absl::StrAppend(&from, ", instead of ", place.text);
    place = ScalarNode(value);
    constexpr size_t kColumn = 28;  // as import has them
    place.comments = std::make_shared<const YamlComments>(YamlComments{.beside = from, .column = kColumn});
  }
  return absl::OkStatus();
}

}  // namespace planwright
