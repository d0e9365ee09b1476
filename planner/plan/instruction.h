// Instructions and blocks: what a rank's program is made of. Two laws hold for every program. Compute never
// communicates, and communication never computes. Every value has a type: shape, element type, and a layout for itself
// and for its gradient.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "planner/plan/value_type.h"

namespace planwright {

// Whether a name is that of state, which outlives programs: "%..." of a module, "$..." of the step (ops.def).
inline bool IsStateName(std::string_view name) { return !name.empty() && (name[0] == '%' || name[0] == '$'); }

// What an operation may do. The executor gives a handler only what its class needs.
enum class OpClass {
  kControl,        // calls a block
  kData,           // reads samples
  kCompute,        // a pure function of values and parameters; it never gets a communicator
  kCommunication,  // moves or reduces values over one group; it never computes
  kState,          // changes optimizer state, gradient buckets or accumulators
  kStorage,        // reads and writes the files of checkpoints
};

// The operations of ops.def, in the order of the file.
enum class OpKind {
#define OP(id, name, op_class, text) k##id,
#include "planner/plan/ops.def"
#undef OP
};

std::string_view OpName(OpKind kind);  // "all_gather"
OpClass OpClassOf(OpKind kind);
std::optional<OpKind> OpFromName(std::string_view name);
std::vector<std::string> AllOpNames();  // of all kinds

// Named constants, by name. ops.def says which ones an instruction has.
using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>>;
using Attributes = std::map<std::string, Attribute, std::less<>>;

// One of the things that an exchange sends or receives.
//
// Over a bridge: this rank's rows, in one direction. The table of the bridge (Bridge::forward, ::backward) says to or
// from which peers, and of which samples. `sizes` says how many rows a sample has; both sides read it from the
// token ids, so it is not sent.
// Between the stages of a module: a whole value. The peer is the rank with the same other coordinates, `shift` stages
// away.
struct ExchangePart {
  std::string bridge;     // name of the bridge; empty: between stages
  bool backward = false;  // false: encoder output or activations; true: their gradient
  bool send = false;      // false: it is received
  std::string value;      // the value that is sent, or the name of the output that is received
  // Name of an int64 host value that says how many rows pass. Over a bridge: the rows of each sample of this rank's
  // lane. Between stages, where rows are received whose number is known at run time: the image sizes [n,2] of an
  // encoder's lane, or the rows of each sample of a language model's. Else empty, as the planned type says all.
  std::string sizes;
  std::string group;  // between stages only: "language.pp"
  int shift = 0;      // between stages only: +1 the next stage, -1 the one before
};

// One entry of a program or block. Names are those of values in the same list. Filled by schedule/.
struct Instruction {
  OpKind kind{};
  std::vector<std::string> inputs;      // values that it reads, in the order of ops.def
  std::vector<std::string> parameters;  // slots of the call's frame that it reads: "in_proj"
  std::vector<std::string> gradients;   // slots of the call's frame whose gradient it adds to
  std::vector<Output> outputs;          // values that it makes
  std::vector<std::string> frees;       // values whose names end with this instruction
  Attributes attributes;
  std::string group;                // communication only: name in Plan::groups
  std::vector<ExchangePart> parts;  // exchange only
  // call only. block: name in Plan::blocks. frame: that of the block's parameters, saved values and layer; empty: the
  // caller's. microbatch: -1 in a block, where it is that of the enclosing call.
  std::string block, frame;
  int microbatch = -1;
  // Where the instruction runs: a stream, "" the main one. When it runs follows from the order of the program and from
  // what instructions touch (stream_dependencies.h). A call has no stream.
  std::string stream;
  int origin = -1;  // index in Plan::origins; -1: that of the enclosing block or role

  // The attribute of this name. A bug if it is absent or has another type: rule V4 has refused such plans.
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;  // also of an integer
  const std::string& text(std::string_view name) const;
  // The attribute of this name; null if it is absent or has another type.
  const int64_t* FindInteger(std::string_view name) const;
  const std::string* FindText(std::string_view name) const;
  const std::vector<int64_t>* FindIntegers(std::string_view name) const;
  // The attribute cp is above 1: the instruction sees a part of the sequence, or of the lane's images.
  bool over_cp() const;
};

// A value of a block that a run with --probe writes at its first and last step.
struct Probe {
  std::string value;
  std::string name;  // in the file; "{layer}" is replaced by the layer number of the frame
};

// A named list of instructions, run by calls. Its names are local to one call. Filled by schedule/.
//
// Saved values outlive the call: they are kept under the call's frame and microbatch until another block takes them,
// which is the backward of the same layer and microbatch.
struct Block {
  std::string name;    // "language.mamba.forward"
  std::string module;  // whose frames and constants it uses; empty: none
  std::vector<Output> inputs;
  std::vector<std::string> outputs;  // names of values in the block, in the order in which a call names its outputs
  std::vector<std::string> saved;    // names of values that the frame keeps
  std::vector<Output> takes;         // values that it takes from the frame
  std::vector<Probe> probes;
  std::vector<Instruction> body;
  int origin = -1;  // index in Plan::origins; -1: that of the calling role
};

}  // namespace planwright
