#include "planner/schedule/program_values.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/diagnostics/bug.h"

namespace planwright {

using std::string;

string ValueOf(const Module& module, int microbatch, const string& what) {
  return absl::StrCat(module.name, ".m", microbatch, ".", what);
}

int MicrobatchOf(const string& action) { return std::stoi(action.substr(1)); }

const Output& InputNamed(const Block& block, const string& name) {
  for (const Output& input : block.inputs) {
    if (input.name == name) return input;
  }
  Bug("block " + block.name + " has no input " + name);
}

const ValueType& TypeMade(const Block& block, const string& name) {
  for (const Output& input : block.inputs) {
    if (input.name == name) return input.type;
  }
  for (const Instruction& instruction : block.body) {
    for (const Output& output : instruction.outputs) {
      if (output.name == name) return output.type;
    }
  }
  Bug("block " + block.name + " makes no value " + name);
}

ExchangePart OverBridge(const Bridge& bridge, bool backward, bool send, string value, string sample_rows) {
  return {bridge.name, backward, send, std::move(value), std::move(sample_rows)};
}

std::string BridgeValue(const Plan& plan, const Bridge& bridge, const char* what) {
  const auto into = [&](const Bridge& other) { return other.to == bridge.to; };
  return std::count_if(plan.bridges.begin(), plan.bridges.end(), into) == 1 ? what
                                                                            : absl::StrCat(bridge.from, ".", what);
}

}  // namespace planwright
