// Which ranks communicate, in every shipped plan: every communication names its group, only the sums of a step leave a
// module, and programs have no branches. Bug numbers are those of docs/reference_bugs.md.
#include <set>

#include "tests/reference_bugs/shipped_plans.h"

namespace planwright {
namespace {

using testing::ForEachInstruction;
using testing::ForEachShipped;
using testing::IsStateName;
using testing::Site;

bool Communicates(const Instruction& op) { return OpClassOf(op.kind) == OpClass::kCommunication; }

// Bugs 1, 6 and 35: a layer without its group fell back to a global one.
TEST(Groups, EveryCommunicationNamesItsOwn) {
  ForEachShipped([](const Plan& plan) {
    ForEachInstruction(plan, [](const Instruction& op, const Site& site) {
      if (op.kind == OpKind::kExchange) {
        for (const ExchangePart& part : op.parts) {
          const Group* group = site.plan.FindGroup(part.bridge.empty() ? part.group : part.bridge);
          EXPECT_TRUE(group != nullptr && group->used()) << site.name;
        }
      } else if (Communicates(op)) {
        const Group* group = site.plan.FindGroup(op.group);
        EXPECT_TRUE(group != nullptr && group->used()) << site.name << " " << OpName(op.kind) << " " << op.group;
      } else {
        EXPECT_TRUE(op.group.empty() && op.parts.empty())
            << site.name << " " << OpName(op.kind) << " computes, but has a group or exchange parts";
      }
    });
  });
}

// Bug 6: the encoder, Mamba and gated norm layers were built without their tp group.
TEST(Groups, LayersOverTpCommunicateOverTheirModulesTp) {
  ForEachShipped([](const Plan& plan) {
    for (const Block& block : plan.blocks) {
      const Module& module = *plan.FindModule(block.module);
      const bool layer = block.name.ends_with("layer.forward") || block.name.ends_with("mamba.forward") ||
                         block.name.ends_with("attention.forward") || block.name.ends_with("moe.forward");
      if (!layer || module.grid.tp == 1) continue;
      const auto over_tp = [&](const Instruction& op) { return op.group == module.name + ".tp"; };
      EXPECT_TRUE(std::any_of(block.body.begin(), block.body.end(), over_tp)) << block.name;
    }
  });
}

// The kinds of groups of a module.
const std::set<std::string> kKinds = {"tp", "cp", "pp", "dp_cp", "tp_cp", "tp_dp_cp", "ep", "ep_tp", "ep_dp"};

// Bug 35: the collection of a module's groups lacked the groups of its experts.
TEST(Groups, EveryModuleHasAllOfThem) {
  ForEachShipped([](const Plan& plan) {
    for (const Module& module : plan.modules) {
      for (const std::string& name : kKinds) {
        EXPECT_NE(plan.FindGroup(module.name + "." + name), nullptr) << module.name << "." << name;
      }
    }
  });
}

// A kind that no program uses has nothing to do in a plan.
TEST(Groups, EveryKindIsUsedInSomePlan) {
  std::set<std::string> used;
  ForEachShipped([&](const Plan& plan) {
    for (const Group& group : plan.groups) {
      if (group.used() && !group.module.empty()) used.insert(group.short_name);
    }
  });
  EXPECT_EQ(used, kKinds);
}

// Bug 8: the keys of a module's optimizer were gathered over the world, so each module got the keys of the others too.
TEST(Groups, OnlySumsOfTheStepLeaveAModule) {
  ForEachShipped([](const Plan& plan) {
    ForEachInstruction(plan, [](const Instruction& op, const Site& site) {
      if (!Communicates(op) || op.kind == OpKind::kExchange) return;
      const Group& group = *site.plan.FindGroup(op.group);
      if (group.name == "world") {
        const std::set<std::string> sums = {"$integers",         "$reals",           "$source_losses", "$source_tokens",
                                            "$evaluated_losses", "$evaluated_tokens"};
        EXPECT_TRUE(sums.contains(op.inputs.at(0))) << site.name << " sends " << op.inputs[0] << " to the world";
        EXPECT_TRUE(std::holds_alternative<int64_t>(op.outputs.at(0).type.dims.at(0))) << "its size is in the plan";
      } else {
        EXPECT_NE(std::find(site.modules.begin(), site.modules.end(), group.module), site.modules.end())
            << site.name << " " << op.group;
      }
    });
  });
}

// Bugs 26 to 28: an early return left out a collective of the world. Here nothing can return early. Programs are lists,
// and the only control instruction calls a block. Every role reaches the same sums of the world in the same order, and
// none of them in setup or teardown.
TEST(Groups, ProgramsDoNotBranch) {
  EXPECT_EQ(OpClassOf(OpKind::kCall), OpClass::kControl);
  ForEachShipped([](const Plan& plan) {
    std::set<std::vector<std::string>> sums;
    for (const Role& role : plan.roles) {
      std::vector<std::string> of_role;
      for (const Instruction& op : role.step) {
        EXPECT_TRUE(OpClassOf(op.kind) != OpClass::kControl || op.kind == OpKind::kCall);
        if (op.group == "world") of_role.push_back(op.inputs.at(0));
      }
      sums.insert(of_role);
      for (const Instruction& op : role.setup)
        EXPECT_FALSE(Communicates(op)) << role.name << " communicates before its first step";
      for (const Instruction& op : role.teardown) EXPECT_NE(op.group, "world") << role.name;
    }
    EXPECT_EQ(sums.size(), 1u);
    for (const Block& block : plan.blocks) {
      for (const Instruction& op : block.body) EXPECT_NE(op.group, "world") << block.name;
    }
  });
}

// Bug 34: in a text-only batch the encoder had nothing to send, and the language model waited. Here every microbatch
// crosses every bridge. Both sides know its number of rows from the text, and the number may be 0.
TEST(Groups, EveryMicrobatchCrossesEveryBridge) {
  ForEachShipped([](const Plan& plan) {
    for (const Bridge& bridge : plan.bridges) {
      for (const Role& role : plan.roles) {
        int64_t sent = 0, received = 0;
        for (const Instruction& op : role.step) {
          for (const ExchangePart& part : op.parts) {
            if (part.bridge != bridge.name || part.backward) continue;
            EXPECT_FALSE(part.sizes.empty());
            ++(part.send ? sent : received);
          }
        }
        EXPECT_TRUE(sent == 0 || sent == plan.budget.microbatches) << role.name;
        EXPECT_TRUE(received == 0 || received == plan.budget.microbatches) << role.name;
      }
    }
    for (const Symbol& symbol : plan.symbols) EXPECT_GT(symbol.maximum, 0) << symbol.name << " has no maximum";
  });
}

// Bug G: a language model without an encoder counted as sharing its ranks with one, and lost its pipeline stages.
TEST(Groups, TextAloneMayHaveStages) {
  const Plan plan = testing::CompiledRecipe("nemotron_moe_vlm_54l_text_only", {"modules.language.parallel.pp=2"});
  EXPECT_TRUE(plan.bridges.empty());
  ASSERT_EQ(plan.schedule.size(), 2u);
  EXPECT_EQ(plan.schedule[0].warmup, 1);
  EXPECT_EQ(plan.schedule[1].warmup, 0);
}

}  // namespace
}  // namespace planwright
