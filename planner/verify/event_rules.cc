#include "planner/verify/event_rules.h"

#include <unordered_map>
#include <unordered_set>

#include "planner/diagnostics/text.h"

namespace planwright {
namespace {

using std::string;

class Walk {
 public:
  Walk(const Plan& plan, const Role& role, std::vector<Violation>& violations) : plan_(plan), role_(role), violations_(violations) {
    for (const Block& block : plan.blocks) blocks_.emplace(block.name, State{&block});
  }

  void Run(const std::vector<Instruction>& body, const string& path, int origin) {
    for (size_t i = 0; i < body.size() && violations_.empty(); ++i) {
      const Instruction& instruction = body[i];
      const int line = instruction.origin >= 0 ? instruction.origin : origin;
      if (++walked_ > kMostWalked) return Fail(path, i, instruction, "comes after more instructions than a program with events may have", line);
      for (const string& event : instruction.waits) {
        if (!signalled_.contains(event)) Fail(path, i, instruction, Cat("waits for ", event, ", which nothing before it signals"), line);
      }
      if (instruction.kind == OpKind::kCall) Enter(instruction, path, i, line);
      for (const string& event : instruction.signals) {
        const auto [first, fresh] = signalled_.emplace(event, Cat(path, " ", i));
        if (!fresh) Fail(path, i, instruction, Cat("signals ", event, ", which ", first->second, " has signalled"), line);
      }
    }
  }

 private:
  struct State {
    const Block* block = nullptr;
    bool open = false;
    int has_events = -1;  // not known yet
  };

  void Enter(const Instruction& call, const string& path, size_t place, int origin) {
    const auto found = blocks_.find(call.block);
    if (found == blocks_.end() || found->second.open || !HasEvents(found->second)) return;
    State& state = found->second;
    state.open = true;
    Run(state.block->body, Cat(path, " ", place, " > ", call.block), state.block->origin >= 0 ? state.block->origin : origin);
    state.open = false;
  }

  // Most blocks have none, and are not walked again for every layer and microbatch.
  bool HasEvents(State& state) {
    if (state.has_events >= 0) return state.has_events > 0;
    state.has_events = 0;  // a block that calls itself ends here
    for (const Instruction& instruction : state.block->body) {
      bool has = !instruction.waits.empty() || !instruction.signals.empty();
      if (instruction.kind == OpKind::kCall) {
        const auto inner = blocks_.find(instruction.block);
        has = has || (inner != blocks_.end() && HasEvents(inner->second));
      }
      if (has) state.has_events = 1;
    }
    return state.has_events > 0;
  }

  void Fail(const string& path, size_t place, const Instruction& instruction, const string& what, int origin) {
    violations_.push_back({"V3", Cat("role ", role_.name, " at ", path, " ", place, ": ", OpName(instruction.kind), " ", what), origin});
  }

  static constexpr int64_t kMostWalked = 1 << 22;  // calls of calls multiply

  int64_t walked_ = 0;
  const Plan& plan_;
  const Role& role_;
  std::vector<Violation>& violations_;
  std::unordered_map<std::string_view, State> blocks_;
  std::unordered_map<string, string> signalled_;  // event, and where
};

}  // namespace

std::vector<Violation> CheckEvents(const Plan& plan, const Role& role, const string& list_name, const std::vector<Instruction>& list) {
  std::vector<Violation> violations;
  Walk(plan, role, violations).Run(list, list_name, role.origin);
  return violations;
}

}  // namespace planwright
