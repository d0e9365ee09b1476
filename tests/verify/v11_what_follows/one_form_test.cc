// A plan has one form (docs/decisions/0015-one-form-of-a-plan.md): where several orders would mean the same, another
// one than the planner's is refused. Families of such changes over several plans; each says how many it tried.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>

#include "planner/verify/verify.h"
#include "tests/numerics/layouts.h"
#include "tests/support/compiled.h"

namespace planwright {
namespace {

using testing::CompiledFile;
using testing::EncoderOn;
using testing::Join;
using testing::LanguageOn;

constexpr char kTiny[] = PLANWRIGHT_SOURCE_DIR "/recipes/nemotron_moe_vlm_tiny.yaml";

// Finds what it can change in a plan. Makes change number `wanted` (from 0) and returns how many it has seen.
using Family = std::function<int(Plan&, int wanted)>;

void ForEachList(Plan& plan, const std::function<void(std::vector<Instruction>&)>& visit) {
  for (Block& block : plan.blocks) visit(block.body);
  for (Role& role : plan.roles) {
    for (const RoleList& part : kRoleLists) visit(role.*part.list);
  }
}

// Reverses a list of several items of each instruction.
template <typename Items>
Family Reversed(const Items& items) {
  return [items](Plan& plan, int wanted) {
    int seen = 0;
    ForEachList(plan, [&](std::vector<Instruction>& list) {
      for (Instruction& op : list) {
        if (items(op).size() > 1 && seen++ == wanted) std::reverse(items(op).begin(), items(op).end());
      }
    });
    return seen;
  };
}

// What an exchange receives is among its outputs too, in the order of its parts.
int PartsReversed(Plan& plan, int wanted) {
  int seen = 0;
  ForEachList(plan, [&](std::vector<Instruction>& list) {
    for (Instruction& op : list) {
      if (op.parts.size() < 2 || seen++ != wanted) continue;
      std::reverse(op.parts.begin(), op.parts.end());
      std::reverse(op.outputs.begin(), op.outputs.end());
    }
  });
  return seen;
}

// An exchange that sends and receives becomes two: what it receives, and what it sends.
int ExchangesSplit(Plan& plan, int wanted) {
  int seen = 0;
  ForEachList(plan, [&](std::vector<Instruction>& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].parts.size() < 2 || seen++ != wanted) continue;
      Instruction rest = list[i];
      rest.parts.erase(rest.parts.begin());
      list[i].parts.resize(1);
      std::vector<Output>& whole = list[i].outputs;
      if (!list[i].parts[0].send) {
        rest.outputs.erase(rest.outputs.begin());
        whole.resize(1);
      } else {
        whole.clear();
      }
      list[i].frees.clear();
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(rest));
      ++i;
    }
  });
  return seen;
}

int TakesReversed(Plan& plan, int wanted) {
  int seen = 0;
  for (Block& block : plan.blocks) {
    if (block.takes.size() > 1 && seen++ == wanted) std::reverse(block.takes.begin(), block.takes.end());
  }
  return seen;
}

int RowsExchanged(Plan& plan, int wanted) {
  int seen = 0;
  for (Bridge& bridge : plan.bridges) {
    for (auto* table : {&bridge.forward, &bridge.backward}) {
      for (size_t i = 1; i < table->size(); ++i) {
        if (seen++ == wanted) std::swap((*table)[i - 1], (*table)[i]);
      }
    }
  }
  return seen;
}

int RowsSplit(Plan& plan, int wanted) {
  int seen = 0;
  for (Bridge& bridge : plan.bridges) {
    for (auto* table : {&bridge.forward, &bridge.backward}) {
      for (size_t i = 0; i < table->size(); ++i) {
        if ((*table)[i].end_sample - (*table)[i].first_sample < 2 || seen++ != wanted) continue;
        Transfer rest = (*table)[i];
        rest.first_sample = (*table)[i].end_sample = (*table)[i].first_sample + 1;
        table->insert(table->begin() + static_cast<std::ptrdiff_t>(i) + 1, rest);
        ++i;
      }
    }
  }
  return seen;
}

int RulesExchanged(Plan& plan, int wanted) {
  int seen = 0;
  for (size_t i = 1; i < plan.checkpoint.rules.size(); ++i) {
    if (seen++ == wanted) std::swap(plan.checkpoint.rules[i - 1], plan.checkpoint.rules[i]);
  }
  return seen;
}

int RulesSplit(Plan& plan, int wanted) {
  int seen = 0;
  std::vector<CheckpointRule>& rules = plan.checkpoint.rules;
  for (size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].parameters.size() < 2 || seen++ != wanted) continue;
    CheckpointRule rest = rules[i];
    rest.parameters.erase(rest.parameters.begin());
    rules[i].parameters.resize(1);
    rules.insert(rules.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(rest));
    ++i;
  }
  return seen;
}

int ParameterRangesSplit(Plan& plan, int wanted) {
  int seen = 0;
  for (CheckpointRule& rule : plan.checkpoint.rules) {
    for (size_t i = 0; i < rule.parameters.size(); ++i) {
      if (rule.parameters[i].count < 2 || seen++ != wanted) continue;
      RankRange rest = rule.parameters[i];
      rest.first += rest.stride;
      if (--rest.count == 1) rest.stride = 1;
      rule.parameters[i] = {rule.parameters[i].first, 1, 1};
      rule.parameters.insert(rule.parameters.begin() + static_cast<std::ptrdiff_t>(i) + 1, rest);
      ++i;
    }
  }
  return seen;
}

// The last storage of a bucket moves by one aligned step into the padding behind it, where it has room.
int StoragesMoved(Plan& plan, int wanted) {
  int seen = 0;
  for (Module& module : plan.modules) {
    for (Storage& storage : module.storages) {
      if (storage.bucket < 0) continue;
      int64_t elements = 1;
      for (int64_t size : storage.shape) elements *= size;
      const bool fits = storage.offset + 64 + elements <= module.buckets[static_cast<size_t>(storage.bucket)].elements;
      const bool last = std::none_of(module.storages.begin(), module.storages.end(), [&](const Storage& other) {
        return other.bucket == storage.bucket && other.offset > storage.offset;
      });
      if (fits && last && seen++ == wanted) storage.offset += 64;
    }
  }
  return seen;
}

int ExpertAxesExchanged(Plan& plan, int wanted) {
  int seen = 0;
  for (Module& module : plan.modules) {
    if (module.experts() > 0 || module.grid.expert_dp < 2) continue;
    if (seen++ == wanted) std::swap(module.grid.expert_tp, module.grid.expert_dp);
    if (seen++ == wanted) std::swap(module.grid.ep, module.grid.expert_dp);
  }
  return seen;
}

// Two neighbours that scale, or measure, different buckets.
int BucketsExchanged(Plan& plan, int wanted) {
  int seen = 0;
  for (Role& role : plan.roles) {
    for (size_t i = 1; i < role.step.size(); ++i) {
      const OpKind kind = role.step[i].kind;
      const bool ordered = kind == OpKind::kScaleGradients || kind == OpKind::kSquareNorm;
      if (ordered && role.step[i - 1].kind == kind && seen++ == wanted) std::swap(role.step[i - 1], role.step[i]);
    }
  }
  return seen;
}

TEST(OneForm, AnotherOrderIsRefused) {
  const auto frees = [](Instruction& op) -> std::vector<std::string>& { return op.frees; };
  const std::map<std::string, Family> families = {
      {"frees reversed", Reversed(frees)},
      {"parts reversed", PartsReversed},
      {"exchanges split", ExchangesSplit},
      {"takes reversed", TakesReversed},
      {"rows of bridges exchanged", RowsExchanged},
      {"rows of bridges split", RowsSplit},
      {"rules exchanged", RulesExchanged},
      {"rules split", RulesSplit},
      {"ranges of parameters split", ParameterRangesSplit},
      {"storages moved into the padding", StoragesMoved},
      {"expert axes of an encoder exchanged", ExpertAxesExchanged},
      {"buckets exchanged", BucketsExchanged},
  };
  const std::vector<Plan> plans = {
      CompiledFile(kTiny, Join({"batch.global_samples=8"}, EncoderOn(2, 1), LanguageOn(2, 4, 2, 4))),
      CompiledFile(kTiny, Join({"modules.radio_encoder.parallel.pp=2", "modules.language.parallel.pp=2",
                                "gradients.buckets=2", "batch.micro_samples=2"},
                               EncoderOn(4, 2), LanguageOn(4, 4, 2, 2))),
      CompiledFile(PLANWRIGHT_SOURCE_DIR "/recipes/nemotron_moe_two_encoders_tiny.yaml"),
  };
  for (const auto& [name, family] : families) {
    int tried = 0;
    for (const Plan& plan : plans) {
      ASSERT_FALSE(plan.roles.empty());
      Plan copy = plan;
      const int changes = family(copy, -1);
      const int step = std::max(1, changes / 12);  // some changes of each plan, spread over it
      for (int wanted = 0; wanted < changes; wanted += step) {
        Plan damaged = plan;
        family(damaged, wanted);
        ++tried;
        EXPECT_FALSE(VerifyPlan(damaged).empty()) << name << ", change " << wanted << " of " << changes;
      }
    }
    EXPECT_GT(tried, 0) << name;
    std::cout << name << ": " << tried << " refused\n";
  }
}

}  // namespace
}  // namespace planwright
