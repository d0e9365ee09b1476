// V6 and V7 of the end of a step, read from each role's program: what happens to each bucket of its stage, to the sums of the step and to the
// expert bias, how often, over which group, and in which order.

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "planner/verify/happens_before.h"
#include "planner/verify/role_stage.h"
#include "planner/verify/size_rules.h"
#include "planner/verify/verify.h"

namespace planwright {
namespace {

using std::string;

using Places = std::vector<int>;

const string* Text(const Instruction& op, const char* name) {
  auto it = op.attributes.find(name);
  return it == op.attributes.end() ? nullptr : std::get_if<string>(&it->second);
}

bool MovesState(const Instruction& op) {
  const bool state = !op.inputs.empty() && !op.inputs.front().empty() && (op.inputs.front()[0] == '%' || op.inputs.front()[0] == '$');
  return OpClassOf(op.kind) == OpClass::kCommunication && state;
}

// Whether a block has collectives of a step, or events between streams, so that its instructions must be looked at one by one.
bool HasInnerOrder(const Block& block) {
  return std::any_of(block.body.begin(), block.body.end(),
                     [](const Instruction& op) { return MovesState(op) || (op.kind == OpKind::kCall && !(op.waits.empty() && op.signals.empty())); });
}

// A step's program, with the calls of such blocks replaced by what is in them.
std::vector<const Instruction*> Expanded(const PlanIndex& index, const Role& role) {
  std::vector<const Instruction*> program;
  for (const Instruction& op : role.step) {
    const Block* block = op.kind == OpKind::kCall ? index.block(op.block) : nullptr;
    if (!block || !HasInnerOrder(*block) || !op.waits.empty() || !op.signals.empty() || !op.stream.empty()) {
      program.push_back(&op);
      continue;
    }
    for (const Instruction& inner : block->body) program.push_back(&inner);
  }
  return program;
}

class RoleUpdates {
 public:
  RoleUpdates(const PlanIndex& index, const Role& role, std::vector<Violation>& violations)
      : index_(index), plan_(index.plan()), role_(role), program_(Expanded(index, role)), order_(program_), violations_(violations) {}

  void Check() {
    Collect();
    Once(OpKind::kBeginStep, "", "V5");
    Once(OpKind::kClipAndGate, "", "V7");
    Once(OpKind::kLogStep, "", "V7");
    CheckSums();
    for (const Module& module : plan_.modules) {
      if (Runs(role_, module)) CheckModule(module);
    }
    for (const Instruction& op : role_.teardown) {
      if (MovesState(op) && !expected_at_end_.contains(&op)) Fail(-1, "V7", absl::StrCat("moves ", Subject(op), " in its teardown, which nothing asks for"));
    }
    for (int place : collectives_) {
      if (!expected_.contains(place)) Fail(place, "V7", absl::StrCat("moves ", Subject(At(place)), ", which no rule of a step asks for"));
    }
    for (const auto& [key, places] : states_) {
      const auto& [kind, name] = key;
      if (!name.empty() && std::find(role_.modules.begin(), role_.modules.end(), name) == role_.modules.end()) {
        Fail(places.front(), "V7", absl::StrCat("runs ", string(OpName(kind)), " of ", name, ", which is not here"));
      }
    }
  }

 private:
  const Instruction& At(int place) const { return *program_[static_cast<size_t>(place)]; }
  static string Subject(const Instruction& op) { return op.inputs.empty() ? "nothing" : op.inputs.front(); }

  void Fail(int place, const char* rule, string message, const Module* module = nullptr) {
    const int origin = place >= 0 ? At(place).origin : -1;
    violations_.push_back({rule, absl::StrCat("role ", role_.name, " ", message), index_.OriginOf(origin, module ? module->origin : role_.origin, module)});
  }

  void Collect() {
    for (int i = 0; i < static_cast<int>(program_.size()); ++i) {
      const Instruction& op = At(i);
      if (op.kind == OpKind::kCall) {
        const Block* block = index_.block(op.block);
        if (block) calls_[block->module].push_back(i);
        continue;
      }
      if (op.kind == OpKind::kAccumulate) accumulates_.push_back(i);
      if (OpClassOf(op.kind) == OpClass::kState && op.kind != OpKind::kAccumulate) {
        const string* module = Text(op, "module");
        states_[{op.kind, module ? *module : ""}].push_back(i);
      }
      if (MovesState(op)) collectives_.push_back(i);
    }
  }

  Places StatesOf(OpKind kind, const string& module) const {
    auto it = states_.find({kind, module});
    return it == states_.end() ? Places() : it->second;
  }

  // The place of an instruction that must stand once; -1 if it does not.
  int Once(OpKind kind, const string& module, const char* rule) {
    const Places places = StatesOf(kind, module);
    if (places.size() == 1) return places.front();
    const string of = module.empty() ? "" : absl::StrCat(" of ", module);
    Fail(places.empty() ? -1 : places[1], rule, absl::StrCat("runs ", string(OpName(kind)), of, " ", places.size(), " times a step, not once"), index_.module(module));
    return -1;
  }

  void Never(OpKind kind, const Module& module, const char* why) {
    const Places places = StatesOf(kind, module.name);
    if (!places.empty()) Fail(places.front(), "V7", absl::StrCat("runs ", string(OpName(kind)), " of ", module.name, ", ", why), &module);
  }

  // Instruction `first` must be done when `second` starts; either may be missing (reported already).
  void Before(int first, int second, const char* rule) {
    if (first < 0 || second < 0 || order_.Ordered(first, second)) return;
    Fail(second, rule, absl::StrCat("starts ", string(OpName(At(second).kind)), " of ", Label(second), " before ", string(OpName(At(first).kind)), " of ", Label(first), " is done"));
  }

  string Label(int place) const {
    const Instruction& op = At(place);
    if (op.kind == OpKind::kCall) return absl::StrCat(op.frame, " microbatch ", op.microbatch);
    const string* module = Text(op, "module");
    if (!op.inputs.empty()) return op.inputs.front();
    return module ? *module : "the step";
  }

  struct Collective {
    OpKind kind;
    string from, to;
    std::vector<Axis> axes;  // wide ones of the module's group; empty: the world
    const Module* module = nullptr;
    int64_t elements = 0;
    DType dtype = DType::kFp32;
  };

  static string AxesText(const std::vector<Axis>& axes) {
    string text;
    for (Axis axis : axes) absl::StrAppend(&text, text.empty() ? "" : ",", string(AxisName(axis)));
    return text.empty() ? "nobody" : text;
  }

  // The place of the one collective that turns `from` into `to`; -1 if it is missing, doubled or another.
  int Expect(const Collective& wanted, const char* rule) {
    Places found;
    for (int place : collectives_) {
      const Instruction& op = At(place);
      const string to = op.outputs.empty() ? "" : op.outputs.front().name;
      if (op.kind == wanted.kind && Subject(op) == wanted.from && to == wanted.to) found.push_back(place);
    }
    expected_.insert(found.begin(), found.end());
    const string what = absl::StrCat(string(OpName(wanted.kind)), " of ", wanted.from);
    if (found.size() != 1) {
      Fail(found.empty() ? -1 : found[1], rule, absl::StrCat("has ", what, " ", found.size(), " times a step, not once"), wanted.module);
      return -1;
    }
    const Instruction& op = At(found.front());
    const Group* group = index_.group(op.group);
    const bool world = wanted.module == nullptr;
    const bool right_module = group && (world ? group->name == "world" : group->module == wanted.module->name);
    const std::vector<Axis> axes = right_module && !world ? index_.WideAxes(*group) : std::vector<Axis>();
    if (!right_module || (!world && axes != wanted.axes)) {
      Fail(found.front(), rule, absl::StrCat("has ", what, " over ", op.group, ", not over ", world ? "the world" : AxesText(wanted.axes)), wanted.module);
    }
    const ValueType& type = op.outputs.front().type;
    if (type.dtype != wanted.dtype || type.dims != std::vector<Dim>{wanted.elements}) {
      Fail(found.front(), rule, absl::StrCat("has ", what, " as ", ShapeText(type), ", not ", string(DTypeName(wanted.dtype)), "[", wanted.elements, "]"), wanted.module);
    }
    if (wanted.kind == OpKind::kAllReduce) {
      const string* reduce = Text(op, "reduce");
      if (!reduce || *reduce != "sum") Fail(found.front(), rule, absl::StrCat("has ", what, " that is no sum"), wanted.module);
    } else {
      auto dim = op.attributes.find("dim");
      const auto* number = dim == op.attributes.end() ? nullptr : std::get_if<int64_t>(&dim->second);
      if (!number || *number != 0) Fail(found.front(), rule, absl::StrCat("has ", what, " along another dim than 0"), wanted.module);
    }
    return found.front();
  }

  // Loss tokens, losses and norms: summed over the world once, after all that adds to them.
  void CheckSums() {
    const Places clip = StatesOf(OpKind::kClipAndGate, ""), log = StatesOf(OpKind::kLogStep, ""), begin = StatesOf(OpKind::kBeginStep, "");
    if (!begin.empty() && begin.front() != 0) Fail(begin.front(), "V5", "does something before begin_step, which clears the sums");
    if (plan_.world_size > 1) {
      integers_ = Expect({OpKind::kAllReduce, "$integers", "$integers", {}, nullptr, 2, DType::kInt64}, "V5");
      reals_ = Expect({OpKind::kAllReduce, "$reals", "$reals", {}, nullptr, 2 + static_cast<int64_t>(plan_.modules.size()), DType::kFp64}, "V5");
    }
    for (const auto& [module, calls] : calls_) {
      for (int call : calls) {
        Before(call, integers_, "V5");
        Before(call, reals_, "V5");
      }
    }
    for (int place : accumulates_) Before(place, integers_, "V5");
    if (!clip.empty()) Before(reals_, clip.front(), "V6");
    if (!log.empty()) {
      Before(reals_, log.front(), "V5");
      Before(integers_, log.front(), "V5");
      if (!clip.empty()) Before(clip.front(), log.front(), "V7");
    }
  }

  void CheckModule(const Module& module) {
    const int stage = StageOf(role_, module);
    std::vector<int> buckets;
    for (size_t i = 0; i < module.buckets.size(); ++i) {
      if (module.buckets[i].stage == stage) buckets.push_back(static_cast<int>(i));
    }
    CheckBias(module, stage);
    if (buckets.empty()) {
      for (OpKind kind : {OpKind::kScaleGradients, OpKind::kSquareNorm, OpKind::kAdamW}) Never(kind, module, "which has nothing to train here");
      return;
    }
    const Places clip = StatesOf(OpKind::kClipAndGate, "");
    const int scale = Once(OpKind::kScaleGradients, module.name, "V5"), norm = Once(OpKind::kSquareNorm, module.name, "V6");
    const int step = Once(OpKind::kAdamW, module.name, "V7");
    Before(integers_, scale, "V5");
    Before(scale, norm, "V6");
    Before(norm, plan_.world_size > 1 ? reals_ : (clip.empty() ? -1 : clip.front()), "V6");
    if (!clip.empty()) Before(clip.front(), step, "V7");
    for (int call : calls_[module.name]) Before(call, scale, "V7");
    for (int bucket : buckets) CheckBucket(module, bucket, scale, step);
  }

  void CheckBucket(const Module& module, int i, int scale, int step) {
    const Bucket& bucket = module.buckets[static_cast<size_t>(i)];
    const string gradients = absl::StrCat("%", module.name, ".gradients.", i), shards = absl::StrCat("%", module.name, ".gradient_shards.", i);
    const DType plan_dtype = DTypeFromName(plan_.precision).value_or(DType::kFp32);
    const DType wide = plan_dtype == DType::kFp64 ? DType::kFp64 : DType::kFp32;  // never bf16: facts 13.12
    const std::vector<Axis> replicas = ReplicaAxes(module, bucket.view);
    const int64_t part = bucket.shards > 0 ? bucket.elements / bucket.shards : 0;
    int reduced = -1, summed = -1;
    if (!replicas.empty()) {
      reduced = Expect({OpKind::kReduceScatter, gradients, shards, replicas, &module, part, wide}, "V7");
      for (int call : CallsOf(module, i)) Before(call, reduced, "V7");
      Before(reduced, scale, "V7");
      CheckGather(module, i, {OpKind::kAllGather, absl::StrCat("%", module.name, ".parameter_shards.", i), absl::StrCat("%", module.name, ".parameters.", i),
                              replicas, &module, bucket.elements, plan_dtype}, step);
    }
    if (bucket.tp == TpGradient::kPartial && module.grid.tp > 1) {
      summed = Expect({OpKind::kAllReduce, shards, shards, {Axis::kTp}, &module, part, wide}, "V6");
      Before(reduced, summed, "V7");
      for (int call : CallsOf(module, i)) Before(call, summed, "V7");
      Before(summed, scale, "V7");
    }
  }

  // Calls that read the bucket's parameters or add to its gradients: of a layer those of its frame's buckets, of a whole stage all.
  Places CallsOf(const Module& module, int bucket) const {
    Places places;
    auto calls = calls_.find(module.name);
    if (calls == calls_.end()) return places;
    for (int place : calls->second) {
      const auto& storages = index_.StoragesOf(module, At(place).frame);
      const bool uses = storages.empty() || std::any_of(storages.begin(), storages.end(), [&](const Storage* s) { return s->bucket == bucket; });
      if (uses) places.push_back(place);
    }
    return places;
  }

  // Parameters are gathered when they are stepped, or when the next step starts (and after the last one) before anything reads them.
  void CheckGather(const Module& module, int bucket, const Collective& gather, int step) {
    const int gathered = Expect(gather, "V7");
    if (gathered < 0 || step < 0 || order_.Ordered(step, gathered)) return;
    for (int call : CallsOf(module, bucket)) Before(gathered, call, "V7");
    int at_end = 0;
    for (const Instruction& op : role_.teardown) {
      if (op.kind != OpKind::kAllGather || Subject(op) != gather.from || op.group != At(gathered).group || op.outputs.size() != 1) continue;
      if (op.outputs.front().name != gather.to || op.outputs.front().type.dims != At(gathered).outputs.front().type.dims) continue;
      expected_at_end_.insert(&op);
      ++at_end;
    }
    if (at_end == 1) return;
    Fail(gathered, "V7", absl::StrCat("gathers ", gather.from, " at the start of a step, and after the last step ", at_end, " times, not once"), &module);
  }

  static std::vector<Axis> ReplicaAxes(const Module& module, View view) {
    std::vector<Axis> axes;
    for (Axis axis : view == View::kExpert ? std::vector<Axis>{Axis::kExpertDp} : std::vector<Axis>{Axis::kCp, Axis::kDp}) {
      if (module.grid.size(axis) > 1) axes.push_back(axis);
    }
    return axes;
  }

  // The expert bias follows the counts of all tokens of its layers, once, after the gate.
  void CheckBias(const Module& module, int stage) {
    const bool here = std::any_of(module.layers.begin(), module.layers.end(), [&](const LayerSummary& l) { return l.kind == 'E' && l.stage == stage; });
    if (module.moe_layers == 0 || !module.trains_backbone) return Never(OpKind::kUpdateExpertBias, module, "whose bias does not move");
    const Places updates = StatesOf(OpKind::kUpdateExpertBias, module.name);
    if (updates.empty() && !here) return;
    const int update = Once(OpKind::kUpdateExpertBias, module.name, "V7");
    std::vector<Axis> axes;
    for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kDp}) {
      if (module.grid.size(axis) > 1) axes.push_back(axis);
    }
    if (!axes.empty()) {
      const int counts = Expect({OpKind::kAllReduce, "$expert_counts", "$expert_counts", axes, &module, module.moe_layers * module.experts, DType::kInt64}, "V7");
      for (int call : calls_[module.name]) Before(call, counts, "V7");
      Before(counts, update, "V7");
    }
    const Places clip = StatesOf(OpKind::kClipAndGate, "");
    if (!clip.empty()) Before(clip.front(), update, "V7");
  }

  const PlanIndex& index_;
  const Plan& plan_;
  const Role& role_;
  const std::vector<const Instruction*> program_;
  const HappensBefore order_;
  std::vector<Violation>& violations_;
  std::map<string, Places> calls_;                      // by module
  std::map<std::pair<OpKind, string>, Places> states_;  // by kind and module
  Places accumulates_, collectives_;
  std::set<int> expected_;
  std::set<const Instruction*> expected_at_end_;
  int integers_ = -1, reals_ = -1;
};

// What the ranks along tp and cp add to each gradient, from the backward instructions, against what its bucket does about it.
class GradientSums {
 public:
  GradientSums(const PlanIndex& index, std::vector<Violation>& violations) : index_(index), violations_(violations) {}

  void Check(const Block& block) {
    const Module* module = index_.module(block.module);
    if (!module) return;
    std::map<string, const ValueType*> types;
    for (const auto* list : {&block.inputs, &block.takes}) {
      for (const Output& value : *list) types[value.name] = &value.type;
    }
    for (const Instruction& op : block.body) {
      if (!op.gradients.empty()) CheckOne(block, *module, op, types);
      for (const Output& output : op.outputs) types[output.name] = &output.type;
    }
  }

 private:
  void CheckOne(const Block& block, const Module& module, const Instruction& op, const std::map<string, const ValueType*>& types) {
    TypedInstruction typed{&op, {}, {}, {}};
    for (const string& input : op.inputs) {
      auto it = types.find(input);
      if (it == types.end()) return;
      typed.inputs.push_back(it->second);
    }
    const auto& frames = index_.FramesOf(block);
    if (frames.empty()) return;
    for (const string& slot : op.parameters) typed.parameters.push_back(index_.SlotOf(module, frames.front(), slot));
    for (const string& slot : op.gradients) typed.gradients.push_back(index_.SlotOf(module, frames.front(), slot));
    std::vector<Held> over_tp(op.gradients.size()), over_cp(op.gradients.size());
    if (!Added(typed, module, Axis::kTp, over_tp) || !Added(typed, module, Axis::kCp, over_cp)) return;
    for (std::string_view frame : frames) {
      for (size_t i = 0; i < op.gradients.size(); ++i) {
        const Slot slot = index_.SlotOf(module, frame, op.gradients[i]);
        if (slot.storage && slot.trained) Compare(block, module, op, *slot.storage, over_tp[i], over_cp[i]);
      }
    }
  }

  // False where V4 has something to say already.
  static bool Added(const TypedInstruction& typed, const Module& module, Axis axis, std::vector<Held>& added) {
    if (module.grid.size(axis) == 1) return true;
    std::vector<Held> found;
    if (!LayoutProblem(typed, axis, &found).empty() || found.size() != added.size()) return false;
    added = std::move(found);
    return true;
  }

  void Compare(const Block& block, const Module& module, const Instruction& op, const Storage& storage, const Held& over_tp, const Held& over_cp) {
    using State = AxisLayout::State;
    if (storage.bucket < 0 || storage.bucket >= static_cast<int>(module.buckets.size())) return;  // VerifyStorage
    const Bucket& bucket = module.buckets[static_cast<size_t>(storage.bucket)];
    if (bucket.view == View::kExpert) return;  // rows of all ranks of the dense view reach the experts by dispatch
    const auto fail = [&](string message) {
      violations_.push_back({"V6", absl::StrCat("the gradient of ", storage.frame, ".", storage.slot, " ", message), index_.OriginOf(op.origin, block.origin, &module)});
    };
    if (module.grid.cp > 1 && over_cp.state == State::kReplicated) fail("is the same on every rank along cp, but is summed over cp");
    if (module.grid.tp == 1) return;
    const TpGradient wanted = over_tp.state == State::kSharded   ? TpGradient::kSharded
                              : over_tp.state == State::kPartial ? TpGradient::kPartial
                                                                 : TpGradient::kReplicated;
    if (bucket.tp != wanted) {
      fail(absl::StrCat("is ", HeldText(over_tp), " over tp, but bucket ", bucket.name, " treats it as ", string(TpGradientName(bucket.tp))));
    }
  }

  const PlanIndex& index_;
  std::vector<Violation>& violations_;
};

}  // namespace

std::vector<Violation> VerifyUpdates(const PlanIndex& index) {
  std::vector<Violation> violations;
  for (const Role& role : index.plan().roles) RoleUpdates(index, role, violations).Check();
  GradientSums sums(index, violations);
  for (const Block& block : index.plan().blocks) sums.Check(block);
  return violations;
}

}  // namespace planwright
