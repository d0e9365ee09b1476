// The table of operations, read: what is said once of each kind in ops.def. Lowering writes instructions without
// looking here; `verify`, `estimate`, `diff`, `launch` and the reference page (docs/operations.md) take what they know
// of a kind from here, so the two stay independent.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/expression.h"
#include "planner/plan/instruction.h"

namespace planwright {

enum class AttributeType { kInteger, kReal, kText, kIntegers };
std::string_view AttributeTypeName(AttributeType type);  // "int", "real", "text", "ints"

// Where the value of an attribute comes from, and so who refuses a wrong one.
enum class AttributeSource {
  // a constant of the module, or a size that follows from constants, the batch and the grid: `values` and `when` say
  // which
  kFormula,
  kLayout,  // it follows from the layouts of the operands, or from the group: the rules of layouts judge it
  kFree,    // it names something (a module, a bucket, an accumulator): the rules of what it names judge it
};

struct AttributeSpec {
  std::string name;
  AttributeType type = AttributeType::kInteger;
  AttributeSource source = AttributeSource::kFree;
  // kFormula: what it may be, over Module::constants, axes, `sequence`, `samples`, `image_token`, `trains_backbone`
  std::vector<Expression> values;
  std::optional<Expression> when;  // kFormula: it is there where this is not 0, and nowhere else; none: always
  bool optional = false;           // kLayout, kFree: it may be absent
  std::optional<double> runs;      // the only value that this version's executor runs; none: any
};

// What an instruction does to state beside its operands: "%{module}.gradients.{bucket}", with attributes in braces.
struct StateEffect {
  std::string resource;
  bool writes = false;
};

struct OpInfo {
  OpKind kind{};
  std::string_view name;
  OpClass op_class{};
  bool planned = false;  // the planner lowers and proves it, this version's executor does not run it
  std::string does;      // the contract, in words
  // index notation, of compute instructions (verify/shared/op_signature.h); _cp: where the attribute cp is above 1
  std::string operands, operands_cp;
  // How many values it reads and makes, where no index notation says so. Calls have those of their block, exchanges one
  // for each part that is received, reads those of read_problem.h.
  struct Values {
    std::vector<size_t> inputs = {0};  // any of these
    size_t outputs = 0;
  } values;
  bool counts_on_host = false;  // the integers that it makes are counts of rows, in host memory whatever the device
  std::vector<AttributeSpec> attributes;
  // Of a backward kind: the forward kind that it differentiates and "operands -> results" (verify/v5_samples_and_gradients/backward_table.h).
  struct Transpose {
    std::string forward, operands;
    bool over_cp = false;
  };
  std::vector<Transpose> transposes;
  // Inputs that must be what samples brought, where other values have the same type.
  struct Meaning {
    size_t place = 0;
    bool over_cp = false;
    std::string what;
  };
  std::vector<Meaning> meanings;
  // What a communication, or a slice, does to a value over the axes of its group.
  struct Moves {
    enum class Form { kPartial, kWhole, kCut };
    Form from{}, to{};
    std::string dim;  // the attribute that names the dim of a cut; empty: neither is one
  };
  std::optional<Moves> moves;
  // endings of the published names of its parameters, in order, where shapes do not tell them apart
  std::vector<std::string> published;
  std::vector<StateEffect> effects;
  std::optional<Expression> flops;  // over i0, o0 and attributes (docs/flops.md); none: not counted
  bool passes_gradient = false;     // a gradient passes unchanged but for its layout: moved, joined, cut, or added
  bool keeps_meaning = false;       // what it makes is what it was given, or a part of it
  bool own_rows = false;            // members of the group may bring different numbers of rows

  const AttributeSpec* FindAttribute(std::string_view attribute) const;
};

const OpInfo& InfoOf(OpKind kind);
// Every kind, in the order of OpKind.
const std::vector<OpInfo>& AllOps();

// The table as the reference page.
std::string OperationsReference();

}  // namespace planwright
