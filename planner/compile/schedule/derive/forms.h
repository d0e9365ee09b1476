// How the ranks along an axis hold the operands of a compute, by its entry in ops.def alone. One index of the index
// notation is cut over an axis; an operand that has it must be cut along it, an output that has it is, and an output
// that lacks it is a term of a sum (docs/layouts/sequence.md). verify/v4_values states the same rules again, by itself.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/compile/schedule/derive/derived_piece.h"
#include "planner/compile/schedule/derive/piece_context.h"
#include "planner/plan/op_table.h"

namespace planwright {

// A compute before its operands are brought into the forms that it wants.
struct DerivedCompute {
  OpKind kind{};
  Attributes attributes;
  std::vector<size_t> inputs;
  std::vector<std::string> slots;          // that it reads
  std::vector<DerivedSlot> slots_on_rank;  // the same, as the rank holds them
  std::vector<DerivedSlot> adds_to;        // of a backward: to whose gradients it adds where they learn

  // Of its kind, over cp if it has the attribute.
  const OpSignature& signature() const;
};

// The dims of an operand with `dims` dims: the index of one (leading dims have '0', '1', ...), and the first with an
// index.
char IndexOfDim(const OperandSignature& operand, size_t dims, int dim);
std::optional<int> DimOfIndex(const OperandSignature& operand, size_t dims, char index);

// The index of a compute that is cut over an axis.
struct CutIndex {
  char index = 0;  // 0: none
  bool zigzag = false;
};

class FormRules {
 public:
  FormRules(const PieceContext& context, const DerivedPiece& piece) : context_(context), piece_(piece) {}

  // The first of: a weight's cut; the cut that an input has, if it may stay; over cp the positions; over cp the
  // features, for kinds that work by features; over tp the positions of add_images; the first leading dim.
  CutIndex CutOver(Axis axis, const DerivedCompute& compute) const;

  // Types of the outputs, once all inputs have the forms that are wanted. No gradient layouts.
  std::vector<ValueType> OutputTypes(const DerivedCompute& compute) const;
  // The layout of one of them, which has `dims` dims.
  Layout OutputLayout(const DerivedCompute& compute, const OperandSignature& output, size_t dims) const;

 private:
  AxisLayout OutputOver(Axis axis, const DerivedCompute& compute, const OperandSignature& output, size_t dims) const;
  CutIndex CutOfWeight(Axis axis, const DerivedCompute& compute) const;
  bool HasTermOver(Axis axis, const DerivedCompute& compute) const;
  const AxisLayout* Along(Axis axis, size_t value) const;

  const PieceContext& context_;
  const DerivedPiece& piece_;
};

// The sizes of the dims of a compute, by their names in ops.def.
class DimSizes {
 public:
  DimSizes(const PieceContext& context, const DerivedPiece& piece, const DerivedCompute& compute);
  std::vector<Dim> Of(const OperandSignature& operand) const;

 private:
  void Bind(const OperandSignature& operand, const std::vector<Dim>& dims);
  void Compute(const DerivedCompute& compute);
  Dim SizeOf(const SignatureDim& dim) const;

  const PieceContext& context_;
  const OpKind kind_;
  std::map<std::string, Dim> sizes_;
  std::vector<Dim> leading_;
};

}  // namespace planwright
