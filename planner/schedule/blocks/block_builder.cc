#include "planner/schedule/blocks/block_builder.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "planner/diagnostics/bug.h"
#include "planner/plan/op_table.h"

namespace planwright {
namespace {

// Only dims of a fixed size can be cut or gathered here: rows whose count is known at run time have operations of their
// own (all_gather_v, ...).
int64_t FixedSize(const Dim& dim, const std::string& value) {
  const auto* number = std::get_if<int64_t>(&dim);
  Require(number != nullptr, "dim of " + value + " is not a number");
  return *number;
}

// Short name of the group over tp, cp, both, or expert_tp (docs/layouts/grids.md#groups).
std::string GroupOverAxes(const std::vector<Axis>& axes) {
  if (axes.size() == 2) return "tp_cp";
  return axes.front() == Axis::kExpertTp ? "ep_tp" : std::string(AxisName(axes.front()));
}

// Values that an instruction reads or makes; without state values.
std::vector<std::string> ValuesTouched(const Instruction& instruction) {
  std::vector<std::string> touched = ValuesRead(instruction);
  for (const Output& output : instruction.outputs) {
    if (!IsStateName(output.name)) touched.push_back(output.name);
  }
  return touched;
}

// Where the values of a list are freed whose instructions are on several streams, so that no instruction waits for
// another stream only because memory has been freed (stream_dependencies.h).
class FreeIndices {
 public:
  explicit FreeIndices(const std::vector<Instruction>& body) : body_(body) {
    std::map<std::string, size_t> made;  // by value, the index of the instruction that makes it
    std::map<std::string, int> waited;   // by other stream, its last index that the main stream has waited for
    std::map<std::string, int> follows;  // by other stream, the last index of the main stream that it has waited for
    for (size_t i = 0; i < body.size(); ++i) {
      const Instruction& instruction = body[i];
      const int index = static_cast<int>(i);
      for (const std::string& name : ValuesRead(instruction)) {
        const auto maker = made.find(name);
        if (maker == made.end() || body[maker->second].stream == instruction.stream) continue;
        const bool from_main = body[maker->second].stream.empty();
        if (!from_main && !instruction.stream.empty()) continue;
        int& last = (from_main ? follows : waited)
                        .try_emplace(from_main ? instruction.stream : body[maker->second].stream, -1)
                        .first->second;
        if (static_cast<int>(maker->second) <= last) continue;
        last = static_cast<int>(maker->second);
        if (!from_main) waits_.push_back({index, last});
      }
      bool makes_value = false;
      for (const Output& output : instruction.outputs) {
        if (IsStateName(output.name)) continue;
        made[output.name] = i;
        makes_value = true;
      }
      for (const std::string& name : ValuesTouched(instruction)) touched_[name][instruction.stream] = index;
      if (!instruction.stream.empty() && makes_value)
        others_.push_back({index, follows.try_emplace(instruction.stream, -1).first->second});
    }
  }

  // Where to free a value whose last use is at `last_use`.
  size_t Of(const std::string& value, size_t last_use) const {
    if (others_.empty()) return last_use;
    int index = static_cast<int>(last_use), main = -1;
    const int end = static_cast<int>(body_.size()) - 1;
    // The main stream must have waited for all that other streams do with the value.
    for (const auto& [stream, last] : touched_.at(value)) {
      if (stream.empty()) {
        main = last;
        continue;
      }
      const auto wait =
          std::find_if(waits_.begin(), waits_.end(), [&, &stream = stream, last = last](const Wait& each) {
            return each.made_at >= last && StreamAt(each.made_at) == stream;
          });
      index = std::max(index, wait == waits_.end() ? end : wait->at);
    }
    // An instruction on another stream must not come behind it that need not wait for what the main stream does with
    // the value.
    for (const Other& other : others_) {
      if (other.at <= index || other.follows >= main) continue;
      index = other.at;
      while (index < end && !StreamAt(index).empty()) ++index;
    }
    return static_cast<size_t>(index);
  }

 private:
  // At `at` the main stream reads what `made_at` makes on another stream, and nothing later of that stream before.
  struct Wait {
    int at = 0, made_at = 0;
  };
  // An instruction on another stream that makes a value. It reads what the main stream makes at `follows`; -1: nothing.
  struct Other {
    int at = 0, follows = -1;
  };
  const std::string& StreamAt(int index) const { return body_[static_cast<size_t>(index)].stream; }

  const std::vector<Instruction>& body_;
  std::vector<Wait> waits_;
  std::vector<Other> others_;
  std::map<std::string, std::map<std::string, int>> touched_;  // by value and stream: the last use there
};

// Over cp the cut is zigzag, over all other axes in rank order.
Attributes CutAttributes(int dim, Axis axis) {
  Attributes attributes = {{"dim", int64_t{dim}}};
  if (axis == Axis::kCp) attributes["zigzag"] = int64_t{1};
  return attributes;
}

}  // namespace

int64_t BlockContext::size(Axis axis) const {
  switch (axis) {
    case Axis::kTp: return tp;
    case Axis::kCp: return cp;
    case Axis::kEp: return ep;
    case Axis::kExpertTp: return expert_tp;
    default: Bug("blocks know no axis " + std::string(AxisName(axis)));
  }
}

Layout Replicated() { return {}; }

Layout Sharded(const BlockContext& context, int dim, std::initializer_list<Axis> axes) {
  Layout layout;
  for (Axis axis : axes) {
    if (context.size(axis) > 1) layout[axis] = {AxisLayout::State::kSharded, dim};
  }
  return layout;
}

Layout Partial(const BlockContext& context, std::initializer_list<Axis> axes) {
  Layout layout;
  for (Axis axis : axes) {
    if (context.size(axis) > 1) layout[axis] = {AxisLayout::State::kPartial, 0};
  }
  return layout;
}

Layout OverCp(const BlockContext& context, int dim, Layout layout) {
  if (context.cp > 1) layout[Axis::kCp] = {AxisLayout::State::kSharded, dim, true};
  return layout;
}

Attributes PositionAttributes(const BlockContext& context, Attributes others) {
  if (context.cp > 1) others.insert({{"cp", context.cp}, {"zigzag", int64_t{1}}});
  return others;
}

BlockBuilder::BlockBuilder(const BlockContext& context, std::string name, int origin) : context_(context) {
  block_.name = std::move(name);
  block_.module = context.module;
  block_.origin = origin;
}

void BlockBuilder::Input(const std::string& name, ValueType type) {
  block_.inputs.push_back({name, type});
  Define(block_.inputs.back());
}

void BlockBuilder::InputGradient(const std::string& name, ValueType type) {
  Output input = {name, std::move(type)};
  DefineGradient(input);
  block_.inputs.push_back(std::move(input));
}

void BlockBuilder::TakeSaved(const Block& from) {
  for (const std::string& name : from.saved) {
    block_.takes.push_back({name, TypeIn(from, name)});
    Define(block_.takes.back());
  }
}

ValueType BlockBuilder::Activation(std::vector<Dim> dims, Layout layout, Layout gradient) const {
  return {context_.dtype, std::move(dims), std::move(layout), std::move(gradient), false};
}

ValueType BlockBuilder::Data(DType dtype, std::vector<Dim> dims, bool host) const {
  return {dtype, std::move(dims), {}, std::nullopt, host};
}

const ValueType& BlockBuilder::TypeOf(const std::string& value) const {
  auto it = types_.find(value);
  Require(it != types_.end(), absl::StrCat("block ", block_.name, " uses undefined value ", value));
  return it->second;
}

void BlockBuilder::Define(const Output& output) {
  // Each name has one value in a block, as in SSA form.
  Require(types_.emplace(output.name, output.type).second,
          absl::StrCat("block ", block_.name, " defines ", output.name, " twice"));
}

void BlockBuilder::DefineGradient(Output& output) {
  output.type.gradient.reset();
  gradients_.insert(output.name);
  Define(output);
}

Instruction& BlockBuilder::Emit(OpKind kind, Operands operands, std::vector<Output> outputs) {
  bool makes_gradients = !InfoOf(kind).transposes.empty();
  for (const std::string& input : operands.inputs) {
    TypeOf(input);
    makes_gradients |= gradients_.contains(input);
  }
  for (Output& output : outputs) makes_gradients ? DefineGradient(output) : Define(output);
  return block_.body.emplace_back(Instruction{.kind = kind,
                                              .inputs = std::move(operands.inputs),
                                              .parameters = std::move(operands.parameters),
                                              .gradients = std::move(operands.gradients),
                                              .outputs = std::move(outputs),
                                              .frees = {},
                                              .attributes = std::move(operands.attributes)});
}

std::string BlockBuilder::Make(OpKind kind, Operands operands, const std::string& output, ValueType type) {
  Emit(kind, std::move(operands), {{output, std::move(type)}});
  return output;
}

std::string BlockBuilder::Communicate(OpKind kind, const std::string& group, Operands operands,
                                      const std::string& output, ValueType type) {
  Emit(kind, std::move(operands), {{output, std::move(type)}}).group = context_.module + "." + group;
  return output;
}

std::string BlockBuilder::AllGather(const std::string& input, int dim, const std::string& output,
                                    const Layout& gradient, Axis axis) {
  if (context_.size(axis) == 1) return input;
  ValueType type = TypeOf(input);
  type.dims[dim] = FixedSize(type.dims[dim], input) * context_.size(axis);
  // The value is now whole along the axis. What its gradient is there depends on the reader: each rank may make all of
  // it, or a term of a sum.
  type.layout.erase(axis);
  if (type.gradient) {
    type.gradient->erase(axis);
    if (auto along = gradient.find(axis); along != gradient.end()) type.gradient->insert(*along);
  }
  return Communicate(OpKind::kAllGather, GroupOverAxes({axis}),
                     {.inputs = {input}, .attributes = CutAttributes(dim, axis)}, output, std::move(type));
}

std::string BlockBuilder::ReduceScatter(const std::string& input, int dim, const std::string& output, Axis axis) {
  if (context_.size(axis) == 1) return input;
  return Communicate(OpKind::kReduceScatter, GroupOverAxes({axis}),
                     {.inputs = {input}, .attributes = CutAttributes(dim, axis)}, output,
                     TypeOfPart(TypeOf(input), dim, axis, input));
}

std::string BlockBuilder::AllReduce(const std::string& input, const std::string& output, const char* reduce,
                                    std::vector<Axis> axes) {
  // Over tp and cp together one all-reduce over the group tp_cp is enough.
  std::erase_if(axes, [&](Axis axis) { return context_.size(axis) == 1; });
  if (axes.empty()) return input;
  ValueType type = TypeOf(input);
  for (Axis axis : axes) {
    type.layout.erase(axis);
    if (type.gradient) type.gradient->erase(axis);
  }
  return Communicate(OpKind::kAllReduce, GroupOverAxes(axes),
                     {.inputs = {input}, .attributes = {{"reduce", std::string(reduce)}}}, output, std::move(type));
}

std::string BlockBuilder::Slice(const std::string& input, int dim, const std::string& output, Axis axis) {
  if (context_.size(axis) == 1) return input;
  // No communication: each rank keeps its part of a value that it has whole.
  Attributes attributes = CutAttributes(dim, axis);
  if (axis != Axis::kTp) attributes["axis"] = std::string(AxisName(axis));
  return Make(OpKind::kLocalSlice, {.inputs = {input}, .attributes = std::move(attributes)}, output,
              TypeOfPart(TypeOf(input), dim, axis, input));
}

// The type of a rank's part along `axis` of a value of type `type`. Its gradient is cut the same way.
ValueType BlockBuilder::TypeOfPart(ValueType type, int dim, Axis axis, const std::string& name) const {
  type.dims[dim] = FixedSize(type.dims[dim], name) / context_.size(axis);
  type.layout[axis] = {AxisLayout::State::kSharded, dim, axis == Axis::kCp};
  if (type.gradient) (*type.gradient)[axis] = type.layout[axis];
  return type;
}

std::string BlockBuilder::SequenceToFeatures(const std::string& input, std::vector<int64_t> segments,
                                             const std::string& output) {
  return Reshard(input, 0, 2, std::move(segments), output);
}

std::string BlockBuilder::FeaturesToSequence(const std::string& input, std::vector<int64_t> segments,
                                             const std::string& output) {
  return Reshard(input, 2, 0, std::move(segments), output);
}

std::string BlockBuilder::Reshard(const std::string& input, int from_dim, int to_dim, std::vector<int64_t> segments,
                                  const std::string& output) {
  if (context_.cp == 1) return input;
  // Whole along `from_dim` again, then cut along `to_dim`. Only the sequence is cut zigzag; features are cut in rank
  // order.
  ValueType type = TypeOf(input);
  type.dims[from_dim] = FixedSize(type.dims[from_dim], input) * context_.cp;
  type = TypeOfPart(std::move(type), to_dim, Axis::kCp, input);
  type.layout[Axis::kCp].zigzag = to_dim == 0;
  if (type.gradient) (*type.gradient)[Axis::kCp] = type.layout[Axis::kCp];
  Attributes attributes = {{"from_dim", int64_t{from_dim}},
                           {"to_dim", int64_t{to_dim}},
                           {"zigzag_dim", int64_t{0}},
                           {"segments", std::move(segments)}};
  return Communicate(OpKind::kReshard, "cp", {.inputs = {input}, .attributes = std::move(attributes)}, output,
                     std::move(type));
}

std::string BlockBuilder::Add(const std::vector<std::string>& inputs, const std::string& output) {
  return Make(OpKind::kAdd, {.inputs = inputs}, output, TypeOf(inputs.front()));
}

Instruction& BlockBuilder::Call(const Block& block, const std::string& frame, const std::vector<std::string>& inputs,
                                const std::vector<std::string>& outputs) {
  Require(inputs.size() == block.inputs.size() && outputs.size() == block.outputs.size(),
          "call of " + block.name + " with other operands");
  std::vector<Output> typed;
  for (size_t i = 0; i < outputs.size(); ++i) typed.push_back({outputs[i], TypeIn(block, block.outputs[i])});
  Instruction& call = Emit(OpKind::kCall, {.inputs = inputs}, std::move(typed));
  call.block = block.name;
  call.frame = frame;
  return call;
}

void BlockBuilder::Accumulate(const std::string& value, const std::string& into,
                              std::initializer_list<Axis> replicated_over) {
  Attributes attributes = {{"into", into}};
  std::string axes;
  for (Axis axis : replicated_over) {
    if (context_.size(axis) > 1) absl::StrAppend(&axes, axes.empty() ? "" : ",", std::string(AxisName(axis)));
  }
  if (!axes.empty()) attributes["once_over"] = axes;
  Emit(OpKind::kAccumulate, {.inputs = {value}, .attributes = std::move(attributes)});
}

std::vector<std::string> BlockBuilder::TrainedSlots(std::vector<std::string> slots) const {
  return context_.trains_backbone ? std::move(slots) : std::vector<std::string>{};
}

void BlockBuilder::LinearWeightGrad(const std::string& dy, const std::string& x, const std::string& slot) {
  if (context_.trains_backbone) Emit(OpKind::kLinearWeightGrad, {.inputs = {dy, x}, .gradients = {slot}});
}

Block BlockBuilder::Finish(std::vector<std::string> outputs, const std::vector<std::string>& saved) {
  // A communication over one rank returns its input, so two entries of `saved` can be the same name.
  const std::set<std::string> kept(saved.begin(), saved.end());
  const auto save = [&](const Output& value) {
    if (kept.contains(value.name)) block_.saved.push_back(value.name);
  };
  for (const Output& input : block_.inputs) save(input);
  for (const Instruction& instruction : block_.body) {
    for (const Output& output : instruction.outputs) save(output);
  }
  Require(block_.saved.size() == kept.size(), "block " + block_.name + " saves what it does not define");
  block_.outputs = std::move(outputs);
  FillFrees(block_);
  return std::move(block_);
}

const ValueType& TypeIn(const Block& block, const std::string& value) {
  for (const auto* list : {&block.inputs, &block.takes}) {
    for (const Output& given : *list) {
      if (given.name == value) return given.type;
    }
  }
  for (const Instruction& instruction : block.body) {
    for (const Output& output : instruction.outputs) {
      if (output.name == value) return output.type;
    }
  }
  Bug(absl::StrCat("block ", block.name, " has no value ", value));
}

std::vector<std::string> ValuesRead(const Instruction& instruction) {
  std::vector<std::string> names;
  for (const std::string& input : instruction.inputs) {
    if (!IsStateName(input)) names.push_back(input);
  }
  for (const ExchangePart& part : instruction.parts) {
    if (!part.sizes.empty()) names.push_back(part.sizes);
    if (part.send) names.push_back(part.value);
  }
  return names;
}

void FillFrees(std::vector<Instruction>& body, const std::vector<std::string>& arguments,
               const std::vector<std::string>& kept) {
  std::set<std::string> done(arguments.begin(), arguments.end());
  done.insert(kept.begin(), kept.end());
  const FreeIndices indices(body);
  // Backwards, so that the first time a value is met is its last use.
  for (size_t index = body.size(); index-- > 0;) {
    for (const std::string& name : ValuesTouched(body[index])) {
      if (done.insert(name).second) body[indices.Of(name, index)].frees.push_back(name);
    }
  }
  for (Instruction& instruction : body) std::sort(instruction.frees.begin(), instruction.frees.end());
}

void FillFrees(Block& block) {
  std::vector<std::string> arguments, kept = block.outputs;
  for (const Output& input : block.inputs) arguments.push_back(input.name);
  kept.insert(kept.end(), block.saved.begin(), block.saved.end());
  // Inputs belong to the caller, and saved values to the frame until the backward has taken them.
  for (Instruction& instruction : block.body) instruction.frees.clear();
  FillFrees(block.body, arguments, kept);
}

}  // namespace planwright
