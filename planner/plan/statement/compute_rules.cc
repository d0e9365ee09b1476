#include "planner/plan/statement/compute_rules.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/base/text/near_name.h"
#include "planner/base/text/text.h"
#include "planner/plan/op_table.h"
#include "planner/plan/statement/order_rules.h"
#include "planner/plan/statement/prime_module.h"

namespace planwright {
namespace {

using std::string;

bool IsAccumulation(const OpInfo& info) {
  return info.op_class == OpClass::kState && info.values.inputs == std::vector<size_t>{1} && info.values.outputs == 0;
}

// Why no statement computes with the kind; "": one may.
string WhyNoCompute(const OpInfo& info) {
  if (IsAccumulation(info)) return "";
  if (!info.transposes.empty()) return "is a backward, which follows from the forward";
  const bool of_layouts = info.kind == OpKind::kConcat || info.kind == OpKind::kSplit;
  if (info.op_class != OpClass::kCompute || !info.signature || of_layouts)
    return "comes of the layout or of the step, and is no compute of a model";
  return "";
}

// Some kind adds to the gradient of slot `i` of what computes with `forward`.
bool AddsToGradient(OpKind forward, size_t i) {
  return std::any_of(AllOps().begin(), AllOps().end(), [&](const OpInfo& info) {
    return info.signature && info.signature->gradients.size() > i &&
           std::any_of(info.transposes.begin(), info.transposes.end(),
                       [&](const GradientRule& rule) { return rule.forward() == forward; });
  });
}

class ComputeRules {
 public:
  ComputeRules(const string& name, const StatedPiece& piece, const StatedNames& names, ProblemList& problems)
      : name_(name), kind_(KindOfPiece(name)), piece_(piece), names_(names), problems_(problems) {}

  void Check(const ModelStatement& statement) {
    CheckInputs(statement);
    CheckGathered(statement);
    for (const StatedCompute& compute : piece_.computes) CheckCompute(compute);
    for (const string& output : piece_.outputs) {
      if (!statement.FindCarry(output)) CheckUnmarked(piece_.outputs_line, output, "returned");
    }
    for (const StatedProbe& probe : piece_.probes) CheckUnmarked(probe.line, probe.value, "probed");
    CheckCounts();
    CheckOrders(name_, piece_, problems_);
  }

 private:
  void Problem(const StatedLine& line, std::string_view word, const string& text, std::string_view behind = "") {
    problems_.Add(PlaceOf(line, word, behind), Cat("piece ", name_, ": ", text));
  }

  // What is there once for each encoder, or with documents alone.
  void CheckUnmarked(const StatedLine& line, const string& value, const char* what) {
    if (value.ends_with('*') || value.ends_with('?'))
      Problem(line, value, Cat("the value ", value, " is not always there once, and cannot be ", what));
  }

  void CheckInputs(const ModelStatement& statement) {
    for (const string& input : piece_.inputs) {
      const auto given = statement.given.find(input.substr(0, input.find_first_of("*?")));
      if (given == statement.given.end()) continue;
      const bool each = std::any_of(given->second.sizes.begin(), given->second.sizes.end(), [](const auto& size) {
        const string* symbol = std::get_if<string>(&size);
        return symbol && symbol->ends_with('*');
      });
      if (each != input.ends_with('*'))
        Problem(piece_.inputs_line, input,
                each ? Cat(input, " is there for each encoder, and is written ", given->first, "*")
                     : Cat(input, " has no size of an encoder, and is there once"));
    }
  }

  void CheckCompute(const StatedCompute& compute) {
    const OpInfo& info = InfoOf(compute.kind);
    const string what(info.name);
    if (const string why = WhyNoCompute(info); !why.empty())
      return Problem(compute.line, what, Cat(what, " ", why), "=");
    for (const string& input : compute.inputs) {
      if (input.ends_with('*') && !compute.each)
        Problem(compute.line, input, Cat(what, " reads ", input, " of each encoder, and does not begin with each"),
                "=");
    }
    CheckEach(compute);
    CheckSettings(compute, info);
    CheckAttributes(compute, info);
    if (info.signature) return CheckOperands(compute, info);
    if (compute.inputs.size() != 1 || !compute.slots.empty() || !compute.outputs.empty())
      Problem(compute.line, what, Cat(what, " reads one value and makes none"), "=");
  }

  // The run-time size that counts the rows of what the kind makes on a rank; null: none does.
  static const string* RowsOf(OpKind kind, bool of_rank) {
    const OpInfo& info = InfoOf(kind);
    const auto& signature = info.signature_cp ? info.signature_cp : info.signature;
    if (!signature || signature->outputs.empty()) return nullptr;
    const OperandSignature& made = signature->outputs.front();
    return made.dims.empty() || made.of_rank != of_rank ? nullptr : info.FindRows(made.dims.front().name);
  }

  // Rows that ranks gather have a name where they are together: those of experts, and those that an encoder returns.
  void CheckGathered(const ModelStatement& statement) {
    const StatedCompute* returned = nullptr;
    const auto check = [&](const StatedCompute& compute, const string* rows) {
      const bool named = !rows || std::any_of(statement.gathered.begin(), statement.gathered.end(),
                                              [&](const auto& gathered) { return gathered.first == *rows; });
      if (!named)
        Problem(compute.line, OpName(compute.kind),
                Cat("no line `gathered` names the ", *rows, " of all ranks, which ", OpName(compute.kind), " makes"),
                "=");
    };
    for (const StatedCompute& compute : piece_.computes) {
      check(compute, RowsOf(compute.kind, true));
      if (RowsOf(compute.kind, false)) returned = &compute;
    }
    if (returned && &piece_ == &statement.head) check(*returned, RowsOf(returned->kind, false));
  }

  // What is made for each encoder is there as often as there are encoders: others read what is handed on alone.
  void CheckEach(const StatedCompute& compute) {
    const auto has = [](const std::vector<string>& names, const string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    for (const string& output : compute.each ? compute.outputs : std::vector<string>()) {
      const bool read = has(piece_.outputs, output) || piece_.counts == output ||
                        std::any_of(piece_.computes.begin(), piece_.computes.end(), [&](const StatedCompute& other) {
                          return &other != &compute && has(other.inputs, output);
                        });
      if (read && !output.ends_with('*') && !has(compute.inputs, output))
        Problem(compute.line, output,
                Cat("the value ", output, " is made for each encoder, and is read where there is none"));
    }
  }

  // Of the kind itself, in place of which one rank may have another one.
  void CheckOperands(const StatedCompute& compute, const OpInfo& info) {
    const string what(info.name);
    const auto documents = [](const string& input) { return input.ends_with('?'); };
    const auto marked = static_cast<size_t>(std::count_if(compute.inputs.begin(), compute.inputs.end(), documents));
    const size_t count = compute.inputs.size();
    const Instruction instruction = {.kind = compute.kind};
    for (const size_t inputs : {count, count - marked}) {
      if (!CountFits(info.signature->inputs, inputs, instruction))
        Problem(compute.line, what,
                Cat(what, " has ", inputs,
                    inputs == count ? " inputs, not " : " inputs where documents are not packed, not ",
                    info.signature->inputs.size()),
                "=");
    }
    const std::vector<OperandSignature>& outputs = info.signature->outputs;
    if (compute.outputs.size() != outputs.size() && !(outputs.size() == 1 && outputs.front().repeats))
      Problem(compute.line, what, Cat(what, " has ", compute.outputs.size(), " outputs, not ", outputs.size()), "=");
    for (size_t i = 0; i < compute.slots.size(); ++i) {
      if (compute.slots[i].ends_with('?')) CheckMarkedSlot(compute, i);
      CheckGradient(compute, i);
    }
    const size_t over_cp = info.signature_cp ? info.signature_cp->inputs.size() : 0;
    if (over_cp <= info.signature->inputs.size() || compute.inputs.empty()) return;
    const size_t parts = over_cp - info.signature->inputs.size() + 1;
    const auto split = piece_.parts.find(compute.inputs.front());
    if (split == piece_.parts.end() || split->second.size() != parts)
      Problem(compute.line, compute.inputs.front(),
              Cat("with cp ", what, " reads ", compute.inputs.front(), " in ", parts,
                  " parts, which a line split must name"),
              "=");
  }

  // A mark says that the slot is not always there: so it is not, and the kind does without it.
  void CheckMarkedSlot(const StatedCompute& compute, size_t i) {
    const string &marked = compute.slots[i], slot = PlainSlot(marked), what(OpName(compute.kind));
    const auto problem = [&](const string& text, std::vector<Location> from = {}) {
      problems_.Add(PlaceOf(compute.line, marked, "="), Cat("piece ", name_, ": ", text), std::move(from));
    };
    const OperandSignature* operand = OperandAt(InfoOf(compute.kind).signature->parameters, i);
    if (i + 1 < compute.slots.size()) return problem(Cat("the slot ", marked, " is not the last one of its line"));
    if (!operand || !operand->optional) return problem(Cat(what, " always reads a slot in place of ", marked));
    std::vector<Location> always;
    std::vector<string> slots;
    bool known = false;
    for (const StatedWeight& weight : piece_.weights) {
      slots.push_back(weight.slot);
      if (weight.slot != slot) continue;
      known = true;
      const bool together = weight.when && compute.when && weight.when->text() == compute.when->text();
      if (!weight.when || together) always.push_back(PlaceOf(weight.line, slot));
    }
    const string near = known ? "" : NearNameHelp(slot, slots);
    if (!known) problem(Cat("no weight is in the slot ", slot, near.empty() ? "" : "; ", near));
    if (!always.empty()) problem(Cat("the slot ", slot, " is there wherever the line is, and has no mark"), always);
  }

  void CheckGradient(const StatedCompute& compute, size_t i) {
    if (AddsToGradient(compute.kind, i)) return;
    const string slot = PlainSlot(compute.slots[i]);
    std::vector<Location> from;
    for (const StatedWeight& weight : piece_.weights) {
      if (weight.slot == slot && weight.form != StatedWeight::Form::kBuffer) from.push_back(PlaceOf(weight.line, slot));
    }
    for (const StatedShare& share : piece_.shared) {
      if (share.slot == slot) from.push_back(PlaceOf(share.line, slot));
    }
    if (from.empty()) return;
    problems_.Add(PlaceOf(compute.line, slot, "="),
                  Cat("piece ", name_, ": ", OpName(compute.kind), " gives slot ", slot,
                      " no gradient, so that it must be a buffer"),
                  std::move(from));
  }

  void CheckSettings(const StatedCompute& compute, const OpInfo& info) {
    for (const StatedSetting& setting : compute.settings) {
      const string &attribute = setting.attribute, &text = setting.text;
      const AttributeSpec* spec = info.FindAttribute(attribute);
      if (!spec) {
        std::vector<string> known;
        for (const AttributeSpec& each : info.attributes) known.push_back(each.name);
        const string near = NearNameHelp(attribute, known);
        Problem(compute.line, attribute,
                Cat(info.name, " has no ", attribute, " ", text, near.empty() ? "" : "; ", near), "]");
        continue;
      }
      if (compute.FindSetting(attribute) != &setting)
        Problem(compute.line, attribute, Cat(attribute, " is set twice"), "]");
      if (setting.formula) {
        CheckSettingFormula(compute, *spec, setting);
        continue;
      }
      if (spec->type == AttributeType::kText) continue;
      if (text == "token*") {
        if (!compute.each)
          Problem(compute.line, text, "token* is of each encoder, and the line does not begin with each");
        continue;
      }
      const StatedConstant* constant = names_.FindConstant(text);
      if (!constant || !names_.Knows(text, kind_)) {
        const string near = constant ? "" : NearNameHelp(text, names_.Constants());
        Problem(compute.line, text,
                Cat(info.name, " has no ", attribute, " ", text,
                    ", which is no constant of each module with this piece", near.empty() ? "" : "; ", near),
                "]");
      } else if (constant->real != (spec->type == AttributeType::kReal)) {
        Problem(compute.line, text,
                Cat(attribute, " of ", info.name, " is ", AttributeTypeName(spec->type), ", and ", text, " is not"),
                "]");
      }
    }
  }

  void CheckSettingFormula(const StatedCompute& compute, const AttributeSpec& spec, const StatedSetting& setting) {
    if (spec.of_model())
      return names_.Check(*setting.formula, compute.line, kind_, names_.NumbersOfPiece(kind_), problems_);
    Problem(compute.line, setting.attribute,
            Cat(setting.attribute, " of ", OpName(compute.kind), " is no number of the model, and has no formula"),
            "]");
  }

  // What the kind must have is set, or follows from numbers that the model has.
  void CheckAttributes(const StatedCompute& compute, const OpInfo& info) {
    for (const AttributeSpec& spec : info.attributes) {
      if (compute.FindSetting(spec.name)) continue;
      const string what = Cat(info.name, " needs ", spec.name);
      if (spec.source == AttributeSource::kFormula && spec.values.size() == 1) {
        for (const Expression* formula : {&spec.values.front(), spec.when ? &*spec.when : nullptr}) {
          if (formula) CheckFormula(compute, *formula, what);
        }
      } else if (spec.source != AttributeSource::kFormula ? !spec.optional : !spec.when) {
        Problem(compute.line, info.name, Cat(what, ", which the line must set behind its slots"), "=");
      }
    }
  }

  void CheckFormula(const StatedCompute& compute, const Expression& formula, const string& what) {
    for (const string& name : formula.names()) {
      const bool given = name == "image_token" || name == "in_step";
      if (!given && !names_.Knows(name, kind_))
        Problem(compute.line, OpName(compute.kind),
                Cat(what, " = ", formula.text(), ", and not each module with this piece has the number ", name), "=");
    }
  }

  bool Makes(const string& value) const {
    return std::any_of(piece_.computes.begin(), piece_.computes.end(), [&](const StatedCompute& compute) {
      return std::find(compute.outputs.begin(), compute.outputs.end(), value) != compute.outputs.end();
    });
  }

  void CheckCounts() {
    CheckUnmarked(piece_.counts_line, piece_.counts, "what counts rows");
    if (!piece_.counts.empty() && !Makes(piece_.counts))
      Problem(piece_.counts_line, piece_.counts, Cat("counts ", piece_.counts, ", which the piece does not make"));
    if (!piece_.counts.empty()) return;
    for (const StatedCompute& compute : piece_.computes) {
      const auto& signature = InfoOf(compute.kind).signature;
      if (!signature || std::none_of(signature->inputs.begin(), signature->inputs.end(),
                                     [](const OperandSignature& operand) { return operand.of_rank; }))
        continue;
      Problem(compute.line, OpName(compute.kind),
              Cat(OpName(compute.kind), " reads rows of experts, and the piece has no line counts"), "=");
    }
  }

  const string name_;
  const char kind_;
  const StatedPiece& piece_;
  const StatedNames& names_;
  ProblemList& problems_;
};

}  // namespace

void CheckComputes(const ModelStatement& statement, const string& name, const StatedPiece& piece,
                   const StatedNames& names, ProblemList& problems) {
  ComputeRules(name, piece, names, problems).Check(statement);
}

}  // namespace planwright
