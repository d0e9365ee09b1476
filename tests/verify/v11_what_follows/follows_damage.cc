#include "tests/verify/v11_what_follows/follows_damage.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "planner/verify/verify.h"
#include "tests/numerics/layouts.h"
#include "tests/support/compiled.h"

namespace planwright::testing {

Module& Named(Plan& plan, const std::string& name) {
  for (Module& module : plan.modules) {
    if (module.name == name) return module;
  }
  throw std::runtime_error("no module " + name);
}
Module& Language(Plan& plan) { return Named(plan, "language"); }
Module& Encoder(Plan& plan) { return Named(plan, "radio_encoder"); }

Parameter& ParameterOf(Module& module, const std::string& ending) {
  for (Parameter& parameter : module.parameters) {
    if (parameter.name.ends_with(ending)) return parameter;
  }
  throw std::runtime_error("no parameter " + ending);
}

Storage& StorageOf(Module& module, const std::string& frame, const std::string& slot) {
  for (Storage& storage : module.storages) {
    if (storage.frame.ends_with(frame) && storage.slot == slot) return storage;
  }
  throw std::runtime_error("no storage " + slot);
}

Block& BlockOf(Plan& plan, const std::string& name) {
  for (Block& block : plan.blocks) {
    if (block.name == name) return block;
  }
  throw std::runtime_error("no block " + name);
}

Instruction& OpOf(Block& block, OpKind kind, int which) {
  for (Instruction& op : block.body) {
    if (op.kind == kind && which-- == 0) return op;
  }
  throw std::runtime_error("no " + std::string(OpName(kind)));
}

Role& RoleOf(Plan& plan, const std::string& name) {
  for (Role& role : plan.roles) {
    if (role.name == name) return role;
  }
  throw std::runtime_error("no role " + name);
}

void ExpectRefused(const Plan& sound, const std::vector<Damage>& damages, const std::string& module) {
  ASSERT_TRUE(VerifyPlan(sound).empty());
  for (const Damage& damage : damages) {
    Plan plan = sound;
    damage.inflict(plan);
    const std::vector<Violation> found = VerifyPlan(plan);
    if (found.empty()) {
      ADD_FAILURE() << damage.name << " passes";
      continue;
    }
    EXPECT_EQ(found.front().rule, damage.rule) << damage.name << ": " << found.front().message;
    EXPECT_THAT(found.front().message, ::testing::HasSubstr(damage.says)) << damage.name;
    if (module.empty()) continue;
    const int origin = found.front().origin;
    ASSERT_GE(origin, 0) << damage.name;
    EXPECT_EQ(plan.origins[static_cast<size_t>(origin)].what, module) << damage.name << ": " << found.front().message;
  }
}

Plan TensorParallel() { return CompiledFile(kTiny, Join(EncoderOn(2, 2), LanguageOn(2, 4, 2, 4))); }

Plan WithEverything() {
  return CompiledFile(
      kTiny,
      {"cluster.nodes=2", "modules.radio_encoder.placement.ranks=8",
       "modules.radio_encoder.parallel={tp: 2, cp: 2, pp: 2}", "modules.language.placement.first_rank=8",
       "modules.language.placement.ranks=8", "modules.language.parallel={tp: 2, cp: 2, pp: 2, ep: 2, expert_tp: 2}",
       "models.hybrid_moe_tiny.mamba.groups=4", "models.hybrid_moe_tiny.attention.kv_groups=4",
       "modules.language.recompute=[full]", "data.packed_documents=true", "gradients.overlap_reduce=true",
       "gradients.overlap_gather=true", "gradients.buckets=2",
       "optimizer.parts=[{match: radio_encoder.projection, learning_rate: 1.0e-2}, "
       "{match: \"*.mixer.*\", weight_decay: 0.1}, {match: radio_encoder, learning_rate: 1.0e-4}]"});
}

}  // namespace planwright::testing
