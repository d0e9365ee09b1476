// Damage to fields that follow, and what must come of it: V11 refuses the plan, at the recipe line of the module that
// the field belongs to.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "tests/support/folders.h"

namespace planwright::testing {

inline const std::string kTiny = InSource("recipes/nemotron_moe_vlm_tiny.yaml");

struct Damage {
  std::string name;
  std::function<void(Plan&)> inflict;
  const char* says = "";  // part of the first violation's message
  const char* rule = "V11";
};

// Parts of a plan, to damage; the test fails by an exception if there is none.
Module& Named(Plan& plan, const std::string& name);
Module& Language(Plan& plan);
Module& Encoder(Plan& plan);
Parameter& ParameterOf(Module& module, const std::string& ending);
Storage& StorageOf(Module& module, const std::string& frame, const std::string& slot);
Block& BlockOf(Plan& plan, const std::string& name);
// Instruction number `which` (from 0) of a kind.
Instruction& OpOf(Block& block, OpKind kind, int which = 0);
Role& RoleOf(Plan& plan, const std::string& name);

// Each damage must be refused by the rule that it names. `module`: the first violation must point at this module's
// line; empty: at any line.
void ExpectRefused(const Plan& sound, const std::vector<Damage>& damages, const std::string& module);

// Encoder tp2 on 2 ranks, language model tp2 dp2 ep4 on 4 ranks.
Plan TensorParallel();

// A plan with every axis above 1 somewhere, with all layers recomputed, overlap, and packed documents.
Plan WithEverything();

}  // namespace planwright::testing
