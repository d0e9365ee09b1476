// What ranks keep, in every shipped plan: checkpoint keys, writers, optimizers, and the ranks that gradients are summed
// over. Bug numbers are those of docs/reference_bugs.md.
#include <map>
#include <set>

#include "planner/plan/shard_map.h"
#include "planner/verify/verify.h"
#include "tests/reference_bugs/shipped_plans.h"

namespace planwright {
namespace {

using testing::CompiledRecipe;
using testing::ForEachShipped;

const std::string* ModuleOf(const Instruction& op) {
  const auto it = op.attributes.find("module");
  return it == op.attributes.end() ? nullptr : std::get_if<std::string>(&it->second);
}

// Bug 2: two modules had the same keys.
TEST(Keys, BeginWithTheirModule) {
  ForEachShipped([](const Plan& plan) {
    std::set<std::string> keys;
    for (const Module& module : plan.modules) {
      for (const Parameter& parameter : module.parameters) {
        EXPECT_TRUE(parameter.name.starts_with(module.name + ".")) << parameter.name;
        EXPECT_TRUE(keys.insert(parameter.name).second) << parameter.name << " twice";
      }
    }
  });
}

// Bugs 3 to 5: two replicas wrote one object twice; plain state of modules without rank 0 was lost, because rank 0
// alone saved it; and a module without state left no container to load. Here state is a list of rules, each of one
// module, and common state belongs to no module.
TEST(Keys, OfAModuleAreNeverCommonState) {
  ForEachShipped([](const Plan& plan) {
    for (const Module& module : plan.modules) {
      for (const std::string& key : plan.checkpoint.common) EXPECT_FALSE(key.starts_with(module.name)) << key;
      std::set<int> ruled;
      for (const CheckpointRule& rule : plan.checkpoint.rules) {
        if (rule.module != module.name) continue;
        for (int index : Expand(rule.parameters)) {
          EXPECT_TRUE(ruled.insert(index).second)
              << module.parameters[static_cast<size_t>(index)].name << " has two rules";
          EXPECT_EQ(rule.states.empty(), !module.parameters[static_cast<size_t>(index)].trained)
              << module.parameters[static_cast<size_t>(index)].name;
        }
      }
      EXPECT_EQ(ruled.size(), module.parameters.size()) << module.name;
    }
  });
}

// Bug 7: a frozen module built an empty optimizer.
TEST(Frozen, ModulesHaveNoOptimizer) {
  const std::set<OpKind> of_training = {OpKind::kScaleGradients, OpKind::kSquareNorm, OpKind::kAdamW,
                                        OpKind::kUpdateExpertBias, OpKind::kRefreshMasters};
  int frozen = 0;
  ForEachShipped([&](const Plan& plan) {
    for (const Module& module : plan.modules) {
      if (module.trained()) continue;
      ++frozen;
      EXPECT_TRUE(module.buckets.empty()) << module.name;
      for (const Role& role : plan.roles) {
        for (const auto* list : {&role.setup, &role.step}) {
          for (const Instruction& op : *list) {
            const std::string* of = ModuleOf(op);
            EXPECT_FALSE(of && *of == module.name && of_training.contains(op.kind))
                << role.name << " runs " << OpName(op.kind) << " of frozen " << module.name;
          }
        }
        EXPECT_EQ(std::count_if(role.step.begin(), role.step.end(),
                                [](const Instruction& op) { return op.kind == OpKind::kLogStep; }),
                  1)
            << "every role logs the step, with the learning rate";
      }
    }
  });
  EXPECT_GE(frozen, 1) << "stage 1 freezes its language model";
}

// Bug 9: weights were loaded, but the first step started from the old fp32 masters.
TEST(Weights, AreFollowedByTheirMasters) {
  const Plan loaded = CompiledRecipe("nemotron_moe_vlm_20l_mock_8r_toy", {"initialize.from=weights.safetensors"});
  const auto check = [](const Plan& plan, OpKind writes) {
    for (const Role& role : plan.roles) {
      for (const std::string& name : role.modules) {
        std::vector<OpKind> order;
        for (const Instruction& op : role.setup) {
          if (ModuleOf(op) && *ModuleOf(op) == name) order.push_back(op.kind);
        }
        std::vector<OpKind> expected = {OpKind::kAllocateParameters, writes};
        if (plan.FindModule(name)->trained()) expected.push_back(OpKind::kRefreshMasters);
        EXPECT_EQ(order, expected) << role.name << " " << name;
      }
    }
  };
  check(loaded, OpKind::kLoadParameters);
  ForEachShipped([&](const Plan& plan) {
    check(plan, plan.initialize ? OpKind::kLoadParameters : OpKind::kInitializeParameters);
  });
  Plan stale = loaded;
  std::erase_if(stale.roles.at(0).setup, [](const Instruction& op) { return op.kind == OpKind::kRefreshMasters; });
  const std::vector<Violation> found = VerifyPlan(stale);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front().rule, "V7");
}

// The ranks of the bucket's stage, by the elements of published tensors that they hold in the bucket.
std::map<std::string, std::set<int>> HoldersOf(const Module& module, int bucket) {
  std::map<std::string, std::set<int>> holders;
  for (int rank = module.grid.first_rank; rank < module.grid.first_rank + module.grid.ranks(); ++rank) {
    if (CoordinateOf(module.grid, rank, Axis::kPp) != module.buckets[static_cast<size_t>(bucket)].stage) continue;
    std::string held;
    for (const Storage& storage : module.storages) {
      if (storage.bucket != bucket) continue;
      for (const PublishedSlice& slice : SlicesOf(module, storage, CoordinatesOf(module.grid, rank))) {
        held += slice.name + ":" + std::to_string(slice.runs.empty() ? -1 : slice.runs.front().whole) + " ";
      }
      break;  // all storages of a bucket are sharded over the same axes
    }
    holders[held].insert(rank);
  }
  return holders;
}

// Bug 29, and the rule behind many bugs: a gradient is summed over exactly the ranks that hold the same elements. The
// rules of verify prove this by axes; this test counts rank by rank.
TEST(Gradients, AreSummedOverExactlyTheirReplicas) {
  ForEachShipped([](const Plan& plan) {
    if (plan.world_size > 1024) return;  // too slow rank by rank
    for (const Module& module : plan.modules) {
      for (size_t b = 0; b < module.buckets.size(); ++b) {
        const Bucket& bucket = module.buckets[b];
        for (const auto& [held, ranks] : HoldersOf(module, static_cast<int>(b))) {
          std::set<int> summed = {*ranks.begin()};
          for (const std::string& over : {bucket.reduce_group, bucket.tp_group}) {
            const Group* group = plan.FindGroup(over);
            std::set<int> wider = summed;
            for (const auto& members : group ? MembersOf(plan, *group) : std::vector<std::vector<int>>()) {
              const bool meets =
                  std::any_of(members.begin(), members.end(), [&](int rank) { return summed.contains(rank); });
              if (meets) wider.insert(members.begin(), members.end());
            }
            summed = wider;
          }
          // If every tp rank computes the whole gradient, nothing is summed over tp.
          if (bucket.tp == TpGradient::kReplicated && module.grid.tp > 1) {
            for (int rank : summed) EXPECT_TRUE(ranks.contains(rank)) << bucket.name;
            EXPECT_EQ(summed.size() * static_cast<size_t>(module.grid.tp), ranks.size()) << bucket.name;
          } else {
            EXPECT_EQ(summed, ranks) << bucket.name;
          }
        }
      }
    }
  });
}

// Bug 12: gradients were summed in bf16.
TEST(Gradients, TravelInFp32OrWider) {
  ForEachShipped([](const Plan& plan) {
    testing::ForEachInstruction(plan, [](const Instruction& op, const testing::Site& site) {
      if (op.inputs.empty() || op.inputs[0].find(".gradient") == std::string::npos ||
          !testing::IsStateName(op.inputs[0]))
        return;
      const DType dtype = op.outputs.at(0).type.dtype;
      EXPECT_TRUE(dtype == DType::kFp32 || dtype == DType::kFp64) << site.name << " " << op.inputs[0];
    });
  });
}

}  // namespace
}  // namespace planwright
