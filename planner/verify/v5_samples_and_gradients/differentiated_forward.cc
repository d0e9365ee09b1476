#include "planner/verify/v5_samples_and_gradients/differentiated_forward.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace planwright {
namespace {

using std::string;

// What keeps `op` from being the backward of `made` and of what the rule's chain has behind it, or "": values of the
// forward that it reads at other indices. Outputs are compared as they were before an all_reduce. Gradients among its
// operands are compared later.
string OperandProblem(const ForwardBlock& forward, const Instruction& op, const Instruction& made,
                      const GradientRule& rule) {
  const string kind(OpName(op.kind));
  const std::vector<const Instruction*> chain = ChainOf(forward, made, rule);
  for (size_t link = 0; link < chain.size(); ++link) {
    if (!chain[link] && !rule.chain[link].optional)
      return absl::StrCat("has a ", kind, ", but no ", string(OpName(rule.chain[link].kind)), " reads what the ",
                          string(OpName(made.kind)), " makes");
  }
  for (size_t p = 0; p < rule.operands.size(); ++p) {
    const GradientOperand& operand = rule.operands[p];
    const bool input = operand.kind == GradientOperand::Kind::kInput;
    if (!input && operand.kind != GradientOperand::Kind::kOutput) continue;
    const Instruction* of = chain[operand.link];
    const bool there = of && operand.index < (input ? of->inputs.size() : of->outputs.size());
    if (p >= op.inputs.size()) {  // an optional operand
      if (input && there)
        return absl::StrCat("has ", kind, " without ", of->inputs[operand.index], ", which the forward reads");
      continue;
    }
    if (!there) return absl::StrCat("reads ", op.inputs[p], " in ", kind, ", which the forward does without");
    const string& name = input ? of->inputs[operand.index] : of->outputs[operand.index].name;
    if (name != op.inputs[p] && (input || name != forward.Unreduced(op.inputs[p])))
      return absl::StrCat("reads ", op.inputs[p], " in ", kind, " where the forward has ", name);
  }
  return "";
}

// What only one of the two says, and both kinds may.
const string* StatedByOne(const Instruction& op, const Instruction& made) {
  for (const AttributeSpec& spec : InfoOf(op.kind).attributes) {
    const bool both_may = spec.source == AttributeSource::kStated && InfoOf(made.kind).FindAttribute(spec.name);
    if (both_may && op.attributes.contains(spec.name) != made.attributes.contains(spec.name)) return &spec.name;
  }
  return nullptr;
}

bool AttributesAgree(const Instruction& op, const Instruction& made) {
  return !StatedByOne(op, made) && std::all_of(op.attributes.begin(), op.attributes.end(), [&](const auto& attribute) {
    auto it = made.attributes.find(attribute.first);
    return it == made.attributes.end() || it->second == attribute.second;
  });
}

}  // namespace

std::vector<const Instruction*> ChainOf(const ForwardBlock& forward, const Instruction& made,
                                        const GradientRule& rule) {
  std::vector<const Instruction*> chain = {&made};
  for (size_t link = 1; link < rule.chain.size(); ++link) {
    const Instruction* before = chain.back();
    const auto made_before = [&](const string& name) {
      return before && std::any_of(before->outputs.begin(), before->outputs.end(), [&](const Output& output) {
               return output.name == name || output.name == forward.Unreduced(name);
             });
    };
    const auto& body = forward.block().body;
    const auto next = std::find_if(body.begin(), body.end(), [&](const Instruction& op) {
      return op.kind == rule.chain[link].kind && std::any_of(op.inputs.begin(), op.inputs.end(), made_before);
    });
    chain.push_back(next == body.end() ? nullptr : &*next);
  }
  return chain;
}

bool MakesLoss(const ForwardBlock& forward, const Instruction* last) {
  const auto& body = forward.block().body;
  return last && std::any_of(body.begin(), body.end(), [&](const Instruction& op) {
           const string* into = op.kind == OpKind::kAccumulate ? op.FindText("into") : nullptr;
           return into && *into == "$reals.loss" && op.inputs.size() == 1 &&
                  std::any_of(last->outputs.begin(), last->outputs.end(),
                              [&](const Output& output) { return output.name == op.inputs.front(); });
         });
}

int ForwardOf(const ForwardBlock& forward, const Instruction& op, const GradientRule& rule, string& problem) {
  int fitting = -1;
  problem = absl::StrCat("has a ", string(OpName(op.kind)), ", but ", forward.block().name, " has no ",
                         string(OpName(rule.forward())), " for it");
  for (size_t i = 0; i < forward.block().body.size(); ++i) {
    const Instruction& made = forward.at(static_cast<int>(i));
    if (made.kind != rule.forward()) continue;
    const auto reads = [&](const string& slot) {
      return std::find(made.parameters.begin(), made.parameters.end(), slot) != made.parameters.end();
    };
    if (!std::all_of(op.parameters.begin(), op.parameters.end(), reads) ||
        !std::all_of(op.gradients.begin(), op.gradients.end(), reads))
      continue;
    const string wrong = OperandProblem(forward, op, made, rule);
    if (wrong.empty() && AttributesAgree(op, made)) return static_cast<int>(i);
    if (wrong.empty() && fitting < 0) fitting = static_cast<int>(i);  // SettingsProblem says it of the attribute
    if (!wrong.empty()) problem = wrong;
  }
  return fitting;
}

string SettingsProblem(const Instruction& op, const Instruction& made) {
  for (const auto* slots : {&op.parameters, &op.gradients}) {
    size_t next = 0;
    for (const string& slot : *slots) {
      while (next < made.parameters.size() && made.parameters[next] != slot) ++next;
      if (next++ >= made.parameters.size()) {
        return absl::StrCat("has ", string(OpName(op.kind)), " with slots [", absl::StrJoin(*slots, " "),
                            "], not in the order [", absl::StrJoin(made.parameters, " "), "] of the forward");
      }
    }
  }
  const string* differs = StatedByOne(op, made);
  for (const auto& [key, value] : op.attributes) {
    auto it = made.attributes.find(key);
    if (it != made.attributes.end() && it->second != value) differs = &key;
  }
  if (!differs) return "";
  return absl::StrCat("has ", string(OpName(op.kind)), " with another ", *differs, " than the ",
                      string(OpName(made.kind)), " that it differentiates");
}

}  // namespace planwright
