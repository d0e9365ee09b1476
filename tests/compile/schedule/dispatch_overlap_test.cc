// What modules.NAME.parallel.overlap_dispatch is for: while tokens travel to the experts and back, the shared expert
// need not wait for them, nor they for it. By the order that the executor keeps, derived from compiled programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "planner/plan/link/linked_program.h"
#include "planner/plan/link/program_accesses.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/stream_dependencies.h"
#include "planner/verify/verify.h"
#include "tests/support/compiled.h"
#include "tests/support/recipes.h"

namespace planwright {
namespace {

using std::string;

// The order of one role's setup and step: what is done before an entry starts.
class Order {
 public:
  explicit Order(const LinkedProgram& program) : accesses_(program) {
    if (accesses_.streams() == 1) return;
    StreamDependencies dependencies(accesses_.resources(), accesses_.streams());
    std::vector<Clock> last(static_cast<size_t>(accesses_.streams()), Clock(last_size(), -1));
    for (const LinkedProgram::Range range : {program.setup(), program.step()}) {
      for (size_t i = range.first; i < range.end; ++i) {
        const InstructionAccesses& touched = accesses_.of(i);
        const auto stream = static_cast<size_t>(touched.stream);
        Clock clock = last[stream];
        const std::vector<int64_t> waits = dependencies.Next(touched);
        for (size_t other = 0; other < waits.size(); ++other) {
          if (waits[other] < 0) continue;
          const Clock& before = clocks_[static_cast<size_t>(waits[other])];
          for (size_t s = 0; s < clock.size(); ++s) clock[s] = std::max(clock[s], before[s]);
          clock[other] = std::max(clock[other], waits[other]);
        }
        const auto number = static_cast<int64_t>(clocks_.size());
        numbers_[i] = {number, stream};
        clocks_.push_back(clock);
        clock[stream] = number;
        last[stream] = std::move(clock);
      }
    }
  }

  int streams() const { return accesses_.streams(); }

  // Whether the entry `later` cannot start before `earlier` is done.
  bool Waits(size_t later, size_t earlier) const {
    const auto [number, stream] = numbers_.at(earlier);
    return clocks_[static_cast<size_t>(numbers_.at(later).first)][stream] >= number;
  }
  bool Overlap(size_t a, size_t b) const { return !Waits(a, b) && !Waits(b, a); }

 private:
  using Clock = std::vector<int64_t>;  // by stream: the last instruction that is done
  size_t last_size() const { return static_cast<size_t>(accesses_.streams()); }

  ProgramAccesses accesses_;
  std::vector<Clock> clocks_;                             // by number: when it starts
  std::map<size_t, std::pair<int64_t, size_t>> numbers_;  // by entry: its number and stream
};

// A name for an instruction of a block: its first output, or for a weight gradient "grad " and the slot.
string NameOf(const Instruction& instruction) {
  if (!instruction.outputs.empty()) return instruction.outputs[0].name;
  return instruction.gradients.empty() ? "" : "grad " + instruction.gradients[0];
}

// What may run side by side in a block of an expert layer.
struct Side {
  std::set<string> exchanges, shared;
};
std::vector<Side> SidesOf(const string& block, bool gathers) {
  std::vector<Side> sides;
  if (block.ends_with(".backward")) {
    sides = {{{"dy_all", "dout_in"}, {"grad shared_down", "ds_act"}},
             {{"dn_rows", "dweights", "drows", "drow_weights"}, {"ds_pre", "grad shared_up", "dn_part"}}};
  } else {
    sides = {{{"n_all", "counts_in", "counts_all", "weights_all", "ids_all", "rows_in", "row_weights_in"},
              {"s_pre", "s_act"}},
             {{"y", "out"}, {"s_part"}}};
  }
  // Between the exchange over ep and that over expert_tp the main stream selects or adds up rows, if it gathers tokens.
  if (gathers) return sides;
  sides[0].exchanges.insert({"rows_all", "row_weights_all", "dout_all"});
  sides[1].exchanges.insert({"out_in", "drows_in", "drow_weights_in"});
  return sides;
}

struct Found {
  int pairs = 0, waiting = 0;
  string first;  // a pair of which one waits for the other
};

// Over all calls of the blocks of expert layers in a step.
Found Look(const Plan& plan, const string& suffix) {
  Found found;
  for (const Role& role : plan.roles) {
    LinkedBlocks blocks(plan);
    const LinkedProgram program(blocks, role);
    const Order order(program);
    if (order.streams() == 1) continue;
    for (uint32_t c = 0; c < program.calls().size(); ++c) {
      const LinkedCall& call = program.calls()[c];
      if (call.block->block == nullptr || call.block->block->name != "language.moe" + suffix) continue;
      std::map<string, size_t> exchanges, computes;
      for (size_t i = call.first; i < call.end; ++i) {
        const LinkedInstruction& instruction = *program.entries()[i].instruction;
        (instruction.op_class == OpClass::kCommunication ? exchanges : computes)[NameOf(*instruction.source)] = i;
      }
      for (const Side& side : SidesOf(suffix, plan.FindModule("language")->gathers_tokens())) {
        for (const auto& [a, exchange] : exchanges) {
          if (!side.exchanges.contains(a)) continue;
          for (const auto& [b, compute] : computes) {
            if (!side.shared.contains(b)) continue;
            ++found.pairs;
            if (order.Overlap(exchange, compute)) continue;
            ++found.waiting;
            if (found.first.empty()) found.first = a + " and " + b;
          }
        }
      }
    }
  }
  return found;
}

struct Case {
  string name;
  int ranks = 1, tp = 1, cp = 1, pp = 1, ep = 1, expert_tp = 1;
  bool frozen = false, recompute = false, overlaps_gradients = false;
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

Plan Compile(const Case& c, const string& dispatch, bool overlaps) {
  Recipe recipe = testing::TinyRecipe({1, 1, c.ranks, c.tp, c.ep, false});
  ModuleRecipe& language = recipe.modules[1];
  language.cp = int64_t{c.cp};
  language.pp = int64_t{c.pp};
  language.expert_tp = int64_t{c.expert_tp};
  language.dispatch = dispatch;
  language.overlap_dispatch = overlaps;
  if (c.frozen) language.train_backbone = string("frozen");
  if (c.recompute) language.recompute.push_back(string("moe"));
  recipe.gradients.overlap_reduce = recipe.gradients.overlap_gather = c.overlaps_gradients;
  return testing::Compiled(recipe);
}

class DispatchOverlap : public ::testing::TestWithParam<std::tuple<Case, string>> {};

TEST_P(DispatchOverlap, TheSharedExpertDoesNotWait) {
  const auto& [c, dispatch] = GetParam();
  const Plan plan = Compile(c, dispatch, true);
  for (const Violation& violation : VerifyPlan(plan)) ADD_FAILURE() << violation.rule << ": " << violation.message;
  for (const char* suffix : {".forward", ".recompute", ".backward"}) {
    if (string(suffix) == ".recompute" && !c.recompute) continue;
    const Found found = Look(plan, suffix);
    EXPECT_GT(found.pairs, 0) << suffix;
    EXPECT_EQ(found.waiting, 0) << suffix << ", of " << found.pairs << " the first: " << found.first;
  }
}

// Without the key one stream does everything.
TEST_P(DispatchOverlap, IsOffUnlessAskedFor) {
  const auto& [c, dispatch] = GetParam();
  for (const Block& block : Compile(c, dispatch, false).blocks) {
    for (const Instruction& instruction : block.body)
      EXPECT_TRUE(instruction.stream != "dispatch") << block.name << " " << OpName(instruction.kind);
  }
}

// Nor where nothing travels.
TEST(DispatchOverlapNeeds, AnExchange) {
  EXPECT_EQ(WritePlan(Compile({.ranks = 2}, "all_to_all", true)),
            WritePlan(Compile({.ranks = 2}, "all_to_all", false)));
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, DispatchOverlap,
    ::testing::Combine(
        ::testing::Values(Case{.name = "ep2", .ranks = 2, .ep = 2},
                          Case{.name = "tp2_ep4", .ranks = 4, .tp = 2, .ep = 4},
                          Case{.name = "cp2_ep2", .ranks = 2, .cp = 2, .ep = 2},
                          Case{.name = "pp2_ep2", .ranks = 4, .pp = 2, .ep = 2},
                          Case{.name = "ep2_expert_tp2", .ranks = 4, .ep = 2, .expert_tp = 2},
                          Case{.name = "expert_tp2", .ranks = 2, .expert_tp = 2},
                          Case{.name = "frozen_expert_tp2", .ranks = 4, .ep = 2, .expert_tp = 2, .frozen = true},
                          Case{.name = "frozen", .ranks = 2, .ep = 2, .frozen = true},
                          Case{.name = "recomputed", .ranks = 2, .ep = 2, .recompute = true},
                          Case{.name = "recomputed_tp2", .ranks = 2, .tp = 2, .ep = 2, .recompute = true},
                          Case{.name = "all_overlaps", .ranks = 4, .ep = 2, .overlaps_gradients = true}),
        ::testing::Values("all_to_all", "all_gather")),
    [](const auto& info) { return std::get<0>(info.param).name + "_" + std::get<1>(info.param); });

// With each value freed at its last use, the main stream would wait for an exchange as soon as it needs memory.
TEST(DispatchOverlapNeeds, MemoryToBeHeld) {
  for (const char* dispatch : {"all_to_all", "all_gather"}) {
    Plan plan = Compile({.ranks = 2, .ep = 2}, dispatch, true);
    for (Block& block : plan.blocks) {
      if (block.name != "language.moe.forward" && block.name != "language.moe.backward") continue;
      std::set<string> freed;
      for (Instruction& instruction : block.body) {
        freed.insert(instruction.frees.begin(), instruction.frees.end());
        instruction.frees.clear();
      }
      for (auto last = block.body.rbegin(); last != block.body.rend(); ++last) {
        std::vector<string> touched = last->inputs;
        for (const Output& output : last->outputs) touched.push_back(output.name);
        for (const string& name : touched) {
          if (freed.erase(name) > 0) last->frees.push_back(name);
        }
      }
    }
    EXPECT_GT(Look(plan, ".forward").waiting, 0) << dispatch;
    EXPECT_GT(Look(plan, ".backward").waiting, 0) << dispatch;
  }
}

}  // namespace
}  // namespace planwright
