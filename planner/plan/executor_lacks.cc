#include "planner/plan/executor_lacks.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "planner/plan/op_table.h"

namespace planwright {
namespace {

// An attribute whose value this version's executor does not run, or "".
std::string LackingAttribute(const Instruction& instruction) {
  for (const AttributeSpec& spec : InfoOf(instruction.kind).attributes) {
    const int64_t* value = spec.runs ? instruction.FindInteger(spec.name) : nullptr;
    if (value && static_cast<double>(*value) != *spec.runs) return absl::StrCat(spec.name, " ", *value);
  }
  return "";
}

void AddModule(const Module& module, std::vector<Lack>& lacks) {
  const auto add = [&](const char* what, int size) {
    if (size > 1) lacks.push_back({absl::StrCat(what, " ", size, " of module ", module.name), module.origin});
  };
  add("pipeline stages: pp", module.grid.pp);
  add("context parallelism: cp", module.grid.cp);
  add("cut experts: expert_tp", module.grid.expert_tp);
  if (!module.trains_backbone) lacks.push_back({"a frozen part: the backbone of module " + module.name, module.origin});
  if (module.trains_backbone && !module.trains_projection) {
    lacks.push_back({"a frozen part: the projection of module " + module.name, module.origin});
  }
  for (const std::string& kind : module.recompute)
    lacks.push_back({"recompute of " + kind + " in module " + module.name, module.origin});
}

void AddInstructions(const std::vector<Instruction>& body, int origin, std::set<std::string>& said,
                     std::vector<Lack>& lacks) {
  for (const Instruction& instruction : body) {
    const auto say = [&](std::string what) {
      if (said.insert(what).second)
        lacks.push_back({std::move(what), instruction.origin >= 0 ? instruction.origin : origin});
    };
    const OpInfo& info = InfoOf(instruction.kind);
    if (info.planned) say("the instruction " + std::string(info.name));
    if (const std::string lacking = LackingAttribute(instruction); !lacking.empty())
      say(absl::StrCat(std::string(info.name), " with ", lacking));
  }
}

}  // namespace

std::vector<Lack> ExecutorLacks(const Plan& plan) {
  std::vector<Lack> lacks;
  for (const Module& module : plan.modules) AddModule(module, lacks);
  const auto encoders =
      std::count_if(plan.modules.begin(), plan.modules.end(), [](const Module& module) { return module.has_images; });
  if (encoders > 1)
    lacks.push_back({absl::StrCat(encoders, " encoders"), plan.bridges.empty() ? -1 : plan.bridges.back().origin});
  if (plan.checkpoint.every_steps > 0) lacks.push_back({"writing checkpoints: checkpoint.every_steps", -1});
  if (plan.data.packed_documents) lacks.push_back({"packed documents", -1});
  std::set<std::string> said;
  for (const Block& block : plan.blocks) AddInstructions(block.body, block.origin, said, lacks);
  for (const Role& role : plan.roles) {
    for (const auto* list : {&role.setup, &role.step, &role.teardown}) AddInstructions(*list, role.origin, said, lacks);
  }
  return lacks;
}

}  // namespace planwright
