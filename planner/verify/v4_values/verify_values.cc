// V4 of each list of instructions: each value is defined before it is used, used as what it is, and freed once after
// its last use. One walk over each list follows its values. What a single instruction may have and read is judged in
// instruction_problem.h, operand_problem.h and layout_problem.h, and what communication does to layouts in
// communication_problem.h, which reports V6 where it would sum what is no sum.
//
// Not here: what a forward saves for its backward (verify_saved_values.cc), what samples bring (read_problem.h,
// called for V5), which microbatch a value belongs to (V5), and the order of streams, which is derived and is
// in no plan (planner/plan/stream_dependencies.h).

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "planner/plan/op_table.h"
#include "planner/verify/rules.h"
#include "planner/verify/shared/bridge_rows.h"
#include "planner/verify/v4_values/communication_problem.h"
#include "planner/verify/v4_values/feature_parts.h"
#include "planner/verify/v4_values/instruction_problem.h"
#include "planner/verify/v4_values/layout_problem.h"
#include "planner/verify/v4_values/operand_problem.h"

namespace planwright {
namespace {

using std::string;

// One list of instructions, walked from its begin to its end: the body of a block, or a list of a role.
class ListWalk {
 public:
  // `where`: how messages call the list. `module`: of a block; null in a role's list.
  // `list`: of kRoleLists; "" for a block. `evaluates`: it is a block of an evaluation.
  ListWalk(const PlanIndex& index, AttributeCheck& attributes, string where, std::string_view list,
           const Module* module, std::vector<std::string_view> frames, bool evaluates, int origin,
           std::vector<Violation>& violations)
      : index_(index), attributes_(attributes), where_(std::move(where)), list_(list), evaluates_(evaluates),
        module_(module), frames_(std::move(frames)), origin_(origin), here_(origin), violations_(violations) {
    if (module_) feature_parts_.emplace(*module_);
  }

  // A value that is there from now on. An `owned` one must be freed, returned or saved by this list; the inputs of a
  // block belong to its caller.
  void Define(const Output& output, bool owned) {
    if (!live_.emplace(output.name, &output.type).second) Fail(absl::StrCat("defines ", output.name, " twice"));
    if (owned) owned_.insert(output.name);
    for (const Dim& dim : output.type.dims) CheckDim(dim, output.name);
    if (!module_) return;
    for (const auto& [axis, layout] : output.type.layout) {
      CheckAxisOfLayout(axis, layout, output.name);
      const bool cut = layout.state == AxisLayout::State::kSharded;
      if (cut && (layout.dim < 0 || layout.dim >= static_cast<int>(output.type.dims.size()))) {
        Fail(absl::StrCat("cuts ", output.name, " along dim ", layout.dim, " of ", output.type.dims.size(), " dims"));
      }
    }
    for (const auto& [axis, layout] : output.type.gradient.value_or(Layout()))
      CheckAxisOfLayout(axis, layout, output.name, "the gradient of ");
    for (Axis axis : kLayoutAxes) {
      if (module_->grid.size(axis) == 1) continue;
      if (string problem = GradientLayoutProblem(output.type, axis); !problem.empty())
        Fail(absl::StrCat(output.name, " ", problem));
    }
  }

  void Walk(const Instruction& instruction) {
    here_ = instruction.origin >= 0 ? instruction.origin : origin_;
    walked_.push_back(&instruction);
    const bool in_block = module_ != nullptr;
    for (const string& problem :
         {attributes_.Problem(instruction, module_, evaluates_), FieldProblem(instruction, in_block),
          ListProblem(instruction, list_), ValueCountProblem(instruction)}) {
      if (!problem.empty()) Fail(absl::StrCat(string(OpName(instruction.kind)), " ", problem));
    }
    for (const string& input : instruction.inputs) Read(instruction, input);
    for (const ExchangePart& part : instruction.parts) {
      if (part.shift == 0 || !part.sizes.empty()) Read(instruction, part.sizes);
      if (part.send) Read(instruction, part.value);
    }
    if (instruction.kind == OpKind::kCall) {
      if (!instruction.stream.empty())
        Fail(absl::StrCat("calls ", instruction.block, " on stream ", instruction.stream,
                          ", though a call has no stream"));
      CheckCall(instruction);
    } else if (module_) {
      CheckOperands(instruction);
    } else if (instruction.kind == OpKind::kBroadcast) {
      CheckBroadcast(instruction);
    }
    for (const Output& output : instruction.outputs) {
      if (!IsStateName(output.name)) Define(output, true);
    }
    for (const ExchangePart& part : instruction.parts) CheckWholeOverBridge(part);
    if (module_) CheckHostMemory(instruction);
    if (module_) NoteReductions(instruction);
    for (const string& name : instruction.frees) Free(instruction, name);
  }

  // No name is twice in a list of the block.
  void CheckDistinct(const std::vector<string>& names, const char* what) {
    std::set<std::string_view> seen;
    for (const string& name : names) {
      if (!seen.insert(name).second) Fail(absl::StrCat(what, " ", name, " twice"));
    }
  }

  // Behind the last instruction: `kept` values are still there, and no other value that the list owns is left.
  void End(const std::vector<string>& kept) {
    here_ = origin_;
    for (const string& name : kept) {
      if (!live_.contains(name))
        Fail(absl::StrCat("returns or saves ", name, ", which is ",
                          freed_.contains(name) ? "freed before" : "defined nowhere"));
      owned_.erase(name);
    }
    for (std::string_view name : owned_) Fail(absl::StrCat("never frees ", string(name)));
    if (module_) CheckUnread(kept);
  }

 private:
  void Fail(string message, const char* rule = "V4") {
    violations_.push_back({rule, absl::StrCat(where_, " ", message), index_.OriginOf(here_, origin_, module_)});
  }

  // A layout names an axis only where the axis cuts values of the module and has several ranks: an axis that is absent
  // is replicated, and there is one way to write that. kLayoutAxes says which axes cut values.
  void CheckAxisOfLayout(Axis axis, const AxisLayout& layout, const string& value, const char* what = "") {
    const bool cuts = std::find(std::begin(kLayoutAxes), std::end(kLayoutAxes), axis) != std::end(kLayoutAxes) &&
                      module_->grid.size(axis) > 1;
    if (cuts && layout.state != AxisLayout::State::kReplicated) return;
    Fail(absl::StrCat("gives ", what, value, " a layout over ", string(AxisName(axis)),
                      cuts ? ", along which it is whole" : ", which cuts no value of this module"));
  }

  // Two modules share no axis. So a value that passes between them is whole on every rank that has it.
  void CheckWholeOverBridge(const ExchangePart& part) {
    if (part.bridge.empty()) return;
    const auto passed = live_.find(part.value);
    if (passed == live_.end()) return;
    const ValueType& type = *passed->second;
    if (!type.layout.empty() || !type.gradient.value_or(Layout()).empty())
      Fail(absl::StrCat("passes ", part.value, " over ", part.bridge, " with a layout, not whole"));
  }

  // Integers of some kinds are row counts, which the host reads before it launches; all else is on the device. What is
  // read from samples is judged in read_problem.h.
  void CheckHostMemory(const Instruction& instruction) {
    if (instruction.kind == OpKind::kCall) return;  // CheckCall
    const bool counts = InfoOf(instruction.kind).counts_on_host;
    for (const Output& output : instruction.outputs) {
      const bool host = counts && output.type.dtype == DType::kInt64 && !IsStateName(output.name);
      if (output.type.host != host)
        Fail(absl::StrCat("makes ", output.name, host ? " outside" : " in", " host memory"));
    }
  }

  void NoteReductions(const Instruction& instruction) {
    const OpSignature* signature = SignatureOf(instruction);
    for (size_t i = 0; signature && i < instruction.outputs.size(); ++i) {
      const OperandSignature* output = OperandAt(signature->outputs, i);
      if (output && output->reduction != Reduction::kSum) reductions_[instruction.outputs[i].name] = output->reduction;
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
      Fail(absl::StrCat(string(OpName(instruction.kind)), " frees ", name, ", which this list does not own"));
    live_.erase(name);
    freed_.insert(name);
  }

  // What is computed is on the way to a result: an instruction that makes values of which nothing is read was meant to
  // be read by another. Except one that adds to the gradient of a parameter: that is its result. And all layers of a
  // kind share a backward. Where adapters learn in them and nothing before them does, that of the first layer makes a
  // gradient which nothing takes.
  void CheckUnread(const std::vector<string>& kept) {
    used_.insert(kept.begin(), kept.end());
    const auto is_call = [](const Instruction* instruction) { return instruction->kind == OpKind::kCall; };
    const auto last_call = std::find_if(walked_.rbegin(), walked_.rend(), is_call);
    const bool adapted = module_->adapted() && !module_->trains_backbone && last_call != walked_.rend();
    for (const Instruction* instruction : walked_) {
      const auto& outputs = instruction->outputs;
      const auto read = [&](const Output& output) { return IsStateName(output.name) || used_.contains(output.name); };
      if (!instruction->gradients.empty() || outputs.empty() || std::any_of(outputs.begin(), outputs.end(), read))
        continue;
      if (adapted && instruction == *last_call) continue;
      here_ = instruction->origin;
      Fail(absl::StrCat("makes ", outputs.front().name, ", which nothing reads"));
    }
  }

  void CheckDim(const Dim& dim, const string& value) {
    if (const auto* number = std::get_if<int64_t>(&dim)) {
      if (*number < 1) Fail(absl::StrCat("gives ", value, " a dim of size ", *number));
      return;
    }
    const string& symbol = std::get<string>(dim);
    const auto& symbols = index_.plan().symbols;
    const bool declared =
        std::any_of(symbols.begin(), symbols.end(), [&](const Symbol& s) { return s.name == symbol && s.maximum > 0; });
    if (!declared)
      Fail(absl::StrCat("gives ", value, " the run-time size ", symbol, ", which has no declared maximum"));
  }

  // An instruction of a block against what its operands are. Reports one problem: the next ones often follow from it.
  void CheckOperands(const Instruction& instruction) {
    TypedInstruction typed{&instruction, {}, {}, {}};
    for (const string& input : instruction.inputs) {
      auto it = live_.find(input);
      if (it == live_.end()) return;  // a state value, or reported as undefined already
      typed.inputs.push_back(it->second);
    }
    // Nothing calls this block, so its slots stand for nothing.
    if (frames_.empty() && !(instruction.parameters.empty() && instruction.gradients.empty())) return;
    bool known = FindSlots(instruction, instruction.parameters, "reads", typed.parameters);
    known = FindSlots(instruction, instruction.gradients, "adds to the gradient of", typed.gradients) && known;
    if (!known) return;
    const auto fail = [&](const string& what, const char* rule = "V4") {
      Fail(absl::StrCat(string(OpName(instruction.kind)), " of ",
                        instruction.inputs.empty() ? "nothing" : instruction.inputs.front(), ": ", what),
           rule);
    };
    const OpClass op_class = OpClassOf(instruction.kind);
    if (op_class == OpClass::kCommunication || instruction.kind == OpKind::kLocalSlice ||
        instruction.kind == OpKind::kSliceRows) {
      const auto it = instruction.inputs.empty() ? reductions_.end() : reductions_.find(instruction.inputs.front());
      const Reduction reduction = it == reductions_.end() ? Reduction::kSum : it->second;
      RuleProblem problem = CommunicationProblem(typed, index_, *module_, reduction);
      if (problem.what.empty()) problem = {"V4", feature_parts_->Problem(typed)};
      if (!problem.what.empty()) fail(problem.what, problem.rule);
      return;
    }
    if (op_class != OpClass::kCompute) return;
    string problem = SizeProblem(typed);
    if (problem.empty()) problem = PublishedNameProblem(typed, *module_);
    if (problem.empty()) problem = DTypeProblem(typed, index_.plan().dtype());
    for (Axis axis : kLayoutAxes) {
      if (problem.empty() && module_->grid.size(axis) > 1) problem = LayoutProblem(typed, axis);
    }
    if (problem.empty()) problem = feature_parts_->Problem(typed);
    if (!problem.empty()) fail(problem);
  }

  // Fills `slots` with what the names stand for; false: a problem is reported. One block runs for many layers, so all
  // frames that run it must hold slots of one shape and cut.
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
        if (slot.storage->shape != first.storage->shape || slot.dim != first.dim || slot.axis != first.axis ||
            !SameSegments(slot, first)) {
          Fail(absl::StrCat(string(OpName(instruction.kind)), " ", what, " ", name, ", whose shape or cut in frame ",
                            string(frame), " differs from that in ", string(frames_.front())));
          return false;
        }
      }
      slots.push_back(first);
    }
    return true;
  }

  bool SameSegments(const Slot& a, const Slot& b) const {
    const auto same = [&](int i, int j) {
      return module_->parameters[static_cast<size_t>(i)].segments ==
             module_->parameters[static_cast<size_t>(j)].segments;
    };
    const std::vector<int>&of_a = a.storage->parameters, &of_b = b.storage->parameters;
    return std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), same);
  }

  // The rank that received rows of a bridge broadcasts them to its lane: what comes out has the type of what went in.
  void CheckBroadcast(const Instruction& broadcast) {
    const Group* group = index_.group(broadcast.group);
    const Module* module = group ? index_.module(group->module) : nullptr;
    auto given = broadcast.inputs.size() > 1 ? live_.find(broadcast.inputs[1]) : live_.end();
    if (!module || given == live_.end() || broadcast.outputs.size() != 1) return;  // VerifyBridges, Read
    const string problem = Difference(*given->second, broadcast.outputs.front().type);
    if (!problem.empty()) {
      Fail(absl::StrCat("broadcasts ", broadcast.inputs[1], " as ", broadcast.outputs.front().name, ", whose ",
                        problem));
    }
  }

  // A call binds its operands to the names of the block, in order.
  void CheckCall(const Instruction& call) {
    const Block* block = index_.block(call.block);
    if (!block) return Fail(absl::StrCat("calls ", call.block, ", which does not exist"));
    if (block->inputs.size() != call.inputs.size() || block->outputs.size() != call.outputs.size()) {
      return Fail(absl::StrCat("calls ", call.block, " with ", call.inputs.size(), " inputs and ", call.outputs.size(),
                               " outputs; it has ", block->inputs.size(), " and ", block->outputs.size()));
    }
    if (!index_.module(block->module)) return Fail(absl::StrCat("calls ", call.block, ", which belongs to no module"));
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      auto it = live_.find(call.inputs[i]);
      if (it == live_.end()) continue;
      string problem = Difference(*it->second, block->inputs[i].type);
      if (!problem.empty()) {
        Fail(absl::StrCat("passes ", call.inputs[i], " to ", call.block, " as ", block->inputs[i].name, ", whose ",
                          problem));
      }
    }
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      const ValueType* made = TypeOfValue(*block, block->outputs[i]);
      string problem = made ? Difference(call.outputs[i].type, *made) : "";
      if (!problem.empty()) {
        Fail(absl::StrCat("gets ", call.outputs[i].name, " from ", call.block, ", whose output ", block->outputs[i],
                          "'s ", problem));
      }
    }
  }

  bool AreRowsOfOneBridge(const string& a, const string& b) const {
    const auto& bridges = index_.plan().bridges;
    return std::any_of(bridges.begin(), bridges.end(), [&](const Bridge& bridge) {
      const string from = RowsOfBridge(index_.plan(), bridge, false), to = RowsOfBridge(index_.plan(), bridge, true);
      return (a == from && b == to) || (a == to && b == from);
    });
  }

  // What differs between the type that is given and the one that is wanted, to follow "whose"; "": nothing.
  string Difference(const ValueType& given, const ValueType& wanted) const {
    const auto differs = [](const string& what) { return absl::StrCat(what, " is not the same"); };
    const bool memory = given.host == wanted.host;
    bool shape = given.dims.size() == wanted.dims.size();
    for (size_t i = 0; shape && i < given.dims.size(); ++i) {
      const string *from = std::get_if<string>(&given.dims[i]), *to = std::get_if<string>(&wanted.dims[i]);
      // In a role's list the same rows may have the run-time size of one module and that of the next.
      shape = given.dims[i] == wanted.dims[i] || (from && to && !module_ && AreRowsOfOneBridge(*from, *to));
    }
    if (given.dtype != wanted.dtype || !shape)
      return absl::StrCat("type is ", ShapeText(wanted), ", not ", ShapeText(given));
    if (given.layout != wanted.layout) return differs("layout");
    if (given.gradient.has_value() != wanted.gradient.has_value())
      return wanted.gradient ? "type takes a gradient" : "type takes no gradient";
    if (given.gradient != wanted.gradient) return differs("gradient's layout");
    return memory ? "" : differs("place in memory");
  }

  const PlanIndex& index_;
  AttributeCheck& attributes_;
  const string where_;
  const std::string_view list_;
  const bool evaluates_;
  const Module* module_;
  const std::vector<std::string_view> frames_;  // that run the block
  const int origin_;
  int here_;  // origin of the instruction that is looked at
  std::vector<Violation>& violations_;
  // Names are those of the plan.
  std::unordered_map<std::string_view, const ValueType*> live_;
  std::set<std::string_view> owned_;  // in order, for messages
  std::unordered_set<std::string_view> freed_;
  std::unordered_set<std::string_view> used_;         // read by an instruction, returned or saved
  std::map<std::string_view, Reduction> reductions_;  // of values that are not reduced by a sum
  std::vector<const Instruction*> walked_;
  std::optional<FeatureParts> feature_parts_;  // of a block
};

void CheckBlock(const PlanIndex& index, AttributeCheck& attributes, const Block& block,
                std::vector<Violation>& violations) {
  const Module* module = index.module(block.module);
  if (!module) {
    violations.push_back(
        {"V4", absl::StrCat("block ", block.name, " belongs to module ", block.module, ", which does not exist"),
         index.OriginOf(block.origin, -1, nullptr)});
    return;
  }
  ListWalk walk(index, attributes, absl::StrCat("block ", block.name), "", module, index.FramesOf(block),
                index.Evaluates(block), block.origin, violations);
  for (const Output& input : block.inputs) walk.Define(input, false);
  for (const Output& take : block.takes) walk.Define(take, true);  // the saved value is this block's from here on
  for (const Instruction& instruction : block.body) walk.Walk(instruction);
  walk.CheckDistinct(block.outputs, "returns");
  walk.CheckDistinct(block.saved, "saves");
  std::vector<string> kept = block.outputs;
  kept.insert(kept.end(), block.saved.begin(), block.saved.end());
  walk.End(kept);
}

}  // namespace

std::vector<Violation> VerifyValues(const PlanIndex& index) {
  std::vector<Violation> violations;
  AttributeCheck attributes(index.plan());
  for (const Block& block : index.plan().blocks) CheckBlock(index, attributes, block, violations);
  for (const Role& role : index.plan().roles) {
    for (const RoleList& part : kRoleLists) {
      ListWalk walk(index, attributes, absl::StrCat("role ", role.name), part.name, nullptr, {}, false, role.origin,
                    violations);
      for (const Instruction& instruction : role.*part.list) walk.Walk(instruction);
      walk.End({});
    }
  }
  return violations;
}

}  // namespace planwright
