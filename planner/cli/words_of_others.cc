#include "planner/cli/words_of_others.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "planner/base/text/text.h"
#include "planner/recipe/field_words.h"
#include "planner/recipe/key_checks.h"
#include "planner/recipe/meant_words.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/units.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {
namespace {

// The key that is called as the option is, such as launch.slurm.partition.
std::string KeyOf(std::string_view option) {
  std::string word(option.substr(option.find_first_not_of('-')));
  std::replace(word.begin(), word.end(), '-', '_');
  return OnlyKeyCalled(word, /*of_kinds=*/true);
}

// "modules.language.parallel.tp=2": the name of a module is most often this one. What follows the option may be a file.
std::string OverrideOf(const std::string& key, std::string_view value) {
  const YamlNode node = ScalarNode(std::string(value));
  const std::span<const KeySpec> specs = RecipeKeys();
  const bool valid = !value.empty() && std::any_of(specs.begin(), specs.end(), [&](const KeySpec& spec) {
    return spec.path == key && IsValidValue(spec, node);
  });
  return Cat(absl::StrReplaceAll(key, {{"modules.<name>", "modules.language"}}), "=", valid ? value : "VALUE");
}

}  // namespace

std::string OptionOfOthers(std::string_view option, std::string_view value, bool overrides, bool gpus) {
  if (option.find_first_not_of('-') == std::string_view::npos) return "";
  const FieldWord* word = FindFieldWord(option);
  const std::vector<std::string> keys = word == nullptr ? std::vector<std::string>{KeyOf(option)} : KeysOfWord(*word);
  const std::string key = keys.empty() ? "" : keys[0];
  if (word == nullptr && key.empty()) return "";
  const bool of_cluster = key == "cluster.nodes" || key == "cluster.gpus_per_node";
  if (gpus && of_cluster) return "did you mean `--gpus`, the GPUs of all nodes?";
  const std::string whose = word == nullptr ? Cat("`", option, "`") : Cat("`", option, "` of ", word->of);
  if (word != nullptr && word->unit == FieldUnit::None) return Cat(whose, " is no option here: ", word->why);
  if (word != nullptr && (word->unit != FieldUnit::Same || !word->why.empty()))
    return Cat(whose, " is a key of the recipe, ", AnswerOf(*word));
  return Cat(whose, " is the key ", key, " of the recipe",
             overrides ? Cat(": give it as an override, ", OverrideOf(key, value)) : "");
}

std::string CommandOfOthers(std::string_view command) {
  constexpr std::pair<std::string_view, std::string_view> kCommands[] = {
      {"train", "`plan launch` trains"},
      {"pretrain", "`plan launch` trains"},
      {"run", "`plan launch` trains"},
      {"start", "`plan launch` trains"},
      {"resume", "`plan launch` into the directory of a run goes on from its newest checkpoint"}};
  for (const auto& [word, instead] : kCommands) {
    if (word == command) return std::string(instead);
  }
  const FieldWord* word = FindFieldWord(command);
  if (word == nullptr || word->unit != FieldUnit::None) return "";
  return Cat("`", command, "` of ", word->of, ": ", word->why);
}

}  // namespace planwright
