// V4 of calls: each block has its own name, no block calls itself, and all programs unroll to a bounded number of
// instructions. The other rules, the estimates and the executor follow calls and do not look for circles.
//
// Not here: whether a call fits its block (verify_values.cc), and whether it is the right one (V5, V11).

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>

#include "planner/base/text/limits.h"
#include "planner/base/text/text.h"
#include "planner/verify/rules.h"

namespace planwright {
namespace {

class CallBounds {
 public:
  CallBounds(const Plan& plan, std::vector<Violation>& violations) : plan_(plan), violations_(violations) {}

  void Check() {
    for (const Block& block : plan_.blocks) {
      if (!blocks_.emplace(block.name, BlockState{&block}).second)
        return Fail(Cat("two blocks are named ", block.name), block.origin);
    }
    int64_t instructions = 0, calls = 0;
    // Sums stop just above their bound: a small file can ask for more than any number holds.
    const auto count = [&](const Unrolled& program, int origin) {
      instructions = std::min(instructions + program.instructions, kMostInstructions + 1);
      calls = std::min(calls + program.calls, kMostCalls + 1);
      if (instructions > kMostInstructions)
        Fail(Cat("the programs unroll to more than ", kMostInstructions, " instructions"), origin);
      if (calls > kMostCalls) Fail(Cat("the programs unroll to more than ", kMostCalls, " calls"), origin);
    };
    // Rules also walk blocks that no role calls, so these count too.
    for (const Block& block : plan_.blocks) count(Enter(blocks_.at(block.name), 0), block.origin);
    for (const Role& role : plan_.roles) {
      for (const RoleList& part : kRoleLists) count(Unroll(role.*part.list, 0), role.origin);
    }
  }

 private:
  struct Unrolled {
    int levels = 0;  // of calls inside calls
    // Including the blocks that are called. Cut off just above kMostInstructions and kMostCalls.
    int64_t instructions = 0, calls = 0;
  };
  struct BlockState {
    const Block* block = nullptr;
    bool open = false;  // the walk is inside this block
    bool done = false;
    Unrolled unrolled = {};  // once it is done
  };

  // The first problem alone: behind it the counts are not complete.
  void Fail(std::string message, int origin) {
    if (violations_.empty()) violations_.push_back({"V4", std::move(message), origin});
  }

  // `depth`: how many calls the list is inside of.
  Unrolled Unroll(const std::vector<Instruction>& list, int depth) {
    Unrolled all = {.instructions = static_cast<int64_t>(list.size())};
    for (const Instruction& call : list) {
      const auto called = call.kind == OpKind::kCall ? blocks_.find(call.block) : blocks_.end();
      if (called == blocks_.end()) continue;  // a block that does not exist: verify_values.cc
      const Unrolled inner = Enter(called->second, depth);
      if (!violations_.empty()) break;
      all.levels = std::max(all.levels, inner.levels + 1);
      all.instructions = std::min(all.instructions + inner.instructions, kMostInstructions + 1);
      all.calls = std::min(all.calls + inner.calls + 1, kMostCalls + 1);
    }
    return all;
  }

  // Each block is unrolled once, however often it is called. Its depth is checked at each call.
  Unrolled Enter(BlockState& called, int depth) {
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
  std::unordered_map<std::string_view, BlockState> blocks_;
};

}  // namespace

std::vector<Violation> VerifyCalls(const Plan& plan) {
  std::vector<Violation> violations;
  CallBounds(plan, violations).Check();
  return violations;
}

}  // namespace planwright
