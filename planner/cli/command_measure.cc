// `plan measure`: what a device takes for the instructions of recipes (docs/measure.md).
#include <algorithm>
#include <iostream>
#include <map>

#include "planner/cli/command.h"
#include "planner/cli/data_index.h"
#include "planner/cli/launch_report.h"
#include "planner/cli/load_plan.h"
#include "planner/cli/own_program.h"
#include "planner/diagnostics/utf8.h"
#include "planner/measure/measure_parts.h"
#include "planner/outcome/outcome_text.h"
#include "planner/plan/json_text.h"
#include "planner/run_files/exit_status.h"
#include "planner/run_files/outcome.h"
#include "planner/samples/sample_source.h"

namespace planwright {
namespace {

struct MeasuredRecipe {
  std::string path;
  std::vector<std::string> overrides;
};

// RECIPE [OVERRIDE ...] RECIPE [OVERRIDE ...]: overrides are of the recipe before them.
absl::StatusOr<std::vector<MeasuredRecipe>> RecipesOf(const Arguments& arguments) {
  std::vector<MeasuredRecipe> recipes;
  for (const std::string& word : arguments.words) {
    const bool recipe = word.find('=') == std::string::npos;
    if (!recipe && recipes.empty())
      return absl::InvalidArgumentError("the override `" + word + "` stands before every recipe");
    if (recipe) recipes.push_back({word, {}});
    if (!recipe) recipes.back().overrides.push_back(word);
  }
  if (recipes.empty()) return absl::InvalidArgumentError("`plan measure` needs a RECIPE: its sizes are measured");
  return recipes;
}

// Sizes around those of a plan, each as overrides.
std::vector<std::vector<std::string>> SizesAround(const Plan& plan) {
  const Budget& budget = plan.budget;
  std::vector<std::vector<std::string>> around;
  const auto length = [&](int64_t tokens) { around.push_back({"batch.sequence_length=" + std::to_string(tokens)}); };
  length(2 * budget.sequence_length);
  if (budget.sequence_length % 2 == 0) length(budget.sequence_length / 2);
  around.push_back({"batch.micro_samples=" + std::to_string(2 * budget.micro_samples)});
  return around;
}

std::string NameOf(const MeasuredRecipe& recipe, const std::vector<std::string>& more) {
  std::string name = recipe.path;
  for (const auto* overrides : {&recipe.overrides, &more}) {
    for (const std::string& word : *overrides) name += " " + word;
  }
  return name;
}

// Why a size around a recipe's cannot be measured; empty: it can.
std::string ProblemOf(const LoadedPlan& loaded) {
  // Rows of recorded batches have one length, and documents that are longer than a sample may be mistakes.
  if (loaded.plan) return std::string(OpenSampleSource(*loaded.plan).status().message());
  for (const Diagnostic& problem : loaded.problems.sorted()) {
    if (problem.severity == Severity::kError) return problem.message;
  }
  return "it does not compile";
}

// The parts of all recipes. A recipe must compile, and its data be of use, of which this makes the index. Sizes around
// it of which that is not so are left out, which is said. Returns kExitSuccess, or the status of the recipe that is
// wrong.
int PartsOf(const std::vector<MeasuredRecipe>& recipes, bool as_json, std::vector<MeasurePart>& parts) {
  const auto add = [&](Plan plan, const std::string& what) {
    const bool known = std::any_of(parts.begin(), parts.end(),
                                   [&](const MeasurePart& part) { return part.plan.digest == plan.digest; });
    if (!known) parts.push_back({std::move(plan), what});
  };
  for (const MeasuredRecipe& recipe : recipes) {
    LoadedPlan loaded = LoadPlan(recipe.path, recipe.overrides);
    loaded.PrintProblems(as_json);
    if (!loaded.plan) return loaded.exit_status();
    std::map<std::string, std::string> digests;
    if (const int status = MakeIndexBeforeRanks(*loaded.plan, digests); status != kExitSuccess) return status;
    const std::vector<std::vector<std::string>> around = SizesAround(*loaded.plan);
    add(*std::move(loaded.plan), NameOf(recipe, {}));
    if (recipe.path.ends_with(".json")) continue;  // of a compiled plan there are no other sizes
    for (const std::vector<std::string>& more : around) {
      std::vector<std::string> overrides = recipe.overrides;
      overrides.insert(overrides.end(), more.begin(), more.end());
      LoadedPlan other = LoadPlan(recipe.path, overrides);
      const std::string name = NameOf(recipe, more);
      if (const std::string problem = ProblemOf(other); !problem.empty()) {
        std::cerr << PrintableLines("left out: " + name + ": " + problem) << "\n";
      } else {
        add(*std::move(other.plan), name);
      }
    }
  }
  return kExitSuccess;
}

// What was written and how much is in it.
void PrintMeasured(const std::string& path, const DeviceProfile& profile, bool as_json) {
  if (as_json) {
    std::cout << JsonText(nlohmann::ordered_json({{"path", path},
                                                  {"device", profile.device},
                                                  {"compute", profile.compute.size()},
                                                  {"communication", profile.communication.size()}}),
                          2)
              << "\n";
    return;
  }
  std::cout << "wrote " << Printable(path) << ": " << Printable(profile.device) << ", " << profile.compute.size()
            << " uses of instructions, " << profile.communication.size() << " of communications\n";
}

int Measure(const Arguments& arguments) {
  const bool as_json = arguments.has("--json");
  for (const char* other : {"--slurm", "--agents"}) {
    if (arguments.has(other))
      return UsageError(std::string("`plan measure ") + other +
                        "` is not built yet: measure with --local on a machine of each kind");
  }
  if (!arguments.has("--output")) return UsageError("nothing says where to write the profile: give -o PROFILE.json");
  // Else it would only show after the last part.
  if (arguments.value("--output")->empty())
    return UsageError("option `-o` needs the name of a file; found an empty one");
  const absl::StatusOr<std::vector<MeasuredRecipe>> recipes = RecipesOf(arguments);
  if (!recipes.ok()) return UsageError(std::string(recipes.status().message()));
  MeasureOptions options;
  options.output = *arguments.value("--output");
  options.executor = arguments.value("--executor").value_or(ExecutorBesidePlan());
  options.device = arguments.value("--device").value_or("");
  if (!options.device.empty() && options.device != "cpu" && options.device != "cuda")
    return UsageError("--device must be cpu or cuda; found `" + options.device + "`");
  options.progress = [](const std::string& line) { std::cerr << Printable(line) << std::endl; };
  std::vector<MeasurePart> parts;
  if (const int status = PartsOf(*recipes, as_json, parts); status != kExitSuccess) return status;
  const absl::StatusOr<Measured> measured = MeasureParts(parts, options);
  if (!measured.ok()) return ReportFailedLaunch(measured.status());
  if (measured->failed) {
    if (as_json) {
      nlohmann::ordered_json json = OutcomeJson(*measured->failed);
      json["part"] = measured->failed_part, json["run_dir"] = measured->failed_run;
      std::cout << JsonText(json, 2) << "\n";
    }
    std::cerr << PrintableLines(OutcomeText(*measured->failed)) << Printable(measured->failed_part)
              << " was not measured; its run directory: " << Printable(measured->failed_run)
              << "\nthe same command goes on with it: parts that are done are kept\n";
    return measured->failed->exit_code;
  }
  PrintMeasured(options.output, measured->profile, as_json);
  return kExitSuccess;
}

}  // namespace

CliCommand MeasureCommand() {
  return {"measure",
          "measures what a device takes for the instructions of recipes",
          "RECIPE [OVERRIDE ...] [RECIPE ...] -o PROFILE.json [--local] [--device cpu|cuda]",
          {{"--output", "-o", "FILE", "write the profile there; cluster.profile of a recipe names it"},
           {"--local", "", "", "run all ranks on this machine, which is the only way so far"},
           {"--slurm", "", "", "not built yet"},
           {"--agents", "", "", "not built yet"},
           {"--device", "", "cpu|cuda", "where ranks compute; default: cuda if the recipe's cluster has GPUs"},
           {"--executor", "", "FILE", "the executor program; default: the one beside `plan`"},
           {"--json", "", "", "print path, device and size of the profile, or the outcome of a part that failed"}},
          "Each recipe runs for a few steps, and again with sequences of twice and half the length and with twice the\n"
          "samples of a microbatch. Times are those of the last steps, inside the training. Overrides follow their\n"
          "recipe. Parts that are done are kept in PROFILE.json.parts until all are: the same command goes on.\n",
          Measure,
          "r+"};
}

}  // namespace planwright
