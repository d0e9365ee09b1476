#include "planner/verify/v4_values/instruction_problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/plan/op_table.h"
#include "planner/plan/statement/model_statement.h"

namespace planwright {
namespace {

using std::string;

bool HasType(const Attribute& value, AttributeType type) {
  switch (type) {
    case AttributeType::kInteger: return std::holds_alternative<int64_t>(value);
    case AttributeType::kReal: return std::holds_alternative<double>(value);
    case AttributeType::kText: return std::holds_alternative<string>(value);
    case AttributeType::kIntegers: return std::holds_alternative<std::vector<int64_t>>(value);
  }
  return false;
}

// NaN, which equals no value of a formula: a text or a list.
double Number(const Attribute& value) {
  if (const int64_t* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  const double* real = std::get_if<double>(&value);
  return real ? *real : std::numeric_limits<double>::quiet_NaN();
}

// Whether the part receives a value whose number of rows is known at run time only.
bool ReceivesRunTimeRows(const Instruction& exchange, const ExchangePart& part) {
  const auto received = std::find_if(exchange.outputs.begin(), exchange.outputs.end(),
                                     [&](const Output& output) { return output.name == part.value; });
  return !part.send && received != exchange.outputs.end() && !received->type.dims.empty() &&
         std::holds_alternative<string>(received->type.dims[0]);
}

}  // namespace

string FieldProblem(const Instruction& instruction, bool in_block) {
  const OpInfo& info = InfoOf(instruction.kind);
  const bool call = instruction.kind == OpKind::kCall, exchange = instruction.kind == OpKind::kExchange;
  const bool computes = info.op_class == OpClass::kCompute, reads = info.op_class == OpClass::kData;
  const auto unused = [](const auto&... field) {
    return absl::StrCat("has ", field..., ", which its kind does not use");
  };
  if (!call && !instruction.block.empty()) return unused("the block ", instruction.block);
  if (!call && !instruction.frame.empty()) return unused("the frame ", instruction.frame);
  // A call inside a block belongs to the microbatch of the call around it.
  if (instruction.microbatch >= 0 && !reads && (!call || in_block))
    return unused("the microbatch ", instruction.microbatch);
  // Parts of an exchange name their own groups.
  if ((info.op_class != OpClass::kCommunication || exchange) && !instruction.group.empty())
    return unused("the group ", instruction.group);
  if (!exchange && !instruction.parts.empty()) return unused("parts of an exchange");
  if (!(computes && in_block) && !instruction.parameters.empty())
    return unused("the parameter ", instruction.parameters.front());
  if (!(computes && in_block) && !instruction.gradients.empty())
    return unused("the gradient ", instruction.gradients.front());
  for (const ExchangePart& part : instruction.parts) {
    if (!part.bridge.empty() && (!part.group.empty() || part.shift != 0))
      return absl::StrCat("has a part that is both over ", part.bridge, " and between stages");
    if (part.bridge.empty() && part.sizes.empty() != !ReceivesRunTimeRows(instruction, part))
      return absl::StrCat("receives ", part.value, " between stages ", part.sizes.empty() ? "without" : "with",
                          " sizes");
  }
  return "";
}

string ListProblem(const Instruction& instruction, std::string_view list) {
  const OpInfo& info = InfoOf(instruction.kind);
  const bool in_block = list.empty();
  const bool moves_state = !instruction.inputs.empty() && IsStateName(instruction.inputs.front());
  // Samples, and values that are made of them, are there in a step and in a round of an evaluation.
  const bool of_values = info.op_class == OpClass::kControl || info.op_class == OpClass::kData ||
                         (info.op_class == OpClass::kCommunication && !moves_state);
  if (of_values && !in_block && list != "step" && list != "evaluate")
    return absl::StrCat("is in the list ", string(list), ", not in a step");
  switch (info.op_class) {
    case OpClass::kControl: return "";
    case OpClass::kData: return in_block ? "reads samples inside a block" : "";
    case OpClass::kCompute: return in_block ? "" : "computes outside a block";
    case OpClass::kState:
      // Accumulations, which read a value, may be anywhere. State instructions without inputs are of the whole step.
      if (in_block && instruction.kind == OpKind::kAccumulateRows) return "adds by source inside a block";
      return in_block && info.values.inputs == std::vector<size_t>{0} ? "changes state inside a block" : "";
    case OpClass::kStorage: return in_block ? "reads or writes files inside a block" : "";
    case OpClass::kCommunication: break;
  }
  const bool between_blocks = instruction.kind == OpKind::kExchange || instruction.kind == OpKind::kBroadcast;
  if (in_block) return between_blocks ? "is inside a block" : "";
  return between_blocks || moves_state ? "" : "communicates a value outside a block";
}

string ValueCountProblem(const Instruction& instruction) {
  const OpInfo& info = InfoOf(instruction.kind);
  const auto is_state = [](const Output& output) { return IsStateName(output.name); };
  const auto state_in = std::count_if(instruction.inputs.begin(), instruction.inputs.end(),
                                      [](const string& name) { return IsStateName(name); });
  const auto passes_state = [](const ExchangePart& part) { return IsStateName(part.value) || IsStateName(part.sizes); };
  if (std::any_of(instruction.parts.begin(), instruction.parts.end(), passes_state))
    return "passes state to another rank";
  const auto state_out = std::count_if(instruction.outputs.begin(), instruction.outputs.end(), is_state);
  const bool moves_state = info.op_class == OpClass::kCommunication && state_in == 1 && state_out == 1;
  // Only a collective has state among its values. What other kinds change is in their `writes` lines (ops.def).
  if (state_in + state_out > 0 && !moves_state) return "has state among its values";
  for (const Output& output : instruction.outputs) {
    const ValueType& type = output.type;
    const bool plain = !type.host && !type.gradient && type.layout.empty();
    if (is_state(output) && !plain)
      return absl::StrCat("makes the state ", output.name, " with a layout, a gradient or a place in host memory");
  }
  if (!info.operands.empty() || instruction.kind == OpKind::kCall) return "";  // operand_problem.h, CheckCall
  if (instruction.kind == OpKind::kExchange) {
    // Its parts name what it sends; what it receives is also among its outputs, where it gets a type.
    std::vector<string> received, made;
    for (const ExchangePart& part : instruction.parts) {
      if (!part.send) received.push_back(part.value);
    }
    for (const Output& output : instruction.outputs) made.push_back(output.name);
    return instruction.inputs.empty() && made == received ? "" : "has outputs that are not what its parts receive";
  }
  const std::vector<size_t>& counts = info.values.inputs;
  if (std::find(counts.begin(), counts.end(), instruction.inputs.size()) == counts.end()) {
    return absl::StrCat("reads ", instruction.inputs.size(), " values, not ", absl::StrJoin(counts, " or "));
  }
  // What a read makes depends on the data: read_problem.h.
  if (info.op_class == OpClass::kData || instruction.outputs.size() == info.values.outputs) return "";
  return absl::StrCat("makes ", instruction.outputs.size(), " values, not ", info.values.outputs);
}

double AttributeCheck::ValueOf(const string& name, const Module& module, bool evaluates) const {
  if (name == "in_step") return evaluates ? 0 : 1;
  if (name == "sequence") return static_cast<double>(plan_.budget.sequence_length);
  if (name == "samples") return static_cast<double>(plan_.budget.micro_samples);
  if (name == "image_token") return static_cast<double>(plan_.data.image_token);
  if (name == "trains_backbone") return module.trains_backbone ? 1 : 0;
  if (const auto axis = AxisFromName(name)) return module.grid.size(*axis);
  const auto constant = module.constants.find(name);
  if (constant != module.constants.end()) return Number(constant->second);
  const ModelStatement* statement = StatementOf(module);
  return statement ? statement->NumberWithout(name, module.constants) : std::numeric_limits<double>::quiet_NaN();
}

const std::vector<AttributeCheck::Expected>& AttributeCheck::ExpectedOf(OpKind kind, const Module& module,
                                                                        bool evaluates) {
  const auto [known, fresh] = expected_.try_emplace({&module, kind, evaluates});
  if (!fresh) return known->second;
  const auto value_of = [&](const string& name) { return ValueOf(name, module, evaluates); };
  for (const AttributeSpec& spec : InfoOf(kind).attributes) {
    Expected& expected = known->second.emplace_back();
    if (spec.when) expected.wanted = spec.when->Evaluate(value_of) != 0;
    for (const Expression& formula : spec.values) expected.values.push_back(formula.Evaluate(value_of));
  }
  return known->second;
}

string AttributeCheck::Problem(const Instruction& instruction, const Module* module, bool evaluates) {
  const OpInfo& info = InfoOf(instruction.kind);
  const std::vector<Expected>* expected = module ? &ExpectedOf(instruction.kind, *module, evaluates) : nullptr;
  size_t found_attributes = 0;
  for (size_t i = 0; i < info.attributes.size(); ++i) {
    const AttributeSpec& spec = info.attributes[i];
    const auto found = instruction.attributes.find(spec.name);
    const bool follows = spec.source == AttributeSource::kFormula && expected;
    if (found == instruction.attributes.end()) {
      // In a block the attribute `module` may be absent: it is that of the block.
      const bool may_lack = spec.optional && (module || spec.name != "module");
      if (!may_lack && (!follows || (*expected)[i].wanted)) return absl::StrCat("lacks the attribute ", spec.name);
      continue;
    }
    ++found_attributes;
    if (module && spec.optional && spec.name == "module") return "has the attribute module, though its block has one";
    if (!HasType(found->second, spec.type))
      return absl::StrCat("has an attribute ", spec.name, " that is not of type ",
                          string(AttributeTypeName(spec.type)));
    if (spec.source == AttributeSource::kStated && !(Number(found->second) != 0))
      return absl::StrCat("has ", spec.name, " 0, which is absent if it is 0");
    if (!follows) continue;
    if (!(*expected)[i].wanted)
      return absl::StrCat("has the attribute ", spec.name, ", which is absent unless ", spec.when->text());
    const std::vector<double>& values = (*expected)[i].values;
    const double value = Number(found->second);
    if (std::find(values.begin(), values.end(), value) != values.end()) continue;
    const string formula = absl::StrCat(spec.name, " = ", spec.values.front().text());
    if (std::isnan(values.front()))
      return absl::StrCat("needs constants that module ", module->name, " lacks: ", formula);
    return absl::StrCat("has ", spec.name, " ", value, ", not ", values.front(), " (", formula, ")");
  }
  if (found_attributes == instruction.attributes.size()) return "";
  for (const auto& [name, value] : instruction.attributes) {
    if (!info.FindAttribute(name)) return absl::StrCat("has an attribute ", name, ", which its kind does not have");
  }
  return "";
}

}  // namespace planwright
