// Builds a block instruction by instruction: names values, keeps their types, inserts the tensor- and context-parallel
// communication that a layout change needs, and works out what is freed when. Over an axis of one rank the
// communication steps vanish and hand their input on.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "planner/plan/instruction.h"

namespace planwright {

// What lowering must know of a module to write types.
struct BlockContext {
  std::string module;
  DType dtype = DType::kFp32;
  int64_t tp = 1, ep = 1, cp = 1, expert_tp = 1;
  // a part that is frozen has no weight gradients and runs as in evaluation
  bool trains_backbone = true, trains_projection = true;

  // Statistics, router and softmax are computed in fp32 at least (facts 3.1, 3.6).
  DType wide() const { return dtype == DType::kBf16 ? DType::kFp32 : dtype; }
  int64_t size(Axis axis) const;  // of tp, cp, ep, expert_tp
};

// Layout shorthands. An axis of one rank is left out, so that on one rank every layout is replicated.
Layout Replicated();
// several: cut in this order
Layout Sharded(const BlockContext& context, int dim, std::initializer_list<Axis> axes = {Axis::kTp});
Layout Partial(const BlockContext& context, std::initializer_list<Axis> axes = {Axis::kTp});
// A layout over other axes, of a value whose sequence is dim `dim` and is cut zigzag over cp.
Layout OverCp(const BlockContext& context, int dim, Layout layout);

// {"cp", "zigzag"} for kinds that must know which positions of the sequence are here; nothing with cp 1.
Attributes PositionAttributes(const BlockContext& context, Attributes others = {});

class BlockBuilder {
 public:
  BlockBuilder(const BlockContext& context, std::string name, int origin);

  const BlockContext& context() const { return context_; }

  // Formal inputs, and values taken from the frame's store (saved by the forward block `from`).
  void Input(const std::string& name, ValueType type);
  void TakeSaved(const Block& from);

  // Types. Activations of the module's dtype; Whole: replicated value and gradient.
  ValueType Activation(std::vector<Dim> dims, Layout layout, Layout gradient) const;
  ValueType Whole(std::vector<Dim> dims) const { return Activation(std::move(dims), Replicated(), Replicated()); }
  ValueType Data(DType dtype, std::vector<Dim> dims, bool host = false) const;  // takes no gradient
  const ValueType& TypeOf(const std::string& value) const;

  struct Operands {
    std::vector<std::string> inputs;
    std::vector<std::string> parameters = {};
    std::vector<std::string> gradients = {};
    Attributes attributes = {};
  };
  Instruction& Emit(OpKind kind, Operands operands, std::vector<Output> outputs = {});

  // One-output shorthand; returns the output's name.
  std::string Make(OpKind kind, Operands operands, const std::string& output, ValueType type);

  // Communication along an axis, and a rank's own part, with the name of the value that holds the result: `output`, or
  // the input itself where the axis has one rank. Layouts along other axes stay. Over cp a sequence is cut, zigzag.
  // `gradient`: of the whole, along the axis.
  std::string AllGather(const std::string& input, int dim, const std::string& output, const Layout& gradient,
                        Axis axis = Axis::kTp);
  std::string ReduceScatter(const std::string& input, int dim, const std::string& output, Axis axis = Axis::kTp);
  std::string AllReduce(const std::string& input, const std::string& output, const char* reduce = "sum",
                        std::vector<Axis> axes = {Axis::kTp});
  // As AllReduce, by a kind that finishes a sum in another way.
  std::string Sum(OpKind kind, const std::string& input, Attributes attributes, const std::string& output,
                  std::vector<Axis> axes = {Axis::kTp});
  std::string Slice(const std::string& input, int dim, const std::string& output, Axis axis = Axis::kTp);
  // All-to-all over cp between a cut sequence (dim 0) and cut features (dim 2). `segments`: sizes of the parts of the
  // features, whole over cp, that are each cut by themselves.
  std::string SequenceToFeatures(const std::string& input, std::vector<int64_t> segments, const std::string& output);
  std::string FeaturesToSequence(const std::string& input, std::vector<int64_t> segments, const std::string& output);
  // Over a group of the module ("tp", "ep", ...).
  std::string Communicate(OpKind kind, const std::string& group, Operands operands, const std::string& output,
                          ValueType type);

  // x + y of one type.
  std::string Add(const std::vector<std::string>& inputs, const std::string& output);

  Instruction& Call(const Block& block, const std::string& frame, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs);
  // `replicated_over`: axes whose ranks hold the same value, of which one counts.
  void Accumulate(const std::string& value, const std::string& into, std::initializer_list<Axis> replicated_over);

  // Weight gradients of the backbone: `slots`, or nothing where it is frozen.
  std::vector<std::string> Trained(std::vector<std::string> slots) const;
  // The gradient of a linear's weight; nothing where the backbone is frozen.
  void LinearWeightGrad(const std::string& dy, const std::string& x, const std::string& slot);

  // What has been emitted so far, for passes that add to it.
  std::vector<Instruction>& body() { return block_.body; }

  void ProbeValue(const std::string& value, const std::string& name) { block_.probes.push_back({value, name}); }

  // Ends the block: `outputs` for the caller, `saved` for the backward.
  Block Finish(std::vector<std::string> outputs, std::vector<std::string> saved);

 private:
  void Define(const Output& output);
  ValueType Part(ValueType type, int dim, Axis axis, const std::string& name) const;
  std::string Reshard(const std::string& input, int from_dim, int to_dim, std::vector<int64_t> segments,
                      const std::string& output);

  BlockContext context_;
  Block block_;
  std::map<std::string, ValueType> types_;
};

// Fills `frees` of a list of instructions: each value is dropped after its last use, unless it is in `kept`. State
// values ("$", "%") are not counted. Values in `arguments` belong to a caller and are never dropped.
void FillFrees(std::vector<Instruction>& body, const std::vector<std::string>& arguments,
               const std::vector<std::string>& kept);

// The same for a whole block, from nothing: its outputs and what it saves are kept.
void FillFrees(Block& block);

// Values that an instruction reads, exchange parts included; without state values.
std::vector<std::string> ValuesRead(const Instruction& instruction);

}  // namespace planwright
