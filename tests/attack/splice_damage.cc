// Takes parts of another valid plan: each part is right by itself, and does not belong to the rest.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "tests/attack/damages.h"
#include "tests/attack/lists.h"

namespace planwright::attack {
namespace {

// What a splice takes, by name. False: the plans do not both have it.
struct Part {
  const char* name;
  bool (*take)(Plan& plan, const Plan& donor, Random& random);
};

template <auto Member>
bool Take(Plan& plan, const Plan& donor, Random&) {
  plan.*Member = donor.*Member;
  return true;
}
template <auto Member>
bool OfModule(Plan& plan, const Plan& donor, Random& random) {
  const size_t i = random.Below(plan.modules.size());
  if (i >= donor.modules.size()) return false;
  plan.modules[i].*Member = donor.modules[i].*Member;
  return true;
}
template <auto Member>
bool OfBudget(Plan& plan, const Plan& donor, Random&) {
  plan.budget.*Member = donor.budget.*Member;
  return true;
}
template <auto Member>
bool OfCheckpoint(Plan& plan, const Plan& donor, Random&) {
  plan.checkpoint.*Member = donor.checkpoint.*Member;
  return true;
}
bool OneProgram(Plan& plan, const Plan& donor, Random& random) {
  const RoleList& list = kRoleLists[random.Below(std::size(kRoleLists))];
  const size_t i = random.Below(plan.roles.size());
  if (i >= donor.roles.size()) return false;
  plan.roles[i].*list.list = donor.roles[i].*list.list;
  return true;
}
bool AllPrograms(Plan& plan, const Plan& donor, Random& random) {
  const RoleList& list = kRoleLists[random.Below(std::size(kRoleLists))];
  for (size_t i = 0; i < std::min(plan.roles.size(), donor.roles.size()); ++i)
    plan.roles[i].*list.list = donor.roles[i].*list.list;
  return true;
}
bool OneBlock(Plan& plan, const Plan& donor, Random& random) {
  if (donor.blocks.empty()) return false;
  const Block& block = random.Pick(donor.blocks);
  for (Block& each : plan.blocks)
    if (each.name == block.name) {
      each = block;
      return true;
    }
  return false;
}
bool AnotherRolesProgram(Plan& plan, const Plan&, Random& random) {
  const RoleList& list = kRoleLists[random.Below(std::size(kRoleLists))];
  plan.roles[random.Below(plan.roles.size())].*list.list = plan.roles[random.Below(plan.roles.size())].*list.list;
  return true;
}

constexpr Part kParts[] = {
    {"precision", Take<&Plan::precision>},
    {"deterministic", Take<&Plan::deterministic>},
    {"seed", Take<&Plan::seed>},
    {"world_size", Take<&Plan::world_size>},
    {"log_every_steps", Take<&Plan::log_every_steps>},
    {"cluster", Take<&Plan::cluster>},
    {"modules", Take<&Plan::modules>},
    {"groups", Take<&Plan::groups>},
    {"bridges", Take<&Plan::bridges>},
    {"budget", Take<&Plan::budget>},
    {"optimizer", Take<&Plan::optimizer>},
    {"data", Take<&Plan::data>},
    {"initialize", Take<&Plan::initialize>},
    {"checkpoint", Take<&Plan::checkpoint>},
    {"accumulators", Take<&Plan::accumulators>},
    {"symbols", Take<&Plan::symbols>},
    {"schedule", Take<&Plan::schedule>},
    {"blocks", Take<&Plan::blocks>},
    {"roles", Take<&Plan::roles>},
    {"a module's grid", OfModule<&Module::grid>},
    {"a module's constants", OfModule<&Module::constants>},
    {"a module's parameters", OfModule<&Module::parameters>},
    {"a module's storages", OfModule<&Module::storages>},
    {"a module's buckets", OfModule<&Module::buckets>},
    {"a module's layers", OfModule<&Module::layers>},
    {"a module's recompute", OfModule<&Module::recompute>},
    {"a module's dispatch", OfModule<&Module::dispatch>},
    {"a module's imbalance", OfModule<&Module::imbalance>},
    {"trains_backbone", OfModule<&Module::trains_backbone>},
    {"trains_projection", OfModule<&Module::trains_projection>},
    {"train_samples", OfBudget<&Budget::train_samples>},
    {"global_samples", OfBudget<&Budget::global_samples>},
    {"micro_samples", OfBudget<&Budget::micro_samples>},
    {"microbatches", OfBudget<&Budget::microbatches>},
    {"block_samples", OfBudget<&Budget::block_samples>},
    {"checkpoint rules", OfCheckpoint<&CheckpointPlan::rules>},
    {"every_steps", OfCheckpoint<&CheckpointPlan::every_steps>},
    {"a role's list", OneProgram},
    {"a list of all roles", AllPrograms},
    {"a block", OneBlock},
    {"a list of another role", AnotherRolesProgram},
};

}  // namespace

std::optional<Damage> Splice(Plan& plan, const std::vector<Plan>& donors, Random& random) {
  if (plan.modules.empty() || plan.roles.empty()) return std::nullopt;
  const Plan& donor = random.Pick(donors);
  Damage damage = {"splice", absl::StrCat("from ", donor.name, ": ")};
  for (size_t parts = 1 + random.Below(4); parts > 0; --parts) {
    const Part& part = kParts[random.Below(std::size(kParts))];
    if (!part.take(plan, donor, random)) return std::nullopt;
    absl::StrAppend(&damage.words, part.name, "; ");
  }
  return damage;
}

}  // namespace planwright::attack
