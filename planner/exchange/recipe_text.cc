#include "planner/exchange/recipe_text.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "planner/base/text/utf8.h"
#include "planner/exchange/config_keys.h"
#include "planner/recipe/tree_edits.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {
namespace {

constexpr char kWeightsComment[] = "# initialize: {from: ";

// A real number has a dot, as YAML 1.1 takes 1e-05 for a text.
std::string ValueOf(const Said& said) {
  std::string text = said.text();
  if (std::holds_alternative<double>(said.value) && text.find('.') == std::string::npos)
    text.insert(std::min(text.find('e'), text.size()), ".0");
  return text;
}

YamlNode Map() {
  YamlNode map;
  map.kind = YamlNode::Kind::kMap;
  map.style = std::make_shared<const YamlStyle>(YamlStyle{.form = YamlStyle::Form::kBlock});
  return map;
}

void Comment(YamlComments comments, YamlNode& node) {
  node.comments = std::make_shared<const YamlComments>(std::move(comments));
}

YamlNode& Add(const std::string& key, YamlNode value, YamlNode& map) {
  map.entries.push_back({key, {}, std::move(value)});
  return map.entries.back().value;
}

YamlNode* Under(const std::string& key, YamlNode& map) {
  for (auto& entry : map.entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

// A number of the model, such as "moe.top_k", with where it came from beside it, in one column. Keys of a section come
// one after the other.
void AddNumber(const std::string& key, const Said& said, YamlNode& model) {
  constexpr size_t kColumn = 28;
  if (key == "pattern") {  // it is long: the comment goes above
    YamlNode pattern = ScalarNode(ValueOf(said), {}, /*quoted=*/true);
    return Comment({.above = {"# " + said.from}}, Add(key, std::move(pattern), model));
  }
  const size_t dot = key.find('.');
  YamlNode* map = &model;
  if (dot != std::string::npos) {
    const std::string section = key.substr(0, dot);
    map = Under(section, model);
    if (map == nullptr) map = &Add(section, Map(), model);
  }
  Comment({.beside = "# " + said.from, .column = kColumn}, Add(key.substr(dot + 1), ScalarNode(ValueOf(said)), *map));
}

// A comment at the end of a map.
void AddRemark(const std::string& text, YamlNode& map) {
  constexpr size_t kWidth = 100;
  YamlStyle style = *map.style;
  std::string line = "#";
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    if (line.size() + 1 + word.size() > kWidth) style.tail.above.push_back(std::exchange(line, "#"));
    absl::StrAppend(&line, " ", word);
  }
  style.tail.above.push_back(std::move(line));
  map.style = std::make_shared<const YamlStyle>(std::move(style));
}

YamlNode TreeOf(const SaidModel& model, const SaidPart& part) {
  YamlNode map = Map();
  Add("kind", ScalarNode(part.statement->kind), map);
  for (const auto& [key, said] : part.numbers) AddNumber(key, said, map);
  for (const DialectRemark& remark : model.dialects->RootOf(*part.dialect).remarks) {
    YamlNode* of = remark.section.empty() ? &map : Under(remark.section, map);
    if (of != nullptr && !(remark.alone && model.composite())) AddRemark(remark.text, *of);
  }
  return map;
}

}  // namespace

std::string NameInRecipe(const SaidModel& model, const SaidPart& part) {
  // What is known by its keys has no type of its own.
  return part.dialect->where.empty() ? part.dialect->name() : model.dialects->RootOf(*part.dialect).name();
}

YamlNode ModelsTree(const SaidModel& model, const std::string& source, const std::string& kind,
                    const std::string& weights) {
  YamlNode tree = Map();
  std::vector<std::string> header = {
      absl::StrCat("# Written by `plan import` of ", Printable(source), " (", Printable(kind),
                   "): of config.json and the headers of its"),
      "# weights. A file to extend: modules name its models. A comment says where each number came from."};
  if (!weights.empty() && IsPrintable(weights)) {
    header.emplace_back("# To begin with its weights, from the folder of this file:");
    header.push_back(absl::StrCat(kWeightsComment, weights, "}"));
  }
  Comment({.above = std::move(header)}, tree);
  YamlNode& models = Add("models", Map(), tree);
  for (const std::optional<SaidPart>* part : {&model.encoder, &model.language}) {
    if (!*part) continue;
    const bool second = !models.entries.empty();
    YamlNode& map = Add(NameInRecipe(model, **part), TreeOf(model, **part), models);
    if (second) Comment({.blank = true}, map);
  }
  if (!model.image_token) return tree;
  YamlNode data = Map();
  data.style = std::make_shared<const YamlStyle>(YamlStyle{.form = YamlStyle::Form::kFlow});
  Add("image_token", ScalarNode(ValueOf(*model.image_token)), data);
  Comment({.blank = true, .beside = "# " + model.image_token->from}, Add("data", std::move(data), tree));
  return tree;
}

std::string SourceOf(const YamlNode& number) {
  if (!number.comments) return "";
  const std::string& beside = number.comments->beside;
  const std::string line = beside.empty() && !number.comments->above.empty() ? number.comments->above[0] : beside;
  return line.empty() ? "" : line.substr(2);
}

std::string WeightsInComment(const std::string& text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, kWeightsComment)) continue;
    absl::ConsumeSuffix(&line, "\r");
    const std::optional<YamlNode> tree = ParseValue(std::string(line.substr(2)));
    const YamlNode* from = tree ? NodeAt(*tree, "initialize.from") : nullptr;
    return from != nullptr && from->is_scalar() ? from->text : "";
  }
  return "";
}

}  // namespace planwright
