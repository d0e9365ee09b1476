// V11 of how programs are written: roles set up as the plan says where weights come from, microbatches run in the
// order of the schedule, an instruction has the fields that its kind reads and no others, what is received is read,
// and a single number is not written as a run with a stride.
//
// Not here: whether the schedule is right (V8), whether all roles of a stage agree (verify_siblings.cc), and an
// instruction's attributes and operands (V4).

#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/verify/rules.h"

namespace planwright {
namespace {

using std::string;
using std::string_view;

class ProgramCheck {
 public:
  ProgramCheck(const PlanIndex& index, std::vector<Violation>& violations)
      : index_(index), plan_(index.plan()), violations_(violations) {}

  void Check() {
    for (const Block& block : plan_.blocks) CheckFields("block " + block.name, block.body, true, block.origin);
    for (const Role& role : plan_.roles) {
      CheckFiles(role);
      for (const StageSchedule& stage : plan_.schedule) CheckOrder(role, stage);
      const string who = "role " + role.name;
      for (const RoleList& part : kRoleLists) CheckFields(who, role.*part.list, false, role.origin);
      CheckRanges(who, role.ranks, role.origin);
      CheckReceived(role);
    }
    for (const CheckpointRule& rule : plan_.checkpoint.rules) {
      const Module* module = index_.module(rule.module);
      CheckRanges("a rule of the checkpoint", rule.parameters, module ? module->origin : -1);
    }
  }

 private:
  void Fail(const string& who, string_view what, int origin) {
    violations_.push_back({"V11", absl::StrCat(who, " ", string(what)), index_.OriginOf(origin, -1, nullptr)});
  }

  // A range of one number has stride 1, so that each number is written in one way.
  void CheckRanges(const string& who, const std::vector<RankRange>& ranges, int origin) {
    for (const RankRange& range : ranges) {
      if (range.count == 1 && range.stride != 1)
        Fail(who, absl::StrCat("names only ", range.first, ", but with a stride of ", range.stride), origin);
    }
  }

  // An instruction has the fields that its kind reads, and no others.
  void CheckFields(const string& who, const std::vector<Instruction>& body, bool in_block, int origin) {
    for (const Instruction& op : body) {
      const OpClass of = OpClassOf(op.kind);
      const bool call = op.kind == OpKind::kCall, exchange = op.kind == OpKind::kExchange;
      const char* stray = nullptr;
      if (!call && !(op.block.empty() && op.frame.empty())) stray = "a block or a frame";
      if (call && !op.stream.empty()) stray = "a stream";
      if (op.group.empty() != (of != OpClass::kCommunication || exchange)) stray = "a group too many, or none";
      if (op.microbatch != -1 && (in_block || !(call || of == OpClass::kData))) stray = "a microbatch";
      if (!exchange && !op.parts.empty()) stray = "parts of an exchange";
      for (const ExchangePart& part : op.parts) {
        const bool over_bridge = !part.bridge.empty();
        if (over_bridge == !part.group.empty() || (over_bridge && part.sizes.empty()) ||
            over_bridge == (part.shift != 0)) {
          stray = "a part both over a bridge and between stages";
        }
      }
      if (!stray) continue;
      Fail(who,
           absl::StrCat("has ", stray, " in ", string(OpName(op.kind)),
                        op.outputs.empty() ? "" : " of " + op.outputs[0].name),
           op.origin >= 0 ? op.origin : origin);
    }
  }

  // A role runs the forwards and backwards of its stage in the order of the schedule (docs/layouts/pipeline.md#1f1b).
  // The first call of a microbatch is its forward, the second its backward.
  void CheckOrder(const Role& role, const StageSchedule& stage) {
    const Module* module = index_.module(stage.module);
    if (!module || !Runs(role, *module) || StageOf(role, *module) != stage.stage) return;
    std::vector<bool> begun(static_cast<size_t>(plan_.budget.microbatches));
    size_t next = 0;
    for (const Instruction& op : role.step) {
      const Block* block = op.kind == OpKind::kCall ? index_.block(op.block) : nullptr;
      if (!block || block->module != module->name) continue;
      const auto microbatch = static_cast<size_t>(op.microbatch);  // V5 has checked that it exists
      const string action = absl::StrCat(begun[microbatch] ? "B" : "F", op.microbatch);
      begun[microbatch] = true;
      if (next < stage.order.size() && stage.order[next++] == action) continue;
      return Fail("role " + role.name,
                  absl::StrCat("runs ", action, " of ", module->name, ", but the schedule has another action there"),
                  op.origin >= 0 ? op.origin : role.origin);
    }
    if (next < stage.order.size())
      Fail("role " + role.name, absl::StrCat("never runs ", stage.order[next], " of ", module->name), role.origin);
  }

  // A received value must be read: by a call, or by the broadcast that gives it to the siblings.
  void CheckReceived(const Role& role) {
    std::unordered_map<string_view, const Instruction*> open;
    for (const Instruction& op : role.step) {
      for (const string& input : op.inputs) open.erase(input);
      for (const ExchangePart& part : op.parts) {
        if (!part.send) open.emplace(part.value, &op);
      }
    }
    for (const auto& [value, exchange] : open) {
      Fail("role " + role.name, absl::StrCat("receives ", string(value), ", which nothing reads"),
           exchange->origin >= 0 ? exchange->origin : role.origin);
    }
  }

  // Instructions by kind and module; no module: "".
  using Wanted = std::vector<std::pair<OpKind, string_view>>;

  // Setup, of each module: allocate, then draw or load as the plan says, then refresh the masters if it is trained.
  // With checkpoints, resuming allocates and loads each module and then loads the counters; saving copies the counters
  // and then each module.
  void CheckFiles(const Role& role) {
    Wanted setup, resume, save = {{OpKind::kSaveCounters, ""}};
    for (const string& name : role.modules) {
      const Module* module = index_.module(name);
      if (!module) continue;  // V1
      setup.emplace_back(OpKind::kAllocateParameters, name);
      setup.emplace_back(plan_.initialize ? OpKind::kLoadParameters : OpKind::kInitializeParameters, name);
      if (module->trained()) setup.emplace_back(OpKind::kRefreshMasters, name);
      resume.emplace_back(OpKind::kAllocateParameters, name);
      resume.emplace_back(OpKind::kLoadState, name);
      save.emplace_back(OpKind::kSaveState, name);
    }
    resume.emplace_back(OpKind::kLoadCounters, "");
    save.emplace_back(OpKind::kPublishCheckpoint, "");
    const bool checkpoints = plan_.checkpoint.every_steps > 0;
    Expect(role, "set up", role.setup, setup);
    Expect(role, "resume", role.resume, checkpoints ? resume : Wanted());
    Expect(role, "save", role.save, checkpoints ? save : Wanted());
  }

  void Expect(const Role& role, string_view verb, const std::vector<Instruction>& list, const Wanted& wanted) {
    bool same = wanted.size() == list.size();
    for (size_t i = 0; same && i < wanted.size(); ++i) {
      const string* of = list[i].FindText("module");
      same = list[i].kind == wanted[i].first && (of ? *of : "") == wanted[i].second;
    }
    if (same) return;
    const auto text = [](string* out, const auto& one) {
      absl::StrAppend(out, string(OpName(one.first)), one.second.empty() ? "" : " ", string(one.second));
    };
    Fail("role " + role.name,
         absl::StrCat("must ", string(verb), " by: ", wanted.empty() ? "nothing" : absl::StrJoin(wanted, ", ", text)),
         role.origin);
  }

  const PlanIndex& index_;
  const Plan& plan_;
  std::vector<Violation>& violations_;
};

}  // namespace

std::vector<Violation> VerifyPrograms(const PlanIndex& index) {
  std::vector<Violation> violations;
  ProgramCheck(index, violations).Check();
  return violations;
}

}  // namespace planwright
