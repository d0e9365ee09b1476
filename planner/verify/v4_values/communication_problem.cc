#include "planner/verify/v4_values/communication_problem.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/plan/op_table.h"

namespace planwright {
namespace {

using std::string;
using State = AxisLayout::State;

string Over(Axis axis) { return absl::StrCat(" over ", string(AxisName(axis))); }

// One instruction that turns the layout of a value into another over `axes`. Keeps the first problem that it finds.
class LayoutChange {
 public:
  LayoutChange(const TypedInstruction& typed, const Module& module, std::vector<Axis> axes)
      : op_(*typed.instruction), in_(*typed.inputs.front()), out_(op_.outputs.front().type), module_(module),
        axes_(std::move(axes)) {
    if (in_.dtype != out_.dtype)
      Fail(absl::StrCat("turns ", string(DTypeName(in_.dtype)), " into ", string(DTypeName(out_.dtype))));
    for (Axis axis : kLayoutAxes) {
      const bool changes = std::find(axes_.begin(), axes_.end(), axis) != axes_.end();
      if (!changes && module.grid.size(axis) > 1 && HeldOver(in_, axis) != HeldOver(out_, axis)) {
        Fail(absl::StrCat("changes the layout", Over(axis), ", an axis that it does not communicate over"));
      }
    }
  }

  RuleProblem Take() { return {rule_, std::move(problem_)}; }

  // Kinds with a `moves` line in ops.def. `reduction`: as in CommunicationProblem.
  void CheckMoves(const OpInfo& info, Reduction reduction) {
    using Form = OpInfo::Moves::Form;
    const OpInfo::Moves& moves = *info.moves;
    if (moves.from == Form::kPartial) CheckReduction(info, reduction);
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
      if (!moves.dim.empty() && axis == Axis::kCp) CheckOrderOfCuts(dim, cut_after);
    }
    const int64_t n = module_.grid.size(axes_);
    CheckDims(dim, cut_before ? n : 1, cut_after ? n : 1);
  }

  // reshard: cut along one dim before, along another after. Over cp a layer goes from the sequence to heads and
  // features in this way, and back (docs/layouts/sequence.md#context-parallelism).
  void CheckReshard() {
    const int64_t from = DimOf("from_dim"), to = DimOf("to_dim");
    const int64_t* zigzag = op_.FindInteger("zigzag_dim");
    if (zigzag && *zigzag != from && *zigzag != to) {
      Fail(absl::StrCat("has zigzag_dim ", *zigzag, ", which is neither from_dim ", from, " nor to_dim ", to));
    }
    if (from == to) Fail(absl::StrCat("moves the cut from dim ", from, " to itself"));
    for (Axis axis : axes_) {
      Must(in_, op_.inputs[0], axis, {State::kSharded, static_cast<int>(from), zigzag && *zigzag == from});
      Must(out_, op_.outputs[0].name, axis, {State::kSharded, static_cast<int>(to), zigzag && *zigzag == to});
    }
    // The sequence is the dim in zigzag order; segments are of the other one, the features.
    CheckSegments(zigzag && *zigzag == to ? from : to, zigzag && *zigzag == to ? in_ : out_);
    const int64_t n = module_.grid.size(axes_);
    if (in_.dims.size() != out_.dims.size()) return Fail("changes the number of dims");
    for (size_t i = 0; i < in_.dims.size(); ++i) {
      CheckDim(i, static_cast<int64_t>(i) == from ? n : 1, static_cast<int64_t>(i) == to ? n : 1);
    }
  }

  // slice_rows: each rank keeps its part of the rows.
  void CheckSliceRows() {
    for (Axis axis : axes_) {
      Must(in_, op_.inputs[0], axis, {});
      Must(out_, op_.outputs[0].name, axis, {State::kSharded, 0, false});
    }
    CheckDimsOfRow();
  }

  // all_gather_v and reduce_scatter_v: rows of all members, each with its own count. Counts are run-time numbers, so of
  // the rows only the rest of the shape can be compared.
  void CheckGatherRows(const std::vector<const ValueType*>& inputs, bool reduces) {
    if (inputs.size() != 2) return Fail(absl::StrCat("reads ", inputs.size(), " values, not rows and their counts"));
    const ValueType& pieces = reduces ? out_ : in_;
    // Counts of rows behind the token dispatch have a row for each rank that sent some. Others are one number a rank.
    const bool of_experts = std::find(axes_.begin(), axes_.end(), Axis::kExpertTp) != axes_.end();
    const bool dispatched = of_experts && !pieces.dims.empty() && std::holds_alternative<string>(pieces.dims[0]);
    if (inputs[1]->dtype != DType::kInt64 || inputs[1]->dims.size() != (dispatched ? 2U : 1U)) {
      Fail(absl::StrCat("reads ", op_.inputs[1], " of ", ShapeText(*inputs[1]),
                        " as counts of rows, which are int64 of ", dispatched ? 2 : 1, " dims"));
    }
    for (Axis axis : axes_) {
      if (reduces) MustBePartial(axis);
      Must(pieces, reduces ? op_.outputs[0].name : op_.inputs[0], axis, {State::kSharded, 0, false});
      if (!reduces) Must(out_, op_.outputs[0].name, axis, {});
    }
    CheckDimsOfRow();
    CheckGatheredRows(pieces, reduces ? in_ : out_);
  }

  // all_to_all_v: rows that this rank counted itself (their dim is a number) go with its own counts [E]; rows that it
  // receives (their dim is a run-time size) go with a row of counts for each sender.
  void CheckDispatchRows(const std::vector<const ValueType*>& inputs) {
    CheckDimsOfRow();
    if (inputs.size() != 3) {
      return Fail(absl::StrCat("reads ", inputs.size(),
                               " values, not rows, the counts that it sends and the counts that it receives"));
    }
    const auto counted_here = [](const ValueType& rows) {
      return !rows.dims.empty() && std::holds_alternative<int64_t>(rows.dims[0]);
    };
    for (int side : {0, 1}) {
      const ValueType& counts = *inputs[static_cast<size_t>(side) + 1];
      const size_t dims = counted_here(side == 0 ? in_ : out_) ? 1 : 2;
      if (counts.dtype == DType::kInt64 && counts.dims.size() == dims) continue;
      Fail(absl::StrCat("reads ", op_.inputs[static_cast<size_t>(side) + 1], " of ", ShapeText(counts),
                        " as the counts that it ", side == 0 ? "sends" : "receives", ", which are int64 of ", dims,
                        " dims"));
    }
  }

 private:
  void Fail(string what, const char* rule = "V4") {
    if (!problem_.empty()) return;
    problem_ = std::move(what);
    rule_ = rule;
  }

  void CheckReduction(const OpInfo& info, Reduction reduction) {
    if (reduction == Reduction::kNone)
      return Fail(absl::StrCat("reduces ", op_.inputs[0], ", which is relative to a maximum of this rank"), "V6");
    // A kind without the attribute sums.
    const string sum = "sum", wanted = reduction == Reduction::kMaximum ? "max" : sum;
    const string* reduce = info.FindAttribute("reduce") ? op_.FindText("reduce") : &sum;
    if (!reduce || *reduce != wanted)
      Fail(absl::StrCat("reduces ", op_.inputs[0], " by ", reduce ? *reduce : "nothing", ", not by ", wanted), "V6");
  }

  // Each segment of the dim is cut by itself (x | B | C, heads), so that every rank gets a part of each. Together they
  // are the whole dim: n times what a rank has where the dim is cut.
  void CheckSegments(int64_t dim, const ValueType& cut) {
    const auto* segments = op_.FindIntegers("segments");
    if (!segments || dim >= static_cast<int64_t>(cut.dims.size())) return;
    const int64_t n = module_.grid.size(axes_);
    int64_t sum = 0;
    for (int64_t segment : *segments) {
      if (segment % n != 0) Fail(absl::StrCat("cuts a segment of ", segment, " into ", n, " unequal parts"));
      sum += segment;
    }
    const auto* local = std::get_if<int64_t>(&cut.dims[static_cast<size_t>(dim)]);
    if (local && *local * n != sum) {
      Fail(absl::StrCat("has segments of ", sum, " together along dim ", dim, ", which has ", *local * n, " over ", n,
                        " ranks"));
    }
  }

  // Rows in numbers: as many from each member. Rows in run-time sizes: another size for what all members have together
  // (VerifyRunTimeSizes says which).
  void CheckGatheredRows(const ValueType& pieces, const ValueType& all) {
    if (pieces.dims.empty() || all.dims.empty()) return Fail("moves rows of a value that has no dims");
    const auto *part = std::get_if<int64_t>(&pieces.dims[0]), *whole = std::get_if<int64_t>(&all.dims[0]);
    const bool fits = part && whole ? *part * module_.grid.size(axes_) == *whole : !part && !whole;
    if (fits) return;
    Fail(absl::StrCat("has pieces of ", ShapeText(pieces), " on ", module_.grid.size(axes_), " ranks and ",
                      ShapeText(all), " of all ranks"));
  }

  // All dims behind the rows stay as they are.
  void CheckDimsOfRow() {
    if (in_.dims.size() != out_.dims.size()) return Fail("changes the number of dims");
    for (size_t i = 1; i < in_.dims.size(); ++i) CheckDim(i, 1, 1);
  }

  bool Zigzag() {
    const int64_t* zigzag = op_.FindInteger("zigzag");
    if (zigzag && *zigzag != 1) Fail(absl::StrCat("has zigzag ", *zigzag, "; it may be 1 or absent"));
    return zigzag != nullptr;
  }

  int64_t DimOf(const char* name) {
    const int64_t* dim = op_.FindInteger(name);
    if (!dim) {
      Fail(absl::StrCat("lacks the attribute ", name, ": the dim to join or cut is never guessed from shapes"));
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
    const char* why =
        held.state == State::kReplicated ? ": the sum would count it once for each rank" : ", not a partial sum";
    Fail(absl::StrCat("reduces ", op_.inputs[0], Over(axis), ", where it is ", HeldText(held), why), "V6");
  }

  // Where both cut the sequence, cp cuts the whole and tp cuts what cp left (Layout in planner/plan/instruction.h). So
  // it is joined over tp first. The other order would put pieces side by side that are not neighbours.
  void CheckOrderOfCuts(int64_t dim, bool cuts) {
    const Held inner = HeldOver(cuts ? in_ : out_, Axis::kTp);
    if (module_.grid.tp == 1 || inner.state != State::kSharded || inner.dim != dim) return;
    Fail(cuts ? absl::StrCat("cuts dim ", dim, " over cp, though tp has cut it already: cp must cut first")
              : absl::StrCat("joins dim ", dim, " over cp, though tp still cuts it: tp must be joined first"));
  }

  // A dim becomes `up` times as long and then 1/`down` of that. A run-time size must stay the same.
  void CheckDim(size_t i, int64_t up, int64_t down) {
    const auto *from = std::get_if<int64_t>(&in_.dims[i]), *to = std::get_if<int64_t>(&out_.dims[i]);
    const bool fits = from && to ? *from * up == *to * down : in_.dims[i] == out_.dims[i];
    if (fits) return;
    Fail(absl::StrCat("makes ", ShapeText(out_), " of ", ShapeText(in_), ": dim ", i,
                      " does not follow from the group's ", module_.grid.size(axes_), " ranks"));
  }

  void CheckDims(int64_t changed, int64_t up, int64_t down) {
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

// Counts are each rank's own: they have no layout.
string CountsLayoutProblem(const ValueType& counts) {
  return counts.layout.empty() && !counts.gradient ? "" : "gives counts a layout or a gradient";
}

// all_to_all: counts of rows for all experts [E] -> for each member, what it sends to the experts here [P, E/P].
string CountExchangeProblem(const TypedInstruction& typed, const Module& module, const std::vector<Axis>& axes) {
  const ValueType &in = *typed.inputs.front(), &out = typed.instruction->outputs.front().type;
  if (in.dtype != DType::kInt64 || out.dtype != DType::kInt64) return "exchanges counts that are not int64";
  if (in.dims.size() != 1 || out.dims.size() != 2) {
    return absl::StrCat("makes ", ShapeText(out), " of ", ShapeText(in),
                        ", not a row for each member of counts of all experts");
  }
  const auto* experts = std::get_if<int64_t>(&in.dims[0]);
  const auto *members = std::get_if<int64_t>(&out.dims[0]), *local = std::get_if<int64_t>(&out.dims[1]);
  if (!experts || !members || !local || *members != module.grid.size(axes) || *members * *local != *experts) {
    return absl::StrCat("makes ", ShapeText(out), " of ", ShapeText(in), " among ", module.grid.size(axes), " members");
  }
  return CountsLayoutProblem(out);
}

// gather_tokens and scatter_tokens: between the tokens of one rank, which tp and cp cut along dim 0, and those of all
// ep ranks, which are behind the token dispatch. There only expert_tp has a layout, and integers have none.
string TokenDispatchProblem(const TypedInstruction& typed, const Module& module) {
  const Instruction& op = *typed.instruction;
  const bool gathers = op.kind == OpKind::kGatherTokens;
  const ValueType &in = *typed.inputs.front(), &out = op.outputs.front().type;
  const ValueType &own = gathers ? in : out, &all = gathers ? out : in;
  const string &own_name = gathers ? op.inputs[0] : op.outputs[0].name,
               &all_name = gathers ? op.outputs[0].name : op.inputs[0];
  // A sum over ranks is rounded once, where it arrives.
  const bool rounds = !gathers && out.dtype == DType::kBf16;
  if (in.dtype != (rounds ? DType::kFp32 : out.dtype))
    return absl::StrCat("turns ", string(DTypeName(in.dtype)), " into ", string(DTypeName(out.dtype)));
  bool fits = !own.dims.empty() && own.dims.size() == all.dims.size();
  for (size_t i = 0; fits && i < own.dims.size(); ++i) {
    const auto *part = std::get_if<int64_t>(&own.dims[i]), *whole = std::get_if<int64_t>(&all.dims[i]);
    fits = part && whole && *whole == *part * (i == 0 ? module.grid.ep : 1);
  }
  if (!fits) {
    return absl::StrCat("has ", ShapeText(own), " on each of ", module.grid.ep, " ranks and ", ShapeText(all),
                        " of all ranks");
  }
  for (Axis axis : {Axis::kTp, Axis::kCp}) {
    if (module.grid.size(axis) == 1) continue;
    const Held held = HeldOver(own, axis), wanted = {State::kSharded, 0, axis == Axis::kCp};
    if (held != wanted) {
      return absl::StrCat("needs ", own_name, " ", HeldText(wanted), Over(axis), ", not ", HeldText(held),
                          ": experts would compute tokens more than once");
    }
    if (HeldOver(all, axis) != Held{})
      return absl::StrCat("gives ", all_name, " a layout", Over(axis), ", behind the token dispatch");
  }
  if (module.grid.expert_tp == 1) return "";
  const Held wanted = all.dtype == DType::kInt64 ? Held{} : Held{State::kSharded, 0, false};
  if (HeldOver(all, Axis::kExpertTp) == wanted) return "";
  return absl::StrCat("needs ", all_name, " ", HeldText(wanted), Over(Axis::kExpertTp), ", not ",
                      HeldText(HeldOver(all, Axis::kExpertTp)));
}

// An all_gather of row counts, such as those of expert rows over expert_tp. Counts are each member's own, so the
// layouts that `moves` asks for mean nothing here.
bool IsCountGather(const TypedInstruction& typed) {
  const Instruction& op = *typed.instruction;
  return op.kind == OpKind::kAllGather && typed.inputs.front()->dtype == DType::kInt64 && op.outputs.front().type.host;
}

string CountGatherProblem(const TypedInstruction& typed, const Module& module, const std::vector<Axis>& axes) {
  const ValueType &in = *typed.inputs.front(), &out = typed.instruction->outputs.front().type;
  const int64_t* dim = typed.instruction->FindInteger("dim");
  if (!dim || *dim != 0) return absl::StrCat("joins counts along dim ", dim ? *dim : -1, ", not 0");
  bool fits = out.dtype == DType::kInt64 && in.dims.size() == out.dims.size();
  for (size_t i = 0; fits && i < in.dims.size(); ++i) {
    const auto *from = std::get_if<int64_t>(&in.dims[i]), *to = std::get_if<int64_t>(&out.dims[i]);
    fits = from && to && *to == *from * (i == 0 ? module.grid.size(axes) : 1);
  }
  if (!fits)
    return absl::StrCat("makes ", ShapeText(out), " of ", ShapeText(in), " among ", module.grid.size(axes), " members");
  return CountsLayoutProblem(out);
}

}  // namespace

RuleProblem CommunicationProblem(const TypedInstruction& typed, const PlanIndex& index, const Module& module,
                                 Reduction reduction) {
  const Instruction& op = *typed.instruction;
  const bool slice = op.kind == OpKind::kLocalSlice || op.kind == OpKind::kSliceRows;
  if (op.outputs.size() != 1 || typed.inputs.empty()) return {"V4", "does not have an input and exactly one output"};
  std::vector<Axis> axes;
  if (slice) {
    const string* name = op.FindText("axis");
    const auto axis = name ? AxisFromName(*name) : std::optional<Axis>(Axis::kTp);
    if (!axis) return {"V4", absl::StrCat("slices over ", *name, ", which is no axis")};
    if (module.grid.size(*axis) > 1) axes = {*axis};
  } else {
    const Group* group = index.group(op.group);
    if (!group) return {"V4", absl::StrCat("names group ", op.group, ", which does not exist")};
    if (group->module != module.name)
      return {"V4",
              absl::StrCat("communicates over ", op.group, ", a group of ", group->module, ", not of ", module.name)};
    axes = index.WideAxes(*group);
  }
  if (axes.empty()) return {"V4", "works over a group of one rank"};
  const bool tokens = op.kind == OpKind::kGatherTokens || op.kind == OpKind::kScatterTokens;
  const bool dispatch = op.kind == OpKind::kAllToAll || op.kind == OpKind::kAllToAllV || tokens;
  if (dispatch && axes != std::vector<Axis>{Axis::kEp}) {
    return {"V4", absl::StrCat("dispatches tokens over ", op.group, ", whose axes above 1 are not ep alone")};
  }
  const bool terms = reduction == Reduction::kScatterTokens;
  if (terms != (op.kind == OpKind::kScatterTokens)) {
    return {"V6", absl::StrCat(terms ? "moves " : "sums ", op.inputs[0], ", which is ", terms ? "a term" : "no term",
                               " of a sum over the tokens of all ep ranks")};
  }
  if (tokens) return {"V4", TokenDispatchProblem(typed, module)};
  if (IsCountGather(typed)) return {"V4", CountGatherProblem(typed, module, axes)};
  LayoutChange change(typed, module, axes);
  switch (op.kind) {
    case OpKind::kSliceRows: change.CheckSliceRows(); break;
    case OpKind::kReshard: change.CheckReshard(); break;
    case OpKind::kAllGatherV: change.CheckGatherRows(typed.inputs, false); break;
    case OpKind::kReduceScatterV: change.CheckGatherRows(typed.inputs, true); break;
    case OpKind::kAllToAllV: change.CheckDispatchRows(typed.inputs); break;
    case OpKind::kAllToAll: return {"V4", CountExchangeProblem(typed, module, axes)};
    default:
      const OpInfo& info = InfoOf(op.kind);
      if (!info.moves)
        return {"V4", "is in a block, though the table of operations does not say what it does to layouts"};
      change.CheckMoves(info, reduction);
  }
  return change.Take();
}

}  // namespace planwright
