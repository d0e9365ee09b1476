// V7 of the end of a step: the gradients of each bucket are reduced, scaled, measured for the norm and used for one
// update, over the right groups and in this order (docs/training/step.md#order). The expert bias is updated once, after
// its counts are summed. The sums of the step are checked here too: loss and loss tokens as V5, norms as V6.
//
// Not here: what is added to gradients and sums before that (V5, V6), how buckets are laid out (verify_storage.cc), and
// what each operation computes (docs/operations.md).

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "planner/verify/rules.h"
#include "planner/verify/shared/typed_instruction.h"
#include "planner/verify/v7_updates/step_program.h"

namespace planwright {
namespace {

using std::string;

// Checks the step of one role.
class RoleUpdates {
 public:
  RoleUpdates(const PlanIndex& index, const Role& role, std::vector<Violation>& violations)
      : index_(index), plan_(index.plan()), role_(role), program_(index, role), violations_(violations) {}

  void Check() {
    ExpectOnce({OpKind::kBeginStep}, "V5");
    ExpectOnce({OpKind::kClipAndGate}, "V7");
    ExpectOnce({OpKind::kLogStep}, "V7");
    CheckSums();
    for (const Module& module : plan_.modules) {
      if (Runs(role_, module)) CheckModule(module);
    }
    for (const Instruction& op : role_.teardown) {
      if (MovesState(op))
        Fail(-1, "V7", absl::StrCat("moves ", Subject(op), " in its teardown, where nothing needs it"));
    }
    // Every collective on state must be one that a rule above has asked for.
    for (int place : program_.collectives()) {
      if (!expected_.contains(place))
        Fail(place, "V7", absl::StrCat("moves ", Subject(At(place)), ", which a step does not need"));
    }
    // So must every change of state, of a module, stage and bucket that the role has.
    for (const auto& [key, places] : program_.state_changes()) {
      const Module* module = index_.module(key.module);
      const bool here = key.module.empty() || (module && Runs(role_, *module));
      const bool has_bucket =
          key.bucket < 0 || (module && key.bucket < static_cast<int64_t>(module->buckets.size()) &&
                             module->buckets[static_cast<size_t>(key.bucket)].stage == StageOf(role_, *module));
      if (here && has_bucket) continue;
      Fail(places.front(), "V7",
           absl::StrCat("runs ", string(OpName(key.kind)), " of ", program_.Label(places.front()),
                        ", which this role does not hold"));
    }
  }

 private:
  const Instruction& At(int place) const { return program_.At(place); }

  void Fail(int place, const char* rule, string message, const Module* module = nullptr) {
    const int origin = place >= 0 ? At(place).origin : -1;
    violations_.push_back({rule, absl::StrCat("role ", role_.name, " ", message),
                           index_.OriginOf(origin, module ? module->origin : role_.origin, module)});
  }

  // The place of an instruction that a step must have once; -1 and a violation if it is missing or repeated.
  int ExpectOnce(const StepProgram::StateKey& key, const char* rule) {
    const Places places = program_.StateChangesOf(key);
    if (places.size() == 1) return places.front();
    const string of = key.module.empty() ? ""
                                         : absl::StrCat(" of ", key.module,
                                                        key.bucket < 0 ? "" : absl::StrCat(" bucket ", key.bucket));
    Fail(places.empty() ? -1 : places[1], rule,
         absl::StrCat("runs ", string(OpName(key.kind)), of, " ", places.size(), " times a step, not once"),
         index_.module(key.module));
    return -1;
  }

  void ExpectNever(OpKind kind, const Module& module, const char* why) {
    const Places places = program_.StateChangesOf({kind, module.name});
    if (!places.empty())
      Fail(places.front(), "V7", absl::StrCat("runs ", string(OpName(kind)), " of ", module.name, ", ", why), &module);
  }

  // Instruction `first` must come before `second`. -1: it is missing, which is reported already.
  void ExpectBefore(int first, int second, const char* rule) {
    if (first < 0 || second < 0 || first < second) return;
    Fail(second, rule,
         absl::StrCat("runs ", string(OpName(At(second).kind)), " of ", program_.Label(second), " before ",
                      string(OpName(At(first).kind)), " of ", program_.Label(first)));
  }

  // A collective on state that a step must have.
  struct Collective {
    OpKind kind;
    string from, to;
    std::vector<Axis> axes;  // of the module's group, those of size above 1; empty: the world
    const Module* module = nullptr;
    int64_t elements = 0;
    DType dtype = DType::kFp32;
  };

  static string AxesText(const std::vector<Axis>& axes) {
    string text;
    for (Axis axis : axes) absl::StrAppend(&text, text.empty() ? "" : ",", string(AxisName(axis)));
    return text.empty() ? "no axis" : text;
  }

  // The place of the one collective that turns `from` into `to`; -1 if it is missing or repeated. Reports it if it goes
  // over another group, has another type, or is no sum.
  int ExpectCollective(const Collective& wanted, const char* rule) {
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

  // Loss tokens, losses, sums of bridges and norms are summed over the world once, after everything that adds to them.
  void CheckSums() {
    const Places clip = program_.StateChangesOf({OpKind::kClipAndGate}),
                 log = program_.StateChangesOf({OpKind::kLogStep}),
                 begin = program_.StateChangesOf({OpKind::kBeginStep});
    if (!begin.empty() && begin.front() != 0)
      Fail(begin.front(), "V5", "runs instructions before begin_step, which clears the sums");
    if (plan_.world_size > 1) {
      const auto bridges = static_cast<int64_t>(plan_.bridges.size());  // each has a part in both sums
      const int64_t stop = plan_.checkpoint.every_steps > 0 ? 1 : 0;
      integers_ = ExpectCollective(
          {OpKind::kAllReduce, "$integers", "$integers", {}, nullptr, 2 + bridges + stop, DType::kInt64}, "V5");
      reals_ = ExpectCollective({OpKind::kAllReduce,
                                 "$reals",
                                 "$reals",
                                 {},
                                 nullptr,
                                 2 + bridges + static_cast<int64_t>(plan_.modules.size()),
                                 DType::kFp64},
                                "V5");
    }
    for (const auto& [module, calls] : program_.calls()) {
      for (int call : calls) {
        ExpectBefore(call, integers_, "V5");
        ExpectBefore(call, reals_, "V5");
      }
    }
    for (int place : program_.accumulates()) ExpectBefore(place, integers_, "V5");
    if (!clip.empty()) ExpectBefore(reals_, clip.front(), "V6");
    if (!log.empty()) {
      ExpectBefore(reals_, log.front(), "V5");
      ExpectBefore(integers_, log.front(), "V5");
      if (!clip.empty()) ExpectBefore(clip.front(), log.front(), "V7");
    }
  }

  // The expert bias and the buckets of the role's stage.
  void CheckModule(const Module& module) {
    const int stage = StageOf(role_, module);
    std::vector<int> buckets;
    for (size_t i = 0; i < module.buckets.size(); ++i) {
      if (module.buckets[i].stage == stage) buckets.push_back(static_cast<int>(i));
    }
    CheckBias(module, stage);
    for (int bucket : buckets) CheckBucket(module, bucket);
  }

  // The order for one bucket: the calls that add to its gradients, reduce-scatter over replicas, sum over tp, scale,
  // norm, gate, update, gather of the parameters. Steps that the layout does not need are left out.
  void CheckBucket(const Module& module, int i) {
    const Bucket& bucket = module.buckets[static_cast<size_t>(i)];
    // Scaling divides by the loss tokens of the world, so it comes after their sum. The norm is of scaled gradients.
    const Places clip = program_.StateChangesOf({OpKind::kClipAndGate});
    const int scale = ExpectOnce({OpKind::kScaleGradients, module.name, i}, "V5"),
              norm = ExpectOnce({OpKind::kSquareNorm, module.name, i}, "V6");
    const int update = ExpectOnce({OpKind::kAdamW, module.name, i}, "V7");
    ExpectBefore(integers_, scale, "V5");
    ExpectBefore(scale, norm, "V6");
    ExpectBefore(norm, plan_.world_size > 1 ? reals_ : (clip.empty() ? -1 : clip.front()), "V6");
    if (!clip.empty()) ExpectBefore(clip.front(), update, "V7");
    for (int call : CallsOf(module, i)) ExpectBefore(call, scale, "V7");
    const string gradients = absl::StrCat("%", module.name, ".gradients.", i),
                 shards = absl::StrCat("%", module.name, ".gradient_shards.", i);
    const DType plan_dtype = plan_.dtype(), wide = plan_.master();
    const std::vector<Axis> replicas = ReplicaAxes(module, bucket.view);
    const int64_t part = bucket.shards > 0 ? bucket.elements / bucket.shards : 0;
    int reduced = -1, summed = -1;
    if (!replicas.empty()) {  // else the rank's buffer is its shard
      reduced = ExpectCollective({OpKind::kReduceScatter, gradients, shards, replicas, &module, part, wide}, "V7");
      for (int call : CallsOf(module, i)) ExpectBefore(call, reduced, "V7");
      ExpectBefore(reduced, scale, "V7");
      const int gathered = ExpectCollective(
          {OpKind::kAllGather, absl::StrCat("%", module.name, ".parameter_shards.", i),
           absl::StrCat("%", module.name, ".parameters.", i), replicas, &module, bucket.elements, plan_dtype},
          "V7");
      ExpectBefore(update, gathered, "V7");
    }
    if (bucket.tp == TpGradient::kPartial && module.grid.tp > 1) {
      summed = ExpectCollective({OpKind::kAllReduce, shards, shards, {Axis::kTp}, &module, part, wide}, "V6");
      ExpectBefore(reduced, summed, "V7");
      for (int call : CallsOf(module, i)) ExpectBefore(call, summed, "V7");
      ExpectBefore(summed, scale, "V7");
    }
  }

  // Calls that may read the bucket's parameters or add to its gradients. A call of a layer uses the buckets of its
  // frame; a call of a whole stage has no storages of its own and counts for every bucket.
  Places CallsOf(const Module& module, int bucket) const {
    Places places;
    for (int place : program_.CallsOf(module.name)) {
      const auto& storages = index_.StoragesOf(At(place).frame);
      const bool uses = storages.empty() || std::any_of(storages.begin(), storages.end(),
                                                        [&](const Storage* s) { return s->bucket == bucket; });
      if (uses) places.push_back(place);
    }
    return places;
  }

  // Axes of size above 1 along which ranks hold the same elements of a bucket.
  static std::vector<Axis> ReplicaAxes(const Module& module, View view) {
    std::vector<Axis> axes;
    for (Axis axis :
         view == View::kExpert ? std::vector<Axis>{Axis::kExpertDp} : std::vector<Axis>{Axis::kCp, Axis::kDp}) {
      if (module.grid.size(axis) > 1) axes.push_back(axis);
    }
    return axes;
  }

  // The expert bias is updated once, after the gate, from token counts that are summed over all ranks of the dense view
  // (docs/model/mixture_of_experts.md#expert-bias). A frozen model keeps its bias.
  void CheckBias(const Module& module, int stage) {
    const bool here = std::any_of(module.layers.begin(), module.layers.end(),
                                  [&](const LayerSummary& l) { return l.expert_row >= 0 && l.stage == stage; });
    if (module.experts() == 0 || !module.trains_backbone)
      return ExpectNever(OpKind::kUpdateExpertBias, module, "whose expert bias is constant");
    const Places updates = program_.StateChangesOf({OpKind::kUpdateExpertBias, module.name});
    if (updates.empty() && !here) return;
    const int update = ExpectOnce({OpKind::kUpdateExpertBias, module.name}, "V7");
    std::vector<Axis> axes;
    for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kDp}) {
      if (module.grid.size(axis) > 1) axes.push_back(axis);
    }
    if (!axes.empty()) {
      const int counts = ExpectCollective({OpKind::kAllReduce, "$expert_counts", "$expert_counts", axes, &module,
                                           module.expert_layers() * module.experts(), DType::kInt64},
                                          "V7");
      for (int call : program_.CallsOf(module.name)) ExpectBefore(call, counts, "V7");
      ExpectBefore(counts, update, "V7");
    }
    const Places clip = program_.StateChangesOf({OpKind::kClipAndGate});
    if (!clip.empty()) ExpectBefore(clip.front(), update, "V7");
  }

  const PlanIndex& index_;
  const Plan& plan_;
  const Role& role_;
  const StepProgram program_;
  std::vector<Violation>& violations_;
  std::set<int> expected_;          // places of collectives that a rule has asked for
  int integers_ = -1, reals_ = -1;  // places of the sums over the world; -1: none
};

}  // namespace

std::vector<Violation> VerifyUpdates(const PlanIndex& index) {
  std::vector<Violation> violations;
  for (const Role& role : index.plan().roles) RoleUpdates(index, role, violations).Check();
  return violations;
}

}  // namespace planwright
