#include "planner/verify/v5_samples_and_gradients/other_forwards.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/plan/op_table.h"
#include "planner/plan/statement/model_statement.h"
#include "planner/verify/shared/typed_instruction.h"
#include "planner/verify/v5_samples_and_gradients/forward_block.h"

namespace planwright {

using std::string;

string DeclarationProblem(const Output& value, bool takes) {
  if (value.type.gradient.has_value() == takes) return "";
  return absl::StrCat(value.name,
                      takes ? " gets a gradient that it does not declare" : " declares a gradient that never comes");
}

string LayoutOfNoneProblem(const Output& value) {
  if (!value.type.gradient) return "";
  Layout wanted = value.type.layout;
  std::erase_if(wanted, [](const auto& along) { return along.second.state == AxisLayout::State::kPartial; });
  if (*value.type.gradient == wanted) return "";
  return absl::StrCat(value.name, " declares another layout for its gradient, which nothing makes, than its own");
}

namespace {

// Values of an evaluation have one form: none declares a gradient.
void CheckNoGradients(const PlanIndex& index, const Block& block, std::vector<Violation>& violations) {
  const auto check = [&](const Output& value, int origin) {
    if (!value.type.gradient) return;
    violations.push_back({"V5",
                          absl::StrCat("block ", block.name, " is of an evaluation, and its ", value.name,
                                       " declares a gradient that never comes"),
                          index.OriginOf(origin, block.origin, index.module(block.module))});
  };
  for (const Output& input : block.inputs) check(input, -1);
  for (const Instruction& op : block.body) {
    for (const Output& output : op.outputs) check(output, op.origin);
  }
}

// In an encoder with taps whose layers do not learn, nothing takes a gradient of the stream.
bool StreamIsIdle(const PlanIndex& index, const Block& block) {
  const Module* module = index.module(block.module);
  const ModelStatement* statement = module && module->has_images ? StatementOf(*module) : nullptr;
  return statement && !module->trains_layers() && ModelNumbers(index.plan().budget, *module, *statement)("taps") > 0;
}

}  // namespace

void CheckForwardAlone(const PlanIndex& index, const FramePair& pair, std::vector<Violation>& violations) {
  const Block& block = *pair.forward;
  const bool embed = pair.frame.ends_with(".embed"), head = pair.frame.ends_with(".head");
  if (!embed && !head && pair.frame.find(".layers.") == std::string_view::npos) return;
  if (pair.evaluates) return CheckNoGradients(index, block, violations);
  ForwardBlock forward(index, block, true);
  // The stream is the first input and the first output. Carries, which stand behind it, and an idle stream declare
  // none.
  const bool stream = !StreamIsIdle(index, block);
  const auto check = [&](const Output& value, bool takes, int origin) {
    string problem = DeclarationProblem(value, takes);
    if (problem.empty()) problem = LayoutOfNoneProblem(value);
    if (problem.empty()) return;
    violations.push_back({"V5", absl::StrCat("block ", block.name, " has no backward, and its ", problem),
                          index.OriginOf(origin, block.origin, index.module(block.module))});
  };
  const auto returned = [&](const Output& value) {
    return std::find(block.outputs.begin(), block.outputs.end(), value.name) != block.outputs.end();
  };
  for (size_t i = 0; i < block.inputs.size(); ++i) check(block.inputs[i], i == 0 && !embed && stream, -1);
  for (const Instruction& op : block.body) {
    for (const Output& output : op.outputs) {
      if (IsStateName(output.name)) continue;
      const bool first = !block.outputs.empty() && output.name == block.outputs.front();
      check(output, returned(output) ? first && !head && stream : forward.HasGradient(output.name), op.origin);
    }
  }
}

void CheckRunAgain(const PlanIndex& index, const Block& forward, const Block& again,
                   std::vector<Violation>& violations) {
  const ForwardBlock first(index, forward);
  const auto fail = [&](int origin, string message) {
    violations.push_back({"V5", absl::StrCat("block ", again.name, " ", message),
                          index.OriginOf(origin, again.origin, index.module(again.module))});
  };
  if (const Output* take = first.TakenAsOtherType(again)) {
    fail(-1, absl::StrCat("takes ", take->name, " as ", ShapeText(take->type), ", another type than ", forward.name,
                          " saves"));
  }
  for (const Instruction& op : again.body) {
    if (!first.Repeats(op))
      fail(op.origin, absl::StrCat("runs ", string(OpName(op.kind)), " otherwise than ", forward.name));
  }
}

}  // namespace planwright
