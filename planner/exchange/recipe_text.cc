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

std::string ValueOf(int64_t number) { return absl::StrCat(number); }
// With a dot, as YAML 1.1 takes 1e-05 for a text.
std::string ValueOf(double number) {
  std::string text = ShortestText(number);
  if (text.find('.') == std::string::npos) text.insert(std::min(text.find('e'), text.size()), ".0");
  return text;
}
std::string ValueOf(const std::string& word) { return word; }
std::string ValueOf(bool flag) { return flag ? "true" : "false"; }

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

// A number with where it came from beside it, in one column.
void AddWord(const std::string& key, const std::string& value, const std::string& from, YamlNode& map) {
  constexpr size_t kColumn = 28;
  Comment({.beside = "# " + from, .column = kColumn}, Add(key, ScalarNode(value), map));
}

// The same at a key of the model, such as "moe.top_k". Keys of a section come one after the other.
template <typename T>
void AddSize(const std::string& key, const Sourced<T>& number, YamlNode& model) {
  const size_t dot = key.find('.');
  YamlNode* map = &model;
  if (dot != std::string::npos) {
    const std::string section = key.substr(0, dot);
    map = model.Find(section) == nullptr ? &Add(section, Map(), model) : &model.entries.back().value;
  }
  AddWord(key.substr(dot + 1), ValueOf(number.value), number.from, *map);
}

// Lines at the end of a map.
void AddRemark(const std::vector<std::string>& lines, YamlNode& map) {
  YamlStyle style = *map.style;
  style.tail.above = lines;
  map.style = std::make_shared<const YamlStyle>(std::move(style));
}

YamlNode EncoderOf(const EncoderSizes& sizes, const ProjectorSizes* projector) {
  YamlNode map = Map();
  Add("kind", ScalarNode("radio_vit"), map);
  EachSize(sizes, [&](const std::string& key, const auto& number) {
    AddSize(key, number, map);
    if (key == "norm_eps") AddSize("init_std", sizes.init_std, map);
  });
  AddWord("positions", "interpolate", "as published models run; crop is an augmentation of training", map);
  if (projector != nullptr) {
    EachSize(*projector, [&](const std::string& key, const auto& number) { AddSize(key, number, map); });
  } else {
    AddRemark({"# This encoder comes without a projector: a recipe that extends this file adds",
               "# models.radio.projector.hidden, and pixel_shuffle where it is not 2."},
              map);
  }
  return map;
}

YamlNode LanguageOf(const LanguageSizes& sizes) {
  YamlNode map = Map();
  Add("kind", ScalarNode("hybrid_lm"), map);
  EachSize(sizes, [&](const std::string& key, const auto& number) {
    if (key == "norm_eps") AddSize("init_std", sizes.init_std, map);
    if (key == "pattern") {  // it is long: the comment goes above
      YamlNode pattern = ScalarNode(ValueOf(number.value), {}, /*quoted=*/true);
      Comment({.above = {"# " + number.from}}, Add(key, std::move(pattern), map));
    } else {
      AddSize(key, number, map);
    }
    if (key == "mamba.conv") AddSize("mamba.chunk", sizes.mamba_chunk, map);
    if (key == "moe.scale") {
      AddRemark({"# config.json does not say how the load of experts is balanced: see aux_loss and bias_rate."},
                map.entries.back().value);
    }
  });
  return map;
}

}  // namespace

YamlNode ModelsTree(const ModelSizes& sizes, const std::string& source, const std::string& kind,
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
  if (sizes.encoder)
    Add(kEncoderName, EncoderOf(*sizes.encoder, sizes.projector ? &*sizes.projector : nullptr), models);
  if (sizes.language) {
    YamlNode& language = Add(kLanguageName, LanguageOf(*sizes.language), models);
    if (sizes.encoder) Comment({.blank = true}, language);
  }
  if (!sizes.image_token) return tree;
  YamlNode data = Map();
  data.style = std::make_shared<const YamlStyle>(YamlStyle{.form = YamlStyle::Form::kFlow});
  Add("image_token", ScalarNode(ValueOf(sizes.image_token->value)), data);
  Comment({.blank = true, .beside = "# " + sizes.image_token->from}, Add("data", std::move(data), tree));
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
