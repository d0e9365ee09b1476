// Plans of all shipped recipes, for tests of what must hold of any plan; and a visit of all instructions of a plan.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright::testing {

struct ShippedPlan {
  std::string name;
  Plan plan;
};

// The plan of a shipped recipe, with overrides.
inline Plan CompiledRecipe(const std::string& name, const std::vector<std::string>& overrides = {}) {
  SCOPED_TRACE(name);
  return CompiledFile(InSource("recipes/") + name + ".yaml", overrides);
}

inline const std::vector<ShippedPlan>& ShippedPlans() {
  static const std::vector<ShippedPlan> plans = [] {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(InSource("recipes"))) {
      if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
    }
    std::sort(names.begin(), names.end());
    std::vector<ShippedPlan> all;
    for (const std::string& name : names) all.push_back({name, CompiledRecipe(name)});
    // No shipped recipe has pipeline stages, cp, expert_tp or recompute.
    const std::string parallel = "modules.language.parallel.";
    const std::vector<std::string> eight = {
        "cluster.gpus_per_node=9", "modules.language.placement.first_rank=1", "modules.language.placement.ranks=8",
        "models.hybrid_moe_tiny.mamba.groups=4", "models.hybrid_moe_tiny.attention.kv_groups=4"};
    const auto tiny = [&](const std::string& name, std::vector<std::string> more) {
      std::vector<std::string> overrides = eight;
      overrides.insert(overrides.end(), more.begin(), more.end());
      all.push_back({name, CompiledRecipe("nemotron_moe_vlm_tiny", overrides)});
    };
    tiny("tiny with pp and expert_tp",
         {parallel + "tp=2", parallel + "pp=2", parallel + "expert_tp=2", parallel + "ep=2"});
    tiny("tiny with cp and recompute",
         {parallel + "tp=2", parallel + "cp=2", parallel + "ep=4", "modules.language.recompute=full"});
    return all;
  }();
  return plans;
}

// Where an instruction is: the modules that it may act for, and the name of its block or role for messages.
struct Site {
  const Plan& plan;
  std::vector<std::string> modules;
  std::string name;
  bool in_step = false;  // in a step, or in a block that a step calls
};

// Every instruction of every block and of every list of every role.
inline void ForEachInstruction(const Plan& plan, const std::function<void(const Instruction&, const Site&)>& visit) {
  for (const Block& block : plan.blocks) {
    for (const Instruction& op : block.body) visit(op, {plan, {block.module}, block.name, true});
  }
  for (const Role& role : plan.roles) {
    for (const RoleList& part : kRoleLists) {
      for (const Instruction& op : role.*part.list)
        visit(op, {plan, role.modules, role.name, part.list == &Role::step});
    }
  }
}

inline void ForEachShipped(const std::function<void(const Plan&)>& visit) {
  for (const ShippedPlan& shipped : ShippedPlans()) {
    SCOPED_TRACE(shipped.name);
    visit(shipped.plan);
  }
}

inline bool IsStateName(const std::string& name) { return !name.empty() && (name[0] == '$' || name[0] == '%'); }

}  // namespace planwright::testing
