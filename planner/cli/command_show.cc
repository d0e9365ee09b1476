#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "planner/base/files/exit_status.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/near_name.h"
#include "planner/cli/command.h"
#include "planner/cli/load_plan.h"
#include "planner/cli/page_file.h"
#include "planner/cli/terminal.h"
#include "planner/views/show/page/page.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

// The options that change how a subject is shown.
struct ShowOptions {
  std::vector<int64_t> at;
  std::string role;
  size_t width = kShowWidth;
  std::string routing;               // folder of recorded choices; empty: none
  const StepTime* time = nullptr;    // of the plan, for subjects that show it
  const ExpertRows* rows = nullptr;  // of `routing`
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

absl::StatusOr<ShowOptions> OptionsOf(const Arguments& arguments, const std::string& subject) {
  ShowOptions options;
  options.width = LineWidth(STDOUT_FILENO, kShowWidth);
  if (arguments.has("--at") && subject != "budget") return absl::InvalidArgumentError("option `--at` is for `budget`");
  if (arguments.has("--role") && subject != "program")
    return absl::InvalidArgumentError("option `--role` is for `program`");
  if (arguments.has("--routing") && subject != "time")
    return absl::InvalidArgumentError("option `--routing` is for `time`");
  options.role = arguments.value("--role").value_or("");
  options.routing = arguments.value("--routing").value_or("");
  std::string list = arguments.value("--at").value_or("");
  while (!list.empty()) {
    const size_t comma = list.find(',');
    absl::StatusOr<int64_t> number = IntegerOption("--at", list.substr(0, comma), 0, kMostSamples);
    if (!number.ok()) return number.status();
    options.at.push_back(*number);
    list = comma == std::string::npos ? "" : list.substr(comma + 1);
  }
  return options;
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
int ShowPage(const Arguments& arguments, const RecipeWords& words, const std::string& file) {
  std::error_code error;
  if (std::filesystem::equivalent(words.path, file, error))
    return UsageError(file + " is the recipe: --html names the file of the page");
  if (absl::Status status = CheckPageFile(file); !status.ok()) return UsageError(std::string(status.message()));
  const LoadedPlan loaded = LoadTimedPlan(words.path, words.overrides);
  loaded.PrintProblems(arguments.has("--json"));
  if (!loaded.plan) return loaded.exit_status();
  const absl::Status status = WritePageFile(file, PlanPage(*loaded.plan, *loaded.time));
  return status.ok() ? kExitSuccess : UsageError(std::string(status.message()));
}

int Show(const Arguments& arguments) {
  const std::optional<std::string> page = arguments.value("--html");
  std::vector<std::string> names;
  if (!page) names.push_back("subject (ranks, groups, bridges, data, budget, schedule, model, time, memory, program)");
  const absl::StatusOr<RecipeWords> words = SplitWords(arguments, names);
  if (!words.ok()) return UsageError(std::string(words.status().message()));
  if (page) return ShowPage(arguments, *words, *page);
  const absl::StatusOr<const Subject*> subject = FindSubject(words->names[0]);
  if (!subject.ok()) return UsageError(std::string(subject.status().message()));
  absl::StatusOr<ShowOptions> options = OptionsOf(arguments, words->names[0]);
  if (!options.ok()) return UsageError(std::string(options.status().message()));
  const bool routed = arguments.has("--routing");
  LoadedPlan loaded = (*subject)->timed && !routed ? LoadTimedPlan(words->path, words->overrides)
                                                   : LoadPlan(words->path, words->overrides);
  loaded.PrintProblems(arguments.has("--json"));
  if (!loaded.plan) return loaded.exit_status();
  absl::StatusOr<ExpertRows> rows = ExpertRows();
  if (routed) {
    rows = ReadExpertRows(*loaded.plan, options->routing);
    if (!rows.ok()) return UsageError(std::string(rows.status().message()));
    options->rows = &*rows;
    loaded.time = TimeStep(*loaded.plan, RatesOf(*loaded.plan), &*rows);
  }
  if (loaded.time) options->time = &*loaded.time;
  if (absl::Status status = CheckRole(*loaded.plan, options->role); !status.ok())
    return UsageError(std::string(status.message()));
  if (arguments.has("--json")) {
    std::cout << JsonText((*subject)->json(*loaded.plan, *options), 2) << "\n";
  } else {
    std::cout << (*subject)->text(*loaded.plan, *options);
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
  return {"show",
          "prints one part of the plan, or draws all of it as a page",
          "RECIPE SUBJECT [OVERRIDE ...] [--json] | RECIPE [OVERRIDE ...] --html FILE",
          {{"--json", "", "", "print the data for scripts"},
           {"--html", "", "FILE", "write the whole plan as one page for a browser; `-` is stdout", /*writes=*/true},
           {"--at", "", "SAMPLES", "budget: learning rate and weight decay at these sample counts, comma separated"},
           {"--role", "", "NAME", "program: only this role"},
           {"--routing", "", "DIR", "time: rows of experts as `plan launch --record-routing DIR` recorded them"}},
          SubjectsText(),
          Show,
          "rs+"};
}

}  // namespace planwright
