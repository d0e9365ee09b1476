#include "planner/cli/explained_subjects.h"

#include <map>

#include "absl/strings/str_join.h"
#include "planner/base/text/text.h"
#include "planner/cli/command.h"

namespace planwright {
namespace {

void AddCommands(std::vector<Subject>& subjects) {
  struct OfOption {
    std::vector<std::string> commands, helps;
    std::string text;
  };
  std::map<std::string, OfOption> options;
  for (const CliCommand& command : Commands()) {
    std::string body = command.details;
    for (const Option& option : command.options) {
      Append(body, " ", option.name, " ", option.help);
      OfOption& of = options[option.name];
      of.commands.push_back(command.name);
      of.helps.push_back(option.help);
      Append(of.text, "    plan ", command.name, " ", option.name, option.value.empty() ? "" : " ", option.value, "\n",
             IndentedLines(option.help));
    }
    subjects.push_back({SubjectType::kCommand,
                        command.name,
                        {"plan " + command.name},
                        command.summary,
                        Cat("plan ", command.name, "\n", IndentedLines(command.summary), "    usage: plan ",
                            command.name, " ", command.usage, "\n    `plan help ", command.name, "` has the options\n"),
                        body});
  }
  for (const auto& [name, of] : options) {
    const std::string commands =
        of.commands.size() > 5 ? Cat(of.commands.size(), " commands") : absl::StrJoin(of.commands, ", ");
    const std::string summary = Cat("of plan ", commands, of.commands.size() == 1 ? Cat(": ", of.helps[0]) : "");
    subjects.push_back(
        {SubjectType::kOption, name, {}, summary, Cat(name, "\n", of.text), absl::StrJoin(of.helps, " ")});
  }
}

}  // namespace

std::vector<Subject> ExplainedSubjects() {
  std::vector<Subject> subjects = AllSubjects();
  AddCommands(subjects);
  return subjects;
}

}  // namespace planwright
