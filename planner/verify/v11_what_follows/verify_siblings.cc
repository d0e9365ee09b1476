// V11 of siblings: all roles of one module and stage run the same program. Only the leader of a lane differs: it has
// the parts of exchanges over bridges, and is the root of the broadcast that gives its siblings what it received.
//
// Not here: when values are freed, which follows from their uses (V4), and which ranks are leaders (V5,
// verify_bridges.cc).

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "planner/verify/rules.h"

namespace planwright {
namespace {

using std::string;

bool Same(const ValueType& a, const ValueType& b) {
  return a.dtype == b.dtype && a.dims == b.dims && a.layout == b.layout && a.gradient == b.gradient && a.host == b.host;
}

bool Same(const Output& a, const Output& b) { return a.name == b.name && Same(a.type, b.type); }

bool Same(const ExchangePart& a, const ExchangePart& b) {
  return a.backward == b.backward && a.send == b.send && a.value == b.value && a.group == b.group && a.shift == b.shift;
}

// Parts over bridges, and what they receive, are what a leader may have and a sibling may not.
bool OverBridge(const ExchangePart& part) { return !part.bridge.empty(); }

bool IsReceived(const Instruction& exchange, const Output& output) {
  return std::any_of(exchange.parts.begin(), exchange.parts.end(), [&](const ExchangePart& part) {
    return OverBridge(part) && !part.send && part.value == output.name;
  });
}

// Whether an instruction does nothing except transfers over bridges.
bool OnlyBridges(const Instruction& op) {
  return op.kind == OpKind::kExchange && std::all_of(op.parts.begin(), op.parts.end(), OverBridge);
}

// Whether two lists are the same without the items that `left_out_a` and `left_out_b` choose.
template <typename T, typename LeftA, typename LeftB>
bool SameLists(const std::vector<T>& a, const std::vector<T>& b, const LeftA& left_out_a, const LeftB& left_out_b) {
  size_t i = 0, j = 0;
  while (true) {
    while (i < a.size() && left_out_a(a[i])) ++i;
    while (j < b.size() && left_out_b(b[j])) ++j;
    if (i == a.size() || j == b.size()) return i == a.size() && j == b.size();
    if (!Same(a[i++], b[j++])) return false;
  }
}

// In a broadcast the root also reads the value that it sends, as second input; siblings read only the row counts.
bool SameInputs(const Instruction& a, const Instruction& b) {
  if (a.kind != OpKind::kBroadcast) return a.inputs == b.inputs;
  return a.inputs.empty() ? b.inputs.empty() : !b.inputs.empty() && a.inputs[0] == b.inputs[0];
}

bool Same(const Instruction& a, const Instruction& b) {
  if (a.kind != b.kind || a.attributes != b.attributes || a.group != b.group || a.block != b.block ||
      a.frame != b.frame || a.microbatch != b.microbatch || a.stream != b.stream || a.parameters != b.parameters ||
      a.gradients != b.gradients || !SameInputs(a, b)) {
    return false;
  }
  const auto received_a = [&](const Output& output) { return IsReceived(a, output); };
  const auto received_b = [&](const Output& output) { return IsReceived(b, output); };
  return SameLists(a.parts, b.parts, OverBridge, OverBridge) && SameLists(a.outputs, b.outputs, received_a, received_b);
}

// The first instruction of the sibling's list that differs from the leader's, in words; "" if the lists agree. `origin`
// is set to that of the instruction.
string Difference(const std::vector<Instruction>& leader, const std::vector<Instruction>& sibling, int& origin) {
  size_t i = 0, j = 0;
  while (true) {
    while (i < leader.size() && OnlyBridges(leader[i])) ++i;
    while (j < sibling.size() && OnlyBridges(sibling[j])) ++j;
    if (i == leader.size() && j == sibling.size()) return "";
    if (j == sibling.size()) return absl::StrCat("lacks the ", string(OpName(leader[i].kind)), " at its end");
    if (i == leader.size() || !Same(leader[i], sibling[j])) {
      origin = sibling[j].origin;
      const Instruction& op = sibling[j];
      return absl::StrCat("has ", string(OpName(op.kind)),
                          op.outputs.empty() ? "" : absl::StrCat(" of ", op.outputs[0].name), " as instruction ", j);
    }
    ++i, ++j;
  }
}

}  // namespace

std::vector<Violation> VerifySiblings(const PlanIndex& index) {
  std::vector<Violation> violations;
  std::map<std::pair<const Module*, int>, const Role*> stages;
  for (const Role& role : index.plan().roles) {
    const Module* module = role.modules.empty() ? nullptr : index.module(role.modules.front());
    if (!module) continue;  // V1
    const auto [first, is_first] = stages.try_emplace({module, StageOf(role, *module)}, &role);
    if (is_first) continue;
    const Role& leader = *first->second;
    for (const auto& [name, list] : kRoleLists) {
      int origin = -1;
      const string difference = Difference(leader.*list, role.*list, origin);
      if (difference.empty()) continue;
      violations.push_back({"V11",
                            absl::StrCat("role ", role.name, " ", difference, " of its ", name, ", where role ",
                                         leader.name, " of the same stage has another"),
                            index.OriginOf(origin, role.origin, module)});
    }
  }
  return violations;
}

}  // namespace planwright
