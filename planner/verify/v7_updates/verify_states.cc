// V7 of state: what outlives a list is touched by the right instructions of each list of each role, each as often as it
// must be, in the right order. The table of state (planner/plan/states.def) says which these are. So masters are
// refreshed after weights are drawn, gradients are scaled after they are complete and stepped after they are measured,
// and nothing in a step draws, loads or saves.
//
// Not here: over which groups collectives on state go, and what they make (verify_updates.cc); in which order
// instructions stand that touch no common state (V11, verify_programs.cc, where it follows).

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "planner/base/text/bug.h"
#include "planner/plan/state_table.h"
#include "planner/plan/statement/expert_counts.h"
#include "planner/plan/stream_dependencies.h"
#include "planner/verify/rules.h"
#include "planner/verify/v7_updates/expanded_list.h"

namespace planwright {
namespace {

using std::string;

constexpr int kAnyTimes = -1;

// One state of one role, and how far a list has come in its life.
struct State {
  const StateLife* life = nullptr;
  string name;                     // "%language.gradients.3"
  const Module* module = nullptr;  // null: of no module
  int bucket = -1;                 // -1: of no bucket
  std::vector<int> wanted, found;  // by step of the life: how often; kAnyTimes: as other rules want
  int last_step = -1;              // the latest step of the life that an instruction was at
  const Instruction* last = nullptr;
  int last_entry = -1;    // of the list; one instruction may touch a state twice, as with inputs and outputs
  bool reported = false;  // one report is enough: the next ones follow from it

  int StepOf(OpKind kind) const {
    for (size_t i = 0; i < life->steps.size(); ++i) {
      const std::vector<OpKind>& kinds = life->steps[i].kinds;
      if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) return static_cast<int>(i);
    }
    return -1;
  }
};

// Walks one list of one role, and follows all states of the role.
class ListStates {
 public:
  ListStates(const PlanIndex& index, const Role& role, const RoleList& list, std::vector<Violation>& violations)
      : index_(index), plan_(index.plan()), role_(role), list_(list), violations_(violations) {
    const bool of_checkpoints = list_.list == &Role::resume || list_.list == &Role::save;
    if (of_checkpoints && plan_.checkpoint.every_steps == 0) return;  // nothing stands here
    const bool of_evaluation = list_.list == &Role::evaluate || list_.list == &Role::score;
    if (of_evaluation && plan_.evaluation.empty()) return;
    for (const StateInfo& info : AllStates()) {
      if (const StateLife* life = info.LifeIn(list.name)) AddStates(info, *life);
    }
    for (size_t i = 0; i < states_.size(); ++i) by_name_.emplace(states_[i].name, i);
  }

  void Check() {
    for (const ExpandedEntry& entry : Expanded(index_, role_.*list_.list)) {
      ++entry_;
      CheckStream(*entry.op);
      Walk(entry);
    }
    for (State& state : states_) {
      for (size_t i = 0; i < state.wanted.size() && !state.reported; ++i) {
        if (state.wanted[i] == kAnyTimes || state.found[i] == state.wanted[i]) continue;
        Report(state, nullptr,
               absl::StrCat("runs ", KindsText(state.life->steps[i]), " ", state.found[i], " times on ", state.name,
                            " in its ", list_.name, ", not ", state.wanted[i] == 1 ? "once" : "never"));
      }
    }
  }

 private:
  static string KindsText(const StateStep& step) {
    return absl::StrJoin(step.kinds, " or ",
                         [](string* out, OpKind kind) { absl::StrAppend(out, string(OpName(kind))); });
  }

  // The kinds of instructions that touch the state in this list, as text.
  static string LifeText(const StateLife& life) {
    return absl::StrJoin(life.steps, ", ",
                         [](string* out, const StateStep& step) { absl::StrAppend(out, KindsText(step)); });
  }

  void AddStates(const StateInfo& info, const StateLife& life) {
    if (!absl::StrContains(info.name, "{module}")) return Add(info.name, life, nullptr, -1);
    for (const string& name : role_.modules) {
      const Module* module = index_.module(name);
      if (!module) continue;  // V1
      const string of_module = absl::StrReplaceAll(info.name, {{"{module}", name}});
      if (!absl::StrContains(of_module, "{bucket}")) {
        Add(of_module, life, module, -1);
        continue;
      }
      for (size_t i = 0; i < module->buckets.size(); ++i) {
        if (module->buckets[i].stage == StageOf(role_, *module))
          Add(absl::StrReplaceAll(of_module, {{"{bucket}", absl::StrCat(i)}}), life, module, static_cast<int>(i));
      }
    }
  }

  void Add(string name, const StateLife& life, const Module* module, int bucket) {
    State state = {.life = &life, .name = std::move(name), .module = module, .bucket = bucket};
    const auto value_of = [&](const string& value) { return ValueOf(value, module, bucket); };
    for (const StateStep& step : life.steps) {
      const bool here = !step.when || step.when->Evaluate(value_of) != 0;
      state.wanted.push_back(step.any ? kAnyTimes : here ? 1 : 0);
    }
    state.found.assign(life.steps.size(), 0);
    states_.push_back(std::move(state));
  }

  // The module of the role that steps the bias of experts on its stage; null: none. `of`: the one module that may be
  // it; null: any.
  const Module* WithExperts(const Module* of) const {
    for (const string& name : role_.modules) {
      const Module* module = index_.module(name);
      if (!module || (of && of != module) || module->experts() == 0) continue;
      if (StepsExpertBias(*module, StageOf(role_, *module))) return module;
    }
    return nullptr;
  }

  // The value of a name in a formula of states.def. A bug of ours if it has none.
  double ValueOf(const string& name, const Module* module, int bucket) const {
    if (name == "drawn") return plan_.initialize ? 0 : 1;
    if (name == "loaded") return plan_.initialize ? 1 : 0;
    if (name == "world") return plan_.world_size;
    if (name == "by_source") return plan_.sums_by_source() ? 1 : 0;
    if (name == "trained") return module->trained() ? 1 : 0;
    if (name == "adapted") return module->adapted() ? 1 : 0;
    const Module* experts = WithExperts(module);
    if (name == "experts") return experts ? 1 : 0;
    if (name == "expert_lanes") return experts ? experts->grid.ranks() / experts->grid.pp : 0;
    const Bucket& of = module->buckets[static_cast<size_t>(bucket)];
    const Grid& grid = module->grid;
    if (name == "replicas") return of.view == View::kExpert ? grid.expert_dp : double{1} * grid.dp * grid.cp;
    Require(name == "partial", "a formula of states.def has an unknown name: " + name);
    return of.tp == TpGradient::kPartial && grid.tp > 1 ? 1 : 0;
  }

  void Report(State& state, const Instruction* op, const string& message) {
    if (std::exchange(state.reported, true)) return;
    Report(op, state.module, message);
  }
  void Report(const Instruction* op, const Module* module, const string& message) {
    const int origin = op && op->origin >= 0 ? op->origin : module ? module->origin : role_.origin;
    violations_.push_back(
        {"V7", absl::StrCat("role ", role_.name, " ", message), index_.OriginOf(origin, role_.origin, module)});
  }

  void Walk(const ExpandedEntry& entry) {
    const Instruction& op = *entry.op;
    if (op.kind == OpKind::kCall) return WalkCall(entry);
    const bool moves = MovesState(op);
    if (entry.block && !moves) return WalkInside(entry);
    const OpClass of = OpClassOf(op.kind);
    if (!moves && of != OpClass::kState && of != OpClass::kStorage) return;  // it has values alone
    if (!Holds(op)) return;
    bool touches = false;
    for (const StateAccess& access : StateAccessesOf(op, role_.modules)) touches |= TouchResource(op, access.resource);
    for (State& state : states_) {
      if (IsStateName(state.name) || state.StepOf(op.kind) < 0) continue;
      Touch(state, op, op.kind);
      touches = true;
    }
    if (touches) return;
    const string lists = moves ? "" : ListsOf(op.kind);
    Report(&op, nullptr,
           absl::StrCat("runs ", string(OpName(op.kind)), " of ", LabelOf(op), " in its ", list_.name,
                        lists.empty() ? ", where nothing needs it" : absl::StrCat("; it belongs to: ", lists)));
  }

  // Streams order what touches one state. Files and counts on the host are no such state: on a stream of its own,
  // save_counters would copy them while publish_checkpoint already writes them.
  void CheckStream(const Instruction& op) {
    const bool of_files =
        list_.list == &Role::resume || list_.list == &Role::save || OpClassOf(op.kind) == OpClass::kStorage;
    if (!of_files || op.stream.empty()) return;
    Report(&op, nullptr,
           absl::StrCat("runs ", string(OpName(op.kind)), " of ", LabelOf(op), " in its ", list_.name, " on stream ",
                        op.stream, "; what reads and writes files runs on the main stream"));
  }

  // Whether the role has the module and bucket that the instruction names.
  bool Holds(const Instruction& op) {
    const string* name = op.FindText("module");
    if (!name) return true;
    const Module* module = index_.module(*name);
    const int64_t* bucket = op.FindInteger("bucket");
    const bool runs = module && std::find(role_.modules.begin(), role_.modules.end(), *name) != role_.modules.end();
    const bool has =
        runs && (!bucket || (*bucket >= 0 && *bucket < static_cast<int64_t>(module->buckets.size()) &&
                             module->buckets[static_cast<size_t>(*bucket)].stage == StageOf(role_, *module)));
    if (!has)
      Report(&op, nullptr,
             absl::StrCat("runs ", string(OpName(op.kind)), " of ", LabelOf(op), ", which this role does not hold"));
    return has;
  }

  // Touches the states that contain the resource or lie in it. Returns whether there are any.
  bool TouchResource(const Instruction& op, const string& resource) {
    bool found = false;
    for (string part = resource;;) {
      if (const auto state = by_name_.find(part); state != by_name_.end()) {
        Touch(states_[state->second], op, op.kind);
        found = true;
      }
      const size_t dot = part.rfind('.');
      if (dot == string::npos) break;
      part.resize(dot);
    }
    const string inside = resource + ".";
    for (auto it = by_name_.lower_bound(inside); it != by_name_.end() && absl::StartsWith(it->first, inside); ++it) {
      Touch(states_[it->second], op, op.kind);
      found = true;
    }
    return found;
  }

  // A call of a layer uses the buckets of its frame, and none if it has no storages. A call of a whole stage has none
  // of its own either, and counts for every bucket.
  void WalkCall(const ExpandedEntry& entry) {
    const Block* block = index_.block(entry.op->block);
    if (!block) return;  // V4
    const auto& storages = index_.StoragesOf(entry.frame);
    const bool stage = storages.empty() && entry.frame.find(".layers.") == std::string_view::npos;
    for (State& state : states_) {
      if (state.StepOf(OpKind::kCall) < 0 || (state.module && state.module->name != block->module)) continue;
      const auto in_bucket = [&](const Storage* storage) { return storage->bucket == state.bucket; };
      if (state.bucket < 0 || stage || std::any_of(storages.begin(), storages.end(), in_bucket))
        Touch(state, *entry.op, OpKind::kCall);
    }
  }

  // An instruction in a block whose call was expanded: what it does to state counts as done by the call.
  void WalkInside(const ExpandedEntry& entry) {
    const Instruction& op = *entry.op;
    for (const StateAccess& access : StateAccessesOf(op, role_.modules)) {
      for (State& state : states_) {
        if (absl::StartsWith(absl::StrCat(access.resource, "."), absl::StrCat(state.name, ".")))
          Touch(state, op, OpKind::kCall);
      }
    }
    if (op.parameters.empty() && op.gradients.empty()) return;
    for (const Storage* storage : index_.StoragesOf(entry.frame)) {
      for (State& state : states_) {
        if (state.module && state.module->name == entry.block->module && state.bucket == storage->bucket &&
            state.StepOf(OpKind::kCall) >= 0) {
          Touch(state, op, OpKind::kCall);
        }
      }
    }
  }

  // `as`: the kind of instruction that the life knows it by.
  void Touch(State& state, const Instruction& op, OpKind as) {
    if (std::exchange(state.last_entry, entry_) == entry_) return;
    const int step = state.StepOf(as);
    const auto what = [](const Instruction& one) {
      return absl::StrCat(string(OpName(one.kind)), " of ", LabelOf(one));
    };
    if (step < 0) {
      return Report(state, &op,
                    absl::StrCat("runs ", what(op), " in its ", list_.name, ", where ", state.name,
                                 " is touched only by: ", LifeText(*state.life)));
    }
    if (step < state.last_step) {
      Report(state, &op,
             absl::StrCat("runs ", what(*state.last), " before ", what(op), "; the order for ", state.name,
                          " is: ", LifeText(*state.life)));
    }
    ++state.found[static_cast<size_t>(step)];
    state.last_step = std::max(state.last_step, step);
    state.last = &op;
  }

  const PlanIndex& index_;
  const Plan& plan_;
  const Role& role_;
  const RoleList& list_;
  std::vector<Violation>& violations_;
  int entry_ = -1;  // of the expanded list, that is looked at
  std::vector<State> states_;
  std::map<string, size_t> by_name_;
};

}  // namespace

std::vector<Violation> VerifyStates(const PlanIndex& index) {
  std::vector<Violation> violations;
  for (const Role& role : index.plan().roles) {
    for (const RoleList& list : kRoleLists) ListStates(index, role, list, violations).Check();
  }
  return violations;
}

}  // namespace planwright
