#include "planner/verify/v4_values/communication_problem.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/plan/op_table.h"

namespace planwright {
namespace {

using std::string;
using State = AxisLayout::State;

string Over(Axis axis) { return absl::StrCat(" over ", string(AxisName(axis))); }

// One instruction that turns a value into another over the axes of a group.
class Change {
 public:
  Change(const TypedInstruction& typed, const PlanIndex& index, const Module& module, std::vector<Axis> axes)
      : op_(*typed.instruction), in_(*typed.inputs.front()), out_(op_.outputs.front().type), module_(module),
        axes_(std::move(axes)) {
    if (in_.dtype != out_.dtype)
      Fail(absl::StrCat("turns ", string(DTypeName(in_.dtype)), " into ", string(DTypeName(out_.dtype))));
    for (Axis axis : kLayoutAxes) {
      const bool changes = std::find(axes_.begin(), axes_.end(), axis) != axes_.end();
      if (!changes && module.grid.size(axis) > 1 && HeldOver(in_, axis) != HeldOver(out_, axis)) {
        Fail(absl::StrCat("changes a layout", Over(axis), ", an axis that it does not communicate over"));
      }
    }
    (void)index;
  }

  RuleProblem Take() { return {rule_, std::move(problem_)}; }

  // What ops.def says of the kind. `maximum`: as in CommunicationProblem.
  void Move(const OpInfo& info, bool maximum) {
    using Form = OpInfo::Moves::Form;
    const OpInfo::Moves& moves = *info.moves;
    if (info.FindAttribute("reduce")) {
      const string* reduce = op_.FindText("reduce");
      const string wanted = maximum ? "max" : "sum";
      if (!reduce || *reduce != wanted) Fail(absl::StrCat("must reduce ", op_.inputs[0], " by ", wanted), "V6");
    }
    const int64_t dim = moves.dim.empty() ? -1 : DimOf(moves.dim.c_str());
    const bool cut_before = moves.from == Form::kCut, cut_after = moves.to == Form::kCut;
    for (Axis axis : axes_) {
      const Held part = {State::kSharded, static_cast<int>(dim), !moves.dim.empty() && Zigzag()};
      if (moves.from == Form::kPartial) MustBePartial(axis);
      if (moves.from == Form::kWhole && HeldOver(in_, axis).state != State::kReplicated) {
        Fail(absl::StrCat("slices ", op_.inputs[0], ", which is ", HeldText(HeldOver(in_, axis)), Over(axis)));
      }
      if (cut_before) Must(in_, op_.inputs[0], axis, part);
      Must(out_, op_.outputs[0].name, axis, cut_after ? part : Held{});
      if (!moves.dim.empty()) OuterFirst(cut_after ? in_ : out_, axis, dim);
    }
    const int64_t n = module_.grid.size(axes_);
    SameDims(dim, cut_before ? n : 1, cut_after ? n : 1);
  }

  void Reshard() {
    const int64_t from = DimOf("from_dim"), to = DimOf("to_dim");
    const int64_t* zigzag = op_.FindInteger("zigzag_dim");
    if (zigzag && *zigzag != from && *zigzag != to) Fail("has a zigzag dim that it does not move");
    if (from == to) Fail("moves the cut from a dim to itself");
    for (Axis axis : axes_) {
      Must(in_, op_.inputs[0], axis, {State::kSharded, static_cast<int>(from), zigzag && *zigzag == from});
      Must(out_, op_.outputs[0].name, axis, {State::kSharded, static_cast<int>(to), zigzag && *zigzag == to});
    }
    Segments(zigzag && *zigzag == to ? from : to, zigzag && *zigzag == to ? in_ : out_);
    const int64_t n = module_.grid.size(axes_);
    if (in_.dims.size() != out_.dims.size()) return Fail("changes the number of dims");
    for (size_t i = 0; i < in_.dims.size(); ++i) {
      const int64_t up = static_cast<int64_t>(i) == from ? n : 1, down = static_cast<int64_t>(i) == to ? n : 1;
      CheckDim(i, up, down);
    }
  }

  // Parts of the dim that are each cut by themselves make up the whole of it: n times what a rank has where it is cut.
  void Segments(int64_t dim, const ValueType& cut) {
    const auto* segments = op_.FindIntegers("segments");
    if (!segments || dim >= static_cast<int64_t>(cut.dims.size())) return;
    const int64_t n = module_.grid.size(axes_);
    int64_t sum = 0;
    for (int64_t segment : *segments) {
      if (segment % n != 0) Fail(absl::StrCat("cuts a segment of ", segment, " into ", n, " unequal parts"));
      sum += segment;
    }
    const auto* local = std::get_if<int64_t>(&cut.dims[static_cast<size_t>(dim)]);
    if (local && *local * n != sum) Fail(absl::StrCat("has segments that make ", sum, " of ", *local * n));
  }

  void SliceRows() {
    for (Axis axis : axes_) {
      Must(in_, op_.inputs[0], axis, {});
      Must(out_, op_.outputs[0].name, axis, {State::kSharded, 0, false});
    }
    SameRows();
  }

  // Rows of all members, each with its own count; run-time sizes, so only the rest of the shape can be compared.
  void GatherRows(const std::vector<const ValueType*>& inputs, bool reduces) {
    // Counts of a dispatch have a row for each source; without one they are flat, and rows are a number of them.
    if (inputs.size() != 2) return Fail("needs rows and counts");
    const ValueType& pieces = reduces ? out_ : in_;
    const bool of_experts = std::find(axes_.begin(), axes_.end(), Axis::kExpertTp) != axes_.end();
    const bool dispatched = of_experts && !pieces.dims.empty() && std::holds_alternative<string>(pieces.dims[0]);
    if (inputs[1]->dtype != DType::kInt64 || inputs[1]->dims.size() != (dispatched ? 2U : 1U)) {
      Fail(absl::StrCat("reads ", op_.inputs[1], " as counts of other rows"));
    }
    for (Axis axis : axes_) {
      if (reduces) MustBePartial(axis);
      Must(reduces ? out_ : in_, reduces ? op_.outputs[0].name : op_.inputs[0], axis, {State::kSharded, 0, false});
      if (!reduces) Must(out_, op_.outputs[0].name, axis, {});
    }
    SameRows();
    GatheredRows(pieces, reduces ? in_ : out_);
  }

  // A number of rows from each, or a run-time size from each and then in all (VerifyRunTimeSizes says which).
  void GatheredRows(const ValueType& pieces, const ValueType& all) {
    if (pieces.dims.empty() || all.dims.empty()) return Fail("moves rows of values that have none");
    const auto *part = std::get_if<int64_t>(&pieces.dims[0]), *whole = std::get_if<int64_t>(&all.dims[0]);
    const bool fits = part && whole ? *part * module_.grid.size(axes_) == *whole : !part && !whole;
    if (!fits)
      Fail(absl::StrCat("has ", ShapeText(pieces), " of each of ", module_.grid.size(axes_), " and ", ShapeText(all),
                        " of all"));
  }

  // Rows that this rank counted itself (a number of them) go with its own counts [E], rows that it is sent (a run-time
  // size) with [P, ...].
  void DispatchRows(const std::vector<const ValueType*>& inputs) {
    SameRows();
    if (inputs.size() != 3) return Fail("needs rows, what it sends and what it receives");
    const auto own = [](const ValueType& rows) {
      return !rows.dims.empty() && std::holds_alternative<int64_t>(rows.dims[0]);
    };
    for (int side : {0, 1}) {
      const ValueType& counts = *inputs[static_cast<size_t>(side) + 1];
      const bool fits = counts.dtype == DType::kInt64 && counts.dims.size() == (own(side == 0 ? in_ : out_) ? 1 : 2);
      if (!fits)
        Fail(absl::StrCat("reads ", op_.inputs[static_cast<size_t>(side) + 1], " as the counts that it ",
                          side == 0 ? "sends" : "receives"));
    }
  }

  void SameRows() {
    if (in_.dims.size() != out_.dims.size()) return Fail("changes the number of dims");
    for (size_t i = 1; i < in_.dims.size(); ++i) CheckDim(i, 1, 1);
  }

 private:
  void Fail(string what, const char* rule = "V4") {
    if (!problem_.empty()) return;
    problem_ = std::move(what);
    rule_ = rule;
  }

  bool Zigzag() {
    const int64_t* zigzag = op_.FindInteger("zigzag");
    if (zigzag && *zigzag != 1) Fail(absl::StrCat("has a zigzag of ", *zigzag, ": it is 1, or not there"));
    return zigzag != nullptr;
  }

  int64_t DimOf(const char* name) {
    const int64_t* dim = op_.FindInteger(name);
    if (!dim) {
      Fail(absl::StrCat("declares no `", name, "`: an axis of joining or cutting is never inferred"));
    } else if (*dim < 0 || *dim >= static_cast<int64_t>(in_.dims.size())) {
      Fail(absl::StrCat("works along dim ", *dim, " of a value of ", in_.dims.size(), " dims"));
    } else {
      return *dim;
    }
    return 0;
  }

  void Must(const ValueType& type, const string& name, Axis axis, const Held& wanted) {
    const Held held = HeldOver(type, axis);
    if (held != wanted)
      Fail(absl::StrCat("needs ", name, " ", HeldText(wanted), Over(axis), ", but it is ", HeldText(held)));
  }

  void MustBePartial(Axis axis) {
    const Held held = HeldOver(in_, axis);
    if (held.state == State::kPartial) return;
    Fail(
        absl::StrCat("reduces ", op_.inputs[0], Over(axis), ", where it is ", HeldText(held),
                     held.state == State::kReplicated ? ": the sum would count it once a rank" : ", not a partial sum"),
        "V6");
  }

  // cp cuts a dim before tp does, so it is joined after.
  void OuterFirst(const ValueType& type, Axis axis, int64_t dim) {
    if (axis != Axis::kCp) return;
    const Held inner = HeldOver(type, Axis::kTp);
    if (module_.grid.tp > 1 && inner.state == State::kSharded && inner.dim == dim) {
      Fail(absl::StrCat("works over cp along dim ", dim, ", which tp cuts further: tp comes first"));
    }
  }

  void CheckDim(size_t i, int64_t up, int64_t down) {
    const auto *from = std::get_if<int64_t>(&in_.dims[i]), *to = std::get_if<int64_t>(&out_.dims[i]);
    const bool fits = from && to ? *from * up == *to * down : in_.dims[i] == out_.dims[i];
    if (!fits)
      Fail(absl::StrCat("makes ", ShapeText(out_), " of ", ShapeText(in_), ": dim ", i,
                        " does not follow from the group's size"));
  }

  void SameDims(int64_t changed, int64_t up, int64_t down) {
    if (in_.dims.size() != out_.dims.size()) return Fail("changes the number of dims");
    for (size_t i = 0; i < in_.dims.size(); ++i) {
      const bool here = static_cast<int64_t>(i) == changed;
      CheckDim(i, here ? up : 1, here ? down : 1);
    }
  }

  const Instruction& op_;
  const ValueType &in_, &out_;
  const Module& module_;
  const std::vector<Axis> axes_;
  const char* rule_ = "V4";
  string problem_;
};

// A rank's counts are its own.
string CountsLayout(const ValueType& counts) {
  return counts.layout.empty() && !counts.gradient ? "" : "makes counts with a layout";
}

// counts of all experts -> what each member sends to the experts here.
string AllToAllProblem(const TypedInstruction& typed, const Module& module, const std::vector<Axis>& axes) {
  const ValueType &in = *typed.inputs.front(), &out = typed.instruction->outputs.front().type;
  if (in.dtype != DType::kInt64 || out.dtype != DType::kInt64) return "exchanges counts that are no integers";
  if (in.dims.size() != 1 || out.dims.size() != 2) return "needs counts of all experts and makes a row for each member";
  const auto* experts = std::get_if<int64_t>(&in.dims[0]);
  const auto *members = std::get_if<int64_t>(&out.dims[0]), *local = std::get_if<int64_t>(&out.dims[1]);
  if (!experts || !members || !local || *members != module.grid.size(axes) || *members * *local != *experts) {
    return absl::StrCat("makes ", ShapeText(out), " of ", ShapeText(in), " among ", module.grid.size(axes), " members");
  }
  return CountsLayout(out);
}

// Row counts are each member's own, whatever their layout says that they add up to.
bool IsCountGather(const TypedInstruction& typed) {
  const Instruction& op = *typed.instruction;
  return op.kind == OpKind::kAllGather && typed.inputs.front()->dtype == DType::kInt64 && op.outputs.front().type.host;
}

string CountGatherProblem(const TypedInstruction& typed, const Module& module, const std::vector<Axis>& axes) {
  const ValueType &in = *typed.inputs.front(), &out = typed.instruction->outputs.front().type;
  const int64_t* dim = typed.instruction->FindInteger("dim");
  if (!dim || *dim != 0) return "joins counts along another dim than 0";
  bool fits = out.dtype == DType::kInt64 && in.dims.size() == out.dims.size();
  for (size_t i = 0; fits && i < in.dims.size(); ++i) {
    const auto *from = std::get_if<int64_t>(&in.dims[i]), *to = std::get_if<int64_t>(&out.dims[i]);
    fits = from && to && *to == *from * (i == 0 ? module.grid.size(axes) : 1);
  }
  if (!fits)
    return absl::StrCat("makes ", ShapeText(out), " of ", ShapeText(in), " among ", module.grid.size(axes), " members");
  return CountsLayout(out);
}

}  // namespace

RuleProblem CommunicationProblem(const TypedInstruction& typed, const PlanIndex& index, const Module& module,
                                 bool maximum) {
  const Instruction& op = *typed.instruction;
  const bool slice = op.kind == OpKind::kLocalSlice || op.kind == OpKind::kSliceRows;
  if (op.outputs.size() != 1 || typed.inputs.empty()) return {"V4", "has other operands than its kind takes"};
  std::vector<Axis> axes;
  if (slice) {
    const string* name = op.FindText("axis");
    const auto axis = name ? AxisFromName(*name) : std::optional<Axis>(Axis::kTp);
    if (!axis) return {"V4", "slices over an axis that does not exist"};
    if (module.grid.size(*axis) > 1) axes = {*axis};
  } else {
    const Group* group = index.group(op.group);
    if (!group) return {"V4", absl::StrCat("names group ", op.group, ", which does not exist")};
    if (group->module != module.name)
      return {"V4", absl::StrCat("communicates over ", op.group, ", which is no group of ", module.name)};
    axes = index.WideAxes(*group);
  }
  if (axes.empty()) return {"V4", "works over one rank alone"};
  const bool dispatch = op.kind == OpKind::kAllToAll || op.kind == OpKind::kAllToAllV;
  if (dispatch && axes != std::vector<Axis>{Axis::kEp}) {
    return {"V4", absl::StrCat("dispatches tokens over ", op.group, ", whose ranks do not share the experts")};
  }
  if (IsCountGather(typed)) return {"V4", CountGatherProblem(typed, module, axes)};
  Change change(typed, index, module, axes);
  switch (op.kind) {
    case OpKind::kSliceRows: change.SliceRows(); break;
    case OpKind::kReshard: change.Reshard(); break;
    case OpKind::kAllGatherV: change.GatherRows(typed.inputs, false); break;
    case OpKind::kReduceScatterV: change.GatherRows(typed.inputs, true); break;
    case OpKind::kAllToAllV: change.DispatchRows(typed.inputs); break;
    case OpKind::kAllToAll: return {"V4", AllToAllProblem(typed, module, axes)};
    default:
      const OpInfo& info = InfoOf(op.kind);
      if (!info.moves) return {"V4", "stands in a block, and no rule says what it does to layouts"};
      change.Move(info, maximum);
  }
  return change.Take();
}

}  // namespace planwright
