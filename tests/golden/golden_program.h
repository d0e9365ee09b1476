// Runs the `plan` program on a golden recipe and reads its JSON, as a script would: `validate --json` and `show
// --json`.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "tests/cli/plan_program.h"
#include "tests/golden/golden_recipe.h"
#include "tests/support/golden.h"

namespace planwright::testing {

struct Verdict {
  bool valid = false;
  std::vector<std::string> errors;  // names of kinds: "GridDoesNotFit"
  std::string text;                 // all that was said
};

class GoldenProgram : public PlanProgram {
 protected:
  Verdict Validate(const GoldenRecipe& recipe) {
    const ProgramResult result = Plan("validate " + Write("golden.yaml", recipe.Text()) + " --json");
    const nlohmann::json said = nlohmann::json::parse(result.out);
    Verdict verdict{said.at("valid"), {}, result.out};
    EXPECT_EQ(result.status, verdict.valid ? 0 : 1);
    for (const auto& problem : said.at("problems")) {
      if (problem.at("severity") == "error") verdict.errors.push_back(problem.at("name"));
    }
    EXPECT_EQ(verdict.errors.empty(), verdict.valid);
    return verdict;
  }

  // `subject` may have options: "budget --at 0,8". `list`: that field of what is shown. Null, and a failure of the
  // test, when the recipe is refused.
  nlohmann::json Show(const GoldenRecipe& recipe, const std::string& subject) {
    return ShowFile(Write("golden.yaml", recipe.Text()), subject);
  }
  nlohmann::json ShowList(const GoldenRecipe& recipe, const std::string& subject, const char* list) {
    nlohmann::json shown = Show(recipe, subject);
    return shown.is_null() ? shown : shown.at(list);
  }
  nlohmann::json ShowFile(const std::string& path, const std::string& subject) {
    const ProgramResult result = Plan("show " + path + " " + subject + " --json");
    EXPECT_EQ(result.status, 0) << result.err;
    return result.status == 0 ? nlohmann::json::parse(result.out) : nlohmann::json();
  }

  void ExpectRefused(const GoldenRecipe& recipe, const std::string& kind, const std::string& why) {
    const Verdict verdict = Validate(recipe);
    EXPECT_FALSE(verdict.valid) << why;
    EXPECT_THAT(verdict.errors, ::testing::Contains(kind)) << why << verdict.text;
  }
};

// A golden case by its id.
class GoldenCaseProgram : public GoldenProgram, public ::testing::WithParamInterface<std::string> {};

inline std::string CaseName(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = "case_" + info.param;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

inline std::vector<std::string> Ids(const char* section) {
  std::vector<std::string> ids;
  for (const nlohmann::json& c : Golden().at(section)) ids.push_back(c.at("id"));
  return ids;
}

}  // namespace planwright::testing
