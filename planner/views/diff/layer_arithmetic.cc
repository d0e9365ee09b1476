#include "planner/views/diff/layer_arithmetic.h"

#include "planner/plan/op_table.h"

namespace planwright {
namespace {

// Whether an operation only cuts, joins, adds up or counts what others compute. Layouts differ in these.
bool BelongsToLayout(const OpInfo& info) { return info.OnlyMoves() || info.counts_on_host; }

class ArithmeticCollector {
 public:
  explicit ArithmeticCollector(const Plan& plan) : plan_(plan) {
    for (const Block& block : plan.blocks) blocks_[block.name] = &block;
    for (const Module& module : plan.modules) {
      result_.modules[module.name];
      for (const LayerSummary& layer : module.layers) layers_.insert(layer.frame);
    }
  }

  PlanArithmetic Collect() {
    for (const Role& role : plan_.roles) {
      for (const Instruction& instruction : role.step) {
        if (instruction.kind == OpKind::kCall) Enter(instruction);
        if (OpClassOf(instruction.kind) == OpClass::kState) AddState(instruction);
      }
    }
    return std::move(result_);
  }

 private:
  // Follows a call into its block and the blocks that this calls. A block does the same for every microbatch, so one
  // visit per frame is enough.
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

  // Calls of stage blocks and of embedding and head are outside layers.
  void AddCompute(const Module& module, const std::string& layer, const Instruction& instruction) {
    const OpInfo& info = InfoOf(instruction.kind);
    if (!info.transposes.empty() || BelongsToLayout(info)) return;
    const OpKind kind = info.computes_as.value_or(info.on_one_rank.value_or(instruction.kind));
    result_.modules[module.name][layer].emplace(OpName(kind));
  }

  // Without the bucket: how many buckets there are belongs to the layout. Losses by source are for people alone.
  void AddState(const Instruction& instruction) {
    if (instruction.kind == OpKind::kAccumulateRows) return;
    const auto module = instruction.attributes.find("module");
    const std::string* name =
        module == instruction.attributes.end() ? nullptr : std::get_if<std::string>(&module->second);
    result_.step.insert(std::string(OpName(instruction.kind)) + (name ? " " + *name : ""));
  }

  const Plan& plan_;
  std::map<std::string, const Block*> blocks_;          // by name
  std::set<std::string> layers_;                        // frames of layers
  std::set<std::pair<std::string, std::string>> seen_;  // block and frame
  PlanArithmetic result_;
};

}  // namespace

PlanArithmetic ArithmeticOf(const Plan& plan) { return ArithmeticCollector(plan).Collect(); }

}  // namespace planwright
