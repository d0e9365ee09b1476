// RECIPE of the command line: a recipe that is compiled, or a plan that is read; proved either way.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "planner/cli/arguments.h"
#include "planner/diagnostics/diagnostic.h"
#include "planner/plan/plan.h"

namespace planwright {

struct LoadedPlan {
  std::optional<Plan> plan;  // nullopt: `problems` has errors
  Diagnostics problems;
  std::vector<std::string> overrides;

  // kExitInvalid, or kExitUsage when the file itself could not be read. Call without a plan.
  int exit_status() const;
  // Problems as text on stderr, in colour on a terminal. With `as_json` and no plan, {"valid": false, "problems"} on
  // stdout instead: then they are what the command has to say.
  void PrintProblems(bool as_json = false) const;
};

LoadedPlan LoadPlan(const std::string& path, const std::vector<std::string>& overrides);

// {"valid", "problems"}, as `plan validate --json` prints it.
nlohmann::ordered_json ValidityJson(const LoadedPlan& loaded);

// Splits a command's words into RECIPE, `names` further words, and overrides; InvalidArgument says which is missing.
struct RecipeWords {
  std::string path;
  std::vector<std::string> names;
  std::vector<std::string> overrides;
};
absl::StatusOr<RecipeWords> SplitWords(const Arguments& arguments, const std::vector<std::string>& names);

}  // namespace planwright
