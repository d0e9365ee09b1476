// V5 inside a layer: the backward block is the transpose of the forward block. The gradient of every forward value
// is the sum of one term from each use. Each backward instruction must be given exactly that sum, and must read what
// its forward instruction read. Terms are followed by name through sums and communication.
//
// Not here: the layouts of these sums (V4), whether the forward itself is right (V11, verify_forward_graphs.cc), and
// what happens to a parameter's gradient after the block (V6, V7).

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/plan/op_table.h"
#include "planner/verify/rules.h"
#include "planner/verify/shared/typed_instruction.h"
#include "planner/verify/v5_samples_and_gradients/backward_table.h"
#include "planner/verify/v5_samples_and_gradients/forward_block.h"

namespace planwright {
namespace {

using std::string;

bool Equal(const ValueType& a, const ValueType& b) {
  return a.dtype == b.dtype && a.dims == b.dims && a.host == b.host && a.layout == b.layout && a.gradient == b.gradient;
}

// What a block takes of its forward, it takes as it was saved: the first that it does not, or null.
const Output* TakenOtherwise(const Block& block, const ForwardBlock& forward) {
  for (const Output& take : block.takes) {
    const ValueType* saved = forward.type(take.name);
    if (saved && !Equal(take.type, *saved)) return &take;
  }
  return nullptr;
}

// Whether an instruction makes again, as it was made, what the forward makes.
bool Repeats(const Instruction& op, const Block& forward) {
  const auto names = [](const Instruction& instruction) {
    std::vector<string> all = instruction.inputs;
    for (const Output& output : instruction.outputs) all.push_back(output.name);
    return all;
  };
  for (const Instruction& made : forward.body) {
    if (made.kind == op.kind && names(made) == names(op) && made.parameters == op.parameters &&
        made.attributes == op.attributes && made.group == op.group) {
      return std::equal(made.outputs.begin(), made.outputs.end(), op.outputs.begin(), op.outputs.end(),
                        [](const Output& a, const Output& b) { return Equal(a.type, b.type); });
    }
  }
  return false;
}

class Transpose {
 public:
  Transpose(const PlanIndex& index, const FramePair& pair, std::vector<Violation>& violations)
      : index_(index), forward_(index, *pair.forward), backward_(*pair.backward),
        module_(index.module(backward_.module)), violations_(violations) {}

  void Check() {
    Bind();
    for (const Instruction& op : backward_.body) Step(op);
    for (const Instruction& op : forward_.block().body) SaysItsGradients(op);
    std::vector<size_t> wanted;
    const auto& inputs = forward_.block().inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].type.gradient) wanted.push_back(i);
    }
    // nothing before it learns: a slot that should would lack its gradient (VerifyLayers)
    if (backward_.outputs.empty()) return;
    if (wanted.size() != backward_.outputs.size()) {
      return Fail(absl::StrCat("hands on ", backward_.outputs.size(), " gradients, but ", forward_.block().name,
                               " has ", wanted.size(), " inputs that take one"));
    }
    for (size_t i = 0; i < wanted.size(); ++i) {
      const Output& input = inputs[wanted[i]];
      Same(backward_.outputs[i], forward_.GradientOf(input.name),
           absl::StrCat("hands on ", backward_.outputs[i], " as"), input.name);
      if (const ValueType* type = types_[backward_.outputs[i]])
        SameType(backward_.outputs[i], *type, input.name, input.type);
    }
  }

 private:
  void Fail(string message) {
    violations_.push_back({"V5", absl::StrCat("block ", backward_.name, " ", message),
                           index_.OriginOf(here_, backward_.origin, module_)});
  }

  // A value of the forward declares a gradient where one comes to it; what is made beside it for the backward alone
  // may, too.
  void SaysItsGradients(const Instruction& op) {
    const auto learns = [&](const Output& output) { return !forward_.GradientOf(output.name).empty(); };
    const bool some = std::any_of(op.outputs.begin(), op.outputs.end(), learns);
    for (const Output& output : op.outputs) {
      const bool declared = output.type.gradient.has_value();
      if (declared ? some : !learns(output)) continue;
      Fail(absl::StrCat("is of a forward whose ", output.name,
                        declared ? " declares a gradient that never comes" : " declares no gradient"));
    }
  }

  // Inputs are the gradients of the forward's outputs, in order.
  void Bind() {
    std::vector<size_t> given;
    const auto& outputs = forward_.block().outputs;
    for (size_t j = 0; j < outputs.size(); ++j) {
      const ValueType* type = forward_.type(outputs[j]);
      if (type && type->gradient) given.push_back(j);
    }
    if (given.size() != backward_.inputs.size()) {
      Fail(absl::StrCat("takes ", backward_.inputs.size(), " gradients, but ", forward_.block().name, " has ",
                        given.size(), " outputs that take one"));
    }
    for (size_t i = 0; i < std::min(given.size(), backward_.inputs.size()); ++i) {
      const Output& input = backward_.inputs[i];
      terms_[input.name] = {{-1, static_cast<int>(given[i])}};
      SameType(input.name, input.type, outputs[given[i]], *forward_.type(outputs[given[i]]));
    }
    for (const auto* list : {&backward_.inputs, &backward_.takes}) {
      for (const Output& value : *list) types_[value.name] = &value.type;
    }
    if (const Output* take = TakenOtherwise(backward_, forward_)) {
      Fail(absl::StrCat("takes ", take->name, " as ", ShapeText(take->type), ", another type than was saved"));
    }
  }

  // The value is the gradient that the other one declares.
  void SameType(const string& gradient, const ValueType& type, const string& value, const ValueType& of) {
    if (!of.gradient) return;
    if (type.dtype != of.dtype || type.dims != of.dims) {
      Fail(absl::StrCat("has ", gradient, " of ", ShapeText(type), " as the gradient of ", value, ", which is ",
                        ShapeText(of)));
    } else if (type.layout != *of.gradient) {
      Fail(absl::StrCat("has ", gradient, " as the gradient of ", value, ", which declares another layout for it"));
    }
  }

  void Same(const string& name, const Terms& wanted, const string& what, const string& of) {
    const Terms found = terms_[name];
    if (found == wanted) return;
    Terms missing, extra;
    std::set_difference(wanted.begin(), wanted.end(), found.begin(), found.end(), std::back_inserter(missing));
    std::set_difference(found.begin(), found.end(), wanted.begin(), wanted.end(), std::back_inserter(extra));
    const auto text = [&](string* out, const Term& term) { out->append(forward_.Text(term)); };
    string difference;
    if (!missing.empty()) difference = absl::StrCat(" without the term of ", absl::StrJoin(missing, ", ", text));
    if (!extra.empty()) {
      absl::StrAppend(&difference, missing.empty() ? " with" : " and with", " a term too many, of ",
                      absl::StrJoin(extra, ", ", text));
    }
    Fail(absl::StrCat(what, " the gradient of ", of, difference));
  }

  void Step(const Instruction& op) {
    here_ = op.origin;
    // of buckets: VerifyUpdates
    if (!op.inputs.empty() && (op.inputs.front()[0] == '%' || op.inputs.front()[0] == '$')) return;
    for (const Output& output : op.outputs) types_[output.name] = &output.type;
    if (op.kind == OpKind::kCall) return Call(op);
    if (const GradientRule* rule = RuleOfBackward(op)) return Differentiate(op, *rule);
    if (InfoOf(op.kind).passes_gradient) {
      const size_t operands = op.kind == OpKind::kAdd || op.kind == OpKind::kConcat
                                  ? op.inputs.size()
                                  : std::min<size_t>(1, op.inputs.size());
      Terms terms;
      for (size_t i = 0; i < operands; ++i) terms = Joined(std::move(terms), terms_[op.inputs[i]]);
      if (op.kind == OpKind::kConcat && !terms.empty()) CheckParts(op);
      if (!terms.empty() && !op.outputs.empty()) {
        if (operands == 1 && op.outputs.size() == 1) moved_[op.outputs.front().name] = op.inputs.front();
        terms_[op.outputs.front().name] = std::move(terms);
        return;
      }
    }
    RunAgain(op);
  }

  // Whatever is no gradient is a value of the forward, made again as it was made.
  void RunAgain(const Instruction& op) {
    if (op.outputs.empty() || terms_.contains(op.outputs.front().name) || Repeats(op, forward_.block())) return;
    for (const string& input : op.inputs) {
      // of gradients that are empty sums: reported where they are used
      if (terms_.contains(input) && !terms_[input].empty()) return;
    }
    Fail(absl::StrCat("makes ", op.outputs.front().name, " by ", string(OpName(op.kind)),
                      ", which neither is a gradient nor repeats the forward"));
  }

  static bool SettingsAgree(const Instruction& op, const Instruction& made) {
    return std::all_of(op.attributes.begin(), op.attributes.end(), [&](const auto& attribute) {
      auto it = made.attributes.find(attribute.first);
      return it == made.attributes.end() || it->second == attribute.second;
    });
  }

  // The forward instruction that reads and makes the same values; of several (rows of several encoders are merged
  // alike) the one with the same settings.
  int ForwardOf(const Instruction& op, const GradientRule& rule, string& problem) {
    int fitting = -1;
    problem = absl::StrCat("has a ", string(OpName(op.kind)), " without its ", string(OpName(rule.forward)), " in ",
                           forward_.block().name);
    for (size_t i = 0; i < forward_.block().body.size(); ++i) {
      const Instruction& made = forward_.at(static_cast<int>(i));
      if (made.kind != rule.forward) continue;
      const auto reads = [&](const string& slot) {
        return std::find(made.parameters.begin(), made.parameters.end(), slot) != made.parameters.end();
      };
      if (!std::all_of(op.parameters.begin(), op.parameters.end(), reads) ||
          !std::all_of(op.gradients.begin(), op.gradients.end(), reads))
        continue;
      string wrong;
      for (size_t p = 0; p < std::min(op.inputs.size(), rule.operands.size()) && wrong.empty(); ++p) {
        const GradientOperand& operand = rule.operands[p];
        const bool input = operand.kind == GradientOperand::Kind::kInput,
                   output = operand.kind == GradientOperand::Kind::kOutput;
        if (!input && !output) continue;
        const size_t count = input ? made.inputs.size() : made.outputs.size();
        if (operand.place >= count) {
          wrong =
              absl::StrCat("reads ", op.inputs[p], " in ", string(OpName(op.kind)), ", which the forward does without");
          continue;
        }
        const string& name = input ? made.inputs[operand.place] : made.outputs[operand.place].name;
        if (name != op.inputs[p])
          wrong =
              absl::StrCat("reads ", op.inputs[p], " in ", string(OpName(op.kind)), " where the forward has ", name);
      }
      for (size_t p = op.inputs.size(); p < rule.operands.size() && wrong.empty(); ++p) {
        const GradientOperand& operand = rule.operands[p];
        if (operand.kind != GradientOperand::Kind::kInput || operand.place >= made.inputs.size()) continue;
        wrong = absl::StrCat("has ", string(OpName(op.kind)), " without ", made.inputs[operand.place],
                             ", which the forward reads");
      }
      if (wrong.empty() && SettingsAgree(op, made)) return static_cast<int>(i);
      if (wrong.empty() && fitting < 0) fitting = static_cast<int>(i);
      if (!wrong.empty()) problem = wrong;
    }
    return fitting;
  }

  void Differentiate(const Instruction& op, const GradientRule& rule) {
    string problem;
    const int f = ForwardOf(op, rule, problem);
    if (f < 0) return Fail(problem);
    const Instruction& made = forward_.at(f);
    for (size_t p = 0; p < std::min(op.inputs.size(), rule.operands.size()); ++p) {
      if (rule.operands[p].kind != GradientOperand::Kind::kOutputGradient ||
          rule.operands[p].place >= made.outputs.size())
        continue;
      const Output& output = made.outputs[rule.operands[p].place];
      Same(op.inputs[p], forward_.GradientOf(output.name),
           absl::StrCat("hands ", op.inputs[p], " to ", string(OpName(op.kind)), " as"), output.name);
      if (const ValueType* type = types_[op.inputs[p]]) SameType(op.inputs[p], *type, output.name, output.type);
    }
    SameSettings(op, made);
    for (size_t r = 0; r < std::min(op.outputs.size(), rule.results.size()); ++r) {
      if (rule.results[r].kind != GradientOperand::Kind::kInputGradient) continue;
      terms_[op.outputs[r].name] = {{f, static_cast<int>(rule.results[r].place)}};
      parts_[op.outputs[r].name] =
          rule.results[r].part >= 0 ? rule.results[r].part : static_cast<int>(rule.results[r].place);
    }
  }

  // Parts of a gradient are joined in the order in which the forward has them.
  void CheckParts(const Instruction& op) {
    int last = -1;
    for (const string& input : op.inputs) {
      string made = input;
      while (moved_.contains(made)) made = moved_[made];
      auto part = parts_.find(made);
      if (part == parts_.end() || part->second <= last)
        return Fail(absl::StrCat("joins ", input, " out of order into ", op.outputs.front().name));
      last = part->second;
    }
  }

  // The backward reads its slots and settings as the forward did.
  void SameSettings(const Instruction& op, const Instruction& made) {
    for (const auto* slots : {&op.parameters, &op.gradients}) {
      size_t next = 0;
      for (const string& slot : *slots) {
        while (next < made.parameters.size() && made.parameters[next] != slot) ++next;
        if (next++ >= made.parameters.size()) {
          return Fail(
              absl::StrCat("has ", string(OpName(op.kind)), " with its slots in another order than the forward"));
        }
      }
    }
    for (const auto& [key, value] : op.attributes) {
      auto it = made.attributes.find(key);
      if (it != made.attributes.end() && it->second != value) {
        Fail(absl::StrCat("has ", string(OpName(op.kind)), " with another ", key, " than the ",
                          string(OpName(made.kind)), " that it differentiates"));
      }
    }
  }

  void Call(const Instruction& call) {
    const Block* called = index_.block(call.block);
    if (!called) return;
    for (size_t i = 0; i < forward_.block().body.size(); ++i) {
      const Instruction& made = forward_.at(static_cast<int>(i));
      if (made.kind != OpKind::kCall || made.frame != call.frame) continue;
      if (made.block == call.block || !called->saved.empty()) return;  // the forward is run again
      size_t next = 0;
      for (const Output& output : made.outputs) {
        if (!output.type.gradient || next >= call.inputs.size()) continue;
        Same(call.inputs[next], forward_.GradientOf(output.name),
             absl::StrCat("hands ", call.inputs[next], " to ", call.block, " as"), output.name);
        ++next;
      }
      next = 0;
      for (size_t place = 0; place < made.inputs.size(); ++place) {
        if (!forward_.TakesGradient(made, place) || next >= call.outputs.size()) continue;
        terms_[call.outputs[next++].name] = {{static_cast<int>(i), static_cast<int>(place)}};
      }
      return;
    }
    Fail(absl::StrCat("calls ", call.block, " of frame ", call.frame, ", which ", forward_.block().name,
                      " does not run"));
  }

  const PlanIndex& index_;
  ForwardBlock forward_;
  const Block& backward_;
  const Module* module_;
  std::vector<Violation>& violations_;
  int here_ = -1;
  std::map<string, Terms> terms_;
  std::map<string, const ValueType*> types_;
  std::map<string, int> parts_;     // of what is a part of a gradient: which
  std::map<string, string> moved_;  // what communication only moved: from what
};

}  // namespace

std::vector<Violation> VerifyBackward(const PlanIndex& index, const std::vector<MicrobatchCalls>& microbatches) {
  std::vector<Violation> violations;
  std::set<std::pair<const Block*, const Block*>> done;
  std::set<std::pair<const Block*, const Block*>> repeated;
  for (const FramePair& pair : PairsOf(microbatches)) {
    for (const Block* again : pair.again) {
      if (!repeated.emplace(pair.forward, again).second) continue;
      if (const Output* take = TakenOtherwise(*again, ForwardBlock(index, *pair.forward))) {
        violations.push_back(
            {"V5", absl::StrCat("block ", again->name, " takes ", take->name, " as another type than was saved"),
             index.OriginOf(-1, again->origin, index.module(again->module))});
      }
      for (const Instruction& op : again->body) {
        if (Repeats(op, *pair.forward)) continue;
        violations.push_back({"V5",
                              absl::StrCat("block ", again->name, " runs ", string(OpName(op.kind)), " otherwise than ",
                                           pair.forward->name),
                              index.OriginOf(op.origin, again->origin, index.module(again->module))});
      }
    }
    if (!pair.backward || !done.emplace(pair.forward, pair.backward).second) continue;
    Transpose(index, pair, violations).Check();
  }
  return violations;
}

}  // namespace planwright
