// `plan help`: describes commands, and writes them as man pages.
#include <iostream>

#include "nlohmann/json.hpp"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/near_name.h"
#include "planner/base/text/text.h"
#include "planner/cli/manual.h"
#include "planner/cli/own_file.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

Json CommandJson(const CliCommand& command) {
  Json options = Json::array();
  for (const Option& option : WithHelp(command)) {
    options.push_back(
        {{"name", option.name}, {"short", option.short_name}, {"value", option.value}, {"help", option.help}});
  }
  Json examples = Json::array();
  for (const CommandExample& example : command.all_examples())
    examples.push_back({{"command", example.command}, {"does", example.does}});
  return {{"name", command.name},       {"summary", command.summary}, {"usage", command.usage},
          {"details", command.details}, {"options", options},         {"examples", examples}};
}

// planwright.1 is plan.1: both names are asked for.
int WriteManPages(const std::string& folder, bool json) {
  std::vector<std::pair<std::string, std::string>> pages = {{"plan.1", ManOverview()}, {"planwright.1", ManOverview()}};
  for (const CliCommand& command : Commands()) pages.emplace_back(Cat("plan-", command.name, ".1"), ManPage(command));
  absl::Status status = MakeDirectories(folder);
  for (const auto& [name, text] : pages) {
    if (status.ok()) status = CheckOnlyOwn(Cat(folder, "/", name), "man page of `plan`", BeginsManPage);
  }
  Json files = Json::array();
  for (const auto& [name, text] : pages) {
    if (status.ok()) status = WriteNamedFile(Cat(folder, "/", name), text);
    files.push_back(Cat(folder, "/", name));
  }
  if (!status.ok()) return UsageError(status);
  if (json) {
    std::cout << JsonText(Json{{"pages", files}}, 2) << "\n";
  } else {
    std::cout << pages.size() << " man pages are in " << folder << "\n";
  }
  return kExitSuccess;
}

struct HelpOptions : CommandOptions {
  std::optional<std::string> man;
};

int Help(const HelpOptions& options) {
  if (options.man) {
    if (!options.words.empty()) return UsageError("`plan help --man DIR` writes the pages of all commands");
    return WriteManPages(*options.man, options.json);
  }
  const std::vector<CliCommand> commands = Commands();
  Json all = Json::array();
  std::vector<std::string> names;
  for (const CliCommand& command : commands) {
    names.push_back(command.name);
    all.push_back(CommandJson(command));
  }
  if (options.words.empty()) {
    std::cout << (options.json ? JsonText(Json{{"commands", all}}, 2) + "\n" : OverviewText());
    return kExitSuccess;
  }
  std::string text;
  Json asked = Json::array();
  for (const std::string& word : options.words) {
    const auto at = std::find(names.begin(), names.end(), word);
    if (at == names.end())
      return UsageError(Cat("no command `", word, "`; ",
                            NearNameHelp(word, names, Cat("`plan explain ", word, "` explains other words"))));
    const size_t index = static_cast<size_t>(at - names.begin());
    Append(text, text.empty() ? "" : "\n", HelpText(commands[index]));
    asked.push_back(all[index]);
  }
  std::cout << (options.json ? JsonText(Json{{"commands", asked}}, 2) + "\n" : text);
  return kExitSuccess;
}

}  // namespace

CliCommand HelpCommand() {
  CliCommand command = {"help", "describes the commands, also as man pages", Runs(Help), "mmmmmmmm"};
  command.usage = "[COMMAND ...] [--man DIR] [--json]";
  command.options = {
      Option("--man DIR", &HelpOptions::man,
             "write a man page for each command into this folder, and plan.1 for all of them")
          .Writes()
          .With({"plan help --man ~/.local/share/man/man1", "writes the man pages; then `man plan-launch` works"}),
      JsonOption("print the commands with their options for scripts"),
  };
  command.details = "`plan help COMMAND` is `plan COMMAND --help`. Man finds pages in the folders man1 of MANPATH.\n";
  command.examples = {{"plan help launch", "describes a command"}};
  command.see_also = {"explain", "completion"}, command.pages = {"docs/help.md"};
  return command;
}

}  // namespace planwright
