// V4 of calls: each block has its own name, no block calls itself, and all programs unroll to a bounded number of
// instructions. The other rules, the estimates and the executor follow calls and do not look for circles.
//
// Not here: whether a call fits its block (verify_values.cc), and whether it is the right one (V5, V11).

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>

#include "planner/diagnostics/text.h"
#include "planner/plan/limits.h"
#include "planner/verify/rules.h"

namespace planwright {
namespace {

class Calls {
 public:
  Calls(const Plan& plan, std::vector<Violation>& violations) : plan_(plan), violations_(violations) {}

  void Check() {
    for (const Block& block : plan_.blocks) {
      if (!blocks_.emplace(block.name, State{&block}).second)
        return Fail(Cat("two blocks are named ", block.name), block.origin);
    }
    int64_t instructions = 0, calls = 0;
    const auto count = [&](const Unrolled& program, int origin) {
      instructions = std::min(instructions + program.instructions, kMostInstructions + 1);
      calls = std::min(calls + program.calls, kMostCalls + 1);
      if (instructions > kMostInstructions)
        Fail(Cat("the programs unroll to more than ", kMostInstructions, " instructions"), origin);
      if (calls > kMostCalls) Fail(Cat("the programs unroll to more than ", kMostCalls, " calls"), origin);
    };
    // rules also look at what no role calls
    for (const Block& block : plan_.blocks) count(Enter(blocks_.at(block.name), 0), block.origin);
    for (const Role& role : plan_.roles) {
      for (const auto* list : {&role.setup, &role.step, &role.teardown}) count(Unroll(*list, 0), role.origin);
    }
  }

 private:
  struct Unrolled {
    int levels = 0;  // of calls
    // With those of the blocks that are called; beyond the bound one number is as good as another.
    int64_t instructions = 0, calls = 0;
  };
  struct State {
    const Block* block = nullptr;
    bool open = false, done = false;
    Unrolled unrolled = {};
  };

  void Fail(std::string message, int origin) {
    if (violations_.empty()) violations_.push_back({"V4", std::move(message), origin});
  }

  Unrolled Unroll(const std::vector<Instruction>& list, int depth) {
    Unrolled all = {.instructions = static_cast<int64_t>(list.size())};
    for (const Instruction& call : list) {
      const auto called = call.kind == OpKind::kCall ? blocks_.find(call.block) : blocks_.end();
      if (called == blocks_.end()) continue;  // a block that does not exist is told with the values that it is given
      const Unrolled inner = Enter(called->second, depth);
      if (!violations_.empty()) break;
      all.levels = std::max(all.levels, inner.levels + 1);
      all.instructions = std::min(all.instructions + inner.instructions, kMostInstructions + 1);
      all.calls = std::min(all.calls + inner.calls + 1, kMostCalls + 1);
    }
    return all;
  }

  Unrolled Enter(State& called, int depth) {
    const Block& block = *called.block;
    if (called.open) Fail(Cat("block ", block.name, " calls itself"), block.origin);
    if (depth + called.unrolled.levels >= kDeepestCalls) {
      Fail(Cat("calls of block ", block.name, " go more than ", kDeepestCalls, " deep"), block.origin);
    }
    if (!violations_.empty() || called.done) return called.unrolled;
    called.open = true;
    called.unrolled = Unroll(block.body, depth + 1);
    called.open = false, called.done = true;
    return called.unrolled;
  }

  const Plan& plan_;
  std::vector<Violation>& violations_;
  std::unordered_map<std::string_view, State> blocks_;
};

}  // namespace

std::vector<Violation> VerifyCalls(const Plan& plan) {
  std::vector<Violation> violations;
  Calls(plan, violations).Check();
  return violations;
}

}  // namespace planwright
