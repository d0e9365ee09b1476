#include "planner/plan/statement/operand_sizes.h"

#include <cmath>
#include <cstddef>
#include <limits>

#include "absl/strings/str_cat.h"

namespace planwright {

using std::string;

string OperandSizes::Bind(const OperandSignature& operand, const Shape& shape) {
  const size_t own = operand.dims.size();
  if (operand.leading ? shape.size() < own : shape.size() != own) return "of another number of dims";
  const size_t leading = shape.size() - own;
  if (operand.leading) {
    const Shape first(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(leading));
    if (!leading_) leading_ = first;
    if (*leading_ != first) return "with other leading dims";
  }
  for (size_t i = 0; i < own; ++i) {
    const SignatureDim& dim = operand.dims[i];
    const double size = shape[leading + i];
    if (dim.number >= 0 && size != static_cast<double>(dim.number)) return absl::StrCat("without a dim ", dim.number);
    if (!dim.name.empty() && dim.factors.empty() && !Fix(dim.name, size)) return absl::StrCat("of another ", dim.name);
    if (!dim.factors.empty()) products_.emplace_back(&dim, size);
  }
  return "";
}

double OperandSizes::Find(const string& name) const {
  const auto found = sizes_.find(name);
  return found == sizes_.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
}

double OperandSizes::Product(const SignatureDim& dim) const {
  double product = 1;
  for (const string& factor : dim.factors) product *= Find(factor);
  return product;
}

bool OperandSizes::ProductsFit() const {
  for (const auto& [dim, size] : products_) {
    const double product = Product(*dim);
    if (!std::isnan(product) && product != size) return false;
  }
  return true;
}

OperandSizes::Shape OperandSizes::Make(const OperandSignature& operand) const {
  Shape shape = operand.leading ? leading_.value_or(Shape()) : Shape();
  for (const SignatureDim& dim : operand.dims) {
    shape.push_back(dim.number >= 0       ? static_cast<double>(dim.number)
                    : dim.factors.empty() ? Find(dim.name)
                                          : Product(dim));
  }
  return shape;
}

}  // namespace planwright
