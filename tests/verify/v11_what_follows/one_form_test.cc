// A plan has one form (docs/decisions/0015-one-form-of-a-plan.md): where several orders would mean the same, another
// one than the planner's is refused. Families of such changes over several plans; each says how many it tried.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <utility>

#include "planner/verify/verify.h"
#include "tests/numerics/layouts.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using testing::CompiledFile;
using testing::EncoderOn;
using testing::Join;
using testing::LanguageOn;

const std::string kTinyRecipe = InSource("recipes/nemotron_moe_vlm_tiny.yaml");

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

// Neighbouring terms of a sum.
int TermsExchanged(Plan& plan, int wanted) {
  int seen = 0;
  ForEachList(plan, [&](std::vector<Instruction>& list) {
    for (Instruction& op : list) {
      if (op.kind != OpKind::kAdd && op.kind != OpKind::kAddResidualBias) continue;
      for (size_t i = 1; i < op.inputs.size(); ++i) {
        if (seen++ == wanted) std::swap(op.inputs[i - 1], op.inputs[i]);
      }
    }
  });
  return seen;
}

// The first two terms of a longer sum are added by themselves.
int SumsSplit(Plan& plan, int wanted) {
  int seen = 0;
  ForEachList(plan, [&](std::vector<Instruction>& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].kind != OpKind::kAdd || list[i].inputs.size() < 3 || seen++ != wanted) continue;
      Instruction first = list[i];
      first.inputs.resize(2);
      first.outputs[0].name = "first_two";
      first.frees.clear();
      for (const std::string& name : first.inputs) {
        if (std::erase(list[i].frees, name) > 0) first.frees.push_back(name);
      }
      std::sort(first.frees.begin(), first.frees.end());
      list[i].inputs.erase(list[i].inputs.begin());
      list[i].inputs[0] = "first_two";
      list[i].frees.push_back("first_two");
      std::sort(list[i].frees.begin(), list[i].frees.end());
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(i), std::move(first));
      ++i;
    }
  });
  return seen;
}

// A sum of gradients is added to nothing, and read as that.
int SumsOfOneTerm(Plan& plan, int wanted) {
  int seen = 0;
  for (Block& block : plan.blocks) {
    for (size_t i = 0; i < block.body.size(); ++i) {
      if (!block.name.ends_with(".backward") || block.body[i].kind != OpKind::kAdd || seen++ != wanted) continue;
      Instruction again = block.body[i];
      const std::string sum = again.outputs[0].name;
      again.inputs = again.frees = {sum};
      again.outputs[0].name = "again";
      for (Instruction& op : block.body) {
        std::replace(op.inputs.begin(), op.inputs.end(), sum, again.outputs[0].name);
        std::replace(op.frees.begin(), op.frees.end(), sum, again.outputs[0].name);
        std::sort(op.frees.begin(), op.frees.end());
      }
      std::replace(block.outputs.begin(), block.outputs.end(), sum, again.outputs[0].name);
      block.body.insert(block.body.begin() + static_cast<std::ptrdiff_t>(++i), std::move(again));
    }
  }
  return seen;
}

// A sum that several instructions read is made again for the last of them.
int SumsMadeTwice(Plan& plan, int wanted) {
  int seen = 0;
  for (Block& block : plan.blocks) {
    for (size_t i = 0; i < block.body.size(); ++i) {
      if (!block.name.ends_with(".backward") || block.body[i].kind != OpKind::kAdd) continue;
      const std::string sum = block.body[i].outputs[0].name;
      std::vector<Instruction*> readers;
      for (Instruction& op : block.body) {
        if (std::count(op.inputs.begin(), op.inputs.end(), sum) > 0) readers.push_back(&op);
      }
      if (readers.size() < 2 || std::count(readers.back()->frees.begin(), readers.back()->frees.end(), sum) == 0 ||
          seen++ != wanted)
        continue;
      std::erase(readers.back()->frees, sum);
      Instruction again = block.body[i];
      again.outputs[0].name = "twice";
      std::replace(readers.back()->inputs.begin(), readers.back()->inputs.end(), sum, again.outputs[0].name);
      readers.back()->frees.push_back("twice");
      readers[readers.size() - 2]->frees.push_back(sum);
      block.body[i].frees.clear();
      for (Instruction& op : block.body) std::sort(op.frees.begin(), op.frees.end());
      block.body.insert(block.body.begin() + static_cast<std::ptrdiff_t>(++i), std::move(again));
    }
  }
  return seen;
}

// A saved value, which is no gradient, is added to one of its type.
int StrangersAdded(Plan& plan, int wanted) {
  int seen = 0;
  for (Block& block : plan.blocks) {
    for (size_t i = 0; i < block.body.size(); ++i) {
      Instruction& sum = block.body[i];
      if (!block.name.ends_with(".backward") || sum.kind != OpKind::kAdd) continue;
      for (const Output& take : block.takes) {
        const ValueType& type = sum.outputs[0].type;
        if (take.type.dims != type.dims || take.type.dtype != type.dtype || take.type.layout != type.layout ||
            seen++ != wanted)
          continue;
        sum.inputs.push_back(take.name);
        for (size_t k = 0; k < i; ++k) {
          if (std::erase(block.body[k].frees, take.name) > 0) sum.frees.push_back(take.name);
        }
        std::sort(sum.frees.begin(), sum.frees.end());
      }
    }
  }
  return seen;
}

// A value is freed one instruction later.
int FreedLater(Plan& plan, int wanted) {
  int seen = 0;
  ForEachList(plan, [&](std::vector<Instruction>& list) {
    for (size_t i = 0; i + 1 < list.size(); ++i) {
      for (const std::string& name : std::vector<std::string>(list[i].frees)) {
        if (seen++ != wanted) continue;
        std::erase(list[i].frees, name);
        list[i + 1].frees.push_back(name);
        std::sort(list[i + 1].frees.begin(), list[i + 1].frees.end());
      }
    }
  });
  return seen;
}

// Where a list has several streams, a value may be freed behind its last use. It is freed with that use.
int FreedWithTheLastUse(Plan& plan, int wanted) {
  int seen = 0;
  ForEachList(plan, [&](std::vector<Instruction>& list) {
    for (Instruction& op : list) {
      for (const std::string& name : std::vector<std::string>(op.frees)) {
        const auto touches = [&](const Instruction& other) {
          const auto makes = [&](const Output& output) { return output.name == name; };
          return std::count(other.inputs.begin(), other.inputs.end(), name) > 0 ||
                 std::any_of(other.outputs.begin(), other.outputs.end(), makes);
        };
        const auto last = std::find_if(list.rbegin(), list.rend(), touches);
        if (last == list.rend() || &*last == &op || !op.parts.empty() || seen++ != wanted) continue;
        std::erase(op.frees, name);
        last->frees.push_back(name);
        std::sort(last->frees.begin(), last->frees.end());
      }
    }
  });
  return seen;
}

int RuleParametersReversed(Plan& plan, int wanted) {
  int seen = 0;
  for (CheckpointRule& rule : plan.checkpoint.rules) {
    if (rule.parameters.size() > 1 && seen++ == wanted) std::reverse(rule.parameters.begin(), rule.parameters.end());
  }
  return seen;
}

// Changes what a value of a forward declares for its gradient, in all blocks of its layer kind: where it is made, saved
// and taken, and made again. What calls hand on stays. `Change` returns whether it could.
template <typename Change>
int DeclarationsChanged(Plan& plan, int wanted, const Change& change) {
  int seen = 0;
  const auto kind = [](const Block& block) { return block.name.substr(0, block.name.rfind('.')); };
  for (const Block& forward : std::vector<Block>(plan.blocks)) {
    if (!forward.name.ends_with(".forward")) continue;
    for (const Instruction& op : forward.body) {
      for (const Output& output : op.outputs) {
        const bool returned = std::count(forward.outputs.begin(), forward.outputs.end(), output.name) > 0;
        ValueType type = output.type;
        if (op.kind == OpKind::kCall || returned || !change(forward, type) || seen++ != wanted) continue;
        const auto set = [&](Output& other) {
          if (other.name == output.name) other.type = type;
        };
        for (Block& block : plan.blocks) {
          if (kind(block) != kind(forward)) continue;
          for (Output& take : block.takes) set(take);
          for (Instruction& other : block.body) std::for_each(other.outputs.begin(), other.outputs.end(), set);
        }
      }
    }
  }
  return seen;
}

int GradientsForgotten(Plan& plan, int wanted) {
  return DeclarationsChanged(plan, wanted, [](const Block&, ValueType& type) {
    return std::exchange(type.gradient, std::nullopt).has_value();
  });
}

int GradientsInvented(Plan& plan, int wanted) {
  return DeclarationsChanged(plan, wanted, [](const Block&, ValueType& type) {
    const bool can = !type.gradient && type.dtype != DType::kInt64 && type.layout.empty();
    if (can) type.gradient = type.layout;
    return can;
  });
}

// A gradient that is whole on each rank of an axis becomes a partial sum, or the other way.
int GradientsWholeOrPartial(Plan& plan, int wanted) {
  return DeclarationsChanged(plan, wanted, [&](const Block& block, ValueType& type) {
    for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kExpertTp}) {
      if (!type.gradient || type.layout.contains(axis) || plan.FindModule(block.module)->grid.size(axis) == 1) continue;
      if (type.gradient->erase(axis) == 0) (*type.gradient)[axis] = {AxisLayout::State::kPartial, 0};
      return true;
    }
    return false;
  });
}

// The stream of all layers of a module that learns nothing.
int StreamsWithoutGradients(Plan& plan, int wanted) {
  int seen = 0;
  for (const Module& module : plan.modules) {
    if (module.trained() || seen++ != wanted) continue;
    const auto reset = [&](Output& value) { value.type.gradient.reset(); };
    for (Block& block : plan.blocks) {
      if (block.module != module.name) continue;
      for (Output& input : block.inputs) reset(input);
      for (Instruction& op : block.body) {
        for (Output& output : op.outputs) {
          const auto returned = std::find(block.outputs.begin(), block.outputs.end(), output.name);
          if (op.kind == OpKind::kCall || returned != block.outputs.end()) reset(output);
        }
      }
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
      {"terms exchanged", TermsExchanged},
      {"sums split", SumsSplit},
      {"sums of one term", SumsOfOneTerm},
      {"sums made twice", SumsMadeTwice},
      {"strangers added", StrangersAdded},
      {"freed later", FreedLater},
      {"freed with the last use", FreedWithTheLastUse},
      {"parameters of rules reversed", RuleParametersReversed},
      {"gradients forgotten", GradientsForgotten},
      {"gradients invented", GradientsInvented},
      {"gradients whole or partial", GradientsWholeOrPartial},
      {"streams without gradients", StreamsWithoutGradients},
  };
  const std::vector<Plan> plans = {
      CompiledFile(kTinyRecipe, Join({"batch.global_samples=8"}, EncoderOn(2, 1), LanguageOn(2, 4, 2, 4))),
      CompiledFile(kTinyRecipe, Join({"modules.radio_encoder.parallel.pp=2", "modules.language.parallel.pp=2",
                                      "gradients.buckets=2", "batch.micro_samples=2"},
                                     EncoderOn(4, 2), LanguageOn(4, 4, 2, 2))),
      CompiledFile(InSource("recipes/nemotron_moe_two_encoders_tiny.yaml")),
      CompiledFile(kTinyRecipe, Join({"modules.radio_encoder.train={backbone: frozen, projection: frozen}",
                                      "modules.radio_encoder.parallel.cp=2", "modules.language.recompute=[full]",
                                      "modules.language.parallel.overlap_dispatch=true"},
                                     EncoderOn(4, 2), LanguageOn(4, 4, 2, 4))),
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
