#include "planner/verify/v5_samples_and_gradients/backward_table.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/strings/str_split.h"
#include "planner/diagnostics/bug.h"
#include "planner/plan/op_table.h"

namespace planwright {
namespace {

// "_", "i0", "o1", "do0", "di2", "di2.1"
GradientOperand ParseOperand(const std::string& word) {
  using Kind = GradientOperand::Kind;
  if (word == "_") return {};
  const bool gradient = word[0] == 'd';
  const char side = word[gradient ? 1 : 0];
  Require(side == 'i' || side == 'o', "gradient operand " + word);
  const Kind kind = side == 'i' ? (gradient ? Kind::kInputGradient : Kind::kInput)
                                : (gradient ? Kind::kOutputGradient : Kind::kOutput);
  const size_t digit = gradient ? 2 : 1, dot = word.find('.');
  return {kind, static_cast<size_t>(word[digit] - '0'), dot == std::string::npos ? -1 : word[dot + 1] - '0'};
}

std::vector<GradientOperand> ParseOperands(const std::string& text) {
  std::vector<GradientOperand> operands;
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(text, ' ', absl::SkipEmpty())))
    operands.push_back(ParseOperand(word));
  return operands;
}

const std::vector<GradientRule>& Rules() {
  static const std::vector<GradientRule> rules = [] {
    std::vector<GradientRule> made;
    for (const OpInfo& info : AllOps()) {
      for (const OpInfo::Transpose& transpose : info.transposes) {
        const auto forward = OpFromName(transpose.forward);
        Require(forward.has_value(), "transposes no kind: " + transpose.forward);
        const size_t arrow = transpose.operands.find("->");
        made.push_back({*forward, info.kind, transpose.over_cp, ParseOperands(transpose.operands.substr(0, arrow)),
                        ParseOperands(transpose.operands.substr(arrow + 2))});
      }
    }
    return made;
  }();
  return rules;
}

}  // namespace

const GradientRule* RuleOfBackward(const Instruction& instruction) {
  // A kind with a rule for cp has a plain one before it.
  const GradientRule* found = nullptr;
  for (const GradientRule& rule : Rules()) {
    if (rule.backward != instruction.kind) continue;
    if (!found || (rule.over_cp && instruction.over_cp())) found = &rule;
  }
  return found;
}

bool HasInputGradient(OpKind forward, size_t index) {
  return std::any_of(Rules().begin(), Rules().end(), [&](const GradientRule& rule) {
    return rule.forward == forward &&
           std::any_of(rule.results.begin(), rule.results.end(), [&](const GradientOperand& result) {
             return result.kind == GradientOperand::Kind::kInputGradient && result.index == index;
           });
  });
}

}  // namespace planwright
