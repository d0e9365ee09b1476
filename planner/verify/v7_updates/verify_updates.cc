// V7 of the end of a step: each bucket is reduced, scaled, measured and stepped once, over the right group and in
// this order; so is the expert bias. Read from each role's program (docs/training/step.md#order). The step's own
// sums are checked here too: loss tokens and losses as V5, norms as V6.
//
// Not here: what is added to gradients and sums before (V5, V6), how buckets are laid out (verify_storage.cc), and
// which kernel an update is (the operations are what ops.def says).

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "planner/verify/rules.h"
#include "planner/verify/shared/typed_instruction.h"
#include "planner/verify/v7_updates/step_program.h"

namespace planwright {
namespace {

using std::string;

class RoleUpdates {
 public:
  RoleUpdates(const PlanIndex& index, const Role& role, std::vector<Violation>& violations)
      : index_(index), plan_(index.plan()), role_(role), program_(index, role), violations_(violations) {}

  void Check() {
    Once({OpKind::kBeginStep}, "V5");
    Once({OpKind::kClipAndGate}, "V7");
    Once({OpKind::kLogStep}, "V7");
    CheckSums();
    for (const Module& module : plan_.modules) {
      if (Runs(role_, module)) CheckModule(module);
    }
    for (const Instruction& op : role_.teardown) {
      if (MovesState(op))
        Fail(-1, "V7", absl::StrCat("moves ", Subject(op), " in its teardown, which nothing asks for"));
    }
    for (int place : program_.collectives()) {
      if (!expected_.contains(place))
        Fail(place, "V7", absl::StrCat("moves ", Subject(At(place)), ", which no rule of a step asks for"));
    }
    for (const auto& [state, places] : program_.states()) {
      const Module* module = index_.module(state.module);
      const bool here = state.module.empty() || (module && Runs(role_, *module));
      const bool has_bucket =
          state.bucket < 0 || (module && state.bucket < static_cast<int64_t>(module->buckets.size()) &&
                               module->buckets[static_cast<size_t>(state.bucket)].stage == StageOf(role_, *module));
      if (here && has_bucket) continue;
      Fail(places.front(), "V7",
           absl::StrCat("runs ", string(OpName(state.kind)), " of ", program_.Label(places.front()),
                        ", which is not here"));
    }
  }

 private:
  const Instruction& At(int place) const { return program_.At(place); }

  void Fail(int place, const char* rule, string message, const Module* module = nullptr) {
    const int origin = place >= 0 ? At(place).origin : -1;
    violations_.push_back({rule, absl::StrCat("role ", role_.name, " ", message),
                           index_.OriginOf(origin, module ? module->origin : role_.origin, module)});
  }

  // The place of an instruction that must stand once; -1 if it does not.
  int Once(const StepProgram::State& state, const char* rule) {
    const Places places = program_.StatesOf(state);
    if (places.size() == 1) return places.front();
    const string of =
        state.module.empty()
            ? ""
            : absl::StrCat(" of ", state.module, state.bucket < 0 ? "" : absl::StrCat(" bucket ", state.bucket));
    Fail(places.empty() ? -1 : places[1], rule,
         absl::StrCat("runs ", string(OpName(state.kind)), of, " ", places.size(), " times a step, not once"),
         index_.module(state.module));
    return -1;
  }

  void Never(OpKind kind, const Module& module, const char* why) {
    const Places places = program_.StatesOf({kind, module.name});
    if (!places.empty())
      Fail(places.front(), "V7", absl::StrCat("runs ", string(OpName(kind)), " of ", module.name, ", ", why), &module);
  }

  // Instruction `first` must stand before `second`; either may be missing (reported already).
  void Before(int first, int second, const char* rule) {
    if (first < 0 || second < 0 || first < second) return;
    Fail(second, rule,
         absl::StrCat("runs ", string(OpName(At(second).kind)), " of ", program_.Label(second), " before ",
                      string(OpName(At(first).kind)), " of ", program_.Label(first)));
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
    for (int place : program_.collectives()) {
      const Instruction& op = At(place);
      const string to = op.outputs.empty() ? "" : op.outputs.front().name;
      if (op.kind == wanted.kind && Subject(op) == wanted.from && to == wanted.to) found.push_back(place);
    }
    expected_.insert(found.begin(), found.end());
    const string what = absl::StrCat(string(OpName(wanted.kind)), " of ", wanted.from);
    if (found.size() != 1) {
      Fail(found.empty() ? -1 : found[1], rule,
           absl::StrCat("has ", what, " ", found.size(), " times a step, not once"), wanted.module);
      return -1;
    }
    const Instruction& op = At(found.front());
    const Group* group = index_.group(op.group);
    const bool world = wanted.module == nullptr;
    const bool right_module = group && (world ? group->name == "world" : group->module == wanted.module->name);
    const std::vector<Axis> axes = right_module && !world ? index_.WideAxes(*group) : std::vector<Axis>();
    if (!right_module || (!world && axes != wanted.axes)) {
      Fail(found.front(), rule,
           absl::StrCat("has ", what, " over ", op.group, ", not over ", world ? "the world" : AxesText(wanted.axes)),
           wanted.module);
    }
    const ValueType& type = op.outputs.front().type;
    if (type.dtype != wanted.dtype || type.dims != std::vector<Dim>{wanted.elements}) {
      Fail(found.front(), rule,
           absl::StrCat("has ", what, " as ", ShapeText(type), ", not ", string(DTypeName(wanted.dtype)), "[",
                        wanted.elements, "]"),
           wanted.module);
    }
    if (wanted.kind == OpKind::kAllReduce) {
      const string* reduce = op.FindText("reduce");
      if (!reduce || *reduce != "sum")
        Fail(found.front(), rule, absl::StrCat("has ", what, " that is no sum"), wanted.module);
    } else {
      const int64_t* number = op.FindInteger("dim");
      if (!number || *number != 0)
        Fail(found.front(), rule, absl::StrCat("has ", what, " along another dim than 0"), wanted.module);
    }
    return found.front();
  }

  // Loss tokens, losses and norms: summed over the world once, after all that adds to them.
  void CheckSums() {
    const Places clip = program_.StatesOf({OpKind::kClipAndGate}), log = program_.StatesOf({OpKind::kLogStep}),
                 begin = program_.StatesOf({OpKind::kBeginStep});
    if (!begin.empty() && begin.front() != 0)
      Fail(begin.front(), "V5", "does something before begin_step, which clears the sums");
    if (plan_.world_size > 1) {
      integers_ = Expect({OpKind::kAllReduce, "$integers", "$integers", {}, nullptr, 2, DType::kInt64}, "V5");
      reals_ = Expect({OpKind::kAllReduce,
                       "$reals",
                       "$reals",
                       {},
                       nullptr,
                       2 + static_cast<int64_t>(plan_.modules.size()),
                       DType::kFp64},
                      "V5");
    }
    for (const auto& [module, calls] : program_.calls()) {
      for (int call : calls) {
        Before(call, integers_, "V5");
        Before(call, reals_, "V5");
      }
    }
    for (int place : program_.accumulates()) Before(place, integers_, "V5");
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
    for (int bucket : buckets) CheckBucket(module, bucket);
  }

  void CheckBucket(const Module& module, int i) {
    const Bucket& bucket = module.buckets[static_cast<size_t>(i)];
    const Places clip = program_.StatesOf({OpKind::kClipAndGate});
    const int scale = Once({OpKind::kScaleGradients, module.name, i}, "V5"),
              norm = Once({OpKind::kSquareNorm, module.name, i}, "V6");
    const int step = Once({OpKind::kAdamW, module.name, i}, "V7");
    Before(integers_, scale, "V5");
    Before(scale, norm, "V6");
    Before(norm, plan_.world_size > 1 ? reals_ : (clip.empty() ? -1 : clip.front()), "V6");
    if (!clip.empty()) Before(clip.front(), step, "V7");
    for (int call : CallsOf(module, i)) Before(call, scale, "V7");
    const string gradients = absl::StrCat("%", module.name, ".gradients.", i),
                 shards = absl::StrCat("%", module.name, ".gradient_shards.", i);
    const DType plan_dtype = plan_.dtype(), wide = plan_.master();
    const std::vector<Axis> replicas = ReplicaAxes(module, bucket.view);
    const int64_t part = bucket.shards > 0 ? bucket.elements / bucket.shards : 0;
    int reduced = -1, summed = -1;
    if (!replicas.empty()) {
      reduced = Expect({OpKind::kReduceScatter, gradients, shards, replicas, &module, part, wide}, "V7");
      for (int call : CallsOf(module, i)) Before(call, reduced, "V7");
      Before(reduced, scale, "V7");
      const int gathered =
          Expect({OpKind::kAllGather, absl::StrCat("%", module.name, ".parameter_shards.", i),
                  absl::StrCat("%", module.name, ".parameters.", i), replicas, &module, bucket.elements, plan_dtype},
                 "V7");
      Before(step, gathered, "V7");
    }
    if (bucket.tp == TpGradient::kPartial && module.grid.tp > 1) {
      summed = Expect({OpKind::kAllReduce, shards, shards, {Axis::kTp}, &module, part, wide}, "V6");
      Before(reduced, summed, "V7");
      for (int call : CallsOf(module, i)) Before(call, summed, "V7");
      Before(summed, scale, "V7");
    }
  }

  // Calls that read the bucket's parameters or add to its gradients: of a layer those of its frame's buckets, of a
  // whole stage all.
  Places CallsOf(const Module& module, int bucket) const {
    Places places;
    for (int place : program_.CallsOf(module.name)) {
      const auto& storages = index_.StoragesOf(module, At(place).frame);
      const bool uses = storages.empty() || std::any_of(storages.begin(), storages.end(),
                                                        [&](const Storage* s) { return s->bucket == bucket; });
      if (uses) places.push_back(place);
    }
    return places;
  }

  static std::vector<Axis> ReplicaAxes(const Module& module, View view) {
    std::vector<Axis> axes;
    for (Axis axis :
         view == View::kExpert ? std::vector<Axis>{Axis::kExpertDp} : std::vector<Axis>{Axis::kCp, Axis::kDp}) {
      if (module.grid.size(axis) > 1) axes.push_back(axis);
    }
    return axes;
  }

  // The expert bias follows the counts of all tokens of its layers, once, after the gate.
  void CheckBias(const Module& module, int stage) {
    const bool here = std::any_of(module.layers.begin(), module.layers.end(),
                                  [&](const LayerSummary& l) { return l.expert_row >= 0 && l.stage == stage; });
    if (module.experts() == 0 || !module.trains_backbone)
      return Never(OpKind::kUpdateExpertBias, module, "whose bias does not move");
    const Places updates = program_.StatesOf({OpKind::kUpdateExpertBias, module.name});
    if (updates.empty() && !here) return;
    const int update = Once({OpKind::kUpdateExpertBias, module.name}, "V7");
    std::vector<Axis> axes;
    for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kDp}) {
      if (module.grid.size(axis) > 1) axes.push_back(axis);
    }
    if (!axes.empty()) {
      const int counts = Expect({OpKind::kAllReduce, "$expert_counts", "$expert_counts", axes, &module,
                                 module.expert_layers() * module.experts(), DType::kInt64},
                                "V7");
      for (int call : program_.CallsOf(module.name)) Before(call, counts, "V7");
      Before(counts, update, "V7");
    }
    const Places clip = program_.StatesOf({OpKind::kClipAndGate});
    if (!clip.empty()) Before(clip.front(), update, "V7");
  }

  const PlanIndex& index_;
  const Plan& plan_;
  const Role& role_;
  const StepProgram program_;
  std::vector<Violation>& violations_;
  std::set<int> expected_;
  int integers_ = -1, reals_ = -1;
};

}  // namespace

std::vector<Violation> VerifyUpdates(const PlanIndex& index) {
  std::vector<Violation> violations;
  for (const Role& role : index.plan().roles) RoleUpdates(index, role, violations).Check();
  return violations;
}

}  // namespace planwright
