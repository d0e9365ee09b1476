// The table of operations, run: every compute kind with sizes, attributes and values that suit it. adjoint_test and
// cut_test ask of each entry of ops.def whether the handlers do what it says. Operands are wired as the entries say,
// and not by hand. So a new kind needs a case in op_cases.cc and no code of its own.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "executor/ops/handler.h"
#include "planner/plan/op_table.h"

namespace planwright::executor::op_cases {

// What these tests read of an entry of ops.def. Mutants change the texts.
struct Entry {
  std::string name;
  OpKind kind{};
  std::string operands, operands_cp;  // index notation; _cp: "" if cp above 1 changes nothing
  std::vector<OpInfo::Parts> parts;
  // A line `transposes`: "linear: do0 -> di0".
  struct Transpose {
    std::string text;
    bool over_cp = false;

    const GradientRule& rule() const;  // a text is read once
  };
  std::vector<Transpose> transposes;

  const OpSignature& signature(bool over_cp) const;  // a text is read once
};

// How the dims of one index are cut, beside their lines `parts`. What no line says: each dim has as many units as
// elements, no attribute counts it, and parts may be uneven.
struct CutLine {
  std::string kinds;  // "mamba_scan mamba_scan_grad"
  char index = 0;     // as in the notation; leading dims are 0, 1, ...
  std::string units;  // formula: how many equal pieces there are, which are never taken apart. Empty: each element
  std::string along;  // attributes that count the part
  bool even = false;  // a rank finds its part by its coordinate, so all are equal
};

struct Table {
  std::vector<Entry> entries;  // of compute kinds, in the order of ops.def
  std::vector<CutLine> cuts;

  const Entry& operator[](const std::string& name) const;
  Entry& operator[](const std::string& name);
};

// What ops.def does not say of cuts.
const std::vector<CutLine>& CutLines();

// ops.def, and beside it what it does not say.
Table OpsTable();

// Makes an operand of a shape, in which -1 is a size that only the values know.
using Values = std::function<at::Tensor(at::IntArrayRef shape)>;

// Values by name. An operand of stage k of a case is "k.i0" (input 0), "k.p0" (parameter 0), "k.o0" (output 0), "k.di0"
// or "k.dp0" (gradient of an input or a parameter), "k.do0" (gradient of an output).
using Named = std::map<std::string, at::Tensor>;

struct OpCase {
  // One forward kind, or several of which each reads outputs of the ones before, as a backward reads values of all.
  struct Stage {
    std::string kind;
    std::map<size_t, std::string> links = {};  // by input: the output that it is
  };
  std::string name;
  std::vector<Stage> stages;
  std::string sizes;  // of the names in the notation: "t 24, B 2"
  Attributes attributes = {};
  // Of integers, of optional operands that are present, and where numbers must be in a range. Others are normal.
  std::map<std::string, Values> values = {};
  std::vector<int64_t> leading = {};     // sizes of the leading dims
  std::vector<int64_t> parts_of_f = {};  // of a kind that joins or splits dim f: what it joins, or splits into
  int cp = 1, cp_rank = 0;               // a run with operands_cp
  int ep = 1, ep_rank = 0;
  std::map<std::string, double> cotangents = {};           // gradients of outputs that a rule gives and no operand
  std::map<std::string, std::string> gradient_parts = {};  // "i0": formulas of the sizes of its parts (di0.1)
  // Inputs that are data, though real: nothing differentiates for them.
  std::vector<std::string> data = {};
  bool cut_over_cp_only = false;  // it is large: adjoint_test leaves it out, cut_test cuts only positions
  std::vector<int> parts = {2, 3, 4};
};

const std::vector<OpCase>& Cases();

// A mistake in a case or in these tests, not in what they judge.
struct CaseError : std::logic_error {
  using std::logic_error::logic_error;
};

// The value of a formula over attributes.
int64_t Number(const Expression& formula, const Attributes& attributes);
int64_t Number(const std::string& formula, const Attributes& attributes);
std::vector<int64_t> Numbers(const std::string& formulas, const Attributes& attributes);  // with commas between them

// How many operands of a list the case gives: input, parameter, ... `prefix` is "0.i".
size_t CountOf(const OpCase& c, const std::vector<OperandSignature>& list, const std::string& prefix);

// Where an instruction runs.
struct RankCoordinates {
  int tp = 1, tp_rank = 0, cp = 1, cp_rank = 0, ep = 1, ep_rank = 0;
};

// The real handler of a kind. `outputs`: shapes of the outputs, for a kind that reads them from its instruction.
Tensors RunKind(const Entry& entry, const Attributes& attributes, const RankCoordinates& rank, const Tensors& inputs,
                const Tensors& parameters, const Tensors& gradients, const Tensors& outputs = {});

// The operands of a case that no stage makes: random, the same in each call.
Named FreshOperands(const Table& table, const OpCase& c);

// These and what the stages make of them.
Named RunForward(const Table& table, const OpCase& c, const Named& fresh);

// The operands and results of a line `transposes`, by name. What is of an instruction that the case lacks, though the
// line has it in brackets, is "-.i1".
struct GradientNames {
  std::vector<std::string> operands, results;
};
// None: the stages of the case are not what the line differentiates.
std::optional<GradientNames> NamesIn(const OpCase& c, const Entry::Transpose& line);

// What a backward kind reads and makes in a case, by name.
struct Wiring {
  const Entry* entry = nullptr;
  size_t line = 0;  // among its transposes
  std::vector<std::string> operands, results, parameters, gradients;
};

// The backward kinds of the case's forward kinds, one line of each.
std::vector<Wiring> BackwardOf(const Table& table, const OpCase& c);

// Adds random gradients of the outputs that any of the kinds reads.
void AddCotangents(const OpCase& c, const std::vector<Wiring>& backward, Named& values);

// What a backward kind makes of `values`: its results, and what it adds to gradients.
struct Gradients {
  Tensors results, added;
};
Gradients RunBackward(const OpCase& c, const Wiring& wiring, const Named& values);

Tensors Of(const Named& values, const std::vector<std::string>& names);

}  // namespace planwright::executor::op_cases
