#include <iostream>

#include "nlohmann/json.hpp"
#include "planner/base/files/exit_status.h"
#include "planner/base/json/json_text.h"
#include "planner/cli/command.h"
#include "planner/cli/completion.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

int Completion(const CommandOptions& options) {
  const std::string shell = options.words.size() == 1 ? options.words[0] : "";
  if (shell != "bash" && shell != "zsh")
    return UsageError("no shell is given: `plan completion bash` or `plan completion zsh`");
  const std::string script(shell == "bash" ? kBashCompletion : kZshCompletion);
  std::cout << (options.json ? JsonText(Json{{"shell", shell}, {"script", script}}, 2) + "\n" : script);
  return kExitSuccess;
}

}  // namespace

CliCommand CompletionCommand() {
  CliCommand command = {"completion", "prints a script for bash or zsh that completes commands, options and keys",
                        Runs(Completion), "h"};
  command.usage = "bash | zsh";
  command.options = {
      JsonOption("print the same as JSON"),
  };
  command.details =
      "In ~/.bashrc: source <(plan completion bash)\n"
      "In ~/.zshrc, after compinit: source <(plan completion zsh)\n";
  command.examples = {{"source <(plan completion bash)", "completes in this shell"}};
  command.see_also = {"help"}, command.pages = {"docs/help.md"};
  return command;
}

}  // namespace planwright
