// Brings values of a forward from the forms that they have into the forms that are wanted, over tp and cp:
//
//   term  -> whole   all_reduce, over tp and cp at once where both are needed
//   term  -> cut     reduce_scatter
//   cut   -> whole   all_gather
//   cut   -> cut     along another dim, over cp: reshard
//   whole -> cut     local_slice
//
// Values are joined over tp before cp, and cut over cp before tp. A form that exists is used again. A reduction stands
// right behind the instruction that made the term, a slice of what the piece is given at its start, and every other
// conversion before its first reader. Rows that are counted at run time take the kinds that read their counts.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "planner/compile/schedule/derive/derived_piece.h"
#include "planner/compile/schedule/derive/piece_context.h"

namespace planwright {

// For each axis: the dim that is cut over it; none: the value is whole. An axis that is absent: as it likes.
using WantedForm = std::map<Axis, std::optional<int>>;

class Conversions {
 public:
  Conversions(const PieceContext& context, DerivedPiece& piece) : context_(context), piece_(piece) {}

  // What is converted from here on is for another reader.
  void StartReader() { ++reader_; }

  size_t Bring(size_t value, const WantedForm& wanted);

  // Adds a conversion of the first input to the forward. `pass`: DerivedStep::pass; the reader is the present one.
  size_t Emit(OpKind kind, std::vector<size_t> inputs, DerivedValue output, Attributes attributes,
              const std::string& group, int pass);

  // A new form of the value, of which the caller changes the type. `suffix`: of its name.
  DerivedValue FormOf(size_t value, const char* suffix) const;
  // The same, where the new form takes over the stated name, and the form before it gets the suffix if it had it.
  DerivedValue SuccessorOf(size_t value, const char* suffix);

 private:
  bool Fits(size_t value, Axis axis, const std::optional<int>& wanted) const;
  size_t NearestForm(size_t value, const WantedForm& wanted) const;
  size_t Join(size_t value, Axis axis, const std::optional<int>& wanted);
  size_t AllReduce(size_t value, const std::vector<Axis>& axes);
  size_t ReduceScatter(size_t value, Axis axis, int dim);
  size_t AllGather(size_t value, Axis axis);
  size_t Reshard(size_t value, int to_dim);
  size_t Slice(size_t value, Axis axis, int dim);
  const AxisLayout* Along(size_t value, Axis axis) const;
  bool IsZigzag(Axis axis) const { return axis == Axis::kCp && context_.statement().zigzag; }

  const PieceContext& context_;
  DerivedPiece& piece_;
  int reader_ = 0, pass_ = 0;
  std::ptrdiff_t slices_of_inputs_ = 0;
};

// The short name of the group over an axis.
std::string GroupOver(Axis axis);

}  // namespace planwright
