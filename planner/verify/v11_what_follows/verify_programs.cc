// V11 of how programs are written: modules are set up, loaded and saved in their order, and buckets measured in theirs;
// microbatches run in the order of the schedule, an instruction has the fields that its kind reads and no others, what
// is received is read, and a single number is not written as a run with a stride.
//
// Not here: whether the schedule is right (V8), whether all roles of a stage agree (verify_siblings.cc), and an
// instruction's attributes and operands (V4).

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/verify/rules.h"
#include "planner/verify/shared/bridge_rows.h"

namespace planwright {
namespace {

using std::string;
using std::string_view;

class ProgramCheck {
 public:
  ProgramCheck(const PlanIndex& index, std::vector<Violation>& violations)
      : index_(index), plan_(index.plan()), violations_(violations) {}

  void Check(const std::vector<FramePair>& pairs) {
    CheckTakes(pairs);
    for (const Block& block : plan_.blocks) CheckFields("block " + block.name, block.body, true, block.origin);
    for (const Role& role : plan_.roles) {
      for (const StageSchedule& stage : plan_.schedule) CheckOrder(role, stage);
      const string who = "role " + role.name;
      for (const RoleList& part : kRoleLists) {
        CheckFields(who, role.*part.list, false, role.origin);
        CheckModuleOrder(role, part);
      }
      CheckRanges(who, role.ranks, role.origin);
      CheckBucketOrder(role);
      CheckRoundFrames(role);
      for (const SampleList& list : SampleListsOf(plan_)) {
        CheckReceived(role, list);
        CheckReceivedRows(role, list);
        CheckTogether(role, list);
      }
    }
    for (const CheckpointRule& rule : plan_.checkpoint.rules) {
      const Module* module = index_.module(rule.module);
      CheckRanges("a rule of the checkpoint", rule.parameters, module ? module->origin : -1);
      const auto same = [](const RankRange& a, const RankRange& b) {
        return a.first == b.first && a.count == b.count && a.stride == b.stride;
      };
      std::vector<int> parameters = Expand(rule.parameters);
      std::sort(parameters.begin(), parameters.end());
      const std::vector<RankRange> shortest = Compress(parameters);
      if (!std::equal(shortest.begin(), shortest.end(), rule.parameters.begin(), rule.parameters.end(), same))
        Fail("a rule of the checkpoint",
             absl::StrCat("of ", rule.module, " names its parameters in ", rule.parameters.size(),
                          " ranges, not in order or not in the shortest ones, which are ", shortest.size()),
             module ? module->origin : -1);
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

  // Parts of an exchange progress together. They have one order all the same: what is sent comes before what is
  // received, and what passes between stages before bridges, which come in their order.
  std::tuple<bool, std::ptrdiff_t, bool, int> OrderOf(const ExchangePart& part) const {
    const Bridge* bridge = plan_.FindBridge(part.bridge);
    return {!part.send, bridge ? bridge - plan_.bridges.data() : -1, part.backward, part.shift};
  }

  // The one bridge over which an exchange both sends and receives, as one between two modules of the same ranks does;
  // null for any other. Such exchanges stay apart, one for each encoder.
  const Bridge* PassesOver(const Instruction& exchange) const {
    const std::vector<ExchangePart>& parts = exchange.parts;
    const bool passes = parts.size() == 2 && parts[0].send && !parts[1].send && parts[0].bridge == parts[1].bridge;
    return passes ? plan_.FindBridge(parts[0].bridge) : nullptr;
  }

  // An instruction has the fields that its kind reads, and no others. Parts of an exchange are in order, and all parts
  // that could be in one exchange are.
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
      if (!stray &&
          !std::is_sorted(op.parts.begin(), op.parts.end(),
                          [&](const ExchangePart& a, const ExchangePart& b) { return OrderOf(a) < OrderOf(b); })) {
        stray = "parts in another order than: sends, receives; between stages, over bridges";
      }
      if (!stray && exchange && &op != body.data() && (&op - 1)->kind == OpKind::kExchange &&
          !(PassesOver(op) && PassesOver(*(&op - 1)) && PassesOver(op) != PassesOver(*(&op - 1)))) {
        stray = "parts that belong to the exchange before it";
      }
      if (!stray && !std::is_sorted(op.frees.begin(), op.frees.end())) stray = "frees in another order than by name";
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

  // A round calls its stages in the frames in which a step calls them. Nothing is kept there, so no other rule sees it.
  void CheckRoundFrames(const Role& role) {
    std::set<string_view> frames;
    for (const Instruction& op : role.step) frames.insert(op.frame);
    for (const Instruction& op : role.evaluate) {
      if (op.kind != OpKind::kCall || frames.contains(op.frame)) continue;
      Fail("role " + role.name, absl::StrCat("evaluates in the frame ", op.frame, ", which no step has"),
           op.origin >= 0 ? op.origin : role.origin);
    }
  }

  // What passes between two stages together is in the order in which the calls of these stages make it and read it: the
  // stream, and carries behind it.
  void CheckTogether(const Role& role, const SampleList& list) {
    std::unordered_map<string_view, size_t> place;
    for (const Instruction& op : list.Of(role)) {
      if (op.kind != OpKind::kCall) continue;
      for (size_t i = 0; i < op.outputs.size(); ++i) place.emplace(op.outputs[i].name, i);
      for (size_t i = 0; i < op.inputs.size(); ++i) place.emplace(op.inputs[i], i);
    }
    for (const Instruction& op : list.Of(role)) {
      for (size_t p = 1; p < op.parts.size(); ++p) {
        const ExchangePart &before = op.parts[p - 1], &part = op.parts[p];
        if (!part.bridge.empty() || OrderOf(before) != OrderOf(part) || place[before.value] < place[part.value])
          continue;
        Fail("role " + role.name,
             absl::StrCat("exchanges ", before.value, " before ", part.value, ", not in the order of its calls"),
             op.origin >= 0 ? op.origin : role.origin);
      }
    }
  }

  // What is received over a bridge has as many rows as its own module makes room for.
  void CheckReceivedRows(const Role& role, const SampleList& list) {
    for (const Instruction& op : list.Of(role)) {
      for (const ExchangePart& part : op.parts) {
        const Bridge* bridge = plan_.FindBridge(part.bridge);
        if (part.send || !bridge) continue;
        const string rows = RowsOfBridge(plan_, *bridge, !part.backward);
        for (const Output& output : op.outputs) {
          if (output.name != part.value || (!output.type.dims.empty() && output.type.dims.front() == Dim(rows)))
            continue;
          Fail("role " + role.name, absl::StrCat("receives ", part.value, " in another number of rows than ", rows),
               op.origin >= 0 ? op.origin : role.origin);
        }
      }
    }
  }

  // A backward takes values in the order in which they were saved. The calls of each microbatch say by whom.
  void CheckTakes(const std::vector<FramePair>& pairs) {
    const auto check = [&](const Block& saver, const Block& taker) {
      std::vector<string> takes;
      for (const Output& take : taker.takes) takes.push_back(take.name);
      if (takes != saver.saved)
        Fail("block " + taker.name, absl::StrCat("takes values in another order than ", saver.name, " saves them"),
             taker.origin);
    };
    for (const FramePair& pair : pairs) {
      const Block* saver = pair.forward;
      for (const Block* again : pair.again) {
        check(*saver, *again);
        saver = again;
      }
      if (pair.backward) check(*saver, *pair.backward);
    }
  }

  // A received value must be read: by a call, or by the broadcast that gives it to the siblings.
  void CheckReceived(const Role& role, const SampleList& list) {
    std::unordered_map<string_view, const Instruction*> open;
    for (const Instruction& op : list.Of(role)) {
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

  // Gradients are scaled and measured bucket after bucket: a sum in another order would be rounded in another way. The
  // order in which buckets are stepped is chosen, since the next step can begin with what is stepped first.
  void CheckBucketOrder(const Role& role) {
    std::map<OpKind, std::pair<std::ptrdiff_t, int64_t>> reached;
    for (const Instruction& op : role.step) {
      const string* name = op.FindText("module");
      const int64_t* bucket = op.FindInteger("bucket");
      if (!name || !bucket || op.kind == OpKind::kAdamW) continue;
      const auto found = std::find(role.modules.begin(), role.modules.end(), *name);
      const std::pair order = {found - role.modules.begin(), *bucket};
      const auto [last, first] = reached.try_emplace(op.kind, order);
      if (!first && order < std::exchange(last->second, order)) {
        return Fail("role " + role.name,
                    absl::StrCat("runs ", string(OpName(op.kind)), " of ", *name, " bucket ", *bucket,
                                 " after that of a later bucket"),
                    op.origin >= 0 ? op.origin : role.origin);
      }
    }
  }

  // What a list does besides those that run samples is V7's (verify_states.cc). Modules do it one after the other, in
  // their order.
  void CheckModuleOrder(const Role& role, const RoleList& part) {
    if (part.list == &Role::step || part.list == &Role::evaluate) return;
    size_t reached = 0;  // in Role::modules
    for (const Instruction& op : role.*part.list) {
      const string* name = op.FindText("module");
      if (!name) continue;
      const auto found = std::find(role.modules.begin(), role.modules.end(), *name);
      const auto index = static_cast<size_t>(found - role.modules.begin());
      if (index < reached) {
        return Fail("role " + role.name,
                    absl::StrCat("runs ", string(OpName(op.kind)), " of ", *name, " in its ", part.name,
                                 " after instructions of ", role.modules[reached]),
                    role.origin);
      }
      reached = std::min(index, role.modules.size() - 1);
    }
  }

  const PlanIndex& index_;
  const Plan& plan_;
  std::vector<Violation>& violations_;
};

}  // namespace

std::vector<Violation> VerifyPrograms(const PlanIndex& index, const std::vector<MicrobatchCalls>& microbatches) {
  std::vector<Violation> violations;
  ProgramCheck(index, violations).Check(PairsOf(microbatches));
  return violations;
}

}  // namespace planwright
