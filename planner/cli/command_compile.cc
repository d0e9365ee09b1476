#include <iostream>

#include "nlohmann/json.hpp"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"
#include "planner/cli/load_plan.h"
#include "planner/plan/plan_json.h"

namespace planwright {
namespace {

int Compile(const Arguments& arguments) {
  const absl::StatusOr<RecipeWords> words = SplitWords(arguments, {});
  if (!words.ok()) return UsageError(std::string(words.status().message()));
  const LoadedPlan loaded = LoadPlan(words->path, words->overrides);
  loaded.PrintProblems(arguments.has("--json"));
  if (!loaded.plan) return loaded.exit_status();
  const std::string text = WritePlan(*loaded.plan);
  const std::string output = arguments.value("--output").value_or("-");
  if (output == "-") {
    std::cout << text;
    return kExitSuccess;
  }
  if (absl::Status status = WriteNamedFile(output, text); !status.ok())
    return UsageError(std::string(status.message()));
  if (arguments.has("--json")) {
    const nlohmann::ordered_json json = {{"path", output}, {"digest", loaded.plan->digest}, {"bytes", text.size()}};
    std::cout << JsonText(json, 2) << "\n";
  } else {
    std::cerr << "wrote " << Printable(output) << ": " << WithCommas(static_cast<int64_t>(text.size()))
              << " bytes, digest " << loaded.plan->digest << "\n";
  }
  return kExitSuccess;
}

}  // namespace

CliCommand CompileCommand() {
  return {"compile",
          "writes the plan: the same recipe gives the same bytes",
          "RECIPE [OVERRIDE ...] [-o FILE]",
          {{"--output", "-o", "FILE", "where to write the plan; `-` is stdout, and so is the default", /*writes=*/true},
           {"--json", "", "", "print path, digest and size of the file"}},
          "The file is written under another name and then renamed, so that nobody reads half a plan.\n",
          Compile,
          "r+"};
}

}  // namespace planwright
