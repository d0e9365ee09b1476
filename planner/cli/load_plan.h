// Loads the RECIPE of a command line: compiles a recipe, or reads a compiled plan. The plan is proved in both cases.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "planner/cli/arguments.h"
#include "planner/plan/plan.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

struct LoadedPlan {
  std::optional<Plan> plan;  // nullopt: `problems` has errors
  Diagnostics problems;
  std::vector<std::string> overrides;
  // Of the plan, whose roles it names: empty without a plan, or if it was not asked for.
  std::optional<StepTime> time;

  // The exit status if there is no plan: kExitUsage if the file itself could not be read, else kExitInvalid.
  int exit_status() const;
  // Prints problems as text on stderr, in colour on a terminal. With `as_json` and without a plan, prints
  // {"valid": false, "problems"} on stdout instead, because the problems are then the command's result.
  // `sources`: texts that problems point at and that are no files, by name.
  void PrintProblems(bool as_json = false, const std::map<std::string, std::string>& sources = {}) const;
};

LoadedPlan LoadPlan(const std::string& path, const std::vector<std::string>& overrides);
// Of a recipe that is no file.
LoadedPlan LoadPlan(const YamlNode& recipe, const std::vector<std::string>& overrides);
// With the predicted step: compiling a recipe predicts it, so it is done once.
LoadedPlan LoadTimedPlan(const std::string& path, const std::vector<std::string>& overrides);

// With the files that it names compared with the plan, as far as they are on this machine (files_of_plan.h): PW0616 of
// those that do not fit. `absent`: paths of those that are not here.
LoadedPlan LoadComparedPlan(const std::string& path, const std::vector<std::string>& overrides,
                            std::vector<std::string>& absent);
LoadedPlan LoadComparedPlan(const YamlNode& recipe, const std::vector<std::string>& overrides,
                            std::vector<std::string>& absent);

// Whether an evaluation set has `samples: all`, and no index has counted how many these are.
bool HasUncountedSets(const Plan& plan);

// After the index of a plan's data was made. Loads the plan again where the index has counted other samples than it was
// made with (CountedSamples). Returns whether it did. FailedPrecondition, with what to do, of a compiled plan that was
// made with other counts, or of sets that are still not counted; InvalidArgument if it no longer compiles, which is
// printed.
absl::StatusOr<bool> LoadCounted(const std::string& path, const std::vector<std::string>& overrides, Plan& plan);

// {"valid", "problems"}: what `plan validate --json` prints.
nlohmann::ordered_json ValidityJson(const LoadedPlan& loaded);

struct RecipeWords {
  std::string path;                    // of RECIPE
  std::vector<std::string> names;      // further words, such as the subject of `show`
  std::vector<std::string> overrides;  // "a.b=c"
};
// Splits a command's words. `names` says which further words it needs, before, between or after overrides;
// InvalidArgument names the one that is missing.
absl::StatusOr<RecipeWords> SplitWords(const Arguments& arguments, const std::vector<std::string>& names);

}  // namespace planwright
