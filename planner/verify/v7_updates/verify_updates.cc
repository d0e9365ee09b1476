// V7 of collectives on state: gradients, parameters, counts of experts and sums of the step are reduced and gathered
// over the right groups, with the right types, and nothing else is (docs/training/step.md#order). Sums of losses and
// loss tokens are reported as V5, gradients over tp as V6.
//
// Not here: that they stand at the right place of the step, beside what reads and writes the state (verify_states.cc),
// what is added to gradients and sums before that (V5, V6), and how buckets are laid out (verify_storage.cc).

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/plan/statement/expert_counts.h"
#include "planner/verify/rules.h"
#include "planner/verify/shared/typed_instruction.h"
#include "planner/verify/v7_updates/expanded_list.h"

namespace planwright {
namespace {

using std::string;

// Checks the step of one role, and its score of an evaluation.
class RoleUpdates {
 public:
  RoleUpdates(const PlanIndex& index, const Role& role, std::vector<Violation>& violations)
      : index_(index), plan_(index.plan()), role_(role), violations_(violations) {}

  void Check() {
    Collect(role_.step, "a step");
    if (!role_.step.empty() && role_.step.front().kind != OpKind::kBeginStep)
      Fail(&role_.step.front(), "V5", "does not begin its step with begin_step, which clears the sums");
    CheckSums();
    for (const Module& module : plan_.modules) {
      if (!Runs(role_, module)) continue;
      CheckBias(module);
      for (size_t i = 0; i < module.buckets.size(); ++i) {
        if (module.buckets[i].stage == StageOf(role_, module)) CheckBucket(module, static_cast<int>(i));
      }
    }
    CheckAllExpected();
    CheckScore();
  }

 private:
  // The collectives on state of a list, which is looked at from here on.
  void Collect(const std::vector<Instruction>& list, const char* what) {
    collectives_.clear();
    for (const ExpandedEntry& entry : Expanded(index_, list)) {
      if (MovesState(*entry.op)) collectives_.push_back(entry.op);
    }
    expected_.assign(collectives_.size(), false);
    what_ = what;
  }

  // Every collective on state must be one that a rule has asked for.
  void CheckAllExpected() {
    for (size_t i = 0; i < collectives_.size(); ++i) {
      if (!expected_[i])
        Fail(collectives_[i], "V7",
             absl::StrCat("moves ", Subject(*collectives_[i]), ", which ", what_, " does not need"));
    }
  }

  // The sums of an evaluation are those of all ranks before they are recorded.
  void CheckScore() {
    if (plan_.evaluation.empty()) return;
    Collect(role_.score, "the score of an evaluation");
    if (plan_.world_size > 1) {
      const int64_t parts = plan_.evaluation.parts();
      ExpectCollective({OpKind::kAllReduce, "$evaluated_losses", "$evaluated_losses", {}, nullptr, parts, DType::kFp64},
                       "V5");
      ExpectCollective(
          {OpKind::kAllReduce, "$evaluated_tokens", "$evaluated_tokens", {}, nullptr, parts, DType::kInt64}, "V5");
    }
    CheckAllExpected();
  }

  void Fail(const Instruction* op, const char* rule, string message, const Module* module = nullptr) {
    violations_.push_back({rule, absl::StrCat("role ", role_.name, " ", message),
                           index_.OriginOf(op ? op->origin : -1, module ? module->origin : role_.origin, module)});
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

  // Exactly one collective turns `from` into `to`, over the right group, as a sum or along dim 0, with this type.
  void ExpectCollective(const Collective& wanted, const char* rule) {
    std::vector<const Instruction*> found;
    for (size_t i = 0; i < collectives_.size(); ++i) {
      const Instruction& op = *collectives_[i];
      const string to = op.outputs.empty() ? "" : op.outputs.front().name;
      if (op.kind != wanted.kind || Subject(op) != wanted.from || to != wanted.to) continue;
      found.push_back(&op);
      expected_[i] = true;
    }
    const string what = absl::StrCat(string(OpName(wanted.kind)), " of ", wanted.from);
    if (found.size() != 1) {
      return Fail(found.empty() ? nullptr : found[1], rule,
                  absl::StrCat("has ", what, " ", found.size(), " times in ", what_, ", not once"), wanted.module);
    }
    const Instruction& op = *found.front();
    const auto fail = [&](const string& wrong) { Fail(&op, rule, absl::StrCat("has ", what, wrong), wanted.module); };
    const Group* group = index_.group(op.group);
    const bool world = wanted.module == nullptr;
    const bool right_module = group && (world ? group->name == "world" : group->module == wanted.module->name);
    const std::vector<Axis> axes = right_module && !world ? index_.WideAxes(*group) : std::vector<Axis>();
    if (!right_module || (!world && axes != wanted.axes))
      fail(absl::StrCat(" over ", op.group, ", not over ", world ? "the world" : AxesText(wanted.axes)));
    const ValueType& type = op.outputs.front().type;
    if (type.dtype != wanted.dtype || type.dims != std::vector<Dim>{wanted.elements}) {
      fail(absl::StrCat(" as ", ShapeText(type), ", not ", string(DTypeName(wanted.dtype)), "[", wanted.elements, "]"));
    }
    if (wanted.kind == OpKind::kAllReduce) {
      const string* reduce = op.FindText("reduce");
      if (!reduce || *reduce != "sum") fail(" that is no sum");
    } else {
      const int64_t* number = op.FindInteger("dim");
      if (!number || *number != 0) fail(" along another dim than 0");
    }
  }

  // Loss tokens, losses, sums of bridges and norms are summed over the world.
  void CheckSums() {
    if (plan_.world_size == 1) return;
    const auto bridges = static_cast<int64_t>(plan_.bridges.size());  // each has a part in both sums
    const int64_t stop = plan_.checkpoint.every_steps > 0 ? 1 : 0;
    const auto expect = [&](const char* sum, int64_t elements, DType dtype) {
      ExpectCollective({OpKind::kAllReduce, sum, sum, {}, nullptr, elements, dtype}, "V5");
    };
    expect("$integers", 2 + bridges + stop, DType::kInt64);
    expect("$reals", 2 + bridges + static_cast<int64_t>(plan_.modules.size()), DType::kFp64);
    if (!plan_.sums_by_source()) return;
    const auto sources = static_cast<int64_t>(plan_.data.sources.size());
    expect("$source_losses", sources, DType::kFp64);
    expect("$source_tokens", sources, DType::kInt64);
  }

  // A bucket is reduced over its replicas, summed over tp, and its parameters are gathered from its replicas. What the
  // layout does not need is left out: with one replica, the rank's buffer is its shard.
  void CheckBucket(const Module& module, int i) {
    const Bucket& bucket = module.buckets[static_cast<size_t>(i)];
    const auto name = [&](const char* what) { return absl::StrCat("%", module.name, ".", what, ".", i); };
    const string shards = name("gradient_shards");
    const DType wide = plan_.master();
    const std::vector<Axis> replicas = ReplicaAxes(module, bucket.view);
    const int64_t part = bucket.shards > 0 ? bucket.elements / bucket.shards : 0;
    if (!replicas.empty()) {
      ExpectCollective({OpKind::kReduceScatter, name("gradients"), shards, replicas, &module, part, wide}, "V7");
      ExpectCollective({OpKind::kAllGather, name("parameter_shards"), name("parameters"), replicas, &module,
                        bucket.elements, plan_.dtype()},
                       "V7");
    }
    if (bucket.tp == TpGradient::kPartial && module.grid.tp > 1)
      ExpectCollective({OpKind::kAllReduce, shards, shards, {Axis::kTp}, &module, part, wide}, "V6");
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

  // The expert bias is updated from token counts that are summed over all ranks of the dense view
  // (docs/model/mixture_of_experts.md#expert-bias). A frozen model keeps its bias.
  void CheckBias(const Module& module) {
    if (module.experts() == 0 || !StepsExpertBias(module, StageOf(role_, module))) return;
    std::vector<Axis> axes;
    for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kDp}) {
      if (module.grid.size(axis) > 1) axes.push_back(axis);
    }
    if (axes.empty()) return;
    ExpectCollective({OpKind::kAllReduce, "$expert_counts", "$expert_counts", axes, &module,
                      module.expert_layers() * module.experts(), DType::kInt64},
                     "V7");
  }

  const PlanIndex& index_;
  const Plan& plan_;
  const Role& role_;
  std::vector<Violation>& violations_;
  std::vector<const Instruction*> collectives_;  // on state, in the order of the list
  std::vector<bool> expected_;                   // those that a rule has asked for
  const char* what_ = "";                        // the list
};

}  // namespace

std::vector<Violation> VerifyUpdates(const PlanIndex& index) {
  std::vector<Violation> violations;
  for (const Role& role : index.plan().roles) RoleUpdates(index, role, violations).Check();
  return violations;
}

}  // namespace planwright
