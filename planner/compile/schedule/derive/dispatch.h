// The token dispatch (docs/model/mixture_of_experts.md#token-dispatch). Operands of the mark ! (ops.def) have a place
// in place of forms over tp and cp: rows are where their tokens are, or with their experts. Between the two go
// all-to-alls over ep; or all tokens are gathered over ep, and sums of theirs are scattered. Over expert_tp rows are
// pieces of what its ranks gather, because each of them has a part of every expert.
#pragma once

#include <vector>

#include "planner/compile/schedule/derive/conversions.h"
#include "planner/compile/schedule/derive/forms.h"
#include "planner/plan/op_table.h"

namespace planwright {

class Dispatch {
 public:
  Dispatch(const PieceContext& context, DerivedPiece& piece, Conversions& conversions)
      : context_(context), piece_(piece), conversions_(conversions) {}

  // Whether the operand lies behind the dispatch.
  static bool Concerns(const OperandSignature& operand) { return operand.of_rank; }

  // Brings those operands of the compute that lie behind the dispatch to where it wants them. All go over ep before any
  // goes over expert_tp.
  void BringOperands(DerivedCompute& compute);

  // What a compute has made: says where it lies. Sums of the tokens of all ranks are scattered at once; the result is
  // the form to go on with.
  size_t Made(const DerivedCompute& compute, const OperandSignature& operand, size_t output);

 private:
  bool ReadsWithExperts(const DerivedCompute& compute) const;
  size_t Counts(bool gathered);
  size_t ToExperts(size_t rows);
  size_t ToTokens(size_t rows, const Dim& count);
  size_t GatherRows(size_t rows);
  size_t ScatterRows(size_t terms);
  size_t GatherTokens(size_t tokens);
  size_t CountsForm(OpKind kind, size_t from, std::vector<Dim> dims, const char* suffix);
  std::optional<size_t> FindForm(size_t value, OpKind made_by) const;

  const PieceContext& context_;
  DerivedPiece& piece_;
  Conversions& conversions_;
};

}  // namespace planwright
