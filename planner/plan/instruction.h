// One instruction of a rank's program: what it does, the values it reads and makes, and their types.
// Law 1: compute never communicates, communication never computes. Law 2: every value has a shape, a dtype, a byte
// bound and a layout, for itself and for its gradient.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "planner/plan/axis.h"

namespace planwright {

enum class DType { kInt64, kFp32, kFp64, kBf16 };
std::string_view DTypeName(DType dtype);  // "int64", "fp32", "fp64", "bf16"
std::optional<DType> DTypeFromName(std::string_view name);
int64_t DTypeBytes(DType dtype);

// A dimension: a number, or a symbol whose value is known at run time and whose maximum the plan declares
// (Plan::symbols): image rows, expert rows.
using Dim = std::variant<int64_t, std::string>;

// How the pieces that the ranks along one axis hold make up the whole value.
struct AxisLayout {
  enum class State { kReplicated, kSharded, kPartial };
  State state = State::kReplicated;
  int dim = 0;  // kSharded: the tensor dim that is cut, pieces in coordinate order
  // kSharded: the dim is cut in 2n chunks and coordinate r of n holds chunks r and 2n-1-r, so that causal attention
  // costs every rank the same (context parallelism, facts 10).
  bool zigzag = false;
  bool operator==(const AxisLayout&) const = default;
};

// Layout over a module's axes. An axis that is absent is replicated. Sharding of samples over dp is not written: every
// activation belongs to its lane. Where several axes cut one dim, a zigzag cut comes first and the others in the axes'
// order, each cutting what the one before left: the sequence over cp, then tp; features over tp, then cp. Rows behind
// the token dispatch of experts belong to their rank: over expert_tp they are the pieces of what its ranks gather, over
// no other axis they are anything.
using Layout = std::map<Axis, AxisLayout>;

struct ValueType {
  DType dtype = DType::kFp32;
  std::vector<Dim> dims;
  Layout layout;                   // of the value
  std::optional<Layout> gradient;  // of its gradient; nullopt: takes no gradient
  bool host = false;               // lives in host memory whatever the device (row counts, image grids)
};

struct Output {
  std::string name;
  ValueType type;
};

// Whether a name is of state that outlives the programs: "%..." of a module, "$..." of the step (ops.def).
inline bool IsStateName(std::string_view name) { return !name.empty() && (name[0] == '%' || name[0] == '$'); }

// What an op may do: the class decides what its handler is given.
enum class OpClass {
  kControl,        // call
  kData,           // reads samples
  kCompute,        // pure function of values and parameters; is never given a communicator
  kCommunication,  // moves or reduces values over one group; never computes
  kState,          // changes optimizer state, gradient buckets, accumulators
};

enum class OpKind {
#define OP(id, name, op_class, text) k##id,
#include "planner/plan/ops.def"
#undef OP
};
std::string_view OpName(OpKind kind);
std::optional<OpKind> OpFromName(std::string_view name);
OpClass OpClassOf(OpKind kind);

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>>;
using Attributes = std::map<std::string, Attribute, std::less<>>;

// One half-transfer of an exchange. Over a bridge: this rank's rows in one direction; which peers and which samples are
// rows of the bridge table, and how many tensor rows a sample has comes from `sample_rows`, which both sides read from
// the token ids. Between pipeline stages of a module: a whole value; the peer is the rank with the same other
// coordinates, `shift` stages on.
struct ExchangePart {
  std::string bridge;     // empty: between stages
  bool backward = false;  // false: encoder output or activations, true: their gradient
  bool send = false;
  std::string value;        // sent value, or name of the received output
  std::string sample_rows;  // bridge only: int64 [samples of this rank's lane], host
  std::string group;        // between stages only: "language.pp"
  int shift = 0;            // between stages only: +1 the next stage, -1 the one before
};

struct Instruction {
  OpKind kind{};
  std::vector<std::string> inputs;      // values read, in the order of the op's operands (ops.def)
  std::vector<std::string> parameters;  // slots of the call's frame that are read: "in_proj"
  std::vector<std::string> gradients;   // slots of the call's frame whose gradient is added to
  std::vector<Output> outputs;          // values made
  std::vector<std::string> frees;       // values dropped when the instruction is done
  Attributes attributes;
  std::string group;                // kCommunication: name in Plan::groups
  std::vector<ExchangePart> parts;  // exchange only
  // call only: the block, the frame that its parameters, saved values and layer index belong to, and the microbatch
  // (-1 inside a block: that of the enclosing call).
  std::string block, frame;
  int microbatch = -1;
  // Where it runs, never when: a program is sequential by definition, and what an instruction must wait for on other
  // streams follows from what both touch (stream_order.h). "" is the main stream. A call has none.
  std::string stream;
  int origin = -1;  // index in Plan::origins, -1: that of the enclosing block or role

  // Attributes that must be there: verified plans have those of ops.def.
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;  // integer or real
  const std::string& text(std::string_view name) const;
  // Null: absent, or of another type.
  const int64_t* FindInteger(std::string_view name) const;
  const std::string* FindText(std::string_view name) const;
  const std::vector<int64_t>* FindIntegers(std::string_view name) const;
  bool over_cp() const;  // attribute cp is above 1: the instruction sees a part of the sequence, or of the lane
};

// A value of a block that `--probe` writes at the first step, with the name it gets: "{layer}" is the frame's layer.
struct Probe {
  std::string value, name;
};

// A named list of instructions. Names inside are local to one call. `saved` values outlive the call in the frame
// (frame, microbatch) and are read by the block that `takes` them: the backward of the same layer and microbatch.
struct Block {
  std::string name;  // "language.mamba.forward"
  std::string module;
  std::vector<Output> inputs;
  std::vector<std::string> outputs;  // names of inner values, in the order the call names them
  std::vector<std::string> saved;
  std::vector<Output> takes;
  std::vector<Probe> probes;
  std::vector<Instruction> body;
  int origin = -1;
};

}  // namespace planwright
