// The type of a value of a program: element type, dims, and how the value lies over the axes of its module; and the
// text of a type, as plan files and `plan show` have it:
//
//   fp32[24,1,64] tp:shard0 | tp:partial    element type, dims, layout of the value | layout of its gradient
//   int64[4] host                           in host memory; takes no gradient
//
// An axis that is not named is replicated. A dim that is a word is a size at run time (Plan::symbols).
#pragma once

#include <cstdint>
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
int64_t DTypeBytes(DType dtype);  // of one element

// A dim: its size, or the name of a symbol, whose value is known at run time and whose maximum is in Plan::symbols.
using Dim = std::variant<int64_t, std::string>;

// How the pieces on the ranks along one axis make up the whole value.
struct AxisLayout {
  enum class State {
    kReplicated,  // each rank has all of it
    kSharded,     // each rank has a part of dim `dim`
    kPartial,     // each rank has a term of a sum
  };
  State state = State::kReplicated;
  int dim = 0;  // kSharded: the tensor dim that is cut; pieces are in the order of coordinates
  // kSharded: the dim is cut in 2n chunks, and coordinate r of n has the chunks r and 2n-1-r. So every rank has the
  // same work in causal attention (docs/layouts/sequence.md#context-parallelism).
  bool zigzag = false;
  bool operator==(const AxisLayout&) const = default;
};

// How a value lies over each axis of its module. An axis that is absent is replicated.
//
// Not written: dp. Every activation belongs to its lane, so samples are always cut over dp.
// Order: where several axes cut one dim, a zigzag cut comes first. The others follow in the order of the axes, and each
// cuts what the one before left: the sequence over cp, then tp; features over tp, then cp.
// Expert rows: behind the token dispatch, rows belong to their rank. Over expert_tp they are pieces of what its ranks
// gather; over the other axes they have no layout.
using Layout = std::map<Axis, AxisLayout>;

struct ValueType {
  DType dtype = DType::kFp32;
  std::vector<Dim> dims;
  Layout layout;                   // of the value
  std::optional<Layout> gradient;  // of its gradient; none: it takes no gradient
  bool host = false;               // in host memory on every device (row counts, image grids)
};

// A named value with its type: an output of an instruction, or an input of a block.
struct Output {
  std::string name;
  ValueType type;
};

// The text of a type. A bug if a symbol's name has a comma, bracket or space.
std::string TypeText(const ValueType& type);
std::optional<ValueType> TypeFromText(std::string_view text);  // none: not the text of a type

// "name: type"
std::string OutputText(const Output& output);
std::optional<Output> OutputFromText(std::string_view text);

}  // namespace planwright
