#include "planner/estimate/op_flops.h"

#include <functional>
#include <numeric>
#include <string>
#include <string_view>

#include "planner/diagnostics/bug.h"
#include "planner/plan/op_table.h"

namespace planwright {
namespace {

using Shape = std::vector<double>;

double Elements(const Shape& shape) { return std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies<>()); }
double Last(const Shape& shape) { return shape.empty() ? 0 : shape.back(); }
// Elements of all dims but the last.
double Rows(const Shape& shape) { return Last(shape) > 0 ? Elements(shape) / Last(shape) : 0; }

// The operand that "rows(i0)" speaks of: inputs are i0, i1, ..., outputs o0, o1, ...
const Shape& Operand(const std::string& name, size_t open, size_t inputs, const std::vector<Shape>& shapes) {
  static const Shape kUnknown;
  const size_t place = static_cast<size_t>(name[open + 2] - '0'), at = name[open + 1] == 'i' ? place : inputs + place;
  return at < shapes.size() && (name[open + 1] == 'o' || place < inputs) ? shapes[at] : kUnknown;
}

}  // namespace

double OpFlops(const Instruction& instruction, const std::vector<Shape>& shapes, double image_rows) {
  const OpInfo& info = InfoOf(instruction.kind);
  if (!info.flops) return 0;
  return info.flops->Evaluate([&](const std::string& name) -> double {
    if (name == "weights") return instruction.gradients.empty() ? 0 : 1;
    if (name == "image_rows") return image_rows;
    const size_t open = name.find('(');
    if (open == std::string::npos) {
      const int64_t* attribute = instruction.FindInteger(name);
      return attribute ? static_cast<double>(*attribute) : name == "cp" ? 1 : 0;
    }
    const Shape& shape = Operand(name, open, instruction.inputs.size(), shapes);
    const std::string_view of = std::string_view(name).substr(0, open);
    if (of == "elements") return Elements(shape);
    if (of == "rows") return Rows(shape);
    if (of == "last") return Last(shape);
    Require(of == "first", "FLOPs of " + name);
    return shape.empty() ? 0 : shape.front();
  });
}

}  // namespace planwright
