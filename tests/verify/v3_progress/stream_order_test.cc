// The derived order of streams against its definition, by brute force: everything that conflicts is ordered, and
// nothing else. Programs that run in any order that it allows compute the same values.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "planner/plan/op_table.h"
#include "planner/plan/stream_dependencies.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using Step = InstructionAccesses;
using Order = std::vector<std::vector<char>>;  // [j][i]: i is done before j starts

struct Program {
  ResourceTree resources;
  int streams = 1;
  std::vector<Step> steps;
};

// Makes the order transitive.
void Close(Order& before) {
  for (size_t j = 0; j < before.size(); ++j) {
    for (size_t i = 0; i < j; ++i) {
      if (!before[j][i]) continue;
      for (size_t k = 0; k < i; ++k) before[j][k] = before[j][k] || before[i][k];
    }
  }
}

// Instructions on one stream are in program order.
Order SameStream(const Program& program) {
  const size_t count = program.steps.size();
  Order before(count, std::vector<char>(count, false));
  for (size_t j = 0; j < count; ++j) {
    for (size_t i = 0; i < j; ++i) before[j][i] = program.steps[i].stream == program.steps[j].stream;
  }
  return before;
}

// Whether `inner` is `outer` or inside it.
bool Contains(const ResourceTree& tree, int outer, int inner) {
  for (; inner >= 0; inner = tree.parent(inner)) {
    if (inner == outer) return true;
  }
  return false;
}

bool Conflict(const ResourceTree& tree, const Access& a, const Access& b) {
  return (a.writes || b.writes) && (Contains(tree, a.resource, b.resource) || Contains(tree, b.resource, a.resource));
}

// The order by the definition in planner/plan/stream_dependencies.h, over all pairs.
Order Defined(const Program& program) {
  Order before = SameStream(program);
  const std::vector<Step>& steps = program.steps;
  for (size_t j = 0; j < steps.size(); ++j) {
    for (size_t i = 0; i < j; ++i) {
      for (const Access& a : steps[i].accesses) {
        for (const Access& b : steps[j].accesses) before[j][i] = before[j][i] || Conflict(program.resources, a, b);
      }
    }
    if (!steps[j].makes_value) continue;
    for (size_t k = 0; k < j; ++k) {
      for (int value : steps[k].frees) {
        for (size_t i = 0; i <= k; ++i) {
          const auto touches = [&](const Access& access) { return access.resource == value; };
          if (std::any_of(steps[i].accesses.begin(), steps[i].accesses.end(), touches)) before[j][i] = true;
        }
      }
    }
  }
  Close(before);
  return before;
}

// The order that StreamDependencies derives.
Order Derived(const Program& program) {
  Order before = SameStream(program);
  StreamDependencies order(program.resources, program.streams);
  for (size_t j = 0; j < program.steps.size(); ++j) {
    for (int64_t wait : order.Next(program.steps[j])) {
      if (wait >= 0) before[j][static_cast<size_t>(wait)] = true;
    }
  }
  Close(before);
  return before;
}

// Programs on up to 4 streams whose instructions read and write random state, make values and free them.
class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed) : random_(seed) {}

  Program Make() {
    Program program;
    program.streams = Pick(4) + 1;
    std::vector<int> state, live;
    for (const char* name : {"%a", "%a.gradients", "%a.gradients.0", "%a.gradients.0/x", "%a.gradients.0/y",
                             "%a.gradients.1", "%a.parameters", "%a.parameters.0", "%a.parameters.0/x", "$", "$reals",
                             "$reals.loss", "$reals.norm.a", "$gate"}) {
      state.push_back(program.resources.Intern(name));
    }
    const int count = 5 + Pick(40);
    for (int i = 0; i < count; ++i) {
      Step& step = program.steps.emplace_back();
      step.stream = Pick(program.streams);
      for (int k = Pick(3); k > 0; --k)
        step.accesses.push_back({state[static_cast<size_t>(Pick(static_cast<int>(state.size())))], Pick(3) == 0});
      for (int k = Pick(3); k > 0 && !live.empty(); --k)
        step.accesses.push_back({live[static_cast<size_t>(Pick(static_cast<int>(live.size())))], false});
      if (Pick(2) == 0) {
        step.makes_value = true;
        live.push_back(program.resources.Intern(absl::StrCat("v", i)));
        step.accesses.push_back({live.back(), true});
      }
      if (!live.empty() && Pick(3) == 0) {
        const size_t at = static_cast<size_t>(Pick(static_cast<int>(live.size())));
        step.frees.push_back(live[at]);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    return program;
  }

 private:
  int Pick(int count) { return static_cast<int>(random_() % static_cast<uint64_t>(count)); }
  std::mt19937_64 random_;
};

// Runs a program in `order` and returns the contents of every resource. Each instruction mixes what it touches into
// what it writes, so another order of conflicting instructions gives other contents.
std::map<int, uint64_t> Execute(const Program& program, const std::vector<size_t>& order) {
  std::map<int, uint64_t> contents;  // of resources without resources inside
  std::set<int> parents;
  for (int i = 0; i < program.resources.size(); ++i) parents.insert(program.resources.parent(i));
  const auto leaves = [&](int resource) {
    std::vector<int> inside;
    for (int i = 0; i < program.resources.size(); ++i) {
      if (!parents.contains(i) && Contains(program.resources, resource, i)) inside.push_back(i);
    }
    return inside;
  };
  for (size_t at : order) {
    uint64_t mixed = 1469598103934665603ULL * (at + 1);
    for (const Access& access : program.steps[at].accesses) {
      for (int leaf : leaves(access.resource))
        mixed = (mixed ^ contents[leaf]) * 1099511628211ULL + static_cast<uint64_t>(leaf);
    }
    for (const Access& access : program.steps[at].accesses) {
      for (int leaf : leaves(access.resource)) {
        if (access.writes) contents[leaf] = mixed + static_cast<uint64_t>(leaf);
      }
    }
  }
  return contents;
}

// A random order of execution that `before` allows.
std::vector<size_t> RandomOrder(const Order& before, std::mt19937_64& random) {
  std::vector<size_t> order;
  std::vector<char> done(before.size(), false);
  while (order.size() < before.size()) {
    std::vector<size_t> ready;
    for (size_t j = 0; j < before.size(); ++j) {
      bool may = !done[j];
      for (size_t i = 0; may && i < j; ++i) may = !before[j][i] || done[i];
      if (may) ready.push_back(j);
    }
    order.push_back(ready[random() % ready.size()]);
    done[order.back()] = true;
  }
  return order;
}

TEST(StreamDependencies, EqualsItsDefinition) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const Program program = RandomProgram(seed).Make();
    ASSERT_EQ(Derived(program), Defined(program)) << "seed " << seed;
  }
}

TEST(StreamDependencies, AnyOrderThatItAllowsMakesTheSameValues) {
  std::mt19937_64 random(1);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Program program = RandomProgram(seed).Make();
    const Order before = Derived(program);
    std::vector<size_t> sequence(program.steps.size());
    std::iota(sequence.begin(), sequence.end(), size_t{0});
    const auto wanted = Execute(program, sequence);
    for (int i = 0; i < 5; ++i) ASSERT_EQ(Execute(program, RandomOrder(before, random)), wanted) << "seed " << seed;
  }
}

TEST(StreamDependencies, InstructionsWithoutAnOrderRunBothWays) {
  std::mt19937_64 random(2);
  const Program program = RandomProgram(5).Make();
  const Order before = Derived(program);
  ASSERT_GT(program.streams, 1);
  std::set<std::pair<size_t, size_t>> met;
  for (int i = 0; i < 4000; ++i) {
    const std::vector<size_t> order = RandomOrder(before, random);
    for (size_t a = 0; a < order.size(); ++a) {
      for (size_t b = a + 1; b < order.size(); ++b) met.emplace(order[a], order[b]);
    }
  }
  for (size_t j = 0; j < before.size(); ++j) {
    for (size_t i = 0; i < j; ++i) {
      EXPECT_TRUE(met.contains({i, j})) << i << " before " << j;
      EXPECT_NE(met.contains({j, i}), before[j][i]) << j << " before " << i;
    }
  }
}

// All lists of a role, the step twice, with each instruction on its own stream, so that only effects order them.
// `dropped`: an operation and the index of one of its effects that is left out.
Program OnOwnStreams(const Plan& plan, const Role& role, std::optional<std::pair<OpKind, size_t>> dropped) {
  Program program;
  const auto add_body = [&](auto&& self, const std::vector<Instruction>& body, const Block* block,
                            const std::string& frame) -> void {
    for (const Instruction& op : body) {
      const std::string& inner = op.frame.empty() ? frame : op.frame;
      if (op.kind == OpKind::kCall) {
        const Block& called = *plan.FindBlock(op.block);
        self(self, called.body, &called, inner);
        continue;
      }
      Step step;
      std::vector<StateAccess> accesses = StateAccessesOf(op, role.modules);
      if (dropped && dropped->first == op.kind)
        accesses.erase(accesses.begin() + static_cast<std::ptrdiff_t>(dropped->second));
      if (const Module* module = block ? plan.FindModule(block->module) : nullptr) {
        for (const Storage& storage : module->storages) {
          if (storage.frame != frame) continue;
          const auto has = [&](const std::vector<std::string>& slots) {
            return std::find(slots.begin(), slots.end(), storage.slot) != slots.end();
          };
          // A dot would make "language" and "language.layers" resources in the tree.
          const std::string slot =
              absl::StrCat("/", absl::StrReplaceAll(storage.frame, {{".", "_"}}), "_", storage.slot);
          if (has(op.parameters)) accesses.push_back({ParametersResource(*module, storage.bucket) + slot, false});
          if (has(op.gradients)) accesses.push_back({GradientsResource(*module, storage.bucket) + slot, true});
        }
      }
      if (accesses.empty()) continue;
      for (const StateAccess& access : accesses)
        step.accesses.push_back({program.resources.Intern(access.resource), access.writes});
      step.stream = program.streams++ - 1;
      program.steps.push_back(std::move(step));
    }
  };
  for (const auto* list : {&role.setup, &role.resume, &role.evaluate, &role.score, &role.step, &role.save, &role.step,
                           &role.evaluate, &role.score, &role.teardown})
    add_body(add_body, *list, nullptr, "");
  return program;
}

TEST(StreamDependencies, EveryEffectOfTheTableOrdersSomething) {
  const Plan plan = testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"),
                                          {"batch.global_samples=2", "checkpoint.every_steps=1"});
  const Plan loading =
      testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"), {"initialize={from: weights.safetensors}"});
  // Samples of several sources, and a set of them that is evaluated.
  const Plan evaluated = testing::CompiledFile(
      InSource("recipes/nemotron_moe_vlm_tiny.yaml"),
      {"data={kind: sources, max_patches: 16, sources: [{kind: webdataset, shards: /gone/a.tar}, {name: b, kind: "
       "webdataset, shards: /gone/b.tar}]}",
       "evaluation={every_samples: 16, sets: [{name: held_out, samples: 7, sources: [{name: x, kind: webdataset, "
       "shards: /gone/d.tar}, {name: y, kind: webdataset, shards: /gone/e.tar}]}]}",
       "models.hybrid_moe_tiny.vocabulary=264"});
  const auto order_of = [](const Plan& of, std::optional<std::pair<OpKind, size_t>> dropped) {
    std::vector<Order> all;
    for (const Role& role : of.roles) all.push_back(Derived(OnOwnStreams(of, role, dropped)));
    return all;
  };
  const auto whole = order_of(plan, {}), whole_loading = order_of(loading, {}),
             whole_evaluated = order_of(evaluated, {});
  for (const OpInfo& info : AllOps()) {
    for (size_t effect = 0; effect < info.effects.size(); ++effect) {
      // Two effects order nothing that other effects do not order already. Masters and moments are touched only by
      // instructions that touch their parameters too. The log reads the real sums together with the counts of tokens.
      const std::string& resource = info.effects[effect].resource;
      if (resource == "%{module}.optimizer.{bucket}" || (info.kind == OpKind::kLogStep && resource == "$reals"))
        continue;
      const std::pair<OpKind, size_t> dropped = {info.kind, effect};
      const bool noticed = order_of(plan, dropped) != whole || order_of(loading, dropped) != whole_loading ||
                           order_of(evaluated, dropped) != whole_evaluated;
      EXPECT_TRUE(noticed) << info.name << " " << (info.effects[effect].writes ? "writes " : "reads ")
                           << info.effects[effect].resource;
    }
  }
}

// The purpose of overlap: the gather of one bucket's parameters runs beside the update of other buckets, and a layer of
// the next forward waits only for its own bucket.
TEST(StreamDependencies, AGatherIsWaitedForByTheLayersThatReadIt) {
  ResourceTree tree;
  const auto reads = [&](const char* name) { return Access{tree.Intern(name), false}; };
  const auto writes = [&](const char* name) { return Access{tree.Intern(name), true}; };
  const std::vector<Step> steps = {
      {.stream = 0, .accesses = {writes("%m.parameters.0")}},                            // adamw of bucket 0
      {.stream = 1, .accesses = {reads("%m.parameters.0"), writes("%m.parameters.0")}},  // its gather
      {.stream = 0, .accesses = {writes("%m.parameters.1")}},                            // adamw of bucket 1
      {.stream = 1, .accesses = {reads("%m.parameters.1"), writes("%m.parameters.1")}},  // its gather
      {.stream = 0, .accesses = {writes("%m.gradients"), writes("$")}},                  // begin_step
      {.stream = 0, .accesses = {reads("%m.parameters.0/layer_0")}},                     // a layer of bucket 0
      {.stream = 0, .accesses = {reads("%m.parameters.1/layer_1")}},                     // a layer of bucket 1
  };
  StreamDependencies order(tree, 2);
  std::vector<std::vector<int64_t>> waits;
  for (const Step& step : steps) waits.push_back(order.Next(step));
  EXPECT_EQ(waits[1], (std::vector<int64_t>{0, -1}));
  EXPECT_EQ(waits[2], (std::vector<int64_t>{-1, -1}));
  EXPECT_EQ(waits[3], (std::vector<int64_t>{2, -1}));
  EXPECT_EQ(waits[4], (std::vector<int64_t>{-1, -1}));
  EXPECT_EQ(waits[5], (std::vector<int64_t>{-1, 1}));
  EXPECT_EQ(waits[6], (std::vector<int64_t>{-1, 3}));
}

}  // namespace
}  // namespace planwright
