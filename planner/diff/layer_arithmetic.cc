#include "planner/diff/layer_arithmetic.h"

namespace planwright {
namespace {

// Whether a kind is there for the layout's sake: it cuts, joins, adds up or counts what others compute.
bool OnlyMoves(OpKind kind) {
  switch (kind) {
    case OpKind::kLocalSlice:
    case OpKind::kSliceRows:
    case OpKind::kSplit:
    case OpKind::kConcat:
    case OpKind::kDealBands:
    case OpKind::kAdd: return true;
    default: return false;
  }
}

class Collector {
 public:
  explicit Collector(const Plan& plan) : plan_(plan) {
    for (const Block& block : plan.blocks) blocks_[block.name] = &block;
    for (const Module& module : plan.modules) {
      result_.modules[module.name];
      for (const LayerSummary& layer : module.layers) layers_.insert(layer.frame);
    }
  }

  PlanArithmetic Run() {
    for (const Role& role : plan_.roles) {
      for (const Instruction& instruction : role.step) {
        if (instruction.kind == OpKind::kCall) Enter(instruction);
        if (OpClassOf(instruction.kind) == OpClass::kState) AddState(instruction);
      }
    }
    return std::move(result_);
  }

 private:
  void Enter(const Instruction& call) {
    const auto it = blocks_.find(call.block);
    if (it == blocks_.end() || !seen_.insert({call.block, call.frame}).second) return;
    const Module* module = plan_.FindModule(it->second->module);
    for (const Instruction& instruction : it->second->body) {
      if (instruction.kind == OpKind::kCall) {
        Enter(instruction);
      } else if (module && OpClassOf(instruction.kind) == OpClass::kCompute) {
        AddCompute(*module, layers_.contains(call.frame) ? call.frame : "", instruction);
      }
    }
  }

  void AddCompute(const Module& module, const std::string& layer, const Instruction& instruction) {
    const std::string op(OpName(instruction.kind));
    if (op.ends_with("_grad") || OnlyMoves(instruction.kind)) return;
    result_.modules[module.name][layer].insert(op);
  }

  void AddState(const Instruction& instruction) {
    const auto module = instruction.attributes.find("module");
    const std::string* name =
        module == instruction.attributes.end() ? nullptr : std::get_if<std::string>(&module->second);
    result_.step.insert(std::string(OpName(instruction.kind)) + (name ? " " + *name : ""));
  }

  const Plan& plan_;
  std::map<std::string, const Block*> blocks_;
  std::set<std::string> layers_;
  std::set<std::pair<std::string, std::string>> seen_;
  PlanArithmetic result_;
};

}  // namespace

PlanArithmetic ArithmeticOf(const Plan& plan) { return Collector(plan).Run(); }

}  // namespace planwright
