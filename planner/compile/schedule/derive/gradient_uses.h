// Which values of a forward take gradients, from how many uses, and in which order the backward visits the forward.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "planner/compile/schedule/derive/derived_piece.h"

namespace planwright {

class GradientUses {
 public:
  // Of a forward without its backward.
  explicit GradientUses(const DerivedPiece& piece);

  // A gradient can come for the value: it is an input that takes one, or is computed from such values or from weights.
  bool TakesGradient(size_t value) const { return takes_.contains(value); }
  // How many gradients come: one from each use, and one for an output.
  size_t CountOf(size_t value) const;
  // The name of the gradient of this type that comes from `reader`, which has used the value.
  std::string NameOfTerm(size_t value, const DerivedStep& reader, const ValueType& type) const;

 private:
  const std::string& MadeBy(const DerivedStep& step) const;

  const DerivedPiece& piece_;
  std::set<size_t> takes_;
  std::map<size_t, size_t> counts_;
};

// Whether the ranks along the axis hold terms of a sum.
bool IsTermOver(const ValueType& type, Axis axis);

// The steps of the forward from the last to the first. Conversions of one reader come the last axis first, and over an
// axis in the order of the inputs.
std::vector<size_t> StepsInReverse(const DerivedPiece& piece);

}  // namespace planwright
