// Builds a block, instruction by instruction. The builder knows the type of every named value, inserts the
// communication of tensor and context parallelism that a change of layout needs, and works out when values are freed.
// Over an axis of one rank a communication vanishes: the builder then returns the name of the input, so that lowering
// is written once for all layouts.
#pragma once

#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "planner/plan/instruction.h"

namespace planwright {

// What lowering must know of a module to write types.
struct BlockContext {
  std::string module;
  DType dtype = DType::kFp32;
  int64_t tp = 1, ep = 1, cp = 1, expert_tp = 1;
  // A frozen part has no weight gradients and runs as in evaluation.
  bool trains_backbone = true, trains_projection = true;
  bool gathers_tokens = false;     // how tokens reach the experts (Module::dispatch)
  bool overlaps_dispatch = false;  // the shared expert runs while tokens travel

  // The dtype of statistics, router and softmax: never narrower than fp32
  // (docs/training/layout_independence.md#precision).
  DType wide() const { return dtype == DType::kBf16 ? DType::kFp32 : dtype; }
  int64_t size(Axis axis) const;  // of tp, cp, ep, expert_tp
};

// Layouts. An axis of one rank is left out, so that on one rank every layout is replicated.
Layout Replicated();
// Cut along `dim` over each of `axes`, in this order.
Layout Sharded(const BlockContext& context, int dim, std::initializer_list<Axis> axes = {Axis::kTp});
// A term of a sum over each of `axes`.
Layout Partial(const BlockContext& context, std::initializer_list<Axis> axes = {Axis::kTp});
// `layout`, with the sequence (dim `dim`) cut zigzag over cp (docs/layouts/sequence.md#context-parallelism).
Layout OverCp(const BlockContext& context, int dim, Layout layout);

// `others` with "cp" and "zigzag", for operations that must know which positions of the sequence this rank has.
// Unchanged with cp 1.
Attributes PositionAttributes(const BlockContext& context, Attributes others = {});

class BlockBuilder {
 public:
  BlockBuilder(const BlockContext& context, std::string name, int origin);

  const BlockContext& context() const { return context_; }

  // An input of the block; one that is a gradient, so the block is a backward; and values that the forward block `from`
  // saved, taken from the frame. A gradient, and what is made of one, takes no gradient itself: Emit drops the layouts
  // that their types have for it.
  void Input(const std::string& name, ValueType type);
  void InputGradient(const std::string& name, ValueType type);
  void TakeSaved(const Block& from);

  // Types. An activation has the module's dtype and takes a gradient; Whole: every rank has all of the value and of its
  // gradient; Data takes no gradient.
  ValueType Activation(std::vector<Dim> dims, Layout layout, Layout gradient) const;
  ValueType Whole(std::vector<Dim> dims) const { return Activation(std::move(dims), Replicated(), Replicated()); }
  ValueType Data(DType dtype, std::vector<Dim> dims, bool host = false) const;
  // The value must be one of this block. Using an undefined value is a bug.
  const ValueType& TypeOf(const std::string& value) const;

  struct Operands {
    std::vector<std::string> inputs;
    std::vector<std::string> parameters = {};
    std::vector<std::string> gradients = {};
    Attributes attributes = {};
  };
  Instruction& Emit(OpKind kind, Operands operands, std::vector<Output> outputs = {});

  // Emits an instruction with one output. Returns the output's name.
  std::string Make(OpKind kind, Operands operands, const std::string& output, ValueType type);

  // Communication along one axis, and a rank's own part (Slice). They return the name of the value that holds the
  // result: `output`, or `input` itself where the axis has one rank. Layouts over other axes stay. A sequence is cut
  // zigzag over cp. `gradient`: layout of the whole value's gradient along the axis.
  std::string AllGather(const std::string& input, int dim, const std::string& output, const Layout& gradient,
                        Axis axis = Axis::kTp);
  std::string ReduceScatter(const std::string& input, int dim, const std::string& output, Axis axis = Axis::kTp);
  std::string AllReduce(const std::string& input, const std::string& output, const char* reduce = "sum",
                        std::vector<Axis> axes = {Axis::kTp});
  std::string Slice(const std::string& input, int dim, const std::string& output, Axis axis = Axis::kTp);
  // All-to-all over cp: from a cut sequence (dim 0) to cut features (dim 2), and back. `segments`: sizes, before the
  // cut over cp, of the parts of the features that are each cut by themselves.
  std::string SequenceToFeatures(const std::string& input, std::vector<int64_t> segments, const std::string& output);
  std::string FeaturesToSequence(const std::string& input, std::vector<int64_t> segments, const std::string& output);
  // Any communication over a group of the module, by its short name ("tp", "ep", ...).
  std::string Communicate(OpKind kind, const std::string& group, Operands operands, const std::string& output,
                          ValueType type);

  // The sum of values of one type.
  std::string Add(const std::vector<std::string>& inputs, const std::string& output);

  Instruction& Call(const Block& block, const std::string& frame, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs);
  // Adds a value to an accumulator. `replicated_over`: axes whose ranks all hold the value, so that one of them counts.
  void Accumulate(const std::string& value, const std::string& into, std::initializer_list<Axis> replicated_over);

  // Slots whose gradients a backward adds to: `slots`, or none where the backbone is frozen.
  std::vector<std::string> TrainedSlots(std::vector<std::string> slots) const;
  // The weight gradient of a linear; nothing where the backbone is frozen.
  void LinearWeightGrad(const std::string& dy, const std::string& x, const std::string& slot);

  // The instructions so far, for code that adds to them.
  std::vector<Instruction>& body() { return block_.body; }

  void ProbeValue(const std::string& value, const std::string& name) { block_.probes.push_back({value, name}); }

  // Ends the block: `outputs` for the caller, `saved` for the backward, in the order of their definition.
  Block Finish(std::vector<std::string> outputs, const std::vector<std::string>& saved);

 private:
  void Define(const Output& output);
  void DefineGradient(Output& output);
  ValueType TypeOfPart(ValueType type, int dim, Axis axis, const std::string& name) const;
  std::string Reshard(const std::string& input, int from_dim, int to_dim, std::vector<int64_t> segments,
                      const std::string& output);

  BlockContext context_;
  Block block_;
  std::map<std::string, ValueType> types_;
  std::set<std::string> gradients_;  // values that are gradients
};

// Fills `frees` of a list of instructions: each value is freed after its last use, unless it is in `kept`. Values in
// `arguments` belong to a caller and are never freed. State values ("$", "%") outlive the list and are not counted.
// Where instructions are on several streams, a value may be freed later: no stream may wait for another one only
// because memory has been freed (stream_dependencies.h), or nothing would overlap. So the main stream has waited for
// all that others do with the value, and others have started what need not wait for the main stream.
void FillFrees(std::vector<Instruction>& body, const std::vector<std::string>& arguments,
               const std::vector<std::string>& kept);

// The same for a whole block, whose `frees` are cleared first: its outputs and what it saves are kept.
void FillFrees(Block& block);

// The type of a value that a block takes, is given or makes. A name that is none of these is a bug.
const ValueType& TypeIn(const Block& block, const std::string& value);

// Values that an instruction reads, those that an exchange sends included; without state values.
std::vector<std::string> ValuesRead(const Instruction& instruction);

}  // namespace planwright
