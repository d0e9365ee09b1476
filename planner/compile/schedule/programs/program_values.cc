#include "planner/compile/schedule/programs/program_values.h"

#include "absl/strings/str_cat.h"
#include "planner/base/text/bug.h"

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

ExchangePart OverBridge(const Bridge& bridge, bool backward, bool send, string value, string sample_rows) {
  return {bridge.name, backward, send, std::move(value), std::move(sample_rows)};
}

}  // namespace planwright
