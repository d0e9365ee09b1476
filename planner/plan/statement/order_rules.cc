#include "planner/plan/statement/order_rules.h"

#include <algorithm>
#include <map>
#include <vector>

#include "planner/base/text/near_name.h"
#include "planner/base/text/text.h"

namespace planwright {
namespace {

using std::string;

// The order of the forward has each compute, behind those that make what it reads.
void CheckForward(const string& name, const StatedPiece& piece, ProblemList& problems) {
  const std::vector<string>& order = piece.overlap_forward;
  std::map<string, size_t> made;  // by value: the entry of what makes it
  for (const StatedCompute& compute : piece.computes) {
    if (order.empty() || compute.outputs.empty()) continue;
    const string kind(OpName(compute.kind)), named = Cat(kind, ".", compute.outputs.front());
    auto entry = std::find(order.begin(), order.end(), named);
    if (entry == order.end()) entry = std::find(order.begin(), order.end(), kind);
    if (entry == order.end()) {
      problems.Add(PlaceOf(piece.forward_line), Cat("piece ", name, ": the order of the forward has no ", named),
                   {PlaceOf(compute.line)});
      continue;
    }
    const auto at = static_cast<size_t>(entry - order.begin());
    for (const string& input : compute.inputs) {
      const auto before = made.find(input);
      if (before != made.end() && before->second > at)
        problems.Add(PlaceOf(piece.forward_line, *entry),
                     Cat("piece ", name, ": the order of the forward reads ", input, " before it is made"),
                     {PlaceOf(compute.line)});
    }
    for (const string& output : compute.outputs) made[output] = at;
  }
}

// "OP.VALUE": VALUE is one of the piece.
void CheckValues(const string& name, const StatedPiece& piece, const std::vector<string>& order, const StatedLine& line,
                 ProblemList& problems) {
  std::vector<string> values = piece.inputs;
  for (const StatedCompute& compute : piece.computes)
    values.insert(values.end(), compute.outputs.begin(), compute.outputs.end());
  for (const auto& [whole, parts] : piece.parts) values.insert(values.end(), parts.begin(), parts.end());
  for (const string& entry : order) {
    const size_t dot = entry.find('.');
    const string value = dot == string::npos ? "" : entry.substr(dot + 1);
    if (dot == string::npos || std::find(values.begin(), values.end(), value) != values.end()) continue;
    const string near = NearNameHelp(value, values);
    problems.Add(PlaceOf(line, entry), Cat("piece ", name, ": the order has ", entry, ", but the piece has no value ",
                                           value, near.empty() ? "" : "; ", near));
  }
}

}  // namespace

void CheckOrders(const string& name, const StatedPiece& piece, ProblemList& problems) {
  CheckForward(name, piece, problems);
  CheckValues(name, piece, piece.overlap_forward, piece.forward_line, problems);
  CheckValues(name, piece, piece.overlap_backward, piece.backward_line, problems);
}

}  // namespace planwright
