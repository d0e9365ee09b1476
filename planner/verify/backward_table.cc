#include "planner/verify/backward_table.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/strings/str_split.h"
#include "planner/diagnostics/bug.h"

namespace planwright {
namespace {

GradientOperand ParseOperand(const std::string& word) {
  using Kind = GradientOperand::Kind;
  if (word == "_") return {};
  const bool gradient = word[0] == 'd';
  const char side = word[gradient ? 1 : 0];
  Require(side == 'i' || side == 'o', "gradient operand " + word);
  const Kind kind = side == 'i' ? (gradient ? Kind::kInputGradient : Kind::kInput) : (gradient ? Kind::kOutputGradient : Kind::kOutput);
  const size_t digit = gradient ? 2 : 1, dot = word.find('.');
  return {kind, static_cast<size_t>(word[digit] - '0'), dot == std::string::npos ? -1 : word[dot + 1] - '0'};
}

std::vector<GradientOperand> ParseOperands(const std::string& text) {
  std::vector<GradientOperand> operands;
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(text, ' ', absl::SkipEmpty()))) operands.push_back(ParseOperand(word));
  return operands;
}

const std::vector<GradientRule>& Rules() {
  static const std::vector<GradientRule> rules = [] {
    std::vector<GradientRule> made;
    const auto add = [&](OpKind forward, OpKind backward, bool over_cp, const std::string& text) {
      const size_t arrow = text.find("->");
      made.push_back({forward, backward, over_cp, ParseOperands(text.substr(0, arrow)), ParseOperands(text.substr(arrow + 2))});
    };
#define GRADIENT(forward, backward, text) add(OpKind::k##forward, OpKind::k##backward, false, text);
#define GRADIENT_CP(forward, backward, text) add(OpKind::k##forward, OpKind::k##backward, true, text);
#include "planner/verify/op_gradients.def"
#undef GRADIENT
#undef GRADIENT_CP
    return made;
  }();
  return rules;
}

}  // namespace

const GradientRule* RuleOfBackward(const Instruction& instruction) {
  auto cp = instruction.attributes.find("cp");
  const auto* parts = cp == instruction.attributes.end() ? nullptr : std::get_if<int64_t>(&cp->second);
  const GradientRule* found = nullptr;
  for (const GradientRule& rule : Rules()) {
    if (rule.backward != instruction.kind) continue;
    if (!found || (rule.over_cp && parts && *parts > 1)) found = &rule;
  }
  return found;
}

bool HasInputGradient(OpKind forward, size_t place) {
  return std::any_of(Rules().begin(), Rules().end(), [&](const GradientRule& rule) {
    return rule.forward == forward && std::any_of(rule.results.begin(), rule.results.end(), [&](const GradientOperand& result) {
             return result.kind == GradientOperand::Kind::kInputGradient && result.place == place;
           });
  });
}

bool PassesGradient(OpKind kind) {
  switch (kind) {
    case OpKind::kAdd:
    case OpKind::kConcat:
    case OpKind::kSplit:
    case OpKind::kLocalSlice:
    case OpKind::kSliceRows:
    case OpKind::kAllReduce:
    case OpKind::kAllGather:
    case OpKind::kReduceScatter:
    case OpKind::kAllToAllV:
    case OpKind::kAllGatherV:
    case OpKind::kReduceScatterV:
    case OpKind::kReshard: return true;
    default: return false;
  }
}

}  // namespace planwright
