#include "planner/estimate/op_flops.h"

#include <functional>
#include <numeric>

namespace planwright {
namespace {

using Shape = std::vector<double>;

double Elements(const Shape& shape) { return std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies<>()); }
double Last(const Shape& shape) { return shape.empty() ? 0 : shape.back(); }
// Elements of all dims but the last.
double Rows(const Shape& shape) { return Last(shape) > 0 ? Elements(shape) / Last(shape) : 0; }

double Attribute(const Instruction& instruction, const char* key, double absent) {
  const auto it = instruction.attributes.find(key);
  if (it == instruction.attributes.end()) return absent;
  const auto* number = std::get_if<int64_t>(&it->second);
  return number ? static_cast<double>(*number) : absent;
}

// Scores and their product with v, of the causal half.
double Attention(const Instruction& instruction, const Shape& a) {
  if (a.empty()) return 0;
  const double whole = a[0] * Attribute(instruction, "cp", 1);
  return 2 * Rows(a) * whole * Attribute(instruction, "q_heads", 0) * Attribute(instruction, "head_dim", 0);
}

double PackedAttention(const Instruction& instruction, const Shape& a, double image_rows) {
  const double rows = image_rows + Attribute(instruction, "class_tokens", 0);
  return 4 * Rows(a) * rows * Attribute(instruction, "heads", 0) * Attribute(instruction, "head_dim", 0);
}

double Scan(const Instruction& instruction, const Shape& xbc) {
  return 7 * Rows(xbc) * Attribute(instruction, "inner", 0) * Attribute(instruction, "state", 0);
}

}  // namespace

double OpFlops(const Instruction& instruction, const std::vector<Shape>& shapes, double image_rows) {
  const size_t inputs = instruction.inputs.size();
  static const Shape kUnknown;
  const auto in = [&](size_t i) -> const Shape& { return i < inputs && i < shapes.size() ? shapes[i] : kUnknown; };
  const auto out = [&](size_t i) -> const Shape& { return inputs + i < shapes.size() ? shapes[inputs + i] : kUnknown; };
  const double weights = instruction.gradients.empty() ? 0 : 1;
  switch (instruction.kind) {
    case OpKind::kLinear:
    case OpKind::kLinearInputGrad: return 2 * Elements(out(0)) * Last(in(0));
    case OpKind::kLinearWeightGrad: return 2 * Elements(in(0)) * Last(in(1));
    case OpKind::kExperts: return 4 * Elements(in(0)) * Last(out(1));
    case OpKind::kExpertsGrad: return 4 * Elements(in(0)) * Last(in(3)) * (1 + weights);
    case OpKind::kRoute: return 2 * Elements(in(0)) * Last(out(3));
    case OpKind::kRouteGrad: return 2 * Elements(in(1)) * Last(in(4)) * (1 + weights);
    case OpKind::kCausalAttention: return Attention(instruction, out(0));
    case OpKind::kCausalAttentionGrad: return 2 * Attention(instruction, in(0));
    case OpKind::kPackedAttention: return PackedAttention(instruction, out(0), image_rows);
    case OpKind::kPackedAttentionGrad: return 2 * PackedAttention(instruction, in(0), image_rows);
    case OpKind::kMambaScan: return Scan(instruction, in(0));
    case OpKind::kMambaScanGrad: return 2 * Scan(instruction, in(0));
    default: return 0;
  }
}

}  // namespace planwright
