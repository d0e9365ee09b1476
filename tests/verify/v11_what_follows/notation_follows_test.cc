// V11 reads statements by itself: a plan is that of a text that says the same in other notation, and of no text that
// says something else there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_replace.h"
#include "planner/plan/statement/built_in_kinds.h"
#include "planner/plan/statement/parse_statement.h"
#include "planner/verify/rules.h"
#include "tests/support/compiled.h"
#include "tests/verify/v11_what_follows/follows_damage.h"

namespace planwright {
namespace {

using testing::CompiledFile;
using ::testing::HasSubstr;
using testing::kTiny;
using Changes = std::map<std::string, std::string>;

// What V11 says of the blocks of a plan if the statement of the encoder is this text with changes, each of which must
// be one. "": nothing.
std::string SaidWith(const Plan& plan, const Changes& changes) {
  std::string text;
  for (const KindText& kind : BuiltInKinds()) {
    if (kind.file.ends_with("/radio_vit.model")) text = kind.text;
  }
  for (const auto& [from, to] : changes) EXPECT_NE(text.find(from), text.npos) << from;
  const ParsedStatement parsed = ParseStatement("changed", absl::StrReplaceAll(text, changes));
  EXPECT_EQ(ProblemsText(parsed.problems), "");
  const PlanIndex index(plan);
  const auto statement_of = [&](const Module& module) {
    return module.kind == "radio_vit" ? &parsed.statement : StatementOf(module);
  };
  std::string said;
  for (const Violation& violation : VerifyForwardGraphs(index, CallsOfMicrobatches(index), statement_of))
    said += violation.message + "\n";
  return said;
}

// The same, as SLOT? and formulas say it.
const Changes& InOtherNotation() {
  static const Changes changes = {{" eps norm_eps\n", " eps (norm_eps)\n"},
                                  {" erf erf_gelu\n", " erf (erf_gelu * 1)\n"},
                                  {"  weight qkv_bias ", "  when hidden: weight qkv_bias "},
                                  {"[qkv_weight qkv_bias]", "[qkv_weight qkv_bias?]"}};
  return changes;
}

std::string SaidWith(const Plan& plan, Changes changes, const std::string& from, const std::string& to) {
  changes[from] = to;
  return SaidWith(plan, changes);
}

TEST(Follows, TheSameInOtherNotationIsTheSame) {
  for (const std::vector<std::string>& recipe :
       {std::vector<std::string>{}, {"models.radio_vit_tiny.activation=gelu"}}) {
    const Plan plan = CompiledFile(kTiny, recipe);
    EXPECT_EQ(SaidWith(plan, {}), "");
    EXPECT_EQ(SaidWith(plan, InOtherNotation()), "");
  }
}

TEST(Follows, AnotherTextInTheNotationIsSeen) {
  const Plan plan = CompiledFile(kTiny, {}), exact = CompiledFile(kTiny, {"models.radio_vit_tiny.activation=gelu"});
  const Changes& same = InOtherNotation();
  EXPECT_THAT(SaidWith(plan, same, " eps norm_eps\n", " eps (2 * norm_eps)\n"), HasSubstr("with another eps than"));
  EXPECT_THAT(SaidWith(plan, same, "  weight qkv_bias ", "  when 0 > hidden: weight qkv_bias "),
              HasSubstr("reads [qkv_weight qkv_bias] in linear, not [qkv_weight]"));
  EXPECT_THAT(SaidWith(plan, same, " erf erf_gelu\n", " erf (1)\n"), HasSubstr("has gelu with another erf than"));
  EXPECT_THAT(SaidWith(exact, same, " erf erf_gelu\n", " erf (0)\n"), HasSubstr("has gelu with another erf than"));
  EXPECT_THAT(SaidWith(exact, same, " erf erf_gelu\n", " erf (2)\n"), HasSubstr("has gelu with another erf than"));
  EXPECT_THAT(SaidWith(exact, same, "g = gelu f [] erf erf_gelu\n", "g = gelu f\n"),
              HasSubstr("has gelu with another erf than"));
}

}  // namespace
}  // namespace planwright
