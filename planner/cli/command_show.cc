#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "planner/base/files/exit_status.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/near_name.h"
#include "planner/base/text/status_macros.h"
#include "planner/base/text/text.h"
#include "planner/cli/command.h"
#include "planner/cli/load_plan.h"
#include "planner/cli/page_file.h"
#include "planner/cli/terminal.h"
#include "planner/views/show/page/page.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

// What changes how a subject is shown.
struct ShowOptions {
  std::vector<int64_t> at;
  std::string role;
  size_t width = kShowWidth;
  const StepTime* time = nullptr;    // of the plan, for subjects that show it
  const ExpertRows* rows = nullptr;  // of recorded choices
};

struct ShowLine : CommandOptions {
  std::optional<std::string> page;
  ShowOptions show;
  std::optional<std::string> routing;  // folder of recorded choices
};

struct Subject {
  const char* name;
  const char* help;
  std::string (*text)(const Plan&, const ShowOptions&);
  nlohmann::ordered_json (*json)(const Plan&, const ShowOptions&);
  bool timed = false;  // it shows the predicted step
};

constexpr Subject kSubjects[] = {
    {"ranks", "node, module and coordinates of each rank",
     [](const Plan& plan, const ShowOptions& options) { return ShowRanks(plan, options.width); },
     [](const Plan& plan, const ShowOptions&) { return ShowRanksJson(plan); }},
    {"groups", "process groups, in creation order",
     [](const Plan& plan, const ShowOptions& options) { return ShowGroups(plan, options.width); },
     [](const Plan& plan, const ShowOptions&) { return ShowGroupsJson(plan); }},
    {"bridges", "which rank sends which samples to which rank",
     [](const Plan& plan, const ShowOptions& options) { return ShowBridges(plan, options.width); },
     [](const Plan& plan, const ShowOptions&) { return ShowBridgesJson(plan); }},
    {"data", "where samples come from, which lane has which, and how full lanes are",
     [](const Plan& plan, const ShowOptions& options) { return ShowData(plan, options.width); },
     [](const Plan& plan, const ShowOptions&) { return ShowDataJson(plan); }},
    {"budget", "samples, steps and the learning rate (--at 0,768,1024000)",
     [](const Plan& plan, const ShowOptions& options) { return ShowBudget(plan, options.at, options.width); },
     [](const Plan& plan, const ShowOptions& options) { return ShowBudgetJson(plan, options.at); }},
    {"schedule", "the pipeline, stage by stage",
     [](const Plan& plan, const ShowOptions& options) { return ShowSchedule(plan, *options.time, options.width); },
     [](const Plan& plan, const ShowOptions& options) { return ShowScheduleJson(plan, *options.time); },
     /*timed=*/true},
    {"model", "modules, layers and parameters",
     [](const Plan& plan, const ShowOptions& options) { return ShowModel(plan, *options.time, options.width); },
     [](const Plan& plan, const ShowOptions& options) { return ShowModelJson(plan, *options.time); },
     /*timed=*/true},
    {"time", "the predicted time of a step, and where it goes (--routing DIR)",
     [](const Plan& plan, const ShowOptions& options) {
       return ShowTime(plan, *options.time, options.rows, options.width);
     },
     [](const Plan& plan, const ShowOptions& options) { return ShowTimeJson(plan, *options.time, options.rows); },
     /*timed=*/true},
    {"memory", "bytes of a rank by category, and what its device has",
     [](const Plan& plan, const ShowOptions& options) { return ShowMemory(plan, options.width); },
     [](const Plan& plan, const ShowOptions&) { return ShowMemoryJson(plan); }},
    {"program", "every instruction of every role (--role NAME)",
     [](const Plan& plan, const ShowOptions& options) { return ShowProgram(plan, options.role, options.width); },
     [](const Plan& plan, const ShowOptions& options) { return ShowProgramJson(plan, options.role); }},
};

absl::StatusOr<const Subject*> FindSubject(const std::string& name) {
  std::vector<std::string> names;
  for (const Subject& subject : kSubjects) {
    if (name == subject.name) return &subject;
    names.push_back(subject.name);
  }
  return absl::InvalidArgumentError("there is no subject `" + name + "`; " +
                                    NearNameHelp(name, names, "`plan show --help` lists the subjects"));
}

// An option that is for one subject stands with that one alone.
absl::Status CheckOptions(const ShowLine& line, std::string_view subject) {
  constexpr std::pair<const char*, std::string_view> kSubjects[] = {
      {"--at", "budget"}, {"--role", "program"}, {"--routing", "time"}};
  for (const auto& [option, of] : kSubjects) {
    if (line.has(option) && subject != of)
      return absl::InvalidArgumentError(Cat("option `", option, "` is for `", of, "`"));
  }
  return absl::OkStatus();
}

absl::Status CheckRole(const Plan& plan, const std::string& role) {
  std::vector<std::string> names;
  for (const Role& known : plan.roles) {
    if (role.empty() || known.name == role) return absl::OkStatus();
    names.push_back(known.name);
  }
  return absl::InvalidArgumentError("there is no role `" + role + "`; " +
                                    NearNameHelp(role, names, "`plan show RECIPE ranks --json` lists the roles"));
}

// Writes the page of a plan into a file.
int ShowPage(const RecipeWords& words, const std::string& file, bool as_json) {
  std::error_code error;
  if (std::filesystem::equivalent(words.path, file, error))
    return UsageError(file + " is the recipe: --html names the file of the page");
  if (absl::Status status = CheckPageFile(file); !status.ok()) return UsageError(status);
  const LoadedPlan loaded = LoadTimedPlan(words.path, words.overrides);
  loaded.PrintProblems(as_json);
  if (!loaded.plan) return loaded.exit_status();
  const absl::Status status = WritePageFile(file, PlanPage(*loaded.plan, *loaded.time));
  return status.ok() ? kExitSuccess : UsageError(status);
}

// "0,768,1024000".
absl::StatusOr<std::vector<int64_t>> ReadSamples(const std::string& name, const std::string& text) {
  constexpr WholeNumbers kSamples{0, kMostSamples};
  std::vector<int64_t> samples;
  std::string list = text;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    ABSL_ASSIGN_OR_RETURN(const int64_t number, kSamples(name, list.substr(0, comma)));
    samples.push_back(number);
    list = comma == std::string::npos ? "" : list.substr(comma + 1);
  }
  return samples;
}

int Show(const ShowLine& line) {
  std::vector<std::string> names;
  if (!line.page)
    names.push_back("subject (ranks, groups, bridges, data, budget, schedule, model, time, memory, program)");
  const absl::StatusOr<RecipeWords> words = SplitWords(line, names);
  if (!words.ok()) return UsageError(words.status());
  if (line.page) return ShowPage(*words, *line.page, line.json);
  const absl::StatusOr<const Subject*> subject = FindSubject(words->names[0]);
  if (!subject.ok()) return UsageError(subject.status());
  if (absl::Status status = CheckOptions(line, words->names[0]); !status.ok()) return UsageError(status);
  const bool routed = line.routing.has_value();
  LoadedPlan loaded = (*subject)->timed && !routed ? LoadTimedPlan(words->path, words->overrides)
                                                   : LoadPlan(words->path, words->overrides);
  loaded.PrintProblems(line.json);
  if (!loaded.plan) return loaded.exit_status();
  ShowOptions options = line.show;
  options.width = LineWidth(STDOUT_FILENO, kShowWidth);
  absl::StatusOr<ExpertRows> rows = ExpertRows();
  if (routed) {
    rows = ReadExpertRows(*loaded.plan, *line.routing);
    if (!rows.ok()) return UsageError(rows.status());
    options.rows = &*rows;
    loaded.time = TimeStep(*loaded.plan, RatesOf(*loaded.plan), &*rows);
  }
  if (loaded.time) options.time = &*loaded.time;
  if (absl::Status status = CheckRole(*loaded.plan, options.role); !status.ok()) return UsageError(status);
  if (line.json) {
    std::cout << JsonText((*subject)->json(*loaded.plan, options), 2) << "\n";
  } else {
    std::cout << (*subject)->text(*loaded.plan, options);
  }
  return kExitSuccess;
}

std::string SubjectsText() {
  std::string text = "subjects:\n";
  for (const Subject& subject : kSubjects) {
    text += "  " + std::string(subject.name) + std::string(10 - std::string_view(subject.name).size(), ' ') +
            subject.help + "\n";
  }
  return text;
}

}  // namespace

std::vector<std::string> ShowSubjects() {
  std::vector<std::string> names;
  for (const Subject& subject : kSubjects) names.emplace_back(subject.name);
  return names;
}

CliCommand ShowCommand() {
  CliCommand command = {"show", "prints one part of the plan, or draws all of it as a page", Runs(Show), "rs+"};
  command.usage = "RECIPE SUBJECT [OVERRIDE ...] [--json] | RECIPE [OVERRIDE ...] --html FILE";
  command.options = {
      JsonOption("print the data for scripts"),
      Option("--html FILE", &ShowLine::page, "write the whole plan as one page for a browser; `-` is stdout").Writes(),
      {"--at SAMPLES", At(&ShowLine::show, &ShowOptions::at),
       "budget: learning rate and weight decay at these sample counts, comma separated", ReadSamples},
      {"--role NAME", At(&ShowLine::show, &ShowOptions::role), "program: only this role"},
      {"--routing DIR", &ShowLine::routing,
       "time: rows of experts as `plan launch --record-routing DIR` recorded them"},
  };
  command.details = SubjectsText();
  command.examples = {
      {"plan show recipes/nemotron_moe_vlm_20l_mock_8r.yaml ranks", "which ranks each module has"},
      {"plan show recipes/nemotron_moe_vlm_20l_2g.yaml memory modules.language.recompute=full",
       "memory with other settings"},
  };
  command.see_also = {"validate", "tune"}, command.pages = {"docs/memory.md", "docs/step_time.md"};
  return command;
}

}  // namespace planwright
