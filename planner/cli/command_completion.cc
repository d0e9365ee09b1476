#include <iostream>
#include <set>

#include "nlohmann/json.hpp"
#include "planner/base/files/exit_status.h"
#include "planner/base/json/json_text.h"
#include "planner/cli/command.h"
#include "planner/cli/completion.h"
#include "planner/cli/explained_subjects.h"
#include "planner/recipe/override_keys.h"
#include "planner/recipe/recipe_tree.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

// Prints one key a line, such as "precision.params=bf16|fp32|fp64".
int Keys(const std::string& path, bool as_json) {
  Diagnostics problems;
  const std::optional<YamlNode> recipe = ReadRecipeTree(path, {}, problems);
  if (!recipe) return UsageError("cannot read " + path + "; `plan validate " + path + "` tells why");
  Json json = Json::array();
  for (const OverrideKey& key : OverrideKeys(*recipe)) {
    json.push_back({{"key", key.path}, {"choices", key.choices}});
    if (as_json) continue;
    std::string choices;
    for (const std::string& choice : key.choices) choices += (choices.empty() ? "" : "|") + choice;
    std::cout << key.path << "=" << choices << "\n";
  }
  if (as_json) std::cout << JsonText(Json{{"keys", json}}, 2) << "\n";
  return kExitSuccess;
}

// What `plan explain` knows, one a line, but for names that have spaces or stand for others.
int Words(bool as_json) {
  std::set<std::string> words;
  for (const Subject& subject : ExplainedSubjects()) {
    words.insert(subject.name);
    words.insert(subject.names.begin(), subject.names.end());
  }
  std::erase_if(words, [](const std::string& word) {
    return word.size() < 2 || word.find_first_of(" <[#'") != std::string::npos;
  });
  if (as_json) {
    std::cout << JsonText(Json{{"words", words}}, 2) << "\n";
    return kExitSuccess;
  }
  for (const std::string& word : words) std::cout << word << "\n";
  return kExitSuccess;
}

int Completion(const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.words;
  const bool as_json = arguments.has("--json");
  if (words.size() == 2 && words[0] == "keys") return Keys(words[1], as_json);
  if (words.size() == 1 && words[0] == "words") return Words(as_json);
  if (words.size() != 1 || (words[0] != "bash" && words[0] != "zsh")) {
    return UsageError("no shell is given: `plan completion bash` or `plan completion zsh`");
  }
  const std::string script = words[0] == "bash" ? BashCompletion(Commands()) : ZshCompletion(Commands());
  if (as_json) {
    std::cout << JsonText(Json{{"shell", words[0]}, {"script", script}}, 2) << "\n";
  } else {
    std::cout << script;
  }
  return kExitSuccess;
}

}  // namespace

CliCommand CompletionCommand() {
  return {"completion",
          "prints a script for bash or zsh that completes commands, options and keys",
          "bash | zsh | keys RECIPE | words",
          {{"--json", "", "", "print the same as JSON"}},
          "In ~/.bashrc: source <(plan completion bash)\nIn ~/.zshrc, after compinit: source <(plan completion zsh)\n"
          "The scripts call `plan completion keys RECIPE`, which prints the keys that can be overridden, one a line,\n"
          "and `plan completion words`, which prints what `plan explain` knows.\n",
          Completion,
          "hr"};
}

}  // namespace planwright
