// Builds a block, instruction by instruction. The builder knows the type of every named value, and works out when
// values are freed.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "planner/plan/instruction.h"

namespace planwright {

class BlockBuilder {
 public:
  BlockBuilder(std::string module, std::string name, int origin);

  // An input of the block; one that is a gradient, so the block is a backward; and values that the forward block `from`
  // saved, taken from the frame. A gradient, and what is made of one, takes no gradient itself: Emit drops the layouts
  // that their types have for it.
  void Input(const std::string& name, ValueType type);
  void InputGradient(const std::string& name, ValueType type);
  void TakeSaved(const Block& from);

  // The value must be one of this block. Using an undefined value is a bug.
  const ValueType& TypeOf(const std::string& value) const;

  struct Operands {
    std::vector<std::string> inputs;
    std::vector<std::string> parameters = {};
    std::vector<std::string> gradients = {};
    Attributes attributes = {};
  };
  Instruction& Emit(OpKind kind, Operands operands, std::vector<Output> outputs = {});

  Instruction& Call(const Block& block, const std::string& frame, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs);
  // The instructions so far, for code that adds to them.
  std::vector<Instruction>& body() { return block_.body; }

  void ProbeValue(const std::string& value, const std::string& name) { block_.probes.push_back({value, name}); }

  // Ends the block: `outputs` for the caller, `saved` for the backward, in the order of their definition.
  Block Finish(std::vector<std::string> outputs, const std::vector<std::string>& saved);

 private:
  void Define(const Output& output);
  void DefineGradient(Output& output);

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
