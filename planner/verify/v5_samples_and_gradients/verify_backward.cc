// V5 inside a layer: the backward block is the transpose of the forward block. The gradient of every forward value
// is the sum of one term from each use. Each backward instruction must be given exactly that sum, and must read what
// its forward instruction read. Terms are followed by name through sums and communication. A sum has one order, and all
// its terms are in one add (docs/decisions/0015-one-form-of-a-plan.md). Values of the forward declare the gradients
// that come, as the backward makes them.
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
#include "planner/verify/v5_samples_and_gradients/differentiated_forward.h"
#include "planner/verify/v5_samples_and_gradients/forward_block.h"
#include "planner/verify/v5_samples_and_gradients/other_forwards.h"

namespace planwright {
namespace {

using std::string;

// A backward block against its forward. The walk keeps, for each value of the backward, the terms of the gradient that
// it is. A value without terms is no gradient: it must repeat one of the forward.
class BackwardCheck {
 public:
  BackwardCheck(const PlanIndex& index, const FramePair& pair, std::vector<Violation>& violations)
      : index_(index), forward_(index, *pair.forward), backward_(*pair.backward),
        module_(index.module(backward_.module)), violations_(violations) {}

  void Check() {
    BindInputs();
    for (const Instruction& op : backward_.body) Walk(op);
    CheckSums();
    here_ = -1;
    CheckDeclaredGradients();
    CheckOutputs();
  }

 private:
  void Fail(string message) {
    violations_.push_back({"V5", absl::StrCat("block ", backward_.name, " ", message),
                           index_.OriginOf(here_, backward_.origin, module_)});
  }

  // The inputs of the backward are the gradients of those outputs of the forward that take one, in order.
  void BindInputs() {
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
      CheckGradientType(input.name, input.type, outputs[given[i]], *forward_.type(outputs[given[i]]));
    }
    for (const auto* list : {&backward_.inputs, &backward_.takes}) {
      for (const Output& value : *list) types_[value.name] = &value.type;
    }
    if (const Output* take = forward_.TakenAsOtherType(backward_)) {
      Fail(absl::StrCat("takes ", take->name, " as ", ShapeText(take->type), ", another type than ",
                        forward_.block().name, " saves"));
    }
  }

  // The outputs of the backward are the gradients of those inputs of the forward that take one, in order.
  void CheckOutputs() {
    std::vector<size_t> wanted;
    const auto& inputs = forward_.block().inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].type.gradient) wanted.push_back(i);
    }
    // Nothing before this block learns. If something should, its slots lack their gradients (VerifyLayers).
    if (backward_.outputs.empty()) return;
    if (wanted.size() != backward_.outputs.size()) {
      return Fail(absl::StrCat("returns ", backward_.outputs.size(), " gradients, but ", forward_.block().name, " has ",
                               wanted.size(), " inputs that take one"));
    }
    for (size_t i = 0; i < wanted.size(); ++i) {
      const Output& input = inputs[wanted[i]];
      CheckTerms(backward_.outputs[i], forward_.GradientOf(input.name),
                 absl::StrCat("returns ", backward_.outputs[i], " as"), input.name);
      if (const ValueType* type = types_[backward_.outputs[i]])
        CheckGradientType(backward_.outputs[i], *type, input.name, input.type);
    }
  }

  // What a value of the forward declares is the layout of a value of the backward that is its gradient. Where nothing
  // reads the gradient in the form of the value, such as that of a frozen embedding, none is made in that form.
  void CheckDeclaredGradients() {
    std::map<Terms, std::vector<const ValueType*>> made;
    for (const auto& [name, terms] : terms_) {
      const auto type = types_.find(name);
      if (!terms.empty() && type != types_.end()) made[terms].push_back(type->second);
    }
    for (const Instruction& op : forward_.block().body) {
      for (const Output& output : op.outputs) {
        string problem = DeclarationProblem(output, forward_.HasGradient(output.name));
        const auto gradients = made.find(forward_.GradientOf(output.name));
        const auto is_made = [&](const auto& fits) {
          return gradients != made.end() && std::any_of(gradients->second.begin(), gradients->second.end(), fits);
        };
        const auto in_its_form = [&](const ValueType* type) { return type->dims == output.type.dims; };
        if (problem.empty() && !is_made(in_its_form)) problem = LayoutOfNoneProblem(output);
        if (problem.empty() && output.type.gradient && is_made(in_its_form) && !is_made([&](const ValueType* type) {
              return in_its_form(type) && type->layout == *output.type.gradient;
            })) {
          problem = absl::StrCat(output.name, " declares another layout for its gradient than the backward makes");
        }
        if (!problem.empty()) Fail(absl::StrCat("has a forward ", forward_.block().name, " whose ", problem));
      }
    }
  }

  // `gradient` has the type that `value` declares for its gradient.
  void CheckGradientType(const string& gradient, const ValueType& type, const string& value, const ValueType& of) {
    if (!of.gradient) return;
    if (type.dtype != forward_.GradientDType(value, of) || type.dims != of.dims) {
      Fail(absl::StrCat("has ", gradient, " of ", ShapeText(type), " as the gradient of ", value, ", which is ",
                        ShapeText(of)));
    } else if (type.layout != *of.gradient) {
      Fail(absl::StrCat("has ", gradient, " as the gradient of ", value, ", which declares another layout for it"));
    }
  }

  // Value `name` is the sum of exactly these terms. `what` and `of` are for the message: "passes dy to rms_norm_grad as
  // the gradient of y without the term of linear of y".
  void CheckTerms(const string& name, const Terms& wanted, const string& what, const string& of) {
    const Terms found = terms_[name];
    if (found == wanted) return;
    Terms missing, extra;
    std::set_difference(wanted.begin(), wanted.end(), found.begin(), found.end(), std::back_inserter(missing));
    std::set_difference(found.begin(), found.end(), wanted.begin(), wanted.end(), std::back_inserter(extra));
    const auto text = [&](string* out, const Term& term) { out->append(forward_.Text(term)); };
    string difference;
    if (!missing.empty()) difference = absl::StrCat(" without the term of ", absl::StrJoin(missing, ", ", text));
    if (!extra.empty()) {
      absl::StrAppend(&difference, missing.empty() ? " with" : " and with", " one term too many, of ",
                      absl::StrJoin(extra, ", ", text));
    }
    Fail(absl::StrCat(what, " the gradient of ", of, difference));
  }

  void Walk(const Instruction& op) {
    here_ = op.origin;
    if (!op.inputs.empty() && IsStateName(op.inputs.front())) return;  // collectives of buckets: VerifyUpdates
    for (const Output& output : op.outputs) types_[output.name] = &output.type;
    if (op.kind == OpKind::kCall) return WalkCall(op);
    if (const auto rules = RulesOfBackward(op); !rules.empty()) return Differentiate(op, rules);
    if (InfoOf(op.kind).OnlyMoves() && PassTerms(op)) return;
    CheckRepeats(op);
  }

  // Sums and joins add up the terms of all inputs; what moves or cuts a value has one, and row counts beside it. False:
  // no input is a gradient.
  bool PassTerms(const Instruction& op) {
    const OpInfo& info = InfoOf(op.kind);
    size_t operands = 0;
    Terms terms;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (!info.PassesGradient(i)) continue;
      terms = Joined(std::move(terms), terms_[op.inputs[i]]);
      ++operands;
    }
    if (terms.empty() || op.outputs.empty()) return false;
    if (op.kind == OpKind::kConcat) CheckPartsInOrder(op);
    if (op.kind == OpKind::kAdd) CheckTermsInOrder(op);
    if (operands == 1 && op.outputs.size() == 1) moved_[op.outputs.front().name] = op.inputs.front();
    terms_[op.outputs.front().name] = std::move(terms);
    return true;
  }

  // What is no gradient is a value of the forward, made again in the same way.
  void CheckRepeats(const Instruction& op) {
    if (op.outputs.empty() || terms_.contains(op.outputs.front().name) || forward_.Repeats(op)) return;
    // A gradient that is an empty sum: CheckTerms reports it where it is used.
    for (const string& input : op.inputs) {
      if (terms_.contains(input) && !terms_[input].empty()) return;
    }
    Fail(absl::StrCat("makes ", op.outputs.front().name, " by ", string(OpName(op.kind)),
                      ", which neither is a gradient nor repeats the forward"));
  }

  // A backward instruction: the gradients that it reads are complete, and those that it makes are terms of its own.
  void Differentiate(const Instruction& op, const std::vector<const GradientRule*>& rules) {
    string problem;
    int f = -1;
    size_t found = 0;
    for (; found < rules.size(); ++found) {
      string why;
      f = ForwardOf(forward_, op, *rules[found], why);
      if (f >= 0) break;
      if (problem.empty()) problem = std::move(why);
    }
    if (f < 0) return Fail(problem);
    const GradientRule& rule = *rules[found];
    const Instruction& made = forward_.at(f);
    if (rule.starts_gradient() && !MakesLoss(forward_, ChainOf(forward_, made, rule).back()))
      Fail(absl::StrCat("starts a gradient with ", string(OpName(op.kind)), ", but ", forward_.block().name,
                        " does not add the end of its chain to $reals.loss"));
    for (size_t p = 0; p < std::min(op.inputs.size(), rule.operands.size()); ++p) {
      if (rule.operands[p].kind != GradientOperand::Kind::kOutputGradient ||
          rule.operands[p].index >= made.outputs.size())
        continue;
      const Output& output = made.outputs[rule.operands[p].index];
      CheckTerms(op.inputs[p], forward_.GradientOf(output.name),
                 absl::StrCat("passes ", op.inputs[p], " to ", string(OpName(op.kind)), " as"), output.name);
      if (const ValueType* type = types_[op.inputs[p]])
        CheckGradientType(op.inputs[p], *type, output.name, output.type);
    }
    if (string wrong = SettingsProblem(op, made); !wrong.empty()) Fail(std::move(wrong));
    for (size_t r = 0; r < std::min(op.outputs.size(), rule.results.size()); ++r) {
      if (rule.results[r].kind != GradientOperand::Kind::kInputGradient) continue;
      terms_[op.outputs[r].name] = {{f, static_cast<int>(rule.results[r].index)}};
      parts_[op.outputs[r].name] =
          rule.results[r].part >= 0 ? rule.results[r].part : static_cast<int>(rule.results[r].index);
    }
  }

  // Parts of one gradient (z | x B C | dt) are joined in the order in which the forward has them. The sum of terms does
  // not see that.
  void CheckPartsInOrder(const Instruction& op) {
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

  // The terms of a gradient have one order: a sum in another one is rounded in another way.
  void CheckTermsInOrder(const Instruction& op) {
    sums_.push_back(&op);
    if (op.inputs.size() < 2) return Fail(absl::StrCat("adds ", op.inputs.front(), " to nothing"));
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const Terms& terms = terms_[op.inputs[i]];
      if (terms.empty())
        return Fail(absl::StrCat("adds ", op.inputs[i], ", which is no gradient, into ", op.outputs.front().name));
      if (i == 0 || forward_.OrderInSums(terms_[op.inputs[i - 1]]) < forward_.OrderInSums(terms)) continue;
      return Fail(absl::StrCat("adds ", op.inputs[i - 1], " before ", op.inputs[i], " into ", op.outputs.front().name,
                               ", not in the order in which ", forward_.block().name,
                               " uses the value, from its outputs back"));
    }
  }

  // All terms of a gradient are in one sum. So the gradient of a value that is read for itself may be a term of
  // another one, but no sum is made in two steps, and no term is in two sums.
  void CheckSums() {
    std::map<string, int> read, added;
    for (const Instruction& op : backward_.body) {
      for (const string& input : op.inputs) ++read[input];
    }
    for (const string& output : backward_.outputs) ++read[output];
    for (const Instruction* sum : sums_) {
      for (const string& input : sum->inputs) ++added[input];
    }
    for (const Instruction* sum : sums_) {
      here_ = sum->origin;
      const string& made = sum->outputs.front().name;
      if (added[made] > 0 && read[made] == added[made])
        Fail(absl::StrCat("makes the sum ", made, " only to add to it: one sum has all terms of a gradient"));
      for (const string& input : sum->inputs) {
        if (added[input] > 1) Fail(absl::StrCat("adds ", input, " into ", made, " and into another sum"));
      }
    }
  }

  // A call of a stage's backward: it gets the gradients of what the forward call of the frame made, and makes those of
  // what it was given.
  void WalkCall(const Instruction& call) {
    const Block* called = index_.block(call.block);
    if (!called) return;  // V4
    for (size_t i = 0; i < forward_.block().body.size(); ++i) {
      const Instruction& made = forward_.at(static_cast<int>(i));
      if (made.kind != OpKind::kCall || made.frame != call.frame) continue;
      if (made.block == call.block || !called->saved.empty()) return;  // the forward runs again
      size_t next = 0;
      for (const Output& output : made.outputs) {
        if (!output.type.gradient || next >= call.inputs.size()) continue;
        CheckTerms(call.inputs[next], forward_.GradientOf(output.name),
                   absl::StrCat("passes ", call.inputs[next], " to ", call.block, " as"), output.name);
        ++next;
      }
      next = 0;
      for (size_t index = 0; index < made.inputs.size(); ++index) {
        if (!forward_.TakesGradient(made, index) || next >= call.outputs.size()) continue;
        terms_[call.outputs[next++].name] = {{static_cast<int>(i), static_cast<int>(index)}};
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
  int here_ = -1;                  // origin of the instruction that is looked at
  std::map<string, Terms> terms_;  // by value: the gradient that it is
  std::map<string, const ValueType*> types_;
  std::map<string, int> parts_;           // by value that is a part of a gradient: which part
  std::map<string, string> moved_;        // by value that communication moved: the value that it was
  std::vector<const Instruction*> sums_;  // of gradients
};

}  // namespace

std::vector<Violation> VerifyBackward(const PlanIndex& index, const std::vector<MicrobatchCalls>& microbatches) {
  std::vector<Violation> violations;
  // Layers of one kind share their blocks, so there are far fewer pairs of blocks than of calls.
  std::set<std::pair<const Block*, const Block*>> seen_again, seen_backward;
  for (const FramePair& pair : PairsOf(microbatches)) {
    for (const Block* again : pair.again) {
      if (seen_again.emplace(pair.forward, again).second) CheckRunAgain(index, *pair.forward, *again, violations);
    }
    if (!pair.forward || !seen_backward.emplace(pair.forward, pair.backward).second) continue;
    if (!pair.backward) {
      CheckForwardAlone(index, pair, violations);
      continue;
    }
    BackwardCheck(index, pair, violations).Check();
  }
  return violations;
}

}  // namespace planwright
