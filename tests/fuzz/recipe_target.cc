// Fuzz target: reads any bytes as a recipe. If it can be read, it is compiled, verified, written and read again. The
// result must be a plan or errors, and never both.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "nlohmann/json.hpp"
#include "planner/base/text/bug.h"
#include "planner/compile/compile.h"
#include "planner/plan/plan_json.h"
#include "planner/recipe/diagnostics/render.h"
#include "planner/recipe/recipe_reader.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

// Makes a folder for this process, with links to the shipped model and budget files, so that recipes may extend them.
std::string MakeFolder() {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("planwright-fuzz-" + std::to_string(getpid()));
  fs::create_directories(folder);
  for (const char* name : {"models", "budgets"}) {
    fs::remove(folder / name);
    fs::create_directory_symlink(fs::path(InSource()) / "recipes" / name, folder / name);
  }
  std::atexit([] { fs::remove_all(fs::temp_directory_path() / ("planwright-fuzz-" + std::to_string(getpid()))); });
  return folder.string();
}

void CheckPlan(const Plan& plan) {
  const std::string text = WritePlan(plan);
  const absl::StatusOr<Plan> read = ReadPlan(text);
  Require(read.ok(), "a compiled plan cannot be read: " + std::string(read.status().message()));
  Require(WritePlan(*read) == text, "a plan changes when it is read and written");
}

void TryRecipe(const uint8_t* data, size_t size) {
  static const std::string path = MakeFolder() + "/recipe.yaml";
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  Diagnostics problems;
  const std::optional<Recipe> recipe = ReadRecipe(path, {}, problems);
  const std::optional<Plan> plan = recipe ? CompileRecipe(*recipe, problems) : std::nullopt;
  Require(plan.has_value() != problems.has_errors(), "neither a plan nor an error, or both");
  for (const Diagnostic& problem : problems.sorted()) {
    Require(problem.kind != DiagnosticKind::kBrokenRule, "a compiled plan breaks a rule: " + problem.message);
  }
  SourceTexts texts;
  RenderText(problems.sorted(), texts, /*color=*/true);
  RenderJson(problems.sorted()).dump();
  if (plan) CheckPlan(*plan);
}

}  // namespace
}  // namespace planwright

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  planwright::TryRecipe(data, size);
  return 0;
}
