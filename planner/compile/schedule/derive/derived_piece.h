// A piece of a model (its embedding, a layer, its head) while its blocks are derived: values in all their forms, and
// the instructions of the forward and of the backward. Values are numbers here; they get names, and instructions become
// a Block, when all is known (derive_module.h).
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/compile/schedule/blocks/layer_blocks.h"
#include "planner/plan/instruction.h"
#include "planner/plan/op_signature.h"

namespace planwright {

// One form of a value, or of its gradient. Forms of a value differ in how they lie over the ranks.
struct DerivedValue {
  std::string name;    // of this form, unique in the piece
  std::string stated;  // the stated value that it is a form of, or whose gradient it is
  ValueType type;      // of forward values the gradient's layout is set when the backward is derived
  size_t made = 0;     // the form that a compute made, or that the piece was given; its own number if it is this one
  Reduction reduction = Reduction::kSum;  // of a term of a sum
  bool of_rank = false;                   // rows behind the token dispatch, which belong to their rank
  bool with_experts = false;              // of_rank: on the rank of their experts. False: where their tokens are
  // Sizes of the parts of the last dim that are each cut by themselves, before any cut; empty: it is one part.
  std::vector<int64_t> segments;
};

struct DerivedStep {
  OpKind kind{};
  std::vector<size_t> inputs;
  std::vector<std::string> parameters, gradients;
  std::vector<size_t> outputs;
  Attributes attributes;
  std::string group;  // short name
  // Of a conversion: the compute that it was made for, and how many axes of that compute's inputs came before. -1: none
  int reader = -1, pass = 0;
};

struct DerivedPiece {
  std::vector<DerivedValue> values;
  std::vector<DerivedStep> forward, backward;
  std::vector<size_t> inputs, outputs;                    // of the forward
  std::vector<size_t> gradient_inputs, gradient_outputs;  // of the backward
  std::map<size_t, Layout> output_gradients;              // of outputs whose gradients come in another layout
  std::map<size_t, size_t> gradients;                     // of values of the forward, once the backward is derived
  std::vector<std::pair<size_t, std::string>> probes;
  SlotGradients slot_gradients;  // of the backward
  std::optional<size_t> counts;  // the row counts that messages of the piece use

  const ValueType& type(size_t value) const { return values[value].type; }
  // A number for a new value, whose name becomes unique.
  size_t Add(DerivedValue value);
  // The index of the forward's step that makes the value; none: the piece is given it.
  std::optional<size_t> MakerOf(size_t value) const;
};

}  // namespace planwright
