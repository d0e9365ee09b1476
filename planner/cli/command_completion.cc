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
  return {.name = "completion",
          .summary = "prints a script for bash or zsh that completes commands, options and keys",
          .usage = "bash | zsh",
          .options = {JsonOption("print the same as JSON")},
          .details =
              "In ~/.bashrc: source <(plan completion bash)\nIn ~/.zshrc, after compinit: source <(plan completion "
              "zsh)\n",
          .examples = {{"source <(plan completion bash)", "completes in this shell"}},
          .see_also = {"help"},
          .pages = {"docs/help.md"},
          .run = Runs(Completion),
          .words = "h"};
}

}  // namespace planwright
