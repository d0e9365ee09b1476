#include "planner/plan/unsupported_features.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "planner/plan/op_table.h"

namespace planwright {
namespace {

// The first attribute whose value the executor does not run ("zigzag 1"), or "".
std::string UnsupportedAttribute(const Instruction& instruction) {
  for (const AttributeSpec& spec : InfoOf(instruction.kind).attributes) {
    const int64_t* value = spec.runs ? instruction.FindInteger(spec.name) : nullptr;
    if (value && static_cast<double>(*value) != *spec.runs) return absl::StrCat(spec.name, " ", *value);
  }
  return "";
}

// Features of a module, by its grid and its training settings.
void AddModule(const Module& module, std::vector<UnsupportedFeature>& features) {
  const auto add = [&](const char* what, int size) {
    if (size > 1) features.push_back({absl::StrCat(what, " ", size, " of module ", module.name), module.origin});
  };
  add("pipeline stages: pp", module.grid.pp);
  add("context parallelism: cp", module.grid.cp);
  add("cut experts: expert_tp", module.grid.expert_tp);
  if (!module.trains_backbone)
    features.push_back({"a frozen part: the backbone of module " + module.name, module.origin});
  if (module.trains_backbone && !module.trains_projection) {
    features.push_back({"a frozen part: the projection of module " + module.name, module.origin});
  }
  for (const std::string& kind : module.recompute)
    features.push_back({"recompute of " + kind + " in module " + module.name, module.origin});
}

// `said`: features that are listed already. A plan has thousands of instructions of the same kind.
void AddInstructions(const std::vector<Instruction>& body, int origin, std::set<std::string>& said,
                     std::vector<UnsupportedFeature>& features) {
  for (const Instruction& instruction : body) {
    const auto say = [&](std::string what) {
      if (said.insert(what).second)
        features.push_back({std::move(what), instruction.origin >= 0 ? instruction.origin : origin});
    };
    const OpInfo& info = InfoOf(instruction.kind);
    if (info.planned) say("the instruction " + std::string(info.name));
    if (const std::string attribute = UnsupportedAttribute(instruction); !attribute.empty())
      say(absl::StrCat(std::string(info.name), " with ", attribute));
  }
}

}  // namespace

std::vector<UnsupportedFeature> UnsupportedFeatures(const Plan& plan) {
  std::vector<UnsupportedFeature> features;
  for (const Module& module : plan.modules) AddModule(module, features);
  const auto encoders =
      std::count_if(plan.modules.begin(), plan.modules.end(), [](const Module& module) { return module.has_images; });
  if (encoders > 1)
    features.push_back({absl::StrCat(encoders, " encoders"), plan.bridges.empty() ? -1 : plan.bridges.back().origin});
  if (plan.checkpoint.every_steps > 0) features.push_back({"writing checkpoints: checkpoint.every_steps", -1});
  if (plan.data.packed_documents) features.push_back({"packed documents", -1});
  std::set<std::string> said;
  for (const Block& block : plan.blocks) AddInstructions(block.body, block.origin, said, features);
  for (const Role& role : plan.roles) {
    for (const auto* list : {&role.setup, &role.step, &role.teardown})
      AddInstructions(*list, role.origin, said, features);
  }
  return features;
}

}  // namespace planwright
