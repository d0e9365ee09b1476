#include "planner/exchange/recipe_text.h"

#include <algorithm>

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

// Lines of a map, comments in one column.
class Lines {
 public:
  explicit Lines(RecipeText& recipe) : text_(recipe.text), lines_(recipe.lines) {}

  void Open(int indent, const std::string& key) {
    text_ += std::string(static_cast<size_t>(indent), ' ') + key + ":\n";
  }
  void Plain(int indent, const std::string& line) {
    text_ += std::string(static_cast<size_t>(indent), ' ') + line + "\n";
  }

  template <typename T>
  void Add(int indent, const std::string& key, const Sourced<T>& number) {
    AddText(indent, key, ValueOf(number.value), number.from);
  }
  void AddText(int indent, const std::string& key, const std::string& value, const std::string& comment) {
    constexpr size_t kColumn = 28;
    Know(value, comment);
    std::string line = std::string(static_cast<size_t>(indent), ' ') + key + ": " + value;
    line.resize(std::max(line.size() + 2, kColumn), ' ');
    text_ += line + "# " + comment + "\n";
  }
  // Where the number of the next line comes from.
  void Know(const std::string& value, const std::string& from) {
    lines_[1 + static_cast<int>(std::count(text_.begin(), text_.end(), '\n'))] = {value, from};
  }

 private:
  std::string& text_;
  std::map<int, RecipeText::Number>& lines_;
};

void AddEncoder(const EncoderSizes& sizes, const ProjectorSizes* projector, Lines& lines) {
  lines.Open(2, kEncoderName);
  lines.Plain(4, "kind: radio_vit");
  lines.Add(4, "layers", sizes.layers);
  lines.Add(4, "hidden", sizes.hidden);
  lines.Add(4, "heads", sizes.heads);
  lines.Add(4, "ffn", sizes.ffn);
  lines.Add(4, "patch", sizes.patch);
  lines.Add(4, "class_tokens", sizes.class_tokens);
  lines.Add(4, "max_image", sizes.max_image);
  lines.Add(4, "norm_eps", sizes.norm_eps);
  lines.Add(4, "init_std", sizes.init_std);
  lines.Add(4, "activation", sizes.activation);
  lines.Add(4, "final_norm", sizes.final_norm);
  lines.AddText(4, "positions", "interpolate", "as published models run; crop is an augmentation of training");
  if (projector == nullptr) {
    lines.Plain(4, "# This encoder comes without a projector: a recipe that extends this file adds");
    lines.Plain(4, "# models.radio.projector.hidden, and pixel_shuffle where it is not 2.");
    return;
  }
  lines.Add(4, "pixel_shuffle", projector->pixel_shuffle);
  lines.Open(4, "projector");
  lines.Add(6, "hidden", projector->hidden);
  lines.Add(6, "norm_eps", projector->norm_eps);
}

void AddLanguage(const LanguageSizes& sizes, Lines& lines) {
  lines.Open(2, kLanguageName);
  lines.Plain(4, "kind: hybrid_lm");
  lines.Plain(4, "# " + sizes.pattern.from);
  lines.Know("\"" + sizes.pattern.value + "\"", sizes.pattern.from);
  lines.Plain(4, "pattern: \"" + sizes.pattern.value + "\"");
  lines.Add(4, "hidden", sizes.hidden);
  lines.Add(4, "vocabulary", sizes.vocabulary);
  lines.Add(4, "init_std", sizes.init_std);
  lines.Add(4, "norm_eps", sizes.norm_eps);
  if (sizes.has('*')) {
    lines.Open(4, "attention");
    lines.Add(6, "heads", sizes.heads);
    lines.Add(6, "head_dim", sizes.head_dim);
    lines.Add(6, "kv_groups", sizes.kv_groups);
  }
  if (sizes.has('M')) {
    lines.Open(4, "mamba");
    lines.Add(6, "heads", sizes.mamba_heads);
    lines.Add(6, "head_dim", sizes.mamba_head_dim);
    lines.Add(6, "groups", sizes.mamba_groups);
    lines.Add(6, "state", sizes.mamba_state);
    lines.Add(6, "conv", sizes.mamba_conv);
    lines.Add(6, "chunk", sizes.mamba_chunk);
  }
  if (sizes.has('E')) {
    lines.Open(4, "moe");
    lines.Add(6, "experts", sizes.experts);
    lines.Add(6, "top_k", sizes.top_k);
    lines.Add(6, "ffn", sizes.ffn);
    lines.Add(6, "shared_ffn", sizes.shared_ffn);
    lines.Add(6, "normalized", sizes.normalized);
    lines.Add(6, "scale", sizes.scale);
    lines.Plain(6, "# config.json does not say how the load of experts is balanced: see aux_loss and bias_rate.");
  }
  if (sizes.has('-')) {
    lines.Open(4, "mlp");
    lines.Add(6, "ffn", sizes.mlp_ffn);
  }
}

}  // namespace

RecipeText WriteRecipeText(const ModelSizes& sizes, const std::string& source, const std::string& kind,
                           const std::string& weights) {
  RecipeText recipe;
  std::string& text = recipe.text;
  text = absl::StrCat("# Written by `plan import` of ", Printable(source), " (", Printable(kind),
                      "): of config.json and the headers of its\n# weights. A file to extend: modules name "
                      "its models. A comment says where each number came from.\n");
  if (!weights.empty() && IsPrintable(weights))
    absl::StrAppend(&text, "# To begin with its weights, from the folder of this file:\n", kWeightsComment, weights,
                    "}\n");
  text += "models:\n";
  Lines lines(recipe);
  if (sizes.encoder) AddEncoder(*sizes.encoder, sizes.projector ? &*sizes.projector : nullptr, lines);
  if (sizes.encoder && sizes.language) text += "\n";
  if (sizes.language) AddLanguage(*sizes.language, lines);
  return recipe;
}

std::string WeightsInComment(const std::string& text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, kWeightsComment)) continue;
    absl::ConsumeSuffix(&line, "\r");
    Diagnostics ignored;
    const std::optional<YamlNode> tree = ParseYaml(std::string(line.substr(2)), {}, ignored);
    const YamlNode* from = tree ? NodeAt(*tree, "initialize.from") : nullptr;
    return from != nullptr && from->is_scalar() ? from->text : "";
  }
  return "";
}

std::string ImageTokenText(const ModelSizes& sizes) {
  if (!sizes.image_token) return "";
  return absl::StrCat("\ndata: {image_token: ", sizes.image_token->value, "}  # ", sizes.image_token->from, "\n");
}

}  // namespace planwright
