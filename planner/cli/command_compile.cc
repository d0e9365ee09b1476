#include <iostream>

#include "nlohmann/json.hpp"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"
#include "planner/cli/load_plan.h"
#include "planner/cli/own_file.h"
#include "planner/plan/file_begins.h"
#include "planner/plan/plan_json.h"

namespace planwright {
namespace {

struct CompileOptions : CommandOptions {
  std::string output = "-";
};

int Compile(const CompileOptions& options) {
  const absl::StatusOr<RecipeWords> words = SplitWords(options, {});
  if (!words.ok()) return UsageError(words.status());
  if (options.output != "-") {
    const absl::Status own = CheckOnlyOwn(options.output, "plan: -o names the file of the plan", BeginsPlan);
    if (!own.ok()) return UsageError(own);
  }
  const LoadedPlan loaded = LoadPlan(words->path, words->overrides);
  loaded.PrintProblems(options.json);
  if (!loaded.plan) return loaded.exit_status();
  const std::string text = WritePlan(*loaded.plan);
  if (options.output == "-") {
    std::cout << text;
    return kExitSuccess;
  }
  if (absl::Status status = WriteNamedFile(options.output, text); !status.ok()) return UsageError(status);
  if (options.json) {
    const nlohmann::ordered_json json = {
        {"path", options.output}, {"digest", loaded.plan->digest}, {"bytes", text.size()}};
    std::cout << JsonText(json, 2) << "\n";
  } else {
    std::cerr << "wrote " << Printable(options.output) << ": " << WithCommas(static_cast<int64_t>(text.size()))
              << " bytes, digest " << loaded.plan->digest << "\n";
  }
  return kExitSuccess;
}

}  // namespace

CliCommand CompileCommand() {
  CliCommand command = {"compile", "writes the plan: the same recipe gives the same bytes", Runs(Compile), "r+"};
  command.usage = "RECIPE [OVERRIDE ...] [-o FILE]";
  command.options = {
      Option("-o, --output FILE", &CompileOptions::output,
             "where to write the plan; `-` is stdout, and so is the default")
          .Writes()
          .With({"plan compile recipes/nemotron_moe_vlm_tiny.yaml -o plan.json", "writes the plan"}),
      JsonOption("print path, digest and size of the file"),
  };
  command.details =
      "The file is written under another name and then renamed, so that nobody reads half a plan. FILE may be a\n"
      "plan that is there; any other file stays.\n";
  command.see_also = {"validate", "show", "launch"}, command.pages = {"docs/architecture.md"};
  return command;
}

}  // namespace planwright
