// V4 of each list of instructions: each value is defined before it is used, used as what it is, and freed once after
// its last use. One walk over each list follows its values. What a single instruction may have and read is judged in
// instruction_problem.h, operand_problem.h and layout_problem.h, and what communication does to layouts in
// communication_problem.h, which reports V6 where it would sum what is no sum.
//
// Not here: what a forward saves for its backward (verify_saved_values.cc), what samples bring (read_problem.h,
// called for V5), which microbatch a value belongs to (V5), and the order of streams, which is derived and stands in
// no plan (planner/plan/stream_order.h).

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "planner/plan/op_table.h"
#include "planner/verify/rules.h"
#include "planner/verify/v4_values/communication_problem.h"
#include "planner/verify/v4_values/instruction_problem.h"
#include "planner/verify/v4_values/layout_problem.h"
#include "planner/verify/v4_values/operand_problem.h"

namespace planwright {
namespace {

using std::string;

class Scope {
 public:
  // `module`: of a block; null in a role's program.
  Scope(const PlanIndex& index, AttributeRules& attributes, string where, const Module* module, int origin,
        std::vector<Violation>& violations)
      : index_(index), attributes_(attributes), where_(std::move(where)), module_(module), origin_(origin),
        here_(origin), violations_(violations), precision_(index.plan().dtype()) {}

  // `owned` values must be freed or handed on here; an argument belongs to the caller.
  void Define(const Output& output, bool owned) {
    if (!live_.emplace(output.name, &output.type).second) Fail(absl::StrCat("defines ", output.name, " twice"));
    if (owned) owned_.insert(output.name);
    for (const Dim& dim : output.type.dims) CheckDim(dim, output.name);
    if (!module_) return;
    for (const auto& [axis, layout] : output.type.layout) {
      StandsInLayout(axis, layout, output.name);
      const bool cut = layout.state == AxisLayout::State::kSharded;
      if (cut && (layout.dim < 0 || layout.dim >= static_cast<int>(output.type.dims.size()))) {
        Fail(absl::StrCat("cuts ", output.name, " along dim ", layout.dim, ", which it does not have"));
      }
    }
    for (const auto& [axis, layout] : output.type.gradient.value_or(Layout()))
      StandsInLayout(axis, layout, "the gradient of " + output.name);
    for (Axis axis : kLayoutAxes) {
      if (module_->grid.size(axis) == 1) continue;
      if (string problem = GradientLayoutProblem(output.type, axis); !problem.empty())
        Fail(absl::StrCat(output.name, " ", problem));
    }
  }

  void Run(const Instruction& instruction) {
    here_ = instruction.origin >= 0 ? instruction.origin : origin_;
    run_.push_back(&instruction);
    if (string problem = attributes_.Problem(instruction, module_); !problem.empty()) {
      Fail(absl::StrCat(string(OpName(instruction.kind)), " ", problem));
    }
    if (string stray = StrayField(instruction, module_ != nullptr); !stray.empty()) {
      Fail(absl::StrCat(string(OpName(instruction.kind)), " ", stray, ", which its kind does not use"));
    }
    for (const string& problem : {Misplaced(instruction, module_ != nullptr), ValuesProblem(instruction)}) {
      if (!problem.empty()) Fail(absl::StrCat(string(OpName(instruction.kind)), " ", problem));
    }
    for (const string& input : instruction.inputs) Read(instruction, input);
    for (const ExchangePart& part : instruction.parts) {
      if (part.shift == 0) Read(instruction, part.sample_rows);
      if (part.send) Read(instruction, part.value);
    }
    if (instruction.kind == OpKind::kCall) {
      if (!instruction.stream.empty())
        Fail(absl::StrCat("calls ", instruction.block, " on stream ", instruction.stream, ": a call has none"));
      CheckCall(instruction);
    } else if (module_) {
      CheckOperands(instruction);
    } else if (instruction.kind == OpKind::kBroadcast) {
      CheckBroadcast(instruction);
    }
    for (const Output& output : instruction.outputs) {
      if (!IsStateName(output.name)) Define(output, true);
    }
    for (const ExchangePart& part : instruction.parts) WholeOverBridge(part);
    if (module_) CheckPlaces(instruction);
    if (instruction.kind == OpKind::kCrossEntropyMax && !instruction.outputs.empty())
      maxima_.insert(instruction.outputs.front().name);
    for (const string& name : instruction.frees) Free(instruction, name);
  }

  void Distinct(const std::vector<string>& names, const char* what) {
    std::set<std::string_view> seen;
    for (const string& name : names) {
      if (!seen.insert(name).second) Fail(absl::StrCat(what, " ", name, " twice"));
    }
  }

  // `kept` must be there at the end, and nothing else of our own may be left.
  void End(const std::vector<string>& kept) {
    here_ = origin_;
    for (const string& name : kept) {
      if (!live_.contains(name)) Fail(absl::StrCat("hands on ", name, ", which is not there at its end"));
      owned_.erase(name);
    }
    for (const string& name : owned_) Fail(absl::StrCat("never frees ", name));
    if (module_) CheckUnread(kept);
  }

 private:
  void Fail(string message, const char* rule = "V4") {
    violations_.push_back({rule, absl::StrCat(where_, " ", message), index_.OriginOf(here_, origin_, module_)});
  }

  // An axis stands in a layout only where it can cut values of the module, and has ranks to cut them over: what is
  // absent is whole. Lanes of dp hold values of their own, and experts of ep rows of their own.
  void StandsInLayout(Axis axis, const AxisLayout& layout, const string& who) {
    const bool cuts = std::find(std::begin(kLayoutAxes), std::end(kLayoutAxes), axis) != std::end(kLayoutAxes) &&
                      module_->grid.size(axis) > 1;
    if (cuts && layout.state != AxisLayout::State::kReplicated) return;
    Fail(absl::StrCat("gives ", who, " a layout over ", string(AxisName(axis)),
                      cuts ? ", along which it is whole" : ", which cuts no value here"));
  }

  // Two modules share no axis: what passes between them is whole on every rank that has it.
  void WholeOverBridge(const ExchangePart& part) {
    if (part.bridge.empty()) return;
    const auto passed = live_.find(part.value);
    if (passed == live_.end()) return;
    const ValueType& type = *passed->second;
    if (!type.layout.empty() || !type.gradient.value_or(Layout()).empty())
      Fail(absl::StrCat("passes ", part.value, " over a bridge in parts"));
  }

  // What lies in host memory follows from what makes it; what is read from samples is judged with the reads
  // (read_problem.h).
  void CheckPlaces(const Instruction& instruction) {
    if (instruction.kind == OpKind::kCall) return;  // compared with the block
    const bool counts = InfoOf(instruction.kind).counts_on_host;
    for (const Output& output : instruction.outputs) {
      const bool host = counts && output.type.dtype == DType::kInt64 && !IsStateName(output.name);
      if (output.type.host != host)
        Fail(absl::StrCat("makes ", output.name, host ? " outside" : " in", " host memory"));
    }
  }

  void Read(const Instruction& instruction, const string& name) {
    used_.insert(name);
    if (IsStateName(name) || live_.contains(name)) return;
    Fail(absl::StrCat(string(OpName(instruction.kind)), " uses ", name,
                      freed_.contains(name) ? ", which was freed" : ", which nothing defines"));
  }

  void Free(const Instruction& instruction, const string& name) {
    if (!owned_.erase(name))
      Fail(absl::StrCat(string(OpName(instruction.kind)), " frees ", name, ", which is not its to free"));
    live_.erase(name);
    freed_.insert(name);
  }

  // What takes a gradient is on the way to a result: an instruction none of whose outputs is read has lost its place,
  // unless it adds to the gradient of a parameter, which then is its result.
  void CheckUnread(const std::vector<string>& kept) {
    used_.insert(kept.begin(), kept.end());
    for (const Instruction* instruction : run_) {
      const auto& outputs = instruction->outputs;
      const auto takes_gradient = [](const Output& output) { return output.type.gradient.has_value(); };
      const auto read = [&](const Output& output) { return used_.contains(output.name); };
      if (!instruction->gradients.empty() || std::none_of(outputs.begin(), outputs.end(), takes_gradient) ||
          std::any_of(outputs.begin(), outputs.end(), read)) {
        continue;
      }
      here_ = instruction->origin;
      Fail(absl::StrCat("makes ", outputs.front().name, " and drops it unread"));
    }
  }

  void CheckDim(const Dim& dim, const string& value) {
    if (const auto* number = std::get_if<int64_t>(&dim)) {
      if (*number < 1) Fail(absl::StrCat("gives ", value, " a dim of ", *number));
      return;
    }
    const string& symbol = std::get<string>(dim);
    const auto& symbols = index_.plan().symbols;
    const bool known =
        std::any_of(symbols.begin(), symbols.end(), [&](const Symbol& s) { return s.name == symbol && s.maximum > 0; });
    if (!known) Fail(absl::StrCat("gives ", value, " the size ", symbol, ", which has no declared maximum"));
  }

  void CheckOperands(const Instruction& instruction) {
    TypedInstruction typed{&instruction, {}, {}, {}};
    for (const string& input : instruction.inputs) {
      auto it = live_.find(input);
      if (it == live_.end()) return;  // a state value, or reported as undefined already
      typed.inputs.push_back(it->second);
    }
    // nothing calls this block
    if (frames_.empty() && !(instruction.parameters.empty() && instruction.gradients.empty())) return;
    bool known = FindSlots(instruction, instruction.parameters, "reads", typed.parameters);
    known = FindSlots(instruction, instruction.gradients, "adds to the gradient of", typed.gradients) && known;
    if (!known) return;
    const string who = absl::StrCat(string(OpName(instruction.kind)), " of ",
                                    instruction.inputs.empty() ? "nothing" : instruction.inputs.front(), ": ");
    const OpClass op_class = OpClassOf(instruction.kind);
    if (op_class == OpClass::kCommunication || instruction.kind == OpKind::kLocalSlice ||
        instruction.kind == OpKind::kSliceRows) {
      const bool maximum = !instruction.inputs.empty() && maxima_.contains(instruction.inputs.front());
      const RuleProblem problem = CommunicationProblem(typed, index_, *module_, maximum);
      if (!problem.what.empty()) Fail(who + problem.what, problem.rule);
      return;
    }
    if (op_class != OpClass::kCompute) return;
    string problem = SizeProblem(typed);
    if (problem.empty()) problem = PublishedNameProblem(typed, *module_);
    if (problem.empty()) problem = DTypeProblem(typed, precision_);
    for (Axis axis : kLayoutAxes) {
      if (problem.empty() && module_->grid.size(axis) > 1) problem = LayoutProblem(typed, axis);
    }
    if (!problem.empty()) Fail(who + problem);
  }

  // All frames that run this block hold slots of one shape and cut.
  bool FindSlots(const Instruction& instruction, const std::vector<string>& names, const char* what,
                 std::vector<Slot>& slots) {
    for (const string& name : names) {
      Slot first;
      for (std::string_view frame : frames_) {
        const Slot slot = index_.SlotOf(*module_, frame, name);
        if (!slot.storage) {
          Fail(absl::StrCat(string(OpName(instruction.kind)), " ", what, " ", name, ", which frame ", string(frame),
                            " does not hold"));
          return false;
        }
        if (!first.storage) first = slot;
        if (slot.storage->shape != first.storage->shape || slot.dim != first.dim || slot.axis != first.axis) {
          Fail(absl::StrCat(string(OpName(instruction.kind)), " ", what, " ", name,
                            ", whose shape differs between frames"));
          return false;
        }
      }
      slots.push_back(first);
    }
    return true;
  }

  // Whoever received hands on what it received.
  void CheckBroadcast(const Instruction& broadcast) {
    const Group* group = index_.group(broadcast.group);
    const Module* module = group ? index_.module(group->module) : nullptr;
    auto given = broadcast.inputs.size() > 1 ? live_.find(broadcast.inputs[1]) : live_.end();
    if (!module || given == live_.end() || broadcast.outputs.size() != 1) return;  // VerifyBridges, or undefined
    const string problem = Difference(*given->second, broadcast.outputs.front().type);
    if (!problem.empty()) {
      Fail(absl::StrCat("broadcasts ", broadcast.inputs[1], " as ", broadcast.outputs.front().name,
                        ", which has another ", problem));
    }
  }

  void CheckCall(const Instruction& call) {
    const Block* block = index_.block(call.block);
    if (!block) return Fail(absl::StrCat("calls ", call.block, ", which does not exist"));
    if (block->inputs.size() != call.inputs.size() || block->outputs.size() != call.outputs.size()) {
      return Fail(absl::StrCat("calls ", call.block, " with another number of operands"));
    }
    if (!index_.module(block->module)) return Fail(absl::StrCat("calls ", call.block, ", which is of no module"));
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      auto it = live_.find(call.inputs[i]);
      if (it == live_.end()) continue;
      string problem = Difference(*it->second, block->inputs[i].type);
      if (!problem.empty()) {
        Fail(absl::StrCat("hands ", call.inputs[i], " to ", call.block, ", whose ", block->inputs[i].name,
                          " has another ", problem));
      }
    }
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      const ValueType* made = TypeMade(*block, block->outputs[i]);
      string problem = made ? Difference(call.outputs[i].type, *made) : "";
      if (!problem.empty()) {
        Fail(absl::StrCat("gets ", call.outputs[i].name, " from ", call.block, ", whose ", block->outputs[i],
                          " has another ", problem));
      }
    }
  }

  static const ValueType* TypeMade(const Block& block, const string& name) {
    for (const Instruction& instruction : block.body) {
      for (const Output& output : instruction.outputs) {
        if (output.name == name) return &output.type;
      }
    }
    for (const auto* list : {&block.inputs, &block.takes}) {
      for (const Output& output : *list) {
        if (output.name == name) return &output.type;
      }
    }
    return nullptr;
  }

  // Between modules the same rows go by two names of their run-time size.
  string Difference(const ValueType& given, const ValueType& wanted) const {
    if (given.dtype != wanted.dtype) return "dtype";
    bool same = given.dims.size() == wanted.dims.size();
    for (size_t i = 0; same && i < given.dims.size(); ++i) {
      const bool names =
          std::holds_alternative<string>(given.dims[i]) && std::holds_alternative<string>(wanted.dims[i]);
      same = given.dims[i] == wanted.dims[i] || (names && !module_);
    }
    if (!same) return absl::StrCat("shape: ", ShapeText(given), " is not ", ShapeText(wanted));
    if (given.layout != wanted.layout) return "layout";
    if (given.gradient.has_value() != wanted.gradient.has_value()) return "gradient";
    if (given.gradient != wanted.gradient) return "layout of its gradient";
    return given.host == wanted.host ? "" : "place in memory";
  }

  const PlanIndex& index_;
  AttributeRules& attributes_;
  const string where_;
  const Module* module_;
  const int origin_;
  int here_;
  std::vector<Violation>& violations_;
  const DType precision_;
  std::map<string, const ValueType*> live_;
  std::set<string> owned_, freed_, used_, maxima_;
  std::vector<const Instruction*> run_;

 public:
  std::vector<std::string_view> frames_;  // of the block
};

void CheckBlock(const PlanIndex& index, AttributeRules& attributes, const Block& block,
                std::vector<Violation>& violations) {
  const Module* module = index.module(block.module);
  if (!module) {
    violations.push_back({"V4", absl::StrCat("block ", block.name, " is of unknown module ", block.module),
                          index.OriginOf(block.origin, -1, nullptr)});
    return;
  }
  Scope scope(index, attributes, absl::StrCat("block ", block.name), module, block.origin, violations);
  scope.frames_ = index.FramesOf(block);
  for (const Output& input : block.inputs) scope.Define(input, false);
  for (const Output& take : block.takes) scope.Define(take, true);
  for (const Instruction& instruction : block.body) scope.Run(instruction);
  scope.Distinct(block.outputs, "hands on");
  scope.Distinct(block.saved, "saves");
  std::vector<string> kept = block.outputs;
  kept.insert(kept.end(), block.saved.begin(), block.saved.end());
  scope.End(kept);
}

}  // namespace

std::vector<Violation> VerifyValues(const PlanIndex& index) {
  std::vector<Violation> violations;
  AttributeRules attributes(index.plan());
  for (const Block& block : index.plan().blocks) CheckBlock(index, attributes, block, violations);
  for (const Role& role : index.plan().roles) {
    for (const auto* list : {&role.setup, &role.step, &role.teardown}) {
      Scope scope(index, attributes, absl::StrCat("role ", role.name), nullptr, role.origin, violations);
      for (const Instruction& instruction : *list) scope.Run(instruction);
      scope.End({});
    }
  }
  return violations;
}

}  // namespace planwright
