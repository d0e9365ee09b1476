// The table of operations (ops.def) as structs: everything that is said about each kind of instruction. The head of
// ops.def explains the notation of the texts.
//
// Blocks are derived from it (schedule/derive), and `verify`, `estimate`, `diff` and the generated page
// docs/operations.md take what they know about a kind from here. So a mistake in the table is one of the maker and of
// the rules alike. Two tests find it: they compare `transposes` and the dims that may be cut with what the handlers do
// (docs/adding.md#an-operation).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/expression.h"
#include "planner/plan/instruction.h"
#include "planner/plan/op_signature.h"

namespace planwright {

enum class AttributeType { kInteger, kReal, kText, kIntegers };
std::string_view AttributeTypeName(AttributeType type);  // "int", "real", "text", "ints"

// Where the value of an attribute comes from. This decides which rule of verify/ refuses a wrong value.
enum class AttributeSource {
  kFormula,  // `values` and `when` of the spec compute it from constants of the module, the batch and the grid
  kLayout,   // it follows from the layouts of the operands or from the group: the layout rules check it
  kStated,   // the statement of the model says it, compute by compute; absent if it is 0 or the statement is silent
  kFree,     // it names a module, a bucket or an accumulator: the rules about that thing check it
};

// One line `attribute` of an entry.
struct AttributeSpec {
  std::string name;
  AttributeType type = AttributeType::kInteger;
  AttributeSource source = AttributeSource::kFree;
  // kFormula: the allowed values. Formulas may use Module::constants by name, the sizes of axes ("tp"), `sequence`
  // (tokens of a sample), `samples` (of a microbatch on a lane), `image_token`, `trains_backbone` and `in_step` (0 in
  // the blocks of an evaluation, 1 in all others).
  std::vector<Expression> values;
  std::optional<Expression> when;  // kFormula: the attribute is present exactly where this is not 0; none: always
  bool optional = false;           // kLayout, kFree: it may be absent; kStated: always

  // Whether the model decides its value.
  bool of_model() const { return source == AttributeSource::kFormula || source == AttributeSource::kStated; }
};

// State that an instruction reads or writes beside its operands.
struct StateEffect {
  std::string resource;  // "%{module}.gradients.{bucket}": attributes of the instruction replace names in braces
  bool writes = false;
};

struct OpInfo {
  OpKind kind{};
  std::string_view name;  // in plan files: "all_gather"
  OpClass op_class{};
  std::string does;             // what it computes, in words
  std::string names, names_cp;  // operands by name and shape, for people; _cp: where the attribute cp is above 1
  std::string formulas;         // "docs/PAGE.md#HEADING"; empty: none
  // The operands of a compute instruction in index notation. None: the kind is no compute instruction, or it is a
  // slice, which only changes the layout of a value. _cp: as of names.
  std::optional<OpSignature> signature, signature_cp;
  std::string operands, operands_cp;  // as they are written
  // How many values it reads and makes, for kinds without index notation. The counts of a call are those of its block.
  // An exchange makes one value for each part that it receives. The outputs of reads of samples have rules of their
  // own in verify/.
  struct Values {
    std::vector<size_t> inputs = {0};  // any of these counts
    size_t outputs = 0;
  } values;
  bool counts_on_host = false;  // its integer outputs are row counts, in host memory on every device
  std::vector<AttributeSpec> attributes;
  // What dims of the index notation must be, by formulas over attributes and names of other dims.
  struct Size {
    std::string name;
    Expression value;
    bool rounded_up = false;  // to a whole number
  };
  std::vector<Size> sizes;
  struct Parts {
    std::string name;
    std::vector<Expression> sizes;  // one after the other; empty: they are the segments of the parameter, or passed
    bool more = false;              // others follow that the kind does not look into
    bool passed = false;            // those of the input with such a dim, whatever they are; outputs have them too
    bool of_weight() const { return sizes.empty() && !more && !passed; }
  };
  std::vector<Parts> parts;
  // Rows whose number is a run-time size.
  struct Rows {
    std::vector<std::string> names;  // of dims
    std::string size;                // "patches": the run-time size {module}.patches
  };
  std::vector<Rows> rows;
  bool cp_by_features = false;  // cp cuts features, and parameters are whole over it (attribute parameter_cp)
  // Backward kinds: what they differentiate. A kind with a rule for cp has a plain one before it.
  std::vector<GradientRule> transposes;
  std::vector<std::string> transposes_texts;  // of each rule, as it is written
  // Inputs that other values could replace without a type error, and what they must be.
  struct Meaning {
    size_t input = 0;      // index of the input
    bool over_cp = false;  // the line is for cp above 1
    std::string what;      // "labels"
  };
  std::vector<Meaning> meanings;
  // What a communication, or a slice, does to a value over the axes of its group.
  struct Moves {
    enum class Form { kPartial, kWhole, kCut };
    Form from{}, to{};
    std::string dim;  // the attribute that names the cut dim; empty: neither form is kCut
  };
  std::optional<Moves> moves;
  // Endings of the published names of its parameters, in order (".A_log"). Empty: shapes tell its parameters apart.
  std::vector<std::string> published;
  std::vector<StateEffect> effects;
  std::optional<Expression> flops;      // over operands ("rows(o0)") and attributes (docs/flops.md); none: not counted
  std::string fast;                     // which instructions take its fast form on a GPU, in words; empty: it has none
  std::optional<Expression> workspace;  // as flops: bytes of temporary tensors of its fast form; none: 0
  bool mixing = false;                  // these FLOPs are of values with values, without weights
  // The input whose memory the first output takes over where it dies with the instruction.
  std::optional<size_t> overwrites;
  // The gradient of these inputs is that of its output, up to layout: the value is moved, joined, cut or added.
  bool passes_gradient = false;
  std::vector<size_t> passing_inputs;  // empty: every input
  std::optional<OpKind> on_one_rank;   // it stands in place of this kind, where the layout needs it
  std::optional<OpKind> computes_as;   // what it computes, from operands that are arranged in another way
  bool keeps_meaning = false;          // its output means what its input means, or is a part of it
  bool elementwise = false;            // bound by memory: `recompute: elementwise` runs it again
  bool own_rows = false;               // members of the group may have different numbers of rows

  bool PassesGradient(size_t input) const;
  // Whether the kind only moves, joins, cuts or adds values: it passes gradients and has no parameters.
  bool OnlyMoves() const;
  // The run-time size of a first dim of this name, without its module ("patches"); null: the table says none.
  const std::string* FindRows(std::string_view dim) const;
  const AttributeSpec* FindAttribute(std::string_view attribute) const;  // null: the kind has no such attribute
};

const OpInfo& InfoOf(OpKind kind);
// The operands of an instruction; null: its kind has no index notation.
const OpSignature* SignatureOf(const Instruction& instruction);
// Every kind, in the order of OpKind. Parsed when it is first asked for.
const std::vector<OpInfo>& AllOps();

// The text of docs/operations.md.
std::string OperationsReference();

}  // namespace planwright
