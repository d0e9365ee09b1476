// The sizes of the named dims of one compute on one rank. The first operand that has a name gives it its size.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/plan/op_signature.h"

namespace planwright {

class OperandSizes {
 public:
  using Shape = std::vector<double>;

  // Binds the dims of an operand. Returns what is wrong, or "".
  std::string Bind(const OperandSignature& operand, const Shape& shape);
  // Whether the name had no size, or this one.
  bool Fix(const std::string& name, double size) { return sizes_.emplace(name, size).first->second == size; }
  // NaN: the name has no size.
  double Find(const std::string& name) const;
  // Sizes that are products are compared once all names have their sizes.
  bool ProductsFit() const;
  // The shape of an output; NaN where its size is not known.
  Shape Make(const OperandSignature& operand) const;

 private:
  double Product(const SignatureDim& dim) const;

  std::optional<Shape> leading_;
  std::map<std::string, double> sizes_;
  std::vector<std::pair<const SignatureDim*, double>> products_;
};

}  // namespace planwright
