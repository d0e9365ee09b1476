// `plan complete`, which shells call. `plan help` does not list it.
#include <algorithm>
#include <iostream>
#include <optional>
#include <set>

#include "absl/strings/str_split.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"
#include "planner/cli/completion.h"
#include "planner/cli/explained_subjects.h"
#include "planner/recipe/override_keys.h"
#include "planner/recipe/recipe_tree.h"

namespace planwright {
namespace {

// The line before the cursor, and the word at it.
struct Line {
  std::vector<std::string> before;  // without the command; "a=b" is one word
  std::string word;
  bool has_key = false;  // the word is behind a `=`
  std::string key;       // what is before it
};

// bash gives a=b as three words, and a= at the cursor as two.
Line LineOf(const std::vector<std::string>& words) {
  std::vector<std::string> joined;
  for (size_t i = 1; i < words.size(); ++i) {
    const bool parted = words[i] == "=" && !joined.empty();
    if (!parted) {
      joined.push_back(words[i]);
      continue;
    }
    joined.back() += "=" + (i + 1 < words.size() ? words[++i] : "");
  }
  Line line;
  if (joined.empty()) return line;
  line.word = joined.back();
  joined.pop_back();
  line.before = std::move(joined);
  if (const size_t equals = line.word.find('='); equals != std::string::npos) {
    line.has_key = true;
    line.key = line.word.substr(0, equals);
    line.word.erase(0, equals + 1);
  }
  return line;
}

// What begins as the word at the cursor does.
class Candidates {
 public:
  explicit Candidates(std::string word) : word_(std::move(word)) {}
  void Offer(const std::string& candidate, const std::string& meaning = "") const {
    if (candidate.starts_with(word_))
      std::cout << Printable(candidate) << (meaning.empty() ? "" : "\t" + Printable(meaning)) << "\n";
  }
  template <typename List>
  void OfferAll(const List& candidates) const {
    for (const auto& candidate : candidates) Offer(std::string(candidate));
  }
  // `ends`: as behind ":files".
  void Files(const char* ends) const { std::cout << ":files" << ends << "\n"; }

 private:
  const std::string word_;
};

std::vector<OverrideKey> KeysOf(const std::string& recipe) {
  Diagnostics problems;
  const std::optional<YamlNode> tree = ReadRecipeTree(recipe, {}, problems);
  return tree ? OverrideKeys(*tree) : std::vector<OverrideKey>();
}

// What `plan explain` knows, but for names that have spaces or stand for others.
std::set<std::string> ExplainedWords() {
  std::set<std::string> words;
  for (const Subject& subject : ExplainedSubjects()) {
    words.insert(subject.name);
    words.insert(subject.names.begin(), subject.names.end());
  }
  std::erase_if(words, [](const std::string& word) {
    return word.size() < 2 || word.find_first_of(" <[#'") != std::string::npos;
  });
  return words;
}

const Option* FindOption(const std::vector<Option>& options, const std::string& name) {
  const auto at = std::find_if(options.begin(), options.end(), [&](const Option& option) {
    return !name.empty() && (option.name == name || option.short_name == name);
  });
  return at == options.end() ? nullptr : &*at;
}

void OfferValues(const Option& option, const Candidates& to) {
  if (option.value == "FILE") to.Files("");
  if (option.value == "DIR") to.Files(" /");
  if (option.value.find('|') != std::string::npos)
    to.OfferAll(std::vector<std::string>(absl::StrSplit(option.value, '|')));
}

void OfferWords(char kind, const Candidates& to) {
  switch (kind) {
    case 'r': return to.Files(" .yaml .yml .json");
    case 's': return to.OfferAll(ShowSubjects());
    case 'k': return to.OfferAll(ExplainedWords());
    case 'h': return to.OfferAll(std::vector{"bash", "zsh"});
    case 'c': return to.OfferAll(std::vector{"ls", "show", "verify"});
    case 'a': return to.OfferAll(std::vector{"index", "stats", "trace"});
    case 'd': return to.Files(" /");
    case 'f': return to.Files("");
    case 'm':
      for (const CliCommand& command : Commands()) to.Offer(command.name, command.summary);
      return;
    default: return;
  }
}

void OfferForCommand(const CliCommand& command, const Line& line) {
  const Candidates to(line.word);
  const std::vector<Option> options = WithHelp(command);
  // The words before, without options and overrides; and the option whose value the word is.
  std::vector<std::string> given;
  const Option* option = line.has_key ? FindOption(options, line.key) : nullptr;
  for (size_t i = 0; i < line.before.size(); ++i) {
    const std::string& word = line.before[i];
    const Option* of = FindOption(options, word);
    if (of && !of->value.empty()) {
      if (++i == line.before.size()) option = of;
    } else if (!word.starts_with('-') && word.find('=') == std::string::npos) {
      given.push_back(word);
    }
  }
  if (option) return OfferValues(*option, to);
  const bool overrides = command.words.ends_with('+');
  const bool acts = command.words.starts_with('a');
  const std::string recipe = given.size() <= (acts ? 1 : 0) ? "" : command.name == "diff" ? given.back() : given[acts];
  if (line.has_key) {
    for (const OverrideKey& key : overrides ? KeysOf(recipe) : std::vector<OverrideKey>()) {
      if (key.path == line.key) to.OfferAll(key.choices);
    }
    return;
  }
  if (line.word.starts_with('-')) {
    for (const Option& one : options) {
      to.Offer(one.name, one.help);
      if (!one.short_name.empty()) to.Offer(one.short_name, one.help);
    }
    return;
  }
  const size_t words = command.words.size() - (overrides ? 1 : 0);
  const char kind = given.size() < words ? command.words[given.size()] : command.words == "k" ? 'k' : ' ';
  OfferWords(kind, to);
  if (!overrides || recipe.empty() || kind == 's' || recipe.ends_with(".json")) return;
  std::cout << ":nospace\n";
  for (const OverrideKey& key : KeysOf(recipe)) to.Offer(key.path + "=");
}

}  // namespace

int PrintCompletions(const std::vector<std::string>& words) {
  const std::vector<CliCommand> commands = Commands();
  if (words.size() < 2) {
    const Candidates to(words.empty() ? "" : words[0]);
    for (const CliCommand& command : commands) to.Offer(command.name, command.summary);
    to.Offer("--help", "list the commands");
    to.Offer("--version", "print the version");
    return kExitSuccess;
  }
  for (const CliCommand& command : commands) {
    if (command.name == words[0]) OfferForCommand(command, LineOf(words));
  }
  return kExitSuccess;
}

}  // namespace planwright
